// SPDX-License-Identifier: Apache-2.0
// Elementwise chains behind convolutions: their bits are those of the interpreter, on every tier,
// whether kernels apply them or they run piece by piece.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/convolution.hpp"
#include "runtime/state.hpp"
#include "tests/support/function_case.hpp"
#include "tests/support/thread_per_task.hpp"

namespace castor::test {
namespace {

struct Layer {
  const char* name;
  Dims image;  ///< [N, C, d...]
  int64_t outputs;
  Dims kernel;
  const char* attributes = "";
  int64_t group = 1;
  int64_t stride = 1;  ///< what the attributes say

  Dims output(bool nhwc) const {
    Dims all = {image[0], outputs};
    for (int axis = 2; axis < image.rank(); ++axis) {
      all.push_back((image[axis] + stride - 1) / stride);
    }
    if (nhwc) std::rotate(all.begin() + 1, all.begin() + 2, all.end());
    return all;
  }
};

/// Extents of the images are kept by all, or divided by the stride.
const Layer layers[] = {
    {"odd", {2, 5, 7, 9}, 7, {3, 3}, "auto_pad = same_upper"},
    {"even", {1, 8, 6, 8}, 6, {3, 3}, "auto_pad = same_upper"},
    {"small_images", {3, 20, 4, 4}, 33, {1, 1}},
    {"depthwise", {1, 12, 9, 10}, 12, {3, 3}, "auto_pad = same_upper", 12},
    {"depthwise_twice", {2, 5, 8, 17}, 10, {3, 3}, "auto_pad = same_lower", 5},
    {"grouped", {1, 16, 6, 10}, 24, {3, 3}, "auto_pad = same_upper", 4},
    {"line", {2, 3, 50}, 10, {5}, "auto_pad = same_upper"},
    {"volume", {1, 3, 3, 4, 6}, 8, {1, 2, 3}, "auto_pad = same_lower"},
    {"one_pixel", {2, 30, 1, 1}, 70, {1, 1}},
    {"one_channel", {2, 30, 5, 6}, 1, {3, 3}, "auto_pad = same_upper"},
    {"many_pieces", {1, 3, 66, 80}, 3, {3, 3}, "auto_pad = same_upper"},
    {"many_channels", {1, 2, 1, 2}, 5002, {1, 1}},
    {"wide", {1, 2, 1, 5001}, 2, {1, 1}},
    {"wide_depthwise", {1, 2, 2, 5002}, 2, {3, 3}, "auto_pad = same_upper", 2},
    {"depthwise_5x5", {1, 6, 20, 34}, 6, {5, 5}, "auto_pad = same_upper", 6},
    {"depthwise_7x7", {2, 3, 39, 18}, 3, {7, 7}, "auto_pad = same_lower", 3},
    {"depthwise_by_2", {2, 5, 19, 35}, 5, {3, 3}, "auto_pad = same_upper, strides = [2, 2]", 5, 2},
    {"depthwise_dilated",
     {1, 4, 21, 40},
     4,
     {3, 3},
     "auto_pad = same_upper, dilations = [2, 2]",
     4},
    {"depthwise_14", {1, 20, 14, 14}, 20, {3, 3}, "auto_pad = same_upper", 20},
    {"depthwise_7_twice", {2, 9, 7, 7}, 18, {3, 3}, "auto_pad = same_upper", 9},
    {"depthwise_4x4", {1, 9, 4, 4}, 9, {3, 3}, "auto_pad = same_upper", 9},
    {"depthwise_many_taps", {1, 3, 6, 40}, 3, {2, 11}, "auto_pad = same_upper", 3},
    {"depthwise_rows", {1, 3, 170, 24}, 3, {3, 3}, "auto_pad = same_upper", 3},
    {"depthwise_line", {2, 4, 60}, 4, {5}, "auto_pad = same_upper", 4},
    {"depthwise_volume", {1, 3, 3, 6, 10}, 3, {2, 3, 3}, "auto_pad = same_lower", 3},
    {"depthwise_sheets", {1, 3, 3, 6, 18}, 3, {1, 3, 3}, "auto_pad = same_lower", 3},
};

/// Shapes of parameters: c: by channel, n: by image, i: by image and channel, f: full, b: full
/// without the batch, s: scalar, p: by pixel, w: by column.
struct Parameter {
  char shape;
  ElementType type;
};

struct Chain {
  const char* name;
  std::vector<Parameter> parameters;  ///< %a, %b, ...
  const char* body;                   ///< from %y to the results
  std::vector<ElementType> results;   ///< %r, %q
  int aligned = 1;                    ///< elements of a byte, where some are smaller
  bool is_fused = true;
};

using enum ElementType;

const Chain chains[] = {
    {"dequantize",
     {{'c', f32}, {'c', f32}},
     "%1 = convert %y : f32\n %2 = mul %1, %a\n %3 = add %2, %b\n %r = relu %3",
     {f32}},
    {"requantize",
     {{'c', f32}, {'c', f32}, {'s', f32}},
     "%1 = convert %y : f32\n %2 = mul %1, %a\n %3 = add %2, %b\n %4 = add %3, %c\n"
     " %5 = relu %4\n %r = convert %5 {overflow = saturate, rounding = nearest_even} : u8",
     {u8}},
    {"scalars",
     {{'s', f32}, {'s', i32}},
     "%1 = add %y, %b\n %2 = convert %1 : f32\n %3 = mul %2, %a\n"
     " %r = convert %3 {overflow = saturate, rounding = nearest_away} : i8",
     {i8}},
    {"residual_f16",
     {{'c', f32}, {'f', f16}},
     "%1 = convert %y : f32\n %2 = mul %1, %a\n %3 = convert %b : f32\n %4 = add %2, %3\n"
     " %r = convert %4 : bf16",
     {bf16}},
    {"residual_u8",
     {{'c', f32}, {'f', u8}, {'c', i8}},
     "%1 = convert %y : f32\n %2 = mul %1, %a\n %3 = convert %b : f32\n %4 = add %2, %3\n"
     " %5 = convert %c : f32\n %6 = add %4, %5\n"
     " %r = convert %6 {overflow = saturate, rounding = down} : i8",
     {i8}},
    {"residual_f64",
     {{'f', f64}},
     "%1 = convert %y : f64\n %2 = mul %1, %a\n %r = convert %2 : f8e4m3",
     {f8e4m3}},
    {"prelu_clamp",
     {{'c', f32}, {'c', f32}},
     "%1 = convert %y : f32\n %2 = mul %1, %a\n %3 = prelu %2, %b\n"
     " %4 = clamp %3 {lo = -9, hi = 60000}\n %r = convert %4 : f16",
     {f16}},
    {"by_image",
     {{'n', f32}, {'i', f32}, {'b', i8}},
     "%1 = convert %y : f32\n %2 = mul %1, %a\n %3 = add %2, %b\n %4 = convert %c : f32\n"
     " %r = add %3, %4",
     {f32}},
    {"by_pixel", {{'p', f32}}, "%1 = convert %y : f32\n %r = mul %1, %a", {f32}},
    {"integers",
     {{'c', i32}, {'f', i32}, {'s', i32}},
     "%1 = mul %y, %a\n %2 = shift_right %1, %c\n %r = sub %2, %b",
     {i32}},
    {"two_results",
     {{'c', f32}, {'f', i16}},
     "%1 = convert %y : f32\n %r = mul %1, %a\n %3 = convert %r {overflow = saturate} : i16\n"
     " %q = max %3, %b",
     {f32, i16}},
    {"unsigned_results",
     {{'c', f32}, {'f', f32}},
     "%1 = convert %y : f32\n %2 = mul %1, %a\n %3 = add %2, %b\n"
     " %r = convert %3 {overflow = saturate, rounding = up} : u16\n"
     " %q = convert %2 {overflow = saturate, rounding = half_up} : u8",
     {u16, u8}},
    {"itself_too", {{'c', i32}}, "%q = add %y, %a\n %r = add %y, %y", {i32, i32}},
    {"comparison", {{'f', i32}}, "%r = less %y, %a", {boolean}},
    {"u4",
     {{'c', f32}},
     "%1 = convert %y : f32\n %2 = mul %1, %a\n"
     " %r = convert %2 {overflow = saturate, rounding = nearest_even} : u4",
     {u4},
     2},
    {"i4_and_residual",
     {{'f', u4}, {'f', f32}},
     "%1 = convert %a : i32\n %2 = add %y, %1\n %3 = convert %2 : f32\n %4 = add %3, %b\n"
     " %r = convert %4 {overflow = saturate, rounding = half_up} : i4\n"
     " %q = convert %4 {overflow = saturate} : u8",
     {i4, u8},
     2},
    {"u2", {{'c', i4}}, "%1 = convert %a : i32\n %2 = add %y, %1\n %r = convert %2 : u2", {u2}, 4},
    {"u1", {{'c', i32}}, "%2 = add %y, %a\n %r = convert %2 : u1", {u1}, 8},
    {"by_column", {{'w', f32}}, "%1 = convert %y : f32\n %r = mul %1, %a", {f32}, 1, false},
    {"reshaped", {}, "%1 = reshape %y : [?]\n %r = convert %1 : f32", {f32}, 1, false},
};

/// How a case is built.
struct Build {
  bool nhwc = false;
  bool dynamic = false;
};

Dims shape_of(char shape, const Dims& y, bool nhwc) {
  Dims ones = Dims::filled(y.rank(), 1);
  const int channel = nhwc ? y.rank() - 1 : 1;
  switch (shape) {
    case 's': return {};
    case 'f': return y;
    case 'b':
      ones = y;
      ones[0] = 1;
      return ones;
    case 'n': ones[0] = y[0]; return ones;
    case 'i':
      ones[0] = y[0];
      ones[channel] = y[channel];
      return ones;
    case 'p':
      ones = y;
      ones[channel] = 1;
      return ones;
    case 'w':
      ones[nhwc ? y.rank() - 2 : y.rank() - 1] = y[nhwc ? y.rank() - 2 : y.rank() - 1];
      return ones;
    default: ones[channel] = y[channel]; return ones;
  }
}

std::string type_text(ElementType type, const Dims& shape, bool dynamic) {
  std::vector<std::string> dims;
  for (const int64_t extent : shape) dims.push_back(dynamic ? "?" : std::to_string(extent));
  return fmt::format("{}[{}]", name_of(type), fmt::join(dims, ", "));
}

/// A layer and a chain behind it.
FunctionCase case_of(const Layer& layer, const Chain& chain, const Build& build) {
  Dims x = layer.image;
  if (build.nhwc) std::rotate(x.begin() + 1, x.begin() + 2, x.end());
  Dims w = {layer.outputs, layer.image[1] / layer.group};
  for (const int64_t extent : layer.kernel) w.push_back(extent);
  const Dims y = layer.output(build.nhwc);
  FunctionCase made;
  made.inputs = {{x}, {w}};
  std::string parameters;
  for (size_t i = 0; i < chain.parameters.size(); ++i) {
    const Dims shape = shape_of(chain.parameters[i].shape, y, build.nhwc);
    parameters += fmt::format(", %{}: {}", "abc"[i],
                              type_text(chain.parameters[i].type, shape, build.dynamic));
    made.inputs.push_back({shape});
  }
  const bool is_flat = std::string_view(chain.body).find("reshape") != std::string_view::npos;
  const Dims result = is_flat ? Dims{element_count(y).value()} : y;
  std::string results;
  for (const ElementType type : chain.results) {
    results += (results.empty() ? "" : ", ") + type_text(type, result, build.dynamic || is_flat);
  }
  made.text = fmt::format(
      "func @f(%x: {}, %w: {}{}) -> ({}) {{\n %y = conv_integer %x, %w {{{}{}{}{}}}\n {}\n"
      " return %r{}\n}}\n",
      type_text(u8, x, build.dynamic), type_text(i8, w, build.dynamic), parameters, results,
      build.nhwc ? "layout = nhwc, " : "", layer.attributes, *layer.attributes ? ", " : "",
      fmt::format("group = {}", layer.group), chain.body, chain.results.size() > 1 ? ", %q" : "");
  return made;
}

bool is_fused(const BoundKernel& bound) {
  return std::ranges::any_of(
      detail::StateAccess::of(bound).nests,
      [](const detail::BoundNest& nest) { return nest.epilogue != nullptr; });
}

/// Elements of a row of y that must fill bytes.
int64_t row_of(const Layer& layer, bool nhwc) {
  const Dims y = layer.output(false);
  const int64_t pixels = element_count(y).value() / y[0] / y[1];
  if (pixels == 1 || (nhwc && y[1] > 1)) return y[1];
  return y[y.rank() - 1];
}

class ConvEpilogueLayers : public testing::TestWithParam<Layer> {};

TEST_P(ConvEpilogueLayers, AgreeWithTheInterpreter) {
  const Layer& layer = GetParam();
  uint64_t seed = 1;
  for (const Chain& chain : chains) {
    for (const Build build : {Build{}, {.nhwc = true}, {.dynamic = true}, {true, true}}) {
      const FunctionCase row = case_of(layer, chain, build);
      check_function(row, ++seed);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST_P(ConvEpilogueLayers, AreFused) {
  const Layer& layer = GetParam();
  for (const Chain& chain : chains) {
    for (const Build build : {Build{}, {.nhwc = true}, {.dynamic = true}, {true, true}}) {
      const FunctionCase row = case_of(layer, chain, build);
      const Result<FunctionPtr> function = parse_function(row.text);
      ASSERT_TRUE(function) << function.error().to_string() << "\n" << row.text;
      std::vector<Dims> shapes;
      for (const Layout& input : row.inputs) shapes.push_back(input.shape);
      const auto bound = tier_runtimes().front().second.compile(*function)->bind(shapes);
      ASSERT_TRUE(bound) << bound.error().to_string();
      const bool has_bytes = row_of(layer, build.nhwc) % chain.aligned == 0;
      if (!chain.is_fused) continue;  // where the image has one column it is
      // Of extents that are unknown nothing says that they are equal.
      if (build.dynamic && chain.results.size() > 1) continue;
      EXPECT_EQ(is_fused(*bound), has_bytes) << row.text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, ConvEpilogueLayers, testing::ValuesIn(layers),
                         [](const auto& row) { return std::string(row.param.name); });

// ---- Depthwise kernels

/// Signs and zero points of a convolution's operands.
struct DepthwiseBytes {
  const char* x;
  const char* w;
  const char* zero_points;  ///< operands behind x and w
};

constexpr DepthwiseBytes depthwise_bytes[] = {
    {"u8", "i8", ""},      {"i8", "i8", ", %xz"},       {"i8", "u8", ", %xz, %wz"},
    {"u8", "u8", ", %xz"}, {"u8", "u8", ", none, %wz"}, {"i8", "i8", ", none, %wz"},
};

/// A depthwise convolution with an epilogue of each kind of operand.
FunctionCase depthwise_case(const DepthwiseBytes& bytes, int64_t size, const char* kernel,
                            const Dims& w) {
  const Dims image = {2, 6, size, size};
  const std::string text = fmt::format(
      "func @f(%x: {0}{3}, %w: {1}{4}, %xz: {0}[], %wz: {1}[12], %s: f32[12, 1, 1], %t: "
      "f16[2, 12, {5}, {5}]) -> (u8[2, 12, {5}, {5}], f32[2, 12, {5}, {5}]) {{\n"
      " %y = conv_integer %x, %w{2} {{group = 6, auto_pad = same_upper{6}}}\n"
      " %f = convert %y : f32\n %m = mul %f, %s\n %g = convert %t : f32\n %q = add %m, %g\n"
      " %r = convert %q {{overflow = saturate, rounding = nearest_even}} : u8\n"
      " return %r, %q\n}}\n",
      bytes.x, bytes.w, bytes.zero_points, to_string(image), to_string(w), size, kernel);
  return {text, {{image}, {w}, {{}}, {{12}}, {{12, 1, 1}}, {{2, 12, size, size}}}};
}

/// Whether the kernels of the first convolution apply its epilogue.
bool kernels_apply_epilogue(const BoundKernel& bound) {
  const detail::BoundNest& nest = detail::StateAccess::of(bound).nests.front();
  return nest.convolution->depthwise != nullptr && nest.convolution->depthwise->applies_epilogue;
}

TEST(ConvEpilogue, DepthwiseKernelsApplyIt) {
  uint64_t seed = 100;
  for (const int64_t size : {5, 7, 14, 18, 33, 56}) {
    for (const DepthwiseBytes& bytes : depthwise_bytes) {
      const FunctionCase rows[] = {
          depthwise_case(bytes, size, "", {12, 1, 3, 3}),
          depthwise_case(bytes, size, "", {12, 1, 5, 5}),
          depthwise_case(bytes, size, "", {12, 1, 1, 7}),
          depthwise_case(bytes, size, ", dilations = [2, 2]", {12, 1, 3, 3}),
      };
      for (const FunctionCase& row : rows) {
        check_function(row, ++seed);
        if (testing::Test::HasFatalFailure()) return;
        for (const auto& [tier, runtime] : tier_runtimes()) {
          if (!jit::Target{tier}.has_avx512()) continue;
          CaseTensors tensors(**parse_function(row.text), row, seed, true);
          const auto bound =
              runtime.compile(*parse_function(row.text))->bind(tensors.inputs(), tensors.outputs());
          ASSERT_TRUE(bound) << bound.error().to_string();
          EXPECT_TRUE(kernels_apply_epilogue(*bound)) << name_of(tier) << ": " << row.text;
        }
      }
    }
  }
}

// ---- Views

/// A function of x, w and a residual, with places for tensors.
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

/// Pieces of sub-byte results that begin inside bytes: no task may lose another's bits.
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

// ---- Tasks, memory

TEST(ConvEpilogue, TasksGiveTheSameBits) {
  for (const char* name : {"many_pieces", "grouped", "small_images", "depthwise",
                           "depthwise_7_twice", "depthwise_rows"}) {
    const Layer& layer = *std::ranges::find(layers, std::string_view(name),
                                            [](const Layer& each) { return each.name; });
    for (const Chain& chain : chains) {
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
    const size_t bytes = detail::StateAccess::of(*bound).scratch.bytes();
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

}  // namespace
}  // namespace castor::test
