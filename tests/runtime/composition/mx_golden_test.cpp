// SPDX-License-Identifier: Apache-2.0
// quantize_mx against blocks that tests/oracle/mx_golden.py computed from the formats' texts with
// exact rationals: the interpreter and every tier.
#include <fmt/format.h>

#include <fstream>
#include <map>
#include <sstream>

#include "ir/composition/mx_formats.hpp"
#include "ir/text/text.hpp"
#include "tests/support/on_every_engine.hpp"

namespace castor::test {
namespace {

struct Block {
  std::string tensor_scale;
  std::string scale;
  std::string elements;  ///< empty where any do
  std::string x;
};

/// Blocks by type of x, format and rule.
using Blocks = std::map<std::array<std::string, 3>, std::vector<Block>>;

Blocks golden_blocks() {
  Blocks blocks;
  std::ifstream file(std::string(CASTOR_TEST_DATA) + "/mx_golden.csv");
  std::string line;
  std::getline(file, line);  // where the file comes from
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::array<std::string, 7> cells;
    for (std::string& cell : cells) std::getline(fields, cell, ',');
    blocks[{cells[0], cells[1], cells[2]}].push_back({cells[3], cells[4], cells[5], cells[6]});
  }
  return blocks;
}

void append_codes(std::vector<uint64_t>& codes, const std::string& text, int bits) {
  const auto digits = static_cast<size_t>((bits + 3) / 4);
  for (size_t at = 0; at < text.size(); at += digits) {
    codes.push_back(std::stoull(text.substr(at, digits), nullptr, 16));
  }
}

/// Some blocks as the rows of a matrix.
struct Matrix {
  Patterns x;
  Patterns elements;
  Patterns scales;
};

Matrix matrix_of(const std::vector<Block>& blocks, ElementType source, const MxFormat& format) {
  Matrix matrix{{source, {}, {}}, {format.element, {}, {}}, {format.scale, {}, {}}};
  for (const Block& block : blocks) {
    append_codes(matrix.x.elements, block.x, bits_of(source));
    append_codes(matrix.elements.elements, block.elements, 8);
    append_codes(matrix.scales.elements, block.scale, 8);
  }
  const auto rows = static_cast<int64_t>(blocks.size());
  matrix.x.shape = matrix.elements.shape = {rows, format.block};
  matrix.scales.shape = {rows, 1};
  return matrix;
}

FunctionPtr function_of(const Matrix& matrix, const MxFormat& format, const std::string& rule,
                        bool gives_scales) {
  const Patterns& result = gives_scales ? matrix.scales : matrix.elements;
  const std::string text = fmt::format(
      "func @f(%x: {}{}{}) -> {}{} {{ %y, %s = quantize_mx %x{} {{format = {}{}}} : {} "
      "return %{} }}",
      name_of(matrix.x.type), to_string(matrix.x.shape),
      format.has_tensor_scale ? ", %t: f32[]" : "", name_of(result.type), to_string(result.shape),
      format.has_tensor_scale ? ", %t" : "", format.name,
      rule.empty() ? "" : ", scale_rule = " + rule, name_of(format.element),
      gives_scales ? "s" : "y");
  const auto function = parse_function(text);
  EXPECT_TRUE(function) << function.error().to_string() << "\n" << text;
  return function ? *function : nullptr;
}

void expect_golden(const std::vector<Block>& blocks, ElementType source, const MxFormat& format,
                   const std::string& rule, bool gives_scales) {
  const Matrix matrix = matrix_of(blocks, source, format);
  const FunctionPtr function = function_of(matrix, format, rule, gives_scales);
  ASSERT_TRUE(function);
  std::vector<Patterns> operands = {matrix.x};
  if (format.has_tensor_scale) {
    Patterns& scale = operands.emplace_back(Patterns{ElementType::f32, {}, {}});
    append_codes(scale.elements, blocks.front().tensor_scale, 32);
  }
  EXPECT_EQ(mistake_anywhere(function, operands, gives_scales ? matrix.scales : matrix.elements),
            "");
}

TEST(MxGolden, EveryBlock) {
  const Blocks golden = golden_blocks();
  ASSERT_EQ(golden.size(), 4u * 6 * 3 + 3);
  size_t count = 0;
  for (const auto& [key, blocks] : golden) {
    SCOPED_TRACE(key[0] + ", " + key[1] + ", " + key[2]);
    const ElementType source = *element_type_named(key[0]);
    const MxFormat& format = *mx_format_named(key[1]);
    count += blocks.size();
    if (format.has_tensor_scale) {  // each block has one of its own
      for (const Block& block : blocks) {
        expect_golden({block}, source, format, key[2], true);
        if (!block.elements.empty()) expect_golden({block}, source, format, key[2], false);
      }
      continue;
    }
    expect_golden(blocks, source, format, key[2], true);
    std::vector<Block> numbers;
    std::ranges::copy_if(blocks, std::back_inserter(numbers),
                         [](const Block& block) { return !block.elements.empty(); });
    expect_golden(numbers, source, format, key[2], false);
  }
  EXPECT_EQ(count, 985u);
}

}  // namespace
}  // namespace castor::test
