// SPDX-License-Identifier: Apache-2.0
// Listings of bound kernels: the code that calls go through, byte for byte; and how much of it
// there is.
#include <castor/listing.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <castor/listing.hpp>

#include <algorithm>
#include <cstring>

#include "runtime/bind/bound_state.hpp"
#include "runtime/compiled.hpp"
#include "runtime/conv/convolution.hpp"
#include "runtime/conv/convolution_output.hpp"
#include "runtime/listing/emitted_codes.hpp"
#include "runtime/state_access.hpp"
#include "tests/support/on_every_tier.hpp"
#include "tests/support/published.hpp"

namespace castor::test {
namespace {

struct ListingRow {
  const char* name;
  const char* text;
  std::vector<Dims> shapes;
  std::vector<Dims> strides;  ///< strides of inputs and outputs; none: dense
  size_t emitted;             ///< codes of elementwise nests at least
  const char* part;           ///< a part of the listing
};

const ListingRow rows[] = {
    {"dense",
     "func @f(%x: f32[?n]) -> f16[?n] {\n  %y = convert %x : f16\n  return %y\n}\n",
     {{64}},
     {},
     1,
     "; nest 0\n"},
    {"streaming",
     "func @f(%x: f32[?n]) -> f16[?n] {\n  %y = convert %x : f16\n  return %y\n}\n",
     {{int64_t{1} << 20}},
     {},
     2,
     "; nest 0, streaming stores\n"},
    {"transposed",
     "func @f(%x: f32[?n, ?m]) -> f16[?n, ?m] {\n  %y = convert %x : f16\n  return %y\n}\n",
     {{64, 48}},
     {{1, 64}, {48, 1}},
     1,
     "; nest 0\n"},
    {"sub_byte",
     "func @f(%x: u4[?n]) -> f16[?n] {\n  %y = convert %x : f16\n  return %y\n}\n",
     {{64}},
     {},
     2,
     "; nest 0, from any element\n"},
    {"periodic",
     "func @f(%x: f32[?n, 3], %y: f32[3]) -> f32[?n, 3] {\n  %z = add %x, %y\n  return %z\n}\n",
     {{7, 3}, {3}},
     {},
     1,
     "; nest 0\n"},
    {"convolution",
     "func @f(%x: u8[1, 8, 9, 9], %w: i8[16, 8, 3, 3]) -> i32[1, 16, 7, 7] {\n"
     "  %y = conv_integer %x, %w\n  return %y\n}\n",
     {{1, 8, 9, 9}, {16, 8, 3, 3}},
     {},
     0,
     "; nest 0, as for large tensors\n"},
    {"epilogue",
     "func @f(%x: u8[1, 8, 9, 9], %w: i8[16, 8, 3, 3], %s: f32[16, 1, 1]) -> f32[1, 16, 7, 7] {\n"
     "  %y = conv_integer %x, %w\n  %f = convert %y : f32\n  %r = mul %f, %s\n  return %r\n}\n",
     {{1, 8, 9, 9}, {16, 8, 3, 3}, {16, 1, 1}},
     {},
     1,
     "; nest 0, epilogue\n"},
    {"requantize",
     "func @f(%x: fx16<frac = 7>[?n]) -> fx8<frac = 3>[?n] {\n"
     "  %y = requantize %x : fx8<frac = 3>\n  return %y\n}\n",
     {{100}},
     {},
     0,
     "; nest 0, as for large tensors\n"},
    {"empty",
     "func @f(%x: f32[?n]) -> f16[?n] {\n  %y = convert %x : f16\n  return %y\n}\n",
     {{0}},
     {},
     0,
     "; nest 0: no elements\n"},
};

/// Checks that each code of an elementwise nest is emitted once more with the same bytes, and
/// counts them.
template <class LaneStep>
size_t check_codes(const detail::Compiled& compiled, const LaneStep& step) {
  size_t count = 0;
  const Status status =
      detail::for_each_emitted(compiled, step, [&](const detail::EmittedCode& code) -> Status {
        EXPECT_TRUE(test::is_published(code.code, code.bound->block)) << code.part;
        ++count;
        return {};
      });
  EXPECT_TRUE(status.ok()) << status.error().message;
  return count;
}

TEST(Listing, ShowsTheCodeThatIsBound) {
  for (const ListingRow& row : rows) {
    for (const auto& [tier, runtime] : tier_runtimes()) {
      SCOPED_TRACE(fmt::format("{}, {}", row.name, name_of(tier)));
      const Result<Kernel> kernel = runtime.compile(row.text);
      ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
      const Result<BoundKernel> bound = kernel->bind(row.shapes, row.strides);
      ASSERT_TRUE(bound.ok()) << bound.error().to_string();
      EXPECT_EQ(kernel->tier(), tier);
      EXPECT_EQ(bound->tier(), tier);
      const detail::BoundState& state = detail::StateAccess::of(*bound);
      size_t emitted = 0;
      bool by_kernel = false;  // an epilogue that has no code of its own
      for (const detail::Step& step : state.steps) {
        const detail::Compiled& compiled = *state.kernel->compiled;
        if (const auto* elementwise = std::get_if<detail::ElementwiseStep>(&step)) {
          emitted += check_codes(compiled, *elementwise);
        }
        const auto* convolution = std::get_if<detail::ConvolutionStep>(&step);
        if (convolution == nullptr || !convolution->epilogue) continue;
        by_kernel = convolution->convolution->applies_epilogue;
        if (!by_kernel) emitted += check_codes(compiled, *convolution->epilogue);
      }
      EXPECT_GE(emitted, by_kernel ? 0 : row.emitted);
      const Result<std::string> text = listing(*bound);
      ASSERT_TRUE(text.ok()) << text.error().message;
      EXPECT_EQ(text->find(row.part) != std::string::npos, !by_kernel) << *text;
      EXPECT_EQ(text->find("no listing:"), std::string::npos) << *text;
      EXPECT_EQ(bound->code_bytes() > 0, std::string_view(row.name) != "empty");
    }
  }
}

TEST(Listing, CountsSharedCodeOnce) {
  const Runtime runtime = *Runtime::create();
  if (!runtime.tier()) GTEST_SKIP() << "no code on this machine";
  const auto bytes_of = [&](const std::string& operations, const std::string& results) {
    const std::string text =
        "func @f(%x: f32[64], %y: f32[9]) -> (" + results + ") {\n" + operations + "}\n";
    const Result<Kernel> kernel = runtime.compile(text);
    EXPECT_TRUE(kernel.ok()) << kernel.error().to_string();
    return kernel->bind({{64}, {9}})->code_bytes();
  };
  const size_t one = bytes_of("  %a = convert %x : f16\n  return %a\n", "f16[64]");
  const uint64_t held = runtime.statistics().code_bytes;  // with keys and bookkeeping
  EXPECT_GT(held, one);
  const size_t two = bytes_of("  %a = convert %x : f16\n  %b = convert %y : f16\n  return %a, %b\n",
                              "f16[64], f16[9]");
  EXPECT_GT(one, 0u);
  EXPECT_EQ(one, two);
  EXPECT_EQ(runtime.statistics().codes, 1u);
  EXPECT_EQ(runtime.statistics().code_bytes, held);
}

TEST(Listing, OfTheInterpreterSaysSo) {
  RuntimeOptions options;
  options.interpret = true;
  const auto bound = (*Runtime::create(options)).compile(rows[0].text)->bind({{64}});
  ASSERT_TRUE(bound.ok());
  EXPECT_EQ(*listing(*bound), "; interpreted: the runtime was asked to interpret\n");
  EXPECT_EQ(bound->code_bytes(), 0u);
  EXPECT_FALSE(bound->tier());
}

TEST(Listing, InC) {
  castor_error error;
  castor_runtime* runtime = nullptr;
  castor_kernel* kernel = nullptr;
  castor_bound_kernel* bound = nullptr;
  castor_text* text = nullptr;
  ASSERT_EQ(castor_runtime_create(nullptr, &runtime, &error), CASTOR_OK) << error.message;
  ASSERT_EQ(castor_runtime_compile_text(runtime, rows[0].text, std::strlen(rows[0].text), nullptr,
                                        &kernel, &error),
            CASTOR_OK)
      << error.message;
  const int64_t n = 64;
  const castor_extents shape = {&n, 1};
  ASSERT_EQ(castor_kernel_bind(kernel, &shape, 1, nullptr, 0, nullptr, &bound, &error), CASTOR_OK);
  ASSERT_EQ(castor_bound_kernel_listing(bound, &text, &error), CASTOR_OK) << error.message;
  EXPECT_EQ(std::string_view(castor_text_data(text)).substr(0, 2), "; ");
  EXPECT_EQ(castor_text_length(text), std::strlen(castor_text_data(text)));
  EXPECT_EQ(castor_listing_writer(), castor_listing_writer());
  EXPECT_NE(castor_listing_writer(), nullptr);
  castor_text_destroy(text);
  EXPECT_EQ(castor_bound_kernel_listing(nullptr, &text, &error), CASTOR_INVALID_ARGUMENT);
  EXPECT_EQ(text, nullptr);
  EXPECT_EQ(castor_bound_kernel_listing(bound, nullptr, &error), CASTOR_INVALID_ARGUMENT);
  castor_bound_kernel_destroy(bound);
  castor_kernel_destroy(kernel);
  castor_runtime_destroy(runtime);
}

}  // namespace
}  // namespace castor::test
