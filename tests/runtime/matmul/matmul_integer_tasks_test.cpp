// SPDX-License-Identifier: Apache-2.0
// Matrix products split into tasks: the same bits, however many there are.
#include "tests/support/function_case.hpp"
#include "tools/testing/thread_per_task.hpp"

namespace castor {
namespace {

const test::FunctionCase cases[] = {
    {"func @one_row(%a: u8[1, 700], %b: i8[700, 1500], %z: u8[]) -> i32[1, 1500] {\n"
     "  %y = matmul_integer %a, %b, %z\n  return %y\n}\n",
     {{{1, 700}}, {{700, 1500}}, {{}}}},
    {"func @rows(%a: u8[90, 200], %b: i8[200, 300], %z: u8[90]) -> i32[90, 300] {\n"
     "  %y = matmul_integer %a, %b, %z\n  return %y\n}\n",
     {{{90, 200}}, {{200, 300}}, {{90}}}},
    {"func @transposed(%a: i8[60, 200], %b: u8[200, 300], %z: u8[300]) -> i32[60, 300] {\n"
     "  %y = matmul_integer %a, %b, none, %z\n  return %y\n}\n",
     {{{60, 200}}, {{200, 300}, {1, 200}}, {{300}}}},
    {"func @batches(%a: u8[12, 40, 64], %b: i8[12, 64, 50]) -> i32[12, 40, 50] {\n"
     "  %y = matmul_integer %a, %b\n  return %y\n}\n",
     {{{12, 40, 64}}, {{12, 64, 50}}}},
    {"func @images(%a: u8[40, 64], %b: i8[12, 64, 50]) -> i32[12, 40, 50] {\n"
     "  %y = matmul_integer %a, %b\n  return %y\n}\n",
     {{{40, 64}}, {{12, 64, 50}}}},
    {"func @corrected(%a: u8[8, 40, 64], %b: i8[8, 64, 50], %z: i8[8, 1, 50], %s: f32[8, 40, 1]) "
     "-> f32[8, 40, 50] {\n  %y = matmul_integer %a, %b, none, %z\n  %f = convert %y : f32\n"
     "  %r = mul %f, %s\n  return %r\n}\n",
     {{{8, 40, 64}}, {{8, 64, 50}}, {{8, 1, 50}}, {{8, 40, 1}}}},
};

TEST(MatmulTasks, GiveTheSameBits) {
  for (const test::FunctionCase& row : cases) {
    const FunctionPtr function = *parse_function(row.text);
    for (const auto& [tier, runtime] : test::tier_runtimes()) {
      test::CaseTensors expected(*function, row, 3, true);
      const BoundKernel bound =
          *runtime.compile(function)->bind(expected.inputs(), expected.outputs());
      ASSERT_EQ(bound.engine(), Engine::jit);
      ASSERT_TRUE(bound.run(expected.inputs(), expected.outputs()).ok());
      for (int tasks : {2, 3, 7, 16}) {
        test::CaseTensors actual(*function, row, 3, true);
        test::ThreadPerTask executor(tasks);
        const RunOptions options = {.executor = &executor};
        ASSERT_TRUE(bound.run(actual.inputs(), actual.outputs(), options).ok());
        EXPECT_GT(executor.max(), 1) << function->name;
        EXPECT_TRUE(std::ranges::equal(actual.output_tensors()[0].bytes(),
                                       expected.output_tensors()[0].bytes()))
            << name_of(tier) << ", " << tasks << " tasks: @" << function->name;
        EXPECT_TRUE(actual.output_tensors()[0].is_clean_around());
      }
    }
  }
}

}  // namespace
}  // namespace castor
