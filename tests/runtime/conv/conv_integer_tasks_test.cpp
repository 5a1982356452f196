// SPDX-License-Identifier: Apache-2.0
// Convolutions split into tasks: the same bits, however many there are.
#include "tests/support/function_case.hpp"
#include "tools/testing/thread_per_task.hpp"

namespace castor {
namespace {

const test::FunctionCase cases[] = {
    {"func @one_image(%x: u8[1, 32, 20, 20], %w: i8[40, 32, 3, 3], %z: u8[]) -> i32[1, 40, 20, 20] "
     "{\n  %y = conv_integer %x, %w, %z {pads = [1, 1, 1, 1]}\n  return %y\n}\n",
     {{{1, 32, 20, 20}}, {{40, 32, 3, 3}}, {{}}}},
    {"func @images(%x: i8[5, 8, 9, 9], %w: u8[6, 4, 3, 3], %z: u8[6]) -> i32[5, 6, 4, 4] {\n"
     "  %y = conv_integer %x, %w, none, %z {group = 2, strides = [2, 2]}\n  return %y\n}\n",
     {{{5, 8, 9, 9}}, {{6, 4, 3, 3}}, {{6}}}},
    {"func @nhwc(%x: u8[2, 15, 11, 12], %w: i8[20, 12, 3, 3]) -> i32[2, 13, 9, 20] {\n"
     "  %y = conv_integer %x, %w {layout = nhwc}\n  return %y\n}\n",
     {{{2, 15, 11, 12}}, {{20, 12, 3, 3}}}},
    {"func @blocks(%x: u8[1, 256, 60, 56], %w: i8[9, 256, 1, 1]) -> i32[1, 9, 60, 56] {\n"
     "  %y = conv_integer %x, %w\n  return %y\n}\n",
     {{{1, 256, 60, 56}}, {{9, 256, 1, 1}}}},
    {"func @signal(%x: u8[1, 20, 700], %w: u8[17, 20, 3], %z: u8[17]) -> i32[1, 17, 700] {\n"
     "  %y = conv_integer %x, %w, none, %z {pads = [1, 1]}\n  return %y\n}\n",
     {{{1, 20, 700}}, {{17, 20, 3}}, {{17}}}},
    {"func @rows_of_one_filter_position(%x: i8[1, 24, 500], %w: i8[40, 24, 1]) -> i32[1, 40, 500] "
     "{\n  %y = conv_integer %x, %w\n  return %y\n}\n",
     {{{1, 24, 500}}, {{40, 24, 1}}}},
    {"func @small_image(%x: u8[1, 48, 7, 7], %w: u8[70, 48, 3, 3], %z: u8[]) -> f32[1, 70, 7, 7] "
     "{\n  %y = conv_integer %x, %w, none, %z {pads = [1, 1, 1, 1]}\n  %f = convert %y : f32\n"
     "  return %f\n}\n",
     {{{1, 48, 7, 7}}, {{70, 48, 3, 3}}, {{}}}},
    {"func @outer_axis(%x: u8[1, 8, 6, 10, 10], %w: i8[12, 8, 3, 3, 3]) -> i32[1, 12, 4, 8, 8] {\n"
     "  %y = conv_integer %x, %w\n  return %y\n}\n",
     {{{1, 8, 6, 10, 10}}, {{12, 8, 3, 3, 3}}}},
};

TEST(ConvIntegerTasks, GiveTheSameBits) {
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
