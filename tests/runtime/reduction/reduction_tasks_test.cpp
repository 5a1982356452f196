// SPDX-License-Identifier: Apache-2.0
// Reductions split into tasks: the same bits, however many there are.
#include "tests/support/function_case.hpp"
#include "tools/testing/thread_per_task.hpp"

namespace castor::test {
namespace {

const FunctionCase cases[] = {
    {"func @all(%x: f32[300000]) -> (f32[], f32[]) {\n  %a = reduce_sum %x\n"
     "  %b = reduce_max_abs %x\n  return %a, %b\n}\n",
     {{{300000}}}},
    {"func @rows(%x: i8[50, 9000]) -> (i32[50], i8[50]) {\n"
     "  %a = reduce_sum %x {axes = [1], accumulator = i32} : i32[50]\n"
     "  %b = reduce_min %x {axes = [1]}\n  return %a, %b\n}\n",
     {{{50, 9000}}}},
    {"func @columns(%x: f32[40, 9000]) -> (f32[9000], f32[9000]) {\n"
     "  %a = reduce_sum %x {axes = [0]}\n  %b = reduce_max %x {axes = [0]}\n  return %a, %b\n}\n",
     {{{40, 9000}}}},
    {"func @blocks(%x: f32[9000, 75]) -> (f32[75]) {\n"
     "  %a = reduce_sum %x {axes = [0]}\n  return %a\n}\n",
     {{{9000, 75}}}},
    {"func @middle(%x: bf16[60, 30, 70]) -> (bf16[60, 70], bf16[60, 70]) {\n"
     "  %a = reduce_sum %x {axes = [1]}\n  %b = reduce_max %x {axes = [1]}\n  return %a, %b\n}\n",
     {{{60, 30, 70}}}},
};

TEST(ReductionTasks, GiveTheSameBits) {
  for (const FunctionCase& row : cases) {
    const FunctionPtr function = *parse_function(row.text);
    for (const auto& [tier, runtime] : elementwise_tier_runtimes()) {
      CaseTensors expected(*function, row, 3, true);
      const BoundKernel bound =
          *runtime.compile(function)->bind(expected.inputs(), expected.outputs());
      ASSERT_EQ(bound.engine(), Engine::jit);
      ASSERT_TRUE(bound.run(expected.inputs(), expected.outputs()).ok());
      for (int tasks : {2, 3, 7, 16}) {
        CaseTensors actual(*function, row, 3, true);
        ThreadPerTask executor(tasks);
        const RunOptions options = {.executor = &executor};
        ASSERT_TRUE(bound.run(actual.inputs(), actual.outputs(), options).ok());
        EXPECT_GT(executor.max(), 1) << function->name;
        for (size_t i = 0; i < actual.output_tensors().size(); ++i) {
          EXPECT_TRUE(std::ranges::equal(actual.output_tensors()[i].bytes(),
                                         expected.output_tensors()[i].bytes()))
              << name_of(tier) << ", " << tasks << " tasks: @" << function->name;
          EXPECT_TRUE(actual.output_tensors()[i].is_clean_around());
        }
      }
    }
  }
}

}  // namespace
}  // namespace castor::test
