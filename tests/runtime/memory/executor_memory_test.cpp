// SPDX-License-Identifier: Apache-2.0
// Split calls that store past the caches, and split calls in place: the bytes of one task, also
// where tasks run in threads of their own. `--long`: on all tiers instead of two.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/function_case.hpp"
#include "tests/support/long_form.hpp"
#include "tools/testing/executors.hpp"
#include "tools/testing/thread_per_task.hpp"

namespace castor {
namespace {

using test::CaseTensors;
using test::FunctionCase;

/// Everything that a call leaves in its outputs, inputs in place among them.
std::vector<std::byte> bytes_after(const BoundKernel& bound, const Function& function,
                                   const FunctionCase& row, bool in_place,
                                   const RunOptions& options) {
  CaseTensors tensors(function, row, 9, false);
  std::vector<View> outputs = tensors.outputs();
  const std::vector<ConstView> inputs = tensors.inputs();
  if (in_place) outputs[0].data = const_cast<void*>(inputs[0].data);
  const Status status = bound.run(inputs, outputs, options);
  EXPECT_TRUE(status.ok()) << status.error().to_string() << "\n" << row.text;
  std::vector<std::byte> all;
  if (in_place) {
    const auto* first = static_cast<const std::byte*>(inputs[0].data);
    all.assign(first, first + inputs[0].bytes);
  }
  for (test::GuardedTensor& output : tensors.output_tensors()) {
    EXPECT_TRUE(output.is_clean_around()) << row.text;
    all.insert(all.end(), output.bytes().begin(), output.bytes().end());
  }
  return all;
}

void check_tasks(const FunctionCase& row, bool in_place, StorePolicy stores) {
  const FunctionPtr function = *parse_function(row.text);
  for (const auto& [tier, runtime] : test::tier_runtimes()) {
    const bool is_end =
        tier == test::tier_runtimes().front().first || tier == test::tier_runtimes().back().first;
    if (!is_end && !test::long_form()) continue;
    CaseTensors tensors(*function, row, 9, false);
    const BoundKernel bound = *runtime.compile(function)->bind(tensors.inputs(), tensors.outputs());
    const auto expected = bytes_after(bound, *function, row, in_place, {.stores = stores});
    for (const int tasks : {2, 7}) {
      if (tasks == 2 && !test::long_form()) continue;
      test::Backwards backwards(tasks);
      test::ThreadPerTask threads(tasks);
      for (Executor* executor :
           {static_cast<Executor*>(&backwards), static_cast<Executor*>(&threads)}) {
        const auto found =
            bytes_after(bound, *function, row, in_place, {.stores = stores, .executor = executor});
        ASSERT_TRUE(found == expected) << name_of(tier) << ", " << tasks << " tasks\n" << row.text;
      }
      EXPECT_GT(backwards.max(), 1) << name_of(tier) << "\n" << row.text;
    }
  }
}

std::string conversion(std::string_view from, std::string_view to, int64_t count) {
  return fmt::format(
      "func @f(%x: {}[{}]) -> ({}[{}]) {{\n  %y = convert %x : {}\n  return %y\n}}\n", from, count,
      to, count, to);
}

/// Outputs that begin a line, and some elements after one.
TEST(ExecutorStreaming, GivesTheSameBytes) {
  const std::pair<std::string_view, std::string_view> pairs[] = {
      {"f32", "i8"},      {"u8", "f32"}, {"i8", "f16"}, {"f32", "f16"},
      {"u4", "f32"},      {"f32", "u4"}, {"f16", "u2"}, {"u6", "u8"},
      {"u8", "u3.split"}, {"u1", "f64"}, {"u8", "u1"},
  };
  for (const auto& [from, to] : pairs) {
    const int64_t bits = bits_of(*element_type_named(from)) + bits_of(*element_type_named(to));
    const int64_t count = (int64_t{9} << 20) / bits + 77;
    for (const int64_t line_offset : {0, 24}) {
      if (line_offset == 0 && !test::long_form()) continue;
      const FunctionCase row = {conversion(from, to, count),
                                {{{count}}},
                                {{.shape = {count}, .line_offset = line_offset}}};
      check_tasks(row, false, StorePolicy::streaming);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(ExecutorStreaming, SeveralResultsRowsAndPeriods) {
  const FunctionCase rows[] = {
      {"func @f(%x: u16[200003]) -> (i32[200003], u8[200003]) {\n  %a = convert %x : i32\n"
       "  %b = convert %x : u8\n  return %a, %b\n}\n",
       {{{200003}}},
       {{.shape = {200003}, .line_offset = 16}, {.shape = {200003}, .line_offset = 52}}},
      {"func @f(%x: f32[3, 150000], %y: f32[3, 1]) -> f16[3, 150000] {\n  %s = add %x, %y\n"
       "  %z = convert %s : f16\n  return %z\n}\n",
       {{{3, 150000}}, {{3, 1}}}},
      {"func @f(%x: u8[180001, 3], %m: f32[3]) -> f16[180001, 3] {\n  %f = convert %x : f32\n"
       "  %d = sub %f, %m\n  %z = convert %d : f16\n  return %z\n}\n",
       {{{180001, 3}}, {{3}}}},
      {"func @f(%x: u4[4000, 128], %s: f16[4000, 1]) -> f16[4000, 128] {\n"
       "  %f = convert %x : f16\n  %z = mul %f, %s\n  return %z\n}\n",
       {{{4000, 128}}, {{4000, 1}}}},
      {"func @f(%x: f32[700, 900]) -> u8[700, 900] {\n  %z = convert %x : u8\n  return %z\n}\n",
       {{.shape = {700, 900}, .strides = {1, 700}}}},
  };
  for (const FunctionCase& row : rows) {
    check_tasks(row, false, StorePolicy::streaming);
    if (HasFatalFailure()) return;
  }
}

TEST(ExecutorInPlace, GivesTheSameBytes) {
  const FunctionCase rows[] = {
      {conversion("f32", "i32", 5003), {{{5003}}}},
      {conversion("u4", "i4", 5003), {{{5003}}}},
      {conversion("u4", "i4", 5003),
       {{.shape = {5003}, .offset = 3}},
       {{.shape = {5003}, .offset = 3}}},
      {conversion("u6", "u6", 777),
       {{.shape = {777}, .offset = 1}},
       {{.shape = {777}, .offset = 1}}},
      {"func @f(%x: u8[999, 3], %m: u8[3]) -> u8[999, 3] {\n  %z = add %x, %m\n  return %z\n}\n",
       {{{999, 3}}, {{3}}}},
      {"func @f(%x: f32[150, 200]) -> f32[150, 200] {\n  %z = neg %x\n  return %z\n}\n",
       {{.shape = {150, 200}, .strides = {401, 2}}},
       {{.shape = {150, 200}, .strides = {401, 2}}}},
  };
  for (const FunctionCase& row : rows) {
    check_tasks(row, true, StorePolicy::automatic);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace castor
