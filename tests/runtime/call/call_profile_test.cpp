// SPDX-License-Identifier: Apache-2.0
// Profiles of calls: every product is counted once, whatever the plan and the number of tasks; what
// is within a nest takes no longer than the nest; results are those of a call without a profile.
#include <gtest/gtest.h>

#include "runtime/bind/bound_state.hpp"
#include "runtime/call/call_profile.hpp"
#include "runtime/compiled.hpp"
#include "runtime/state_access.hpp"
#include "tests/support/function_case.hpp"
#include "tools/testing/executors.hpp"
#include "tools/testing/thread_per_task.hpp"

namespace castor::test {
namespace {

using detail::CallProfile;
using detail::Work;

/// A function, and what a profile of a call of it counts.
struct ProfileCase {
  std::string_view name;
  FunctionCase function;
  int64_t products = 0;        ///< in the only nest that has any
  int64_t packed_weights = 0;  ///< bytes read; 0: of constant weights, or none
  bool packs_input = false;    ///< on tiers with AVX-512
};

const ProfileCase cases[] = {
    {"elementwise",
     {"func @f(%x: f32[?n]) -> (u8[?n]) { %y = convert %x : u8 return %y }", {{{1000}}}}},
    {"dense, packed input",
     {"func @f(%x: u8[2, 24, 12, 12], %w: i8[40, 24, 3, 3]) -> (i32[2, 40, 10, 10]) { "
      "%y = conv_integer %x, %w return %y }",
      {{{2, 24, 12, 12}}, {{40, 24, 3, 3}}}},
     2 * 40 * 10 * 10 * 24 * 9,
     40 * 24 * 9,
     true},
    {"dense, NHWC with an epilogue",
     {"func @f(%x: u8[1, 9, 9, 32], %w: i8[24, 32, 3, 3], %s: f32[24]) -> (u8[1, 7, 7, 24]) { "
      "%y = conv_integer %x, %w {layout = nhwc} %f = convert %y : f32 %m = mul %f, %s "
      "%q = convert %m {overflow = saturate} : u8 return %q }",
      {{{1, 9, 9, 32}}, {{24, 32, 3, 3}}, {{24}}}},
     24 * 7 * 7 * 32 * 9,
     24 * 32 * 9},
    {"depthwise",
     {"func @f(%x: u8[3, 16, 20, 20], %w: i8[16, 1, 3, 3]) -> (i32[3, 16, 18, 18]) { "
      "%y = conv_integer %x, %w {group = 16} return %y }",
      {{{3, 16, 20, 20}}, {{16, 1, 3, 3}}}},
     3 * 16 * 18 * 18 * 9,
     16 * 9},
    {"grouped, NHWC",
     {"func @f(%x: u8[1, 12, 12, 32], %w: i8[32, 4, 3, 3]) -> (i32[1, 10, 10, 32]) { "
      "%y = conv_integer %x, %w {group = 8, layout = nhwc} return %y }",
      {{{1, 12, 12, 32}}, {{32, 4, 3, 3}}}},
     32 * 10 * 10 * 4 * 9,
     32 * 4 * 9},
    {"matrix product",
     {"func @f(%a: u8[48, 64], %b: i8[64, 48]) -> (i32[48, 48]) { %y = matmul_integer %a, %b "
      "return %y }",
      {{{48, 64}}, {{64, 48}}}},
     48 * 64 * 48,
     64 * 48},
};

constexpr Work within_nests[] = {Work::pack_weights, Work::pack_input, Work::window_sums,
                                 Work::block,        Work::transpose,  Work::epilogue};

/// Sums of one kind of work over all nests.
detail::WorkTotals totals(const CallProfile& profile, Work work) {
  detail::WorkTotals all;
  for (size_t nest = 0; nest < profile.nests(); ++nest) {
    const detail::WorkTotals one = profile.totals(nest, work);
    all.parts += one.parts;
    all.nanoseconds += one.nanoseconds;
    all.amount.products += one.amount.products;
    all.amount.bytes_read += one.amount.bytes_read;
    all.amount.bytes_written += one.amount.bytes_written;
  }
  return all;
}

/// The tensors of a case, and its kernel.
struct Prepared {
  FunctionPtr function;
  CaseTensors tensors;
  CaseTensors expected;
  Kernel kernel;
  BoundKernel bound;

  static Prepared make(const ProfileCase& row, const Runtime& runtime) {
    const FunctionPtr function = parse_function(row.function.text).value();
    CaseTensors tensors(*function, row.function, 1, true);
    CaseTensors expected(*function, row.function, 1, true);
    Kernel kernel = runtime.compile(function).value();
    BoundKernel bound = kernel.bind(tensors.inputs(), tensors.outputs()).value();
    return {function, std::move(tensors), std::move(expected), kernel, bound};
  }
  size_t nests() const { return detail::StateAccess::of(kernel).compiled->nests.size(); }
};

void check_case(const ProfileCase& row, Tier tier, const Runtime& runtime) {
  SCOPED_TRACE(std::string(row.name) + " on " + std::string(name_of(tier)));
  Prepared prepared = Prepared::make(row, runtime);
  const BoundKernel& bound = prepared.bound;
  ASSERT_TRUE(bound.run(prepared.expected.inputs(), prepared.expected.outputs()).ok());
  for (const int tasks : {1, 3}) {
    ThreadPerTask threads(tasks);
    const RunOptions options = {.executor = tasks > 1 ? &threads : nullptr};
    CallProfile profile(prepared.nests());
    constexpr int calls = 2;
    for (int call = 0; call < calls; ++call) {
      const Status status =
          detail::run_profiled(detail::StateAccess::of(bound), prepared.tensors.inputs(),
                               prepared.tensors.outputs(), options, profile);
      ASSERT_TRUE(status.ok()) << status.error().to_string();
    }
    for (size_t i = 0; i < prepared.expected.output_tensors().size(); ++i) {
      EXPECT_TRUE(std::ranges::equal(prepared.tensors.output_tensors()[i].bytes(),
                                     prepared.expected.output_tensors()[i].bytes()));
    }
    const auto nests = totals(profile, Work::nest);
    const auto blocks = totals(profile, Work::block);
    const auto weights = totals(profile, Work::pack_weights);
    EXPECT_GE(nests.parts, calls);
    EXPECT_GT(nests.nanoseconds, 0);
    EXPECT_EQ(blocks.amount.products, calls * row.products);
    EXPECT_EQ(blocks.parts > 0, row.products > 0);
    if (weights.parts > 0) {  // tile by tile every block packs its own, and tasks divide tiles
      EXPECT_GE(weights.amount.bytes_read, calls * row.packed_weights);
      const int64_t per_block = tasks == 1 ? calls * row.packed_weights : 1;
      EXPECT_EQ(weights.amount.bytes_read % per_block, 0);
    }
    EXPECT_GE(blocks.nanoseconds, 0);  // passes within a block are taken from it
    if (tasks > 1) continue;
    int64_t within = 0;
    for (const Work work : within_nests) within += totals(profile, work).nanoseconds;
    EXPECT_LE(within, nests.nanoseconds);
  }
}

TEST(CallProfile, CountsEveryProductOnce) {
  for (const auto& [tier, runtime] : tier_runtimes()) {
    for (const ProfileCase& row : cases) check_case(row, tier, runtime);
  }
}

TEST(CallProfile, HasThePackingOfInput) {
  for (const auto& [tier, runtime] : tier_runtimes()) {
    if (!jit::Target{tier}.has_avx512()) continue;
    for (const ProfileCase& row : cases) {
      if (!row.packs_input) continue;
      Prepared prepared = Prepared::make(row, runtime);
      CallProfile profile(prepared.nests());
      ASSERT_TRUE(detail::run_profiled(detail::StateAccess::of(prepared.bound),
                                       prepared.tensors.inputs(), prepared.tensors.outputs(), {},
                                       profile)
                      .ok());
      const auto packed = totals(profile, Work::pack_input);
      if (tier == Tier::amx) continue;  // whose kernels read rows
      EXPECT_GT(packed.parts, 0) << name_of(tier);
      EXPECT_GE(packed.amount.bytes_read, 2 * 24 * 12 * 12) << name_of(tier);
      EXPECT_GE(packed.amount.bytes_written, packed.amount.bytes_read * 3 / 4) << name_of(tier);
    }
  }
}

/// A pass of its own counts all of the results that it goes over.
struct PassCase {
  std::string_view name;
  FunctionCase function;
  Work work;
  int64_t bytes_read = 0;
  int64_t bytes_written = 0;
};

const PassCase passes[] = {
    {"an epilogue with 4-bit results",
     {"func @f(%x: u8[1, 16, 12, 12], %w: i8[24, 16, 3, 3], %s: f32[24, 1, 1]) -> "
      "(u4[1, 24, 10, 10]) { %y = conv_integer %x, %w %f = convert %y : f32 %m = mul %f, %s "
      "%q = convert %m {overflow = saturate} : u4 return %q }",
      {{{1, 16, 12, 12}}, {{24, 16, 3, 3}}, {{24, 1, 1}}}},
     Work::epilogue,
     4 * 24 * 10 * 10,
     24 * 10 * 10 / 2},
    {"an epilogue that adds another tensor",
     {"func @f(%x: u8[1, 16, 12, 12], %w: i8[24, 16, 3, 3], %r: i8[1, 24, 10, 10]) -> "
      "(u4[1, 24, 10, 10]) { %y = conv_integer %x, %w %f = convert %y : f32 %g = convert %r : f32 "
      "%m = add %f, %g %q = convert %m {overflow = saturate} : u4 return %q }",
      {{{1, 16, 12, 12}}, {{24, 16, 3, 3}}, {{1, 24, 10, 10}}}},
     Work::epilogue,
     (4 + 1) * 24 * 10 * 10,
     24 * 10 * 10 / 2},
    {"NHWC with few output channels",
     {"func @f(%x: u8[1, 20, 20, 16], %w: i8[3, 16, 3, 3]) -> (i32[1, 18, 18, 3]) { "
      "%y = conv_integer %x, %w {layout = nhwc} return %y }",
      {{{1, 20, 20, 16}}, {{3, 16, 3, 3}}}},
     Work::transpose,
     4 * 3 * 18 * 18,
     4 * 3 * 18 * 18},
};

void check_pass(const PassCase& row, const CallProfile& profile) {
  const auto pass = totals(profile, row.work);
  EXPECT_GT(pass.nanoseconds, 0);
  EXPECT_EQ(pass.amount.bytes_read, row.bytes_read);
  EXPECT_EQ(pass.amount.bytes_written, row.bytes_written);
  EXPECT_GT(totals(profile, Work::block).nanoseconds, 0);
}

/// Plans differ from tier to tier, so that not all of them need the pass.
TEST(CallProfile, HasPassesThatAreNoPartOfKernels) {
  for (const PassCase& row : passes) {
    int met = 0;
    for (const auto& [tier, runtime] : tier_runtimes()) {
      SCOPED_TRACE(std::string(row.name) + " on " + std::string(name_of(tier)));
      Prepared prepared = Prepared::make({row.name, row.function}, runtime);
      CallProfile profile(prepared.nests());
      ASSERT_TRUE(detail::run_profiled(detail::StateAccess::of(prepared.bound),
                                       prepared.tensors.inputs(), prepared.tensors.outputs(), {},
                                       profile)
                      .ok());
      if (totals(profile, row.work).parts == 0) continue;
      check_pass(row, profile);
      ++met;
    }
    EXPECT_GT(met, 0) << row.name;
  }
}

/// All nests on one block of rows after the other: each counts once for each block.
TEST(CallProfile, CountsBlocksOfRows) {
  const Runtime runtime = *Runtime::create();
  const int64_t rows = 4096;
  const ProfileCase row = {"row blocks",
                           {"func @f(%x: f32[?n, 1024]) -> (u8[?n, 1024]) { "
                            "%m = reduce_max %x {axes = [1], keep_dims = true} %d = div %x, %m "
                            "%y = convert %d : u8 return %y }",
                            {{{rows, 1024}}}}};
  Prepared prepared = Prepared::make(row, runtime);
  if (prepared.bound.engine() != Engine::jit) GTEST_SKIP() << prepared.bound.engine_reason();
  const auto& steps = detail::StateAccess::of(prepared.bound).steps;
  ASSERT_EQ(steps.size(), 1u);
  const auto* blocks = std::get_if<detail::RowBlockStep>(&steps[0]);
  ASSERT_NE(blocks, nullptr);
  CallProfile profile(prepared.nests());
  ASSERT_TRUE(detail::run_profiled(detail::StateAccess::of(prepared.bound),
                                   prepared.tensors.inputs(), prepared.tensors.outputs(), {},
                                   profile)
                  .ok());
  for (size_t nest = 0; nest < prepared.nests(); ++nest) {
    EXPECT_GE(profile.totals(nest, Work::nest).parts, blocks->count()) << nest;
  }
}

}  // namespace
}  // namespace castor::test
