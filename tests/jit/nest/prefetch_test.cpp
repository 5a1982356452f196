// SPDX-License-Identifier: Apache-2.0
// Which nests prefetch cache lines, and of what.
#include <gtest/gtest.h>

#include "ir/rewrite/canonicalize.hpp"
#include "ir/text/text.hpp"
#include "jit/emit/chunk_plan.hpp"
#include "jit/plan/access_pattern.hpp"

namespace castor::jit {
namespace {

constexpr Target golden_cove = {.tier = Tier::avx512_vbmi, .core = Core::golden_cove};
constexpr Prefetch both = {.input_bytes = 4096, .output_bytes = 1024};
constexpr Prefetch inputs = {.input_bytes = 4096};
constexpr Prefetch nothing = {};

NestForm form_of(const std::string& text, const Target& target) {
  const FunctionPtr function = canonicalize(parse_function(text).value());
  const std::vector<Nest> nests = plan_nests(*function, target);
  return likely_form(*function, nests.front(), target);
}

struct Row {
  const char* what;
  const char* text;
  Prefetch prefetch;
};

constexpr Row rows[] = {
    {"as much as L1 holds, 32 KiB",
     "func @f(%x: f32[6528]) -> i8[6528] {\n  %y = convert %x : i8\n  return %y\n}\n", nothing},
    {"a little more",
     "func @f(%x: f32[6592]) -> i8[6592] {\n  %y = convert %x : i8\n  return %y\n}\n", both},
    {"outputs inside bytes",
     "func @f(%x: f32[70000]) -> i4[70000] {\n  %y = convert %x : i4\n  return %y\n}\n", inputs},
    {"columns, whose rows follow one another",
     "func @f(%x: f32[99, 100], %c: f32[100]) -> f32[99, 100] {\n"
     "  %y = add %x, %c\n  return %y\n}\n",
     both},
    {"a maximum", "func @f(%x: f32[70000]) -> f32[] {\n  %y = reduce_max %x\n  return %y\n}\n",
     inputs},
    {"a sum in order", "func @f(%x: f32[70000]) -> f32[] {\n  %y = reduce_sum %x\n  return %y\n}\n",
     nothing},
    {"short rows in blocks",
     "func @f(%x: f32[5000, 16]) -> f32[5000] {\n"
     "  %y = reduce_max %x {axes = [1]}\n  return %y\n}\n",
     nothing},
    {"pooling",
     "func @f(%x: f32[1, 8, 64, 64]) -> f32[1, 8, 63, 63] {\n"
     "  %y = max_pool %x {kernel_shape = [2, 2]}\n  return %y\n}\n",
     nothing},
};

TEST(Prefetch, IsForTensorsBeyondL1ThatLoopsWaitFor) {
  for (const Row& row : rows) {
    EXPECT_EQ(form_of(row.text, golden_cove).prefetch, row.prefetch) << row.what;
  }
}

TEST(Prefetch, IsACoresChoice) {
  for (const Row& row : rows) {
    EXPECT_EQ(form_of(row.text, {.tier = Tier::avx512_vbmi}).prefetch, nothing) << row.what;
  }
}

TEST(Prefetch, OfStreamedOutputsIsLeftOut) {
  const FunctionPtr function = canonicalize(parse_function(rows[1].text).value());
  const std::vector<Nest> nests = plan_nests(*function, golden_cove);
  const NestForm form = likely_form(*function, nests.front(), golden_cove);
  EXPECT_EQ(streaming_form(nests.front(), form, golden_cove).prefetch, inputs);
}

}  // namespace
}  // namespace castor::jit
