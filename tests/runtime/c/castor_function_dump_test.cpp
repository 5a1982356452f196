// SPDX-License-Identifier: Apache-2.0
// Stages of the lowering through the C API: the texts of the C++ API, and what is refused.
#include <castor/listing.h>
#include <gtest/gtest.h>
#include <castor/listing.hpp>

#include <cstring>

#include "ir/text/text.hpp"

namespace castor::test {
namespace {

constexpr const char* text =
    "func @f(%x: f32[?n], %w: f32[?n]) -> u8[?n] {\n"
    "  %y = mul %x, %w\n  %z = convert %y : u8\n  return %z\n}\n";

class FunctionDump : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(castor_function_parse(text, std::strlen(text), nullptr, nullptr, &function_, nullptr),
              CASTOR_OK);
  }
  void TearDown() override { castor_function_destroy(function_); }

  /// The stage, or the message.
  std::string dumped(castor_dump_stage stage, castor_tier tier, castor_core core) {
    castor_text* made = nullptr;
    castor_error error;
    const castor_status status = castor_function_dump(function_, stage, tier, core, &made, &error);
    EXPECT_EQ(status == CASTOR_OK, made != nullptr);
    std::string result = status == CASTOR_OK ? castor_text_data(made) : error.message;
    castor_text_destroy(made);
    return result;
  }

  castor_function* function_ = nullptr;
};

TEST_F(FunctionDump, TextsAreThoseOfTheCppApi) {
  const FunctionPtr function = (*parse(text))[0];
  for (int stage = CASTOR_DUMP_IR; stage <= CASTOR_DUMP_ASSEMBLY; ++stage) {
    for (int tier = CASTOR_TIER_AVX2; tier <= CASTOR_TIER_AMX; ++tier) {
      const Result<std::string> expected =
          dump(function, static_cast<DumpStage>(stage - 1), static_cast<Tier>(tier - 1));
      ASSERT_TRUE(expected.ok());
      EXPECT_EQ(dumped(stage, tier, CASTOR_CORE_AUTOMATIC), *expected);
      EXPECT_EQ(dumped(stage, tier, CASTOR_CORE_GENERIC), *expected);
    }
  }
  EXPECT_NE(dumped(CASTOR_DUMP_ASSEMBLY, CASTOR_TIER_AVX512, CASTOR_CORE_ZEN5).find("zmm"),
            std::string::npos);
  EXPECT_FALSE(dumped(CASTOR_DUMP_NEST, CASTOR_TIER_AUTOMATIC, CASTOR_CORE_AUTOMATIC).empty());
}

TEST_F(FunctionDump, NumbersThatAreNoneAreRefused) {
  EXPECT_EQ(dumped(0, 0, 0), "stage 0, expected 1 to 4");
  EXPECT_EQ(dumped(5, 0, 0), "stage 5, expected 1 to 4");
  EXPECT_EQ(dumped(1, -1, 0), "tier -1, expected 0 to 7");
  EXPECT_EQ(dumped(1, 8, 0), "tier 8, expected 0 to 7");
  EXPECT_EQ(dumped(1, 0, -1), "core -1, expected 0 to 5");
  EXPECT_EQ(dumped(1, 0, 6), "core 6, expected 0 to 5");
  castor_text* made = nullptr;
  EXPECT_EQ(castor_function_dump(nullptr, 1, 0, 0, &made, nullptr), CASTOR_INVALID_ARGUMENT);
  EXPECT_EQ(castor_function_dump(function_, 1, 0, 0, nullptr, nullptr), CASTOR_INVALID_ARGUMENT);
  EXPECT_FALSE(dump(nullptr, DumpStage::ir, Tier::avx2).ok());
}

}  // namespace
}  // namespace castor::test
