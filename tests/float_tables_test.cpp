// SPDX-License-Identifier: Apache-2.0
// Conversions from f32 against tables that NumPy and ml_dtypes computed.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "ir/numerics/scalar.hpp"
#include "ir/numerics/unpacked.hpp"

namespace castor {
namespace {

constexpr size_t expected_rows = 60684;

template <class Word>
std::vector<Word> read_words(const std::string& name) {
  const std::string path = std::string(CASTOR_TEST_DATA) + "/float-tables/" + name;
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  std::vector<Word> words(bytes.size() / sizeof(Word));
  std::memcpy(words.data(), bytes.data(), words.size() * sizeof(Word));
  return words;
}

bool is_nan(uint64_t bits, ElementType type) {
  return numerics::decode(bits, type).kind == numerics::NumberClass::nan;
}

struct Table {
  ElementType to;
  const char* file;
};

class FloatTables : public testing::TestWithParam<Table> {};

TEST_P(FloatTables, ConvertGivesTheSameBits) {
  const auto [to, file] = GetParam();
  const auto inputs = read_words<uint32_t>("f32_in.bin");
  const auto outputs = read_words<uint16_t>(file);
  ASSERT_EQ(inputs.size(), expected_rows);
  ASSERT_EQ(outputs.size(), expected_rows);
  size_t nans = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const uint64_t actual = numerics::convert(inputs[i], ElementType::f32, to, {});
    if (is_nan(outputs[i], to)) {  // payloads differ among libraries
      ++nans;
      ASSERT_TRUE(is_nan(actual, to)) << std::hex << "row " << i << ", input 0x" << inputs[i];
    } else {
      ASSERT_EQ(actual, outputs[i]) << std::hex << "row " << i << ", input 0x" << inputs[i];
    }
  }
  EXPECT_GT(nans, 0u);
  EXPECT_LT(nans, inputs.size() / 10);
}

INSTANTIATE_TEST_SUITE_P(Types, FloatTables,
                         testing::Values(Table{ElementType::f16, "out_float16.u16"},
                                         Table{ElementType::bf16, "out_bfloat16.u16"}),
                         [](const auto& row) { return std::string(name_of(row.param.to)); });

}  // namespace
}  // namespace castor
