// SPDX-License-Identifier: Apache-2.0
// The C API's names for types, tiers, options and statuses against those of the C++ API.
#include <castor/castor.h>
#include <gtest/gtest.h>

#include <castor/castor.hpp>

#include <map>

namespace castor::test {
namespace {

/// In the order of their numbers from 1 on, which never change: new types go to the end.
constexpr std::pair<castor_element_type, std::string_view> element_rows[] = {
    {CASTOR_BOOLEAN, "boolean"},
    {CASTOR_U1, "u1"},
    {CASTOR_U2, "u2"},
    {CASTOR_U3, "u3"},
    {CASTOR_U4, "u4"},
    {CASTOR_U6, "u6"},
    {CASTOR_U8, "u8"},
    {CASTOR_U16, "u16"},
    {CASTOR_U32, "u32"},
    {CASTOR_U64, "u64"},
    {CASTOR_I2, "i2"},
    {CASTOR_I4, "i4"},
    {CASTOR_I8, "i8"},
    {CASTOR_I16, "i16"},
    {CASTOR_I32, "i32"},
    {CASTOR_I64, "i64"},
    {CASTOR_F4E2M1, "f4e2m1"},
    {CASTOR_F8E4M3, "f8e4m3"},
    {CASTOR_F8E4M3FNUZ, "f8e4m3fnuz"},
    {CASTOR_F8E5M2, "f8e5m2"},
    {CASTOR_F8E5M2FNUZ, "f8e5m2fnuz"},
    {CASTOR_F8E8M0, "f8e8m0"},
    {CASTOR_BF16, "bf16"},
    {CASTOR_F16, "f16"},
    {CASTOR_F32, "f32"},
    {CASTOR_F64, "f64"},
    {CASTOR_NF4, "nf4"},
    {CASTOR_U1_LSB_FIRST, "u1.lsb_first"},
    {CASTOR_U2_MSB_FIRST, "u2.msb_first"},
    {CASTOR_U3_SPLIT, "u3.split"},
    {CASTOR_U6_SPLIT, "u6.split"},
    {CASTOR_F6E2M3, "f6e2m3"},
    {CASTOR_F6E3M2, "f6e3m2"},
};

TEST(CastorCTypes, ElementTypesAreThoseOfCpp) {
  ASSERT_EQ(std::size(element_rows), size_t{element_type_count});
  for (size_t i = 0; i < std::size(element_rows); ++i) {
    const auto& [number, name] = element_rows[i];
    EXPECT_EQ(number, static_cast<int32_t>(i) + 1) << name;
    ASSERT_NE(castor_element_name(number), nullptr) << name;
    EXPECT_EQ(castor_element_name(number), name);
    EXPECT_EQ(castor_element_named(std::string(name).c_str()), number);
    const std::optional<ElementType> type = element_type_named(name);
    ASSERT_TRUE(type) << name;
    EXPECT_EQ(castor_element_bits(number), bits_of(*type)) << name;
  }
}

TEST(CastorCTypes, OtherNumbersAndNamesAreNoElementType) {
  for (const int32_t number :
       {CASTOR_NO_ELEMENT + 0, -1, element_type_count + 1, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(castor_element_name(number), nullptr) << number;
    EXPECT_EQ(castor_element_bits(number), 0) << number;
  }
  for (const char* name : {"", "f33", "F32", "fx8", static_cast<const char*>(nullptr)}) {
    EXPECT_EQ(castor_element_named(name), CASTOR_NO_ELEMENT);
  }
}

TEST(CastorCTypes, StatusesAreThoseOfCpp) {
  EXPECT_STREQ(castor_status_name(CASTOR_OK), "ok");
  const std::pair<castor_status, ErrorCode> rows[] = {
      {CASTOR_INVALID_TEXT, ErrorCode::invalid_text},
      {CASTOR_INVALID_FUNCTION, ErrorCode::invalid_function},
      {CASTOR_INVALID_ARGUMENT, ErrorCode::invalid_argument},
      {CASTOR_UNSUPPORTED, ErrorCode::unsupported},
      {CASTOR_OUT_OF_MEMORY, ErrorCode::out_of_memory},
      {CASTOR_EXECUTABLE_MEMORY, ErrorCode::executable_memory},
      {CASTOR_IO, ErrorCode::io},
      {CASTOR_INTERNAL, ErrorCode::internal},
      {CASTOR_LIMIT_EXCEEDED, ErrorCode::limit_exceeded},
  };
  int32_t next = 1;
  for (const auto& [status, code] : rows) {
    EXPECT_EQ(status, next++);
    EXPECT_EQ(castor_status_name(status), name_of(code));
  }
  EXPECT_EQ(name_of(static_cast<ErrorCode>(CASTOR_LIMIT_EXCEEDED)), "unknown")
      << "a code that C lacks";
  EXPECT_STREQ(castor_status_name(CASTOR_LIMIT_EXCEEDED + 1), "unknown");
  EXPECT_STREQ(castor_status_name(-1), "unknown");
}

TEST(CastorCTypes, TiersAreThoseOfCpp) {
  EXPECT_STREQ(castor_tier_name(CASTOR_TIER_NONE), "none");
  const castor_tier tiers[] = {
      CASTOR_TIER_AVX2,        CASTOR_TIER_AVX2_VNNI,   CASTOR_TIER_AVX512, CASTOR_TIER_AVX512_VNNI,
      CASTOR_TIER_AVX512_VBMI, CASTOR_TIER_AVX512_FP16, CASTOR_TIER_AMX};
  ASSERT_EQ(std::size(tiers), size_t{jit::tier_count});
  for (size_t i = 0; i < std::size(tiers); ++i) {
    EXPECT_EQ(tiers[i], static_cast<int32_t>(i) + 1);
    EXPECT_EQ(castor_tier_name(tiers[i]), jit::tier_table()[i].name);
  }
  EXPECT_EQ(castor_tier_name(jit::tier_count + 1), nullptr);
  EXPECT_EQ(castor_tier_name(-1), nullptr);
}

TEST(CastorCTypes, CoresAreThoseOfCpp) {
  const castor_core cores[] = {CASTOR_CORE_GENERIC, CASTOR_CORE_ZEN4, CASTOR_CORE_ZEN5,
                               CASTOR_CORE_GOLDEN_COVE, CASTOR_CORE_ZEN3};
  ASSERT_EQ(std::size(cores), size_t{jit::core_count});
  for (size_t i = 0; i < std::size(cores); ++i) EXPECT_EQ(cores[i], static_cast<int32_t>(i) + 1);
  EXPECT_EQ(Core{CASTOR_CORE_GOLDEN_COVE - 1}, Core::golden_cove);
}

TEST(CastorCTypes, OptionsHaveTheNumbersOfCpp) {
  const std::pair<castor_overflow, Overflow> overflows[] = {
      {CASTOR_OVERFLOW_BY_TYPE, Overflow::by_type},
      {CASTOR_OVERFLOW_SATURATE, Overflow::saturate},
      {CASTOR_OVERFLOW_WRAP, Overflow::wrap},
      {CASTOR_OVERFLOW_NAN, Overflow::nan},
      {CASTOR_OVERFLOW_SATURATE_FINITE, Overflow::saturate_finite}};
  ASSERT_EQ(std::size(overflows), overflow_names.size());
  for (const auto& [in_c, in_cpp] : overflows) EXPECT_EQ(in_c, static_cast<int32_t>(in_cpp));
  const std::pair<castor_rounding, Rounding> roundings[] = {
      {CASTOR_ROUNDING_BY_TYPE, Rounding::by_type},
      {CASTOR_ROUNDING_TOWARD_ZERO, Rounding::toward_zero},
      {CASTOR_ROUNDING_NEAREST_EVEN, Rounding::nearest_even},
      {CASTOR_ROUNDING_NEAREST_AWAY, Rounding::nearest_away},
      {CASTOR_ROUNDING_DOWN, Rounding::down},
      {CASTOR_ROUNDING_UP, Rounding::up},
      {CASTOR_ROUNDING_HALF_UP, Rounding::half_up}};
  ASSERT_EQ(std::size(roundings), rounding_names.size());
  for (const auto& [in_c, in_cpp] : roundings) EXPECT_EQ(in_c, static_cast<int32_t>(in_cpp));
  EXPECT_EQ(CASTOR_NAN_BY_TYPE, static_cast<int32_t>(NanMode::by_type));
  EXPECT_EQ(CASTOR_NAN_ZERO, static_cast<int32_t>(NanMode::zero));
  ASSERT_EQ(nan_mode_names.size(), 2u);
  EXPECT_EQ(CASTOR_STORES_AUTOMATIC, static_cast<int32_t>(StorePolicy::automatic));
  EXPECT_EQ(CASTOR_STORES_CACHED, static_cast<int32_t>(StorePolicy::cached));
  EXPECT_EQ(CASTOR_STORES_STREAMING, static_cast<int32_t>(StorePolicy::streaming));
  EXPECT_EQ(CASTOR_ENGINE_JIT, static_cast<int32_t>(Engine::jit) + 1);
  EXPECT_EQ(CASTOR_ENGINE_INTERPRETER, static_cast<int32_t>(Engine::interpreter) + 1);
}

TEST(CastorCTypes, QuantizedFormatsHaveTheNumbersOfCpp) {
  const std::pair<castor_quantized_format, QuantizedFormat> rows[] = {
      {CASTOR_FX8, QuantizedFormat::fx8},
      {CASTOR_FX16, QuantizedFormat::fx16},
      {CASTOR_SA8, QuantizedFormat::sa8},
      {CASTOR_SA32, QuantizedFormat::sa32}};
  ASSERT_EQ(std::size(rows), quantized_table.size());
  for (const auto& [in_c, in_cpp] : rows) EXPECT_EQ(in_c, static_cast<int32_t>(in_cpp) + 1);
}

TEST(CastorCTypes, LimitsAreThoseOfCpp) {
  EXPECT_EQ(CASTOR_MAX_RANK, max_rank);
  EXPECT_EQ(CASTOR_UNKNOWN, Dim::unknown_extent);
  EXPECT_EQ(CASTOR_PER_TENSOR, Quantization::per_tensor);
  EXPECT_EQ(CASTOR_NO_VALUE, no_value);
}

TEST(CastorCTypes, VersionIsThatOfTheProject) {
  const std::string headers = std::to_string(CASTOR_VERSION_MAJOR) + "." +
                              std::to_string(CASTOR_VERSION_MINOR) + "." +
                              std::to_string(CASTOR_VERSION_PATCH);
  EXPECT_EQ(castor_version_string(), headers);
  EXPECT_EQ(headers, CASTOR_PROJECT_VERSION);
}

}  // namespace
}  // namespace castor::test
