// SPDX-License-Identifier: Apache-2.0
// Specifications as terms against outside truth: exact rationals, the tables of NumPy and
// ml_dtypes, and the interpreter on all codes, which arithmetic_oracle_test compares with exact
// rationals.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>

#include "ir/interpreter/interpreter.hpp"
#include "ir/types/elements.hpp"
#include "tools/prove/query/subjects.hpp"
#include "tools/prove/spec/convert.hpp"
#include "tools/prove/spec/number.hpp"
#include "tools/prove/term/evaluate.hpp"
#include "tools/prove/term/exhaust.hpp"

namespace castor::prove {
namespace {

/// A conversion's specification, to be run.
class Specified {
 public:
  Specified(ElementType from, ElementType to, const ConvertOptions& options)
      : term_(specified_conversion(terms_.input("x", bits_of(from)), from, to,
                                   canonical_options(from, to, options))),
        run_(std::span(&term_, 1)) {}

  uint64_t operator()(uint64_t bits) {
    const Bits input = bits;
    return static_cast<uint64_t>(run_(std::span(&input, 1))[0]);
  }

 private:
  Terms terms_;
  Term term_;
  Evaluator run_;
};

TEST(Spec, ConversionsAreThoseOfExactRationals) {
  std::ifstream file(std::string(CASTOR_TEST_DATA) + "/convert_golden.csv");
  ASSERT_TRUE(file);
  std::map<std::string, std::unique_ptr<Specified>> conversions;
  std::string line;
  std::getline(file, line);  // where the file comes from
  std::getline(file, line);
  ASSERT_EQ(line, "from,to,overflow,rounding,nan,input,expected");
  size_t rows = 0;
  for (; std::getline(file, line); ++rows) {
    std::array<std::string, 7> fields;
    size_t begin = 0;
    for (std::string& field : fields) {
      const size_t end = std::min(line.find(',', begin), line.size());
      field = line.substr(begin, end - begin);
      begin = std::min(end + 1, line.size());
    }
    const std::string key = line.substr(0, line.find(',' + fields[5] + ','));
    std::unique_ptr<Specified>& specified = conversions[key];
    if (!specified) {
      ConvertOptions options;
      if (!fields[2].empty()) options.overflow = overflow_named(fields[2]).value();
      if (!fields[3].empty()) options.rounding = rounding_named(fields[3]).value();
      if (!fields[4].empty()) options.nan = nan_mode_named(fields[4]).value();
      specified = std::make_unique<Specified>(element_type_named(fields[0]).value(),
                                              element_type_named(fields[1]).value(), options);
    }
    const uint64_t actual = (*specified)(std::stoull(fields[5], nullptr, 16));
    ASSERT_EQ(actual, std::stoull(fields[6], nullptr, 16)) << line;
  }
  EXPECT_EQ(rows, 55058u);
}

template <class Word>
std::vector<Word> read_words(const std::string& name) {
  std::ifstream file(std::string(CASTOR_TEST_DATA) + "/float-tables/" + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  std::vector<Word> words(bytes.size() / sizeof(Word));
  std::memcpy(words.data(), bytes.data(), words.size() * sizeof(Word));
  return words;
}

bool is_nan_code(ElementType type, uint64_t bits) {
  Terms terms;
  return decoded(type, terms.constant(bits_of(type), bits)).is_nan.is_constant(1);
}

/// Rows convert to the same bits; NaNs, whose payloads differ among libraries, to a NaN.
template <class Word>
void expect_table(ElementType to, const ConvertOptions& options, const char* inputs,
                  const char* outputs) {
  Specified specified(ElementType::f32, to, options);
  const auto x = read_words<uint32_t>(inputs);
  const auto y = read_words<Word>(outputs);
  ASSERT_EQ(x.size(), y.size()) << outputs;
  ASSERT_GT(x.size(), 600u);
  for (size_t i = 0; i < x.size(); ++i) {
    const uint64_t actual = specified(x[i]);
    const bool same = actual == y[i] || (is_nan_code(to, y[i]) && is_nan_code(to, actual));
    ASSERT_TRUE(same) << outputs << std::hex << " row " << i << " 0x" << x[i] << ": 0x" << actual;
  }
}

TEST(Spec, ConversionsFromF32AreThoseOfNumPyAndMlDtypes) {
  using enum ElementType;
  constexpr ConvertOptions saturate = {.overflow = Overflow::saturate};
  constexpr ConvertOptions nan_is_zero = {.nan = NanMode::zero};
  const char* small = "f32_in_small.bin";
  expect_table<uint16_t>(f16, {}, "f32_in.bin", "out_float16.u16");
  expect_table<uint16_t>(bf16, {}, "f32_in.bin", "out_bfloat16.u16");
  expect_table<uint8_t>(f8e4m3, {}, small, "out_float8e4m3fn_sat0.u8");
  expect_table<uint8_t>(f8e4m3, saturate, small, "out_float8e4m3fn_sat1.u8");
  expect_table<uint8_t>(f8e5m2, {}, small, "out_float8e5m2_sat0.u8");
  expect_table<uint8_t>(f8e5m2, saturate, small, "out_float8e5m2_sat1.u8");
  expect_table<uint8_t>(f8e4m3fnuz, {}, small, "out_float8e4m3fnuz_sat0.u8");
  expect_table<uint8_t>(f8e4m3fnuz, saturate, small, "out_float8e4m3fnuz_sat1.u8");
  expect_table<uint8_t>(f8e5m2fnuz, {}, small, "out_float8e5m2fnuz_sat0.u8");
  expect_table<uint8_t>(f8e5m2fnuz, saturate, small, "out_float8e5m2fnuz_sat1.u8");
  expect_table<uint8_t>(f4e2m1, nan_is_zero, small, "out_float4e2m1_sat0.u8");
  expect_table<uint8_t>(f6e2m3, nan_is_zero, "f32_in_float6e2m3.bin", "out_float6e2m3_sat0.u8");
  expect_table<uint8_t>(f6e3m2, nan_is_zero, "f32_in_float6e3m2.bin", "out_float6e3m2_sat0.u8");
}

TEST(Spec, DecodedCodesAreTheTables) {
  using enum ElementType;
  constexpr std::pair<ElementType, const char*> tables[] = {
      {f4e2m1, "float4e2m1"},         {f6e2m3, "float6e2m3"}, {f6e3m2, "float6e3m2"},
      {f8e4m3, "float8e4m3fn"},       {f8e5m2, "float8e5m2"}, {f8e4m3fnuz, "float8e4m3fnuz"},
      {f8e5m2fnuz, "float8e5m2fnuz"}, {f8e8m0, "float8e8m0"}};
  for (const auto& [type, name] : tables) {
    std::ifstream file(std::string(CASTOR_TEST_DATA) + "/float-tables/decode_" + name + ".csv");
    ASSERT_TRUE(file) << name;
    Specified to_f32(type, f32, {});
    std::string line;
    std::getline(file, line);
    size_t rows = 0;
    for (; std::getline(file, line); ++rows) {
      const uint64_t code = std::stoull(line, nullptr, 0);
      const uint64_t value = std::stoull(line.substr(line.rfind(',') + 1), nullptr, 0);
      const bool both_nan = is_nan_code(f32, value) && is_nan_code(type, code);
      ASSERT_TRUE(both_nan || to_f32(code) == value) << name << " " << line;
    }
    EXPECT_EQ(rows, size_t{1} << bits_of(type)) << name;
  }
}

/// What the interpreter gives for all values of the operands, the first in the low bits.
std::vector<uint64_t> interpreted_results(const Function& function, int bits) {
  const auto count = int64_t{1} << bits;
  std::vector<std::vector<std::byte>> operands;
  std::vector<ConstView> sources;
  int low = 0;
  for (const ValueId parameter : function.parameters) {
    const ElementType type = function.type_of(parameter).element;
    operands.emplace_back(static_cast<size_t>(count) * 2);
    for (int64_t i = 0; i < count; ++i) {
      write_element(operands.back().data(), type, i, static_cast<uint64_t>(i) >> low);
    }
    sources.emplace_back(operands.back().data(), type, Dims{count}, operands.back().size());
    low += bits_of(type);
  }
  const ElementType type = function.type_of(function.results[0]).element;
  std::vector<std::byte> result(static_cast<size_t>(count) * 8);
  const View destination(result.data(), type, Dims{count}, result.size());
  EXPECT_TRUE(interpret(function, sources, std::span(&destination, 1)).ok());
  std::vector<uint64_t> elements;
  for (int64_t i = 0; i < count; ++i) elements.push_back(read_element(result.data(), type, i));
  return elements;
}

TEST(Spec, OperationsAreTheInterpretersOnAllCodes) {
  constexpr int max_bits = 16;
  size_t results = 0;
  for (const ElementwiseOp& op : all_elementwise_ops()) {
    int bits = 0;
    for (const ElementType type : operand_types(op)) bits += bits_of(type);
    if (bits > max_bits) continue;
    const Result<Subject> subject = subject_of(op);
    ASSERT_TRUE(subject) << subject.error().message;
    Terms terms;
    std::vector<Term> operands;
    Term all;
    for (const ElementType type : operand_types(op)) {
      operands.push_back(terms.input("x", bits_of(type)));
      all = all ? concat(operands.back(), all) : operands.back();
    }
    const std::vector<uint64_t> expected = interpreted_results(*subject->function, bits);
    const Term table = terms.table(expected, bits_of(result_type(op)), all);
    const Term differs = not_equal(subject->specification(operands), table);
    const Exhaustion run = run_on_all_inputs(differs, [](double) { return true; });
    ASSERT_TRUE(run.complete) << subject->name;
    ASSERT_FALSE(run.inputs) << subject->name << std::hex << " 0x"
                             << static_cast<uint64_t>((*run.inputs)[0]);
    results += expected.size();
  }
  EXPECT_GT(results, 10'000'000u);
}

}  // namespace
}  // namespace castor::prove
