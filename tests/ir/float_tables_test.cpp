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
/// At least as many rows for a type of at most 8 bits.
constexpr size_t min_small_rows = 600;
constexpr const char* small_inputs = "f32_in_small.bin";

std::string path_of(const std::string& name) {
  return std::string(CASTOR_TEST_DATA) + "/float-tables/" + name;
}

template <class Word>
std::vector<Word> read_words(const std::string& name) {
  const std::string path = path_of(name);
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

struct SmallTable {
  ElementType to;
  ConvertOptions options;
  const char* name;
  const char* inputs = small_inputs;
};

constexpr ConvertOptions none = {};
constexpr ConvertOptions saturate = {.overflow = Overflow::saturate};
constexpr ConvertOptions nan_zero = {.nan = NanMode::zero};

/// ONNX's round_mode and saturate of Cast to f8e8m0; its "nearest" rounds ties up.
constexpr ConvertOptions e8m0(Rounding rounding, bool saturates) {
  return {.overflow = saturates ? Overflow::saturate : Overflow::nan, .rounding = rounding};
}

class SmallFloatTables : public testing::TestWithParam<SmallTable> {};

/// Whether the tables of f8e8m0 hold for a source: elsewhere ml_dtypes ignores the sign, and takes
/// 2^-127 for a number that needs rounding up.
bool e8m0_holds(uint32_t f32) {
  constexpr uint32_t smallest_normal = 0x00800000;
  constexpr uint32_t largest = 0x7f000000;  // 2^127
  return (f32 >= smallest_normal && f32 <= largest) || is_nan(f32, ElementType::f32);
}

TEST_P(SmallFloatTables, ConvertGivesTheSameCodes) {
  const auto& [to, options, name, input_file] = GetParam();
  const auto inputs = read_words<uint32_t>(input_file);
  const auto outputs = read_words<uint8_t>(std::string("out_") + name + ".u8");
  ASSERT_GE(inputs.size(), min_small_rows);
  ASSERT_EQ(outputs.size(), inputs.size());
  size_t compared = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (to == ElementType::f8e8m0 && !e8m0_holds(inputs[i])) continue;
    const uint64_t actual = numerics::convert(inputs[i], ElementType::f32, to, options);
    const bool nans = is_nan(actual, to) && is_nan(outputs[i], to);
    ASSERT_TRUE(nans || actual == outputs[i])
        << std::hex << "row " << i << ", input 0x" << inputs[i] << ", expected 0x"
        << unsigned{outputs[i]} << ", found 0x" << actual;
    ++compared;
  }
  EXPECT_GT(compared, inputs.size() / 3);
}

INSTANTIATE_TEST_SUITE_P(
    Types, SmallFloatTables,
    testing::Values(
        SmallTable{ElementType::f8e4m3, none, "float8e4m3fn_sat0"},
        SmallTable{ElementType::f8e4m3, saturate, "float8e4m3fn_sat1"},
        SmallTable{ElementType::f8e4m3fnuz, none, "float8e4m3fnuz_sat0"},
        SmallTable{ElementType::f8e4m3fnuz, saturate, "float8e4m3fnuz_sat1"},
        SmallTable{ElementType::f8e5m2, none, "float8e5m2_sat0"},
        SmallTable{ElementType::f8e5m2, saturate, "float8e5m2_sat1"},
        SmallTable{ElementType::f8e5m2fnuz, none, "float8e5m2fnuz_sat0"},
        SmallTable{ElementType::f8e5m2fnuz, saturate, "float8e5m2fnuz_sat1"},
        SmallTable{ElementType::f4e2m1, nan_zero, "float4e2m1_sat0"},
        SmallTable{ElementType::f6e2m3, nan_zero, "float6e2m3_sat0", "f32_in_float6e2m3.bin"},
        SmallTable{ElementType::f6e3m2, nan_zero, "float6e3m2_sat0", "f32_in_float6e3m2.bin"},
        SmallTable{ElementType::f8e8m0, e8m0(Rounding::up, false), "float8e8m0_up_sat0"},
        SmallTable{ElementType::f8e8m0, e8m0(Rounding::up, true), "float8e8m0_up_sat1"},
        SmallTable{ElementType::f8e8m0, e8m0(Rounding::down, false), "float8e8m0_down_sat0"},
        SmallTable{ElementType::f8e8m0, e8m0(Rounding::down, true), "float8e8m0_down_sat1"},
        SmallTable{ElementType::f8e8m0, e8m0(Rounding::half_up, false), "float8e8m0_nearest_sat0"},
        SmallTable{ElementType::f8e8m0, e8m0(Rounding::half_up, true), "float8e8m0_nearest_sat1"}),
    [](const auto& row) { return std::string(row.param.name); });

class DecodeTables : public testing::TestWithParam<std::pair<ElementType, const char*>> {};

/// Rows "code,value,f32_bits" of every code in order.
TEST_P(DecodeTables, EveryCodeHasTheSameValue) {
  const auto& [type, name] = GetParam();
  std::ifstream file(path_of(std::string("decode_") + name + ".csv"));
  std::string line;
  ASSERT_TRUE(std::getline(file, line)) << name;
  uint64_t code = 0;
  for (; std::getline(file, line); ++code) {
    ASSERT_EQ(std::stoull(line, nullptr, 16), code) << line;
    const uint64_t expected = std::stoull(line.substr(line.rfind(',') + 1), nullptr, 16);
    const uint64_t actual = numerics::convert(code, type, ElementType::f32, {});
    const bool nans = is_nan(actual, ElementType::f32) && is_nan(expected, ElementType::f32);
    EXPECT_TRUE(nans || actual == expected) << line << std::hex << ", found 0x" << actual;
  }
  EXPECT_EQ(code, uint64_t{1} << bits_of(type));
}

INSTANTIATE_TEST_SUITE_P(Types, DecodeTables,
                         testing::Values(std::pair(ElementType::f4e2m1, "float4e2m1"),
                                         std::pair(ElementType::f6e2m3, "float6e2m3"),
                                         std::pair(ElementType::f6e3m2, "float6e3m2"),
                                         std::pair(ElementType::f8e4m3, "float8e4m3fn"),
                                         std::pair(ElementType::f8e4m3fnuz, "float8e4m3fnuz"),
                                         std::pair(ElementType::f8e5m2, "float8e5m2"),
                                         std::pair(ElementType::f8e5m2fnuz, "float8e5m2fnuz"),
                                         std::pair(ElementType::f8e8m0, "float8e8m0")),
                         [](const auto& row) { return std::string(row.param.second); });

}  // namespace
}  // namespace castor
