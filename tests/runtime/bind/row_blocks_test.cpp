// SPDX-License-Identifier: Apache-2.0
// Functions whose rows are done block by block through all nests: what is cut, and that neither
// blocks nor tasks change a bit.
#include <fmt/format.h>

#include "runtime/bind/bind.hpp"
#include "runtime/bind/bound_state.hpp"
#include "runtime/state_access.hpp"
#include "tests/support/function_case.hpp"
#include "tools/testing/executors.hpp"

namespace castor::test {
namespace {

constexpr const char* quantized_rows = R"(
func @f(%x: f32[?n, ?c]) -> (i8[?n, ?c], f32[?n, 1]) {
  %y, %s = dynamic_quantize_symmetric %x {axes = [1]} : i8
  return %y, %s
})";

constexpr const char* quantized_planes = R"(
func @f(%x: bf16[?a, ?b, ?c]) -> (i8[?a, ?b, ?c], f32[?a, ?b, 1]) {
  %f = convert %x : f32
  %y, %s = dynamic_quantize_symmetric %f {axes = [2], scaling = reciprocal} : i8
  return %y, %s
})";

constexpr const char* quantized_mx = R"(
func @f(%x: bf16[?n, 64]) -> (f4e2m1[?n, 64], f8e8m0[?n, 2]) {
  %y, %s = quantize_mx %x {format = mxfp4} : f4e2m1
  return %y, %s
})";

/// Centred and normalised, with parameters of columns and of rows, and one of all.
constexpr const char* normalized = R"(
func @f(%x: f32[?n, ?c], %g: f32[?c], %r: f32[?n, 1], %e: f32[]) -> (f16[?n, ?c]) {
  %m = reduce_max %x {axes = [1], keep_dims = true}
  %d = sub %x, %m
  %a = mul %d, %d
  %q = reduce_sum %a {axes = [1], keep_dims = true}
  %v = add %q, %e
  %s = sqrt %v
  %u = div %d, %s
  %w = mul %u, %g
  %z = add %w, %r
  %h = convert %z : f16
  return %h
})";

constexpr const char* codes_of_rows = R"(
func @f(%x: f32[?n, ?c]) -> (u4[?n, ?c]) {
  %m = reduce_max_abs %x {axes = [1], keep_dims = true}
  %d = div %x, %m
  %y = convert %d {overflow = saturate} : u4
  return %y
})";

constexpr const char* whole_tensor = R"(
func @f(%x: f32[?n, ?c]) -> (u8[?n, ?c], f32[], u8[]) {
  %y, %s, %z = dynamic_quantize_linear %x : u8
  return %y, %s, %z
})";

constexpr const char* columns = R"(
func @f(%x: f32[?n, ?c]) -> (i8[?n, ?c], f32[1, ?c]) {
  %y, %s = dynamic_quantize_symmetric %x {axes = [0]} : i8
  return %y, %s
})";

/// One nest reads a row of %w for each row, and another one all rows.
constexpr const char* read_in_two_ways = R"(
func @f(%x: f32[?n, 4], %w: f32[?n]) -> (f32[?n, 4]) {
  %m = reduce_max %w {axes = [0], keep_dims = true}
  %r = reduce_max %x {axes = [1], keep_dims = true}
  %d = sub %x, %r
  %y = mul %d, %m
  return %y
})";

constexpr const char* constant_of_rows = R"(
func @f(%x: f32[4, 64]) -> (f32[4, 64]) {
  %k = constant [1.0, 2.0, 3.0, 4.0] : f32[4]
  %c = reshape %k : [4, 1]
  %r = reduce_max %x {axes = [1], keep_dims = true}
  %d = sub %x, %r
  %y = mul %d, %c
  return %y
})";

struct Row {
  const char* what;
  FunctionCase function;
  int64_t blocks;  ///< 1024 bytes each; 0: nest after nest
};

std::vector<Row> rows() {
  const Layout scalar = {{}};
  return {
      {"rows", {quantized_rows, {{{13, 67}}}}, 7},
      {"rows of one block", {quantized_rows, {{{2, 64}}}}, 0},
      {"long rows", {quantized_rows, {{{3, 1000}}}}, 0},
      {"strided rows",
       {quantized_rows, {{{13, 67}, {80, 1}, 3}}, {{{13, 67}, {99, 1}, 2}, {{13, 1}, {5, 1}}}},
       7},
      {"planes", {quantized_planes, {{{2, 5, 131}}}}, 6},
      {"small planes", {quantized_planes, {{{9, 3, 33}}}}, 3},
      {"blocks of scales", {quantized_mx, {{{21, 64}}}}, 5},
      {"parameters", {normalized, {{{19, 35}}, {{35}}, {{19, 1}}, scalar}}, 5},
      {"one column", {normalized, {{{300, 1}}, {{1}}, {{300, 1}}, scalar}}, 6},
      {"sub-byte rows that begin in bytes", {codes_of_rows, {{{24, 35}}}}, 4},
      {"sub-byte rows inside bytes", {codes_of_rows, {{{24, 35}}}, {{{24, 35}, {}, 1}}}, 4},
      {"sub-byte rows with gaps", {codes_of_rows, {{{24, 35}}}, {{{24, 35}, {37, 1}}}}, 0},
      {"a tensor's range", {whole_tensor, {{{24, 35}}}}, 0},
      {"columns", {columns, {{{24, 35}}}}, 0},
      {"two ways", {read_in_two_ways, {{{300, 4}}, {{300}}}}, 0},
      {"constant", {constant_of_rows, {{{4, 64}}}}, 0},
  };
}

Result<BoundKernel> bind_in_blocks(const Kernel& kernel, CaseTensors& tensors, int64_t bytes) {
  std::vector<Dims> shapes;
  std::vector<Dims> strides;
  for (const ConstView& input : tensors.inputs()) {
    shapes.push_back(input.shape);
    strides.push_back(input.strides);
  }
  for (const View& output : tensors.outputs()) strides.push_back(output.strides);
  auto bound = detail::bind_kernel(detail::StateAccess::shared(kernel), shapes, strides, {}, bytes);
  if (!bound) return bound.error();
  return detail::StateAccess::handle(std::move(bound).value());
}

int64_t blocks_of(const BoundKernel& bound) {
  const detail::BoundState& state = detail::StateAccess::of(bound);
  const auto* step = std::get_if<detail::RowBlockStep>(&state.steps.front());
  return step == nullptr ? 0 : step->count();
}

TEST(RowBlocks, AreOfIndependentRows) {
  const Runtime runtime = *Runtime::create();
  for (const Row& row : rows()) {
    const FunctionPtr function = *parse_function(row.function.text);
    CaseTensors tensors(*function, row.function, 1, true);
    const auto bound = bind_in_blocks(*runtime.compile(function), tensors, 1024);
    ASSERT_TRUE(bound.ok()) << row.what << ": " << bound.error().message;
    EXPECT_EQ(blocks_of(*bound), row.blocks) << row.what;
  }
}

/// Runs a case in blocks of that many bytes, by `tasks` tasks, and compares every byte.
void check(const Row& row, const Runtime& runtime, int64_t bytes, int tasks) {
  const FunctionPtr function = *parse_function(row.function.text);
  CaseTensors expected(*function, row.function, 3, true);
  CaseTensors actual(*function, row.function, 3, true);
  ASSERT_TRUE(interpret(*function, expected.inputs(), expected.outputs()).ok());
  const auto bound = bind_in_blocks(*runtime.compile(function), actual, bytes);
  ASSERT_TRUE(bound.ok()) << bound.error().message;
  Backwards executor(tasks);
  RunOptions options;
  options.executor = &executor;
  const Status status = bound->run(actual.inputs(), actual.outputs(), options);
  ASSERT_TRUE(status.ok()) << status.error().message;
  for (size_t i = 0; i < actual.output_tensors().size(); ++i) {
    GuardedTensor& found = actual.output_tensors()[i];
    ASSERT_TRUE(std::ranges::equal(found.bytes(), expected.output_tensors()[i].bytes()))
        << "output " << i;
    ASSERT_TRUE(found.is_clean_around());
  }
}

TEST(RowBlocks, ChangeNoBit) {
  for (const auto& [tier, runtime] : elementwise_tier_runtimes()) {
    for (const Row& row : rows()) {
      for (const int64_t bytes : {64, 300, 1024, 5000}) {
        for (const int tasks : {1, 2, 3, 16}) {
          SCOPED_TRACE(fmt::format("{}, {}, blocks of {} bytes, {} tasks", name_of(tier), row.what,
                                   bytes, tasks));
          ASSERT_NO_FATAL_FAILURE(check(row, runtime, bytes, tasks));
        }
      }
    }
  }
}

TEST(RowBlocks, WriteInPlaceWhatTheyHaveRead) {
  constexpr const char* text = R"(
func @f(%x: f32[?n, ?c]) -> (f32[?n, ?c]) {
  %m = reduce_max_abs %x {axes = [1], keep_dims = true}
  %y = div %x, %m
  return %y
})";
  const FunctionPtr function = *parse_function(text);
  const FunctionCase row = {text, {{{13, 67}}}};
  CaseTensors apart(*function, row, 5, true);
  ASSERT_TRUE(interpret(*function, apart.inputs(), apart.outputs()).ok());
  for (const int tasks : {1, 4}) {
    CaseTensors tensors(*function, row, 5, true);
    const auto bound = bind_in_blocks(*Runtime::create()->compile(function), tensors, 1024);
    ASSERT_TRUE(bound.ok()) << bound.error().message;
    ASSERT_GT(blocks_of(*bound), 1);
    const ConstView x = tensors.inputs()[0];
    const View y = {const_cast<void*>(x.data), x.element, x.shape, x.strides, x.offset, x.bytes};
    Backwards executor(tasks);
    RunOptions options;
    options.executor = &executor;
    const Status status = bound->run({&x, 1}, {&y, 1}, options);
    ASSERT_TRUE(status.ok()) << status.error().message;
    const std::span found(static_cast<const std::byte*>(x.data), x.bytes);
    EXPECT_TRUE(std::ranges::equal(found, apart.output_tensors()[0].bytes()));
  }
}

/// Every index of the rows reads all of %w, which is of the result's shape.
TEST(RowBlocks, KeepWhatAllRowsReadUntilTheEnd) {
  constexpr const char* text = R"(
func @f(%x: f32[8, 8], %w: f32[8, 8]) -> (f32[8, 8]) {
  %v = reshape %w : [1, 64]
  %k = reduce_max %x {axes = [1], keep_dims = true}
  %d = sub %x, %k
  %a = mul %k, %v
  %m = reduce_max %a {axes = [1], keep_dims = true}
  %y = add %d, %m
  return %y
})";
  const FunctionPtr function = *parse_function(text);
  CaseTensors tensors(*function, {text, {{{8, 8}}, {{8, 8}}}}, 5, true);
  const auto bound = bind_in_blocks(*Runtime::create()->compile(function), tensors, 128);
  ASSERT_TRUE(bound.ok()) << bound.error().message;
  ASSERT_GT(blocks_of(*bound), 1);
  const OverlapRules rules = detail::StateAccess::of(*bound).overlap_rules();
  EXPECT_TRUE(rules.allows_in_place(0, 0));
  EXPECT_FALSE(rules.allows_in_place(1, 0));
}

}  // namespace
}  // namespace castor::test
