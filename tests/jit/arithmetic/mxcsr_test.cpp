// SPDX-License-Identifier: Apache-2.0
// Results do not depend on the caller's MXCSR, and the caller finds it as it was, flags included.
#include <gtest/gtest.h>
#include <xmmintrin.h>

#include "tests/support/conversions.hpp"
#include "tools/testing/thread_per_task.hpp"

namespace castor {
namespace {

using test::Conversion;

constexpr unsigned all_masked = 0x1f80;
constexpr unsigned flush_to_zero = 0x8000;
constexpr unsigned denormals_are_zero = 0x0040;
constexpr unsigned all_flags = 0x003f;

struct Row {
  const char* name;
  unsigned mxcsr;
};

constexpr Row rows[] = {
    {"default", all_masked},
    {"round down", all_masked | 0x2000},
    {"round up", all_masked | 0x4000},
    {"round toward zero", all_masked | 0x6000},
    {"flush to zero", all_masked | flush_to_zero},
    {"denormals are zero", all_masked | denormals_are_zero},
    {"both", all_masked | flush_to_zero | denormals_are_zero},
    {"flags set", all_masked | all_flags},
    {"exceptions unmasked", 0},
    {"unmasked, round up, flush", 0x4000 | flush_to_zero | denormals_are_zero},
};

/// Restores the test's own MXCSR.
class WithMxcsr {
 public:
  explicit WithMxcsr(unsigned value) : saved_(_mm_getcsr()) { _mm_setcsr(value); }
  ~WithMxcsr() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
};

/// Pairs whose instructions would round, flush or raise exceptions.
const Conversion conversions[] = {
    {ElementType::f32, ElementType::f16, {}},
    {ElementType::f32, ElementType::bf16, {}},
    {ElementType::f64, ElementType::f32, {}},
    {ElementType::f64, ElementType::bf16, {}},
    {ElementType::f16, ElementType::f32, {}},
    {ElementType::bf16, ElementType::f32, {}},
    {ElementType::i64, ElementType::f32, {}},
    {ElementType::u32, ElementType::bf16, {}},
    {ElementType::f32, ElementType::i8, {.rounding = Rounding::nearest_even}},
    {ElementType::f64, ElementType::u64, {.overflow = Overflow::wrap, .rounding = Rounding::up}},
    {ElementType::f32, ElementType::f16, {.overflow = Overflow::saturate}},
    {ElementType::f32, ElementType::boolean, {}},
    // Tables and constants that are computed while compiling.
    {ElementType::f8e8m0,
     ElementType::i16,
     {.overflow = Overflow::wrap, .rounding = Rounding::half_up}},
    {ElementType::f8e8m0,
     ElementType::u4,
     {.overflow = Overflow::wrap, .rounding = Rounding::nearest_away}},
    {ElementType::f8e8m0, ElementType::f16, {}},
    {ElementType::f32, ElementType::f8e8m0, {.overflow = Overflow::nan}},
    {ElementType::f16, ElementType::f8e8m0, {.overflow = Overflow::nan, .rounding = Rounding::up}},
    {ElementType::u3, ElementType::f8e5m2, {}},
    {ElementType::u4, ElementType::f8e4m3, {}},
    {ElementType::nf4, ElementType::f8e4m3fnuz, {}},
    {ElementType::nf4, ElementType::bf16, {}},
    {ElementType::bf16, ElementType::f8e4m3, {}},
    {ElementType::f16, ElementType::nf4, {}},
    {ElementType::f32, ElementType::nf4, {}},
    {ElementType::f64, ElementType::f8e5m2fnuz, {}},
    {ElementType::f32, ElementType::f4e2m1, {}},
    {ElementType::f32, ElementType::f6e2m3, {}},
    {ElementType::f6e2m3, ElementType::f32, {}},
    {ElementType::f8e4m3, ElementType::f32, {}},
    {ElementType::f8e5m2fnuz, ElementType::f64, {}},
};

TEST(Mxcsr, IsNeitherUsedNorChanged) {
  for (const Conversion& conversion : conversions) {
    const test::ExpectedConversion expected =
        test::expect(conversion, samples::boundary_patterns(conversion.from));
    const auto count = static_cast<int64_t>(expected.inputs.size());
    for (const auto& [tier, runtime] : test::tier_runtimes()) {
      for (const Row& row : rows) {
        std::vector<std::byte> actual(expected.output_bytes.size());
        const ConstView source(expected.input_bytes.data(), conversion.from, {count},
                               expected.input_bytes.size());
        const View destination(actual.data(), conversion.to, {count}, actual.size());
        unsigned after = 0;
        bool ok = false;
        {
          const WithMxcsr environment(row.mxcsr);
          // A new runtime, so that the code is made in this environment as well.
          const Runtime fresh = *Runtime::create({.tier = tier});
          ok = fresh.convert(source, destination, conversion.options).ok() &&
               runtime.convert(source, destination, conversion.options).ok();
          after = _mm_getcsr();
        }
        ASSERT_TRUE(ok);
        EXPECT_EQ(after, row.mxcsr) << row.name << ", " << conversion.name();
        ASSERT_TRUE(actual == expected.output_bytes)
            << name_of(tier) << ", " << row.name << ", " << conversion.name() << ": "
            << test::first_difference(conversion, expected, actual, expected.inputs.size());
      }
    }
  }
}

/// Convolutions and their epilogues are planned by a model of costs when they are bound.
TEST(Mxcsr, BindingConvolutionsNeitherUsesNorChangesIt) {
  const char* text =
      "func @f(%x: u8[?n, ?c, 9, 13], %w: i8[24, ?c, 3, 3], %s: f32[24, 1, 1]) -> u8[?n, 24, 7, "
      "11] {\n"
      "  %y = conv_integer %x, %w\n"
      "  %f = convert %y : f32\n"
      "  %m = mul %f, %s\n"
      "  %u = convert %m {overflow = saturate} : u8\n"
      "  return %u\n"
      "}\n";
  const std::vector<std::byte> x(2 * 17 * 9 * 13, std::byte{77});
  const std::vector<std::byte> w(24 * 17 * 9, std::byte{3});
  const std::vector<float> scales(24, 0.0123f);
  const std::vector<ConstView> inputs = {
      {x.data(), ElementType::u8, {2, 17, 9, 13}, x.size()},
      {w.data(), ElementType::i8, {24, 17, 3, 3}, w.size()},
      {scales.data(), ElementType::f32, {24, 1, 1}, 4 * scales.size()}};
  std::vector<std::vector<std::byte>> results;
  for (const auto& [tier, runtime] : test::tier_runtimes()) {
    for (const Row& row : rows) {
      std::vector<std::byte>& y = results.emplace_back(2 * 24 * 7 * 11);
      const View output(y.data(), ElementType::u8, {2, 24, 7, 11}, y.size());
      unsigned after = 0;
      bool ok = false;
      {
        const WithMxcsr environment(row.mxcsr);
        const Runtime fresh = *Runtime::create({.tier = tier});
        const Result<Kernel> kernel = fresh.compile(text);
        const Result<BoundKernel> bound = kernel->bind(inputs, {&output, 1});
        test::ThreadPerTask executor(8);
        ok = bound->run(inputs, {&output, 1}, {.executor = &executor}).ok();
        after = _mm_getcsr();
      }
      ASSERT_TRUE(ok);
      EXPECT_EQ(after, row.mxcsr) << row.name;
      EXPECT_EQ(y, results.front()) << name_of(tier) << ", " << row.name;
    }
  }
}

/// Parameters that are given at run time become constants in the call.
TEST(Mxcsr, RequantizingByRunTimeParametersNeitherUsesNorChangesIt) {
  const char* texts[] = {
      "func @f(%x: f32[?n], %s: i16[], %r: i8[], %z: i16[]) -> "
      "sa32<scale = ?, frac = ?, zero_point = ?>[?n] {\n"
      "  %y = requantize %x, none, none, none, %s, %r, %z {arithmetic = embarc} : "
      "sa32<scale = ?, frac = ?, zero_point = ?>\n  return %y\n}\n",
      "func @f(%x: sa32<scale = ?, frac = ?, zero_point = ?>[?n], %s: i16[], %r: i8[], %z: i16[]) "
      "-> "
      "f32[?n] {\n  %y = requantize %x, %s, %r, %z : f32\n  return %y\n}\n"};
  const auto x =
      samples::pack(ElementType::f32, samples::random_patterns(ElementType::f32, 300, 5));
  for (const char* text : texts) {
    for (const int8_t frac : {int8_t{-100}, int8_t{7}, int8_t{31}, int8_t{127}}) {
      const int16_t scale = 20481;
      const int16_t zero_point = 77;
      const ElementType from = text == texts[0] ? ElementType::f32 : ElementType::i32;
      const ElementType to = text == texts[0] ? ElementType::i32 : ElementType::f32;
      const std::vector<ConstView> inputs = {{x.data(), from, {300}, x.size()},
                                             {&scale, ElementType::i16, {}, 2},
                                             {&frac, ElementType::i8, {}, 1},
                                             {&zero_point, ElementType::i16, {}, 2}};
      std::vector<std::vector<std::byte>> results;
      const auto run = [&](const Runtime& runtime, unsigned mxcsr) {
        std::vector<std::byte>& y = results.emplace_back(4 * 300);
        const View output(y.data(), to, {300}, y.size());
        const Result<Kernel> kernel = runtime.compile(text);
        if (!kernel.ok()) return testing::AssertionFailure() << kernel.error().to_string();
        const Result<BoundKernel> bound = kernel->bind(inputs, {&output, 1});
        const WithMxcsr environment(mxcsr);
        const bool ok = bound->run(inputs, {&output, 1}).ok();
        const unsigned after = _mm_getcsr();
        return ok && after == mxcsr ? testing::AssertionSuccess() : testing::AssertionFailure();
      };
      RuntimeOptions interpreting;
      interpreting.interpret = true;
      ASSERT_TRUE(run(*Runtime::create(interpreting), all_masked));
      for (const auto& [tier, runtime] : test::tier_runtimes()) {
        for (const Row& row : rows) {
          ASSERT_TRUE(run(runtime, row.mxcsr)) << name_of(tier) << ", " << row.name;
          ASSERT_TRUE(results.back() == results.front())
              << text << name_of(tier) << ", " << row.name << ", frac " << int{frac};
        }
      }
    }
  }
}

}  // namespace
}  // namespace castor
