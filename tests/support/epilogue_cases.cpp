// SPDX-License-Identifier: Apache-2.0
#include "tests/support/epilogue_cases.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/bind/bound_state.hpp"
#include "runtime/state_access.hpp"

namespace castor::test {

namespace {

using enum ElementType;

const Layer layers[] = {
    {"odd", {2, 5, 7, 9}, 7, {3, 3}, "auto_pad = same_upper"},
    {"even", {1, 8, 6, 8}, 6, {3, 3}, "auto_pad = same_upper"},
    {"small_images", {3, 20, 4, 4}, 33, {1, 1}},
    {"rows_along_k", {1, 200, 20}, 70, {1}},
    {"rows_of_weights", {2, 64, 10, 27}, 106, {1, 1}, "", 2},
    {"depthwise", {1, 12, 9, 10}, 12, {3, 3}, "auto_pad = same_upper", 12},
    {"depthwise_twice", {2, 5, 8, 17}, 10, {3, 3}, "auto_pad = same_lower", 5},
    {"grouped", {1, 16, 6, 10}, 24, {3, 3}, "auto_pad = same_upper", 4},
    {"line", {2, 3, 50}, 10, {5}, "auto_pad = same_upper"},
    {"volume", {1, 3, 3, 4, 6}, 8, {1, 2, 3}, "auto_pad = same_lower"},
    {"one_pixel", {2, 30, 1, 1}, 70, {1, 1}},
    {"one_channel", {2, 30, 5, 6}, 1, {3, 3}, "auto_pad = same_upper"},
    {"deep_images", {2, 70, 6, 11}, 40, {1, 1}},
    {"deep", {1, 64, 5, 20}, 33, {3, 3}, "auto_pad = same_upper"},
    {"many_slices", {1, 3, 66, 80}, 3, {3, 3}, "auto_pad = same_upper"},
    {"many_channels", {1, 2, 1, 2}, 5002, {1, 1}},
    {"tiles_of_channels", {1, 4, 6, 8}, 210, {3, 3}, "auto_pad = same_upper"},
    {"tiles_of_groups", {2, 6, 4, 5}, 136, {3, 3}, "auto_pad = same_upper", 2},
    {"tiles_of_slices", {1, 2, 3, 3, 4}, 72, {3, 3, 3}, "auto_pad = same_upper"},
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
    {"depthwise_fours", {2, 4, 19, 36}, 4, {3, 3}, "auto_pad = same_upper", 4},
    {"depthwise_fours_5x5", {1, 3, 14, 24}, 3, {5, 5}, "auto_pad = same_upper", 3},
    {"depthwise_14", {1, 20, 14, 14}, 20, {3, 3}, "auto_pad = same_upper", 20},
    {"depthwise_7_twice", {2, 9, 7, 7}, 18, {3, 3}, "auto_pad = same_upper", 9},
    {"depthwise_4x4", {1, 9, 4, 4}, 9, {3, 3}, "auto_pad = same_upper", 9},
    {"depthwise_many_taps", {1, 3, 6, 40}, 3, {2, 11}, "auto_pad = same_upper", 3},
    {"depthwise_rows", {1, 3, 170, 24}, 3, {3, 3}, "auto_pad = same_upper", 3},
    {"depthwise_line", {2, 4, 60}, 4, {5}, "auto_pad = same_upper", 4},
    {"depthwise_volume", {1, 3, 3, 6, 10}, 3, {2, 3, 3}, "auto_pad = same_lower", 3},
    {"depthwise_sheets", {1, 3, 3, 6, 18}, 3, {1, 3, 3}, "auto_pad = same_lower", 3},
};

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
    {"zero_point_of_the_call",
     {{'c', bf16}, {'s', f16}, {'s', u8}},
     "%1 = convert %y : f32\n %2 = convert %a : f32\n %3 = convert %b : f32\n"
     " %4 = mul %1, %2\n %5 = div %4, %3\n"
     " %6 = convert %5 {overflow = saturate, rounding = nearest_even} : i32\n"
     " %7 = convert %c : i32\n %8 = add %6, %7\n %r = convert %8 {overflow = saturate} : u8",
     {u8}},
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
    // The same program of the same operands, but for which of them the sums are.
    {"less_residual", {{'f', i32}}, "%r = sub %y, %a", {i32}},
    {"residual_less", {{'f', i32}}, "%r = sub %a, %y", {i32}},
    {"constants",
     {},
     "%k = constant 0.0123 : f32[]\n %t = constant -3.5 : f32[]\n %1 = convert %y : f32\n"
     " %2 = mul %1, %k\n %3 = add %2, %t\n"
     " %r = convert %3 {overflow = saturate, rounding = nearest_even} : u8\n"
     " %q = convert %3 {overflow = saturate, rounding = up} : i8",
     {u8, i8}},
    {"chosen_by_channel",
     {{'c', f32}, {'c', f32}},
     "%k = constant 0.5 : f32[]\n %m = greater %a, %k\n %1 = convert %y : f32\n"
     " %2 = mul %1, %b\n %3 = select %m, %2, %a\n"
     " %r = convert %3 {overflow = saturate, rounding = nearest_even} : u8",
     {u8}},
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

}  // namespace

Dims Layer::output(bool nhwc) const {
  Dims all = {image[0], outputs};
  for (int axis = 2; axis < image.rank(); ++axis) {
    all.push_back((image[axis] + stride - 1) / stride);
  }
  if (nhwc) std::rotate(all.begin() + 1, all.begin() + 2, all.end());
  return all;
}

std::span<const Layer> epilogue_layers() { return layers; }

const Layer& epilogue_layer(std::string_view name) {
  return *std::ranges::find(layers, name, [](const Layer& each) { return each.name; });
}

std::span<const Chain> epilogue_chains() { return chains; }

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
  return std::ranges::any_of(detail::StateAccess::of(bound).steps, [](const detail::Step& step) {
    const auto* convolution = std::get_if<detail::ConvolutionStep>(&step);
    return convolution != nullptr && convolution->epilogue != nullptr;
  });
}

}  // namespace castor::test
