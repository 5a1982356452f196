// SPDX-License-Identifier: Apache-2.0
// Epilogues of convolutions and memory: results and residuals as views, elements smaller than
// bytes, tasks, scratch, results in place of operands.
#include <fmt/format.h>

#include "tests/support/epilogue_cases.hpp"
#include "tools/testing/thread_per_task.hpp"

namespace castor::test {
namespace {

/// A function of x, w and a residual, with memory for tensors.
struct ViewRow {
  const char* name;
  Layout result;
  Layout residual;
  bool is_fused;
};

TEST(ConvEpilogue, StridedViews) {
  const Dims shape = {2, 6, 4, 8};
  const ViewRow rows[] = {
      {"part_of_more_channels", {shape, {320, 32, 8, 1}, 64}, {shape, {192, 32, 8, 1}, 1}, true},
      {"every_other_image", {shape, {384, 32, 8, 1}}, {shape, {192, 32, 8, 1}, 7}, true},
      {"channels_spaced", {shape, {240, 40, 8, 1}, 3}, {shape, {300, 50, 8, 1}, 5}, true},
      {"rows_spaced", {shape, {270, 45, 10, 1}}, {shape}, false},
      {"columns_spaced", {shape, {384, 64, 16, 2}, 1}, {shape}, false},
      {"residual_transposed", {shape}, {shape, {192, 32, 1, 4}}, false},
      {"channels_last", {shape, {192, 1, 48, 6}}, {shape}, false},
  };
  for (const ViewRow& row : rows) {
    for (const char* type : {"f32", "u8", "i4"}) {
      const FunctionCase made = {
          fmt::format("func @f(%x: u8[2, 3, 4, 8], %w: i8[6, 3, 3, 3], %t: {0}[2, 6, 4, 8]) -> "
                      "{0}[2, 6, 4, 8] {{\n"
                      " %y = conv_integer %x, %w {{pads = [1, 1, 1, 1]}}\n %f = convert %y : f32\n"
                      " %g = convert %t : f32\n %a = add %f, %g\n"
                      " %r = convert %a {{overflow = saturate}} : {0}\n return %r\n}}\n",
                      type),
          {{{2, 3, 4, 8}}, {{6, 3, 3, 3}}, row.residual},
          {row.result}};
      check_function(made);
      const FunctionPtr function = *parse_function(made.text);
      CaseTensors tensors(*function, made, 1, true);
      const auto bound = tier_runtimes().front().second.compile(function)->bind(tensors.inputs(),
                                                                                tensors.outputs());
      ASSERT_TRUE(bound) << row.name << bound.error().to_string();
      EXPECT_EQ(is_fused(*bound), row.is_fused) << row.name << ", " << type;
    }
  }
}

/// Slices of sub-byte results that begin inside bytes: no task may lose another's bits.
TEST(ConvEpilogue, SubByteResultsFromAnyElementOn) {
  for (const int64_t offset : {0, 1, 3, 6, 7}) {
    for (const bool nhwc : {false, true}) {
      const Dims x = nhwc ? Dims{1, 66, 70, 3} : Dims{1, 3, 66, 70};
      const Dims y = nhwc ? Dims{1, 66, 70, 12} : Dims{1, 12, 66, 70};
      const FunctionCase made = {
          fmt::format("func @f(%x: u8{}, %w: i8[12, 3, 1, 1]) -> i4{} {{\n"
                      " %y = conv_integer %x, %w {{layout = {}}}\n %r = convert %y : i4\n"
                      " return %r\n}}\n",
                      to_string(x), to_string(y), nhwc ? "nhwc" : "nchw"),
          {{x}, {{12, 3, 1, 1}}},
          {{y, dense_strides(y), offset}}};
      check_function(made);
    }
  }
}

TEST(ConvEpilogue, TasksGiveTheSameBits) {
  for (const char* name : {"many_slices", "grouped", "small_images", "tiles_of_channels",
                           "depthwise", "depthwise_7_twice", "depthwise_rows"}) {
    const Layer& layer = epilogue_layer(name);
    for (const Chain& chain : epilogue_chains()) {
      for (const bool nhwc : {false, true}) {
        const FunctionCase row = case_of(layer, chain, {.nhwc = nhwc});
        const FunctionPtr function = *parse_function(row.text);
        for (const auto& [tier, runtime] : tier_runtimes()) {
          CaseTensors expected(*function, row, 3, true);
          const BoundKernel bound =
              *runtime.compile(function)->bind(expected.inputs(), expected.outputs());
          ASSERT_TRUE(bound.run(expected.inputs(), expected.outputs()).ok());
          for (const int tasks : {2, 7}) {
            CaseTensors actual(*function, row, 3, true);
            ThreadPerTask executor(tasks);
            const RunOptions options = {.executor = &executor};
            ASSERT_TRUE(bound.run(actual.inputs(), actual.outputs(), options).ok());
            for (size_t i = 0; i < actual.output_tensors().size(); ++i) {
              EXPECT_TRUE(std::ranges::equal(actual.output_tensors()[i].bytes(),
                                             expected.output_tensors()[i].bytes()))
                  << name_of(tier) << ", " << tasks << " tasks: " << row.text;
              EXPECT_TRUE(actual.output_tensors()[i].is_clean_around());
            }
          }
        }
      }
    }
  }
}

/// The tensor of i32 is never made.
TEST(ConvEpilogue, ScratchIsSmall) {
  const std::string text =
      "func @f(%x: u8[1, 64, 56, 56], %w: i8[64, 64, 3, 3], %s: f32[64, 1, 1]) -> "
      "f32[1, 64, 56, 56] {\n %y = conv_integer %x, %w {pads = [1, 1, 1, 1]}\n"
      " %f = convert %y : f32\n %r = mul %f, %s\n return %r\n}\n";
  const std::vector<Dims> shapes = {{1, 64, 56, 56}, {64, 64, 3, 3}, {64, 1, 1}};
  for (const auto& [tier, runtime] : tier_runtimes()) {
    const auto bound = runtime.compile(*parse_function(text))->bind(shapes);
    ASSERT_TRUE(bound) << bound.error().to_string();
    ASSERT_TRUE(is_fused(*bound));
    const size_t bytes = bound->scratch_bytes();
    const size_t weights = 64 * 64 * 9 * 2;  // as words where there is no VNNI
    EXPECT_LE(bytes, (size_t{1} << 20) + weights) << name_of(tier);
  }
}

/// A result in the memory of a residual is what it is elsewhere; in that of x it is refused.
TEST(ConvEpilogue, InPlace) {
  const std::string text =
      "func @f(%x: u8[1, 6, 4, 8], %w: i8[6, 6, 3, 3], %t: u8[1, 6, 4, 8]) -> u8[1, 6, 4, 8] {\n"
      " %y = conv_integer %x, %w {pads = [1, 1, 1, 1]}\n %f = convert %t : i32\n"
      " %a = add %y, %f\n %r = convert %a {overflow = saturate} : u8\n return %r\n}\n";
  const FunctionCase row = {text, {{{1, 6, 4, 8}}, {{6, 6, 3, 3}}, {{1, 6, 4, 8}}}};
  const FunctionPtr function = *parse_function(text);
  CaseTensors expected(*function, row, 1, true);
  ASSERT_TRUE(interpret(*function, expected.inputs(), expected.outputs()));
  for (const auto& [tier, runtime] : tier_runtimes()) {
    CaseTensors tensors(*function, row, 1, true);
    const std::vector<ConstView> inputs = tensors.inputs();
    std::vector<View> outputs = tensors.outputs();
    const BoundKernel bound = *runtime.compile(function)->bind(inputs, outputs);
    ASSERT_TRUE(is_fused(bound));
    outputs[0].data = const_cast<void*>(inputs[0].data);
    const Status refused = bound.run(inputs, outputs);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
    outputs[0].data = const_cast<void*>(inputs[2].data);
    const Status status = bound.run(inputs, outputs);
    ASSERT_TRUE(status.ok()) << status.error().to_string();
    EXPECT_EQ(std::memcmp(outputs[0].data, expected.output_tensors()[0].bytes().data(), 192), 0)
        << name_of(tier);
  }
}

/// Widths that register tiles do not divide: no residual is read after its pixel was written.
TEST(ConvEpilogue, InPlaceWhereTilesDoNotDivideRows) {
  struct Row {
    Dims x;
    Dims w;
    const char* options;
    Dims y;
  };
  std::vector<Row> rows;
  for (const int64_t columns : {37, 101}) {
    for (const int64_t channels : {16, 20, 64}) {
      rows.push_back({{1, columns, 64}, {channels, 64, 1}, "", {1, columns, channels}});
      rows.push_back({{1, 3, columns, 16},
                      {channels, 16, 3, 3},
                      ", pads = [1, 1, 1, 1]",
                      {1, 3, columns, channels}});
    }
  }
  for (const Row& each : rows) {
    const std::string text = fmt::format(
        "func @f(%x: u8{}, %w: i8{}, %t: i32{}) -> i32{} {{\n"
        " %y = conv_integer %x, %w {{layout = nhwc{}}}\n %r = add %y, %t\n return %r\n}}\n",
        to_string(each.x), to_string(each.w), to_string(each.y), to_string(each.y), each.options);
    const FunctionCase row = {text, {{each.x}, {each.w}, {each.y}}};
    const FunctionPtr function = *parse_function(text);
    CaseTensors expected(*function, row, 1, true);
    ASSERT_TRUE(interpret(*function, expected.inputs(), expected.outputs()));
    for (const auto& [tier, runtime] : tier_runtimes()) {
      CaseTensors tensors(*function, row, 1, true);
      const std::vector<ConstView> inputs = tensors.inputs();
      std::vector<View> outputs = tensors.outputs();
      const BoundKernel bound = *runtime.compile(function)->bind(inputs, outputs);
      ASSERT_TRUE(is_fused(bound));
      outputs[0].data = const_cast<void*>(inputs[2].data);
      ASSERT_TRUE(bound.run(inputs, outputs).ok());
      const auto& bytes = expected.output_tensors()[0].bytes();
      EXPECT_EQ(std::memcmp(outputs[0].data, bytes.data(), bytes.size()), 0)
          << name_of(tier) << "\n"
          << text;
    }
  }
}

}  // namespace
}  // namespace castor::test
