// SPDX-License-Identifier: Apache-2.0
#include "bench/cases/elementwise_rows.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace castor::bench {

namespace {

/// Shapes of two operands, by what the second one is.
struct BroadcastPattern {
  std::string_view name;
  std::string_view first;  ///< in the text
  std::string_view second;
  InputShape first_shape;
  InputShape second_shape;
};

std::vector<BroadcastPattern> broadcast_patterns() {
  const InputShape matrix = {{rows, columns}};
  return {
      {"same", "?n, ?c", "?n, ?c", matrix, matrix},
      {"scalar", "?n, ?c", "", matrix, {{}}},
      {"row", "?n, ?c", "?c", matrix, {{columns}}},
      {"column", "?n, ?c", "?n, 1", matrix, {{rows, 1}}},
  };
}

/// One op of two operands, whose patterns have a name or not.
ElementwiseRow binary(std::string_view op, std::string_view element,
                      const BroadcastPattern& pattern, std::string_view result = {}) {
  const std::string text = fmt::format(
      "func @{0}(%x: {1}[{2}], %y: {1}[{3}]) -> ({4}[?, ?]) {{\n  %z = {0} %x, %y\n"
      "  return %z\n}}\n",
      op, element, pattern.first, pattern.second, result.empty() ? element : result);
  return {fmt::format("{}_{}_{}", op, element, pattern.name),
          text,
          {pattern.first_shape, pattern.second_shape}};
}

ElementwiseRow unary(std::string_view name, std::string_view element, std::string_view operation) {
  const std::string text =
      fmt::format("func @{0}(%x: {1}[?n, ?c]) -> ({1}[?n, ?c]) {{\n  %z = {2}\n  return %z\n}}\n",
                  name, element, operation);
  return {fmt::format("{}_{}", name, element), text, {{{rows, columns}}}};
}

/// One op for each of many types: what the arithmetic itself costs.
void add_single_ops(std::vector<ElementwiseRow>& all) {
  const BroadcastPattern same = broadcast_patterns().front();
  struct OneOp {
    std::string_view op, element, result;
  };
  for (const OneOp& each : std::initializer_list<OneOp>{{"add", "f16", ""},
                                                        {"sub", "f16", ""},
                                                        {"mul", "f16", ""},
                                                        {"div", "f16", ""},
                                                        {"min", "f16", ""},
                                                        {"max", "f16", ""},
                                                        {"less", "f16", "boolean"},
                                                        {"mul", "bf16", ""},
                                                        {"add", "i8", ""},
                                                        {"max", "i8", ""},
                                                        {"mul", "u8", ""},
                                                        {"mul", "i32", ""},
                                                        {"div", "f32", ""},
                                                        {"less", "f32", "boolean"}}) {
    all.push_back(binary(each.op, each.element, same, each.result));
  }
  for (const std::string_view element : {"f16", "f32"}) {
    all.push_back(unary("sqrt", element, "sqrt %x"));
  }
  for (const std::string_view op : {"floor", "round_even"}) {
    all.push_back(unary(op, "f16", fmt::format("{} %x", op)));
  }
  all.push_back(unary("clamp", "f32", "clamp %x {lo = 0.0, hi = 6.0}"));
  all.push_back(
      {"select_f32",
       R"(func @select(%k: boolean[?n, ?c], %x: f32[?n, ?c], %y: f32[?n, ?c]) -> (f32[?n, ?c]) {
  %z = select %k, %x, %y
  return %z
}
)",
       {{{rows, columns}}, {{rows, columns}}, {{rows, columns}}}});
}

/// u4 codes less a zero point, times a scale of each row, in arithmetic of that type. `row_extent`:
/// in the text.
ElementwiseRow dequantize(std::string_view arithmetic, std::string_view row_extent,
                          int64_t row_length) {
  const bool in_f16 = arithmetic == "f16";
  const std::string text = fmt::format(
      "func @dequantize(%q: u4[?n, {1}], %s: f16[?n, 1], %p: u4[?n, 1]) -> (f16[?n, {1}]) {{\n"
      "  %a = convert %q : {0}\n  %b = convert %p : {0}\n{2}  %d = sub %a, %b\n"
      "  %y = mul %d, {3}\n{4}}}\n",
      arithmetic, row_extent, in_f16 ? "" : "  %t = convert %s : f32\n", in_f16 ? "%s" : "%t",
      in_f16 ? "  return %y\n" : "  %h = convert %y : f16\n  return %h\n");
  return {fmt::format("dequantize_u4_{}", arithmetic),
          text,
          {{{rows, row_length}}, {{rows, 1}}, {{rows, 1}}}};
}

/// Functions of several ops, with conversions between them.
void add_fused(std::vector<ElementwiseRow>& all) {
  all.push_back({"image_normalize",
                 R"(func @normalize(%x: u8[?n, 3], %mean: f32[3], %scale: f32[3]) -> (f16[?n, 3]) {
  %f = convert %x : f32
  %d = sub %f, %mean
  %y = mul %d, %scale
  %h = convert %y : f16
  return %h
}
)",
                 {{{rows, 3}}, {{3}}, {{3}}}});
  for (const std::string_view arithmetic : {"f16", "f32"}) {
    ElementwiseRow row = dequantize(arithmetic, "64", 64);
    row.with_columns = std::make_shared<ElementwiseRow>(dequantize(arithmetic, "?c", columns));
    all.push_back(std::move(row));
  }
  all.push_back({"promote_add_saturate",
                 R"(func @promote(%x: f32[?a, 1, ?c], %y: bf16[?a, 8, ?c]) -> (i8[?a, 8, ?c]) {
  %f, %g = convert_promote_types %x, %y
  %z = add %f, %g
  %r = convert %z {overflow = saturate} : i8
  return %r
}
)",
                 {{{rows, 1, columns}}, {{rows, 8, columns}}}});
}

/// Broadcasts along short or several dimensions, and elements that are strided.
void add_patterns(std::vector<ElementwiseRow>& all) {
  const auto add = [&](std::string_view name, std::string_view op, std::string_view first,
                       std::string_view second, InputShape a, InputShape b) {
    const BroadcastPattern pattern = {"", first, second, std::move(a), std::move(b)};
    ElementwiseRow row = binary(op, "f32", pattern);
    const bool has_three = pattern.first_shape.extents.rank() == 3;
    if (has_three) row.text.replace(row.text.find("[?, ?]"), 6, "[?, ?, ?]");
    row.name = name;
    all.push_back(std::move(row));
  };
  add("rgb_outer", "mul", "?n, 1", "1, 3", {{rows, 1}}, {{1, 3}});
  add("rgba_alpha", "mul", "?h, ?w, 4", "?h, ?w, 1", {{rows, 32, 4}}, {{rows, 32, 1}});
  add("outer_product", "mul", "?n, 1", "1, ?c", {{rows, 1}}, {{1, columns}});
  add("every_second", "add", "?n, ?c", "?n, ?c", {{rows, columns}, Layout::every_second},
      {{rows, columns}});
  add("every_third", "add", "?n, ?c", "?n, ?c", {{rows, columns}, Layout::every_third},
      {{rows, columns}});
}

/// Numbers of a type, times a scale of each row: rows of a fixed length, or of `columns`.
ElementwiseRow scaled_rows(std::string_view name, std::string_view from, std::string_view to,
                           int64_t row_length) {
  const std::string extent = row_length == columns ? "?c" : fmt::format("{}", row_length);
  const std::string text = fmt::format(
      "func @scale(%x: {0}[?n, {2}], %s: f32[?n, 1]) -> ({1}[?n, {2}]) {{\n"
      "  %f = convert %x : f32\n  %p = mul %f, %s\n  %y = convert %p {3}: {1}\n  return %y\n}}\n",
      from, to, extent, to == "f32" ? "" : "{overflow = saturate} ");
  return {std::string(name), text, {{{rows, row_length}}, {{rows, 1}}}};
}

/// Rows that are short, or of codes and no whole bytes.
void add_scaled_rows(std::vector<ElementwiseRow>& all) {
  all.push_back(scaled_rows("scale_f32_rows_of_3", "f32", "f32", 3));
  all.push_back(scaled_rows("scale_u8_rows_of_17", "u8", "f32", 17));
  for (const std::string_view type : {"u4", "u6"}) {
    for (const int64_t length : {3, 17, 257}) {
      const auto name = [&](std::string_view what) {
        return fmt::format("{}_{}_rows_of_{}", what, type, length);
      };
      all.push_back(scaled_rows(name("scale"), type, "f32", length));
      all.push_back(scaled_rows(name("scale_to"), "f32", type, length));
    }
  }
}

/// f32 to bytes by a scale and a zero point of the tensor, or of each column; int4 in groups of 32.
/// Quantization of rows of 1024 elements by their own ranges.
void add_quantized_rows(std::vector<ElementwiseRow>& all) {
  struct Function {
    std::string_view name;
    std::string_view x;
    std::string_view y;
    std::string_view operations;  ///< that give %y
  };
  constexpr Function functions[] = {
      {"dynamic_quantize_f32_i8", "f32[?n, 1024]", "i8[?n, 1024]",
       "%y, %s = dynamic_quantize_symmetric %x {axes = [1]} : i8"},
      {"dynamic_quantize_f32_i8_reciprocal", "f32[?n, 1024]", "i8[?n, 1024]",
       "%y, %s = dynamic_quantize_symmetric %x {axes = [1], scaling = reciprocal} : i8"},
      {"dynamic_quantize_bf16_i8", "bf16[?n, 1024]", "i8[?n, 1024]",
       "%f = convert %x : f32 %y, %s = dynamic_quantize_symmetric %f {axes = [1]} : i8"},
      {"dynamic_quantize_bf16_i8_reciprocal", "bf16[?n, 1024]", "i8[?n, 1024]",
       "%f = convert %x : f32 "
       "%y, %s = dynamic_quantize_symmetric %f {axes = [1], scaling = reciprocal} : i8"},
      {"quantize_mxfp4_bf16", "bf16[?n, 1024]", "f4e2m1[?n, 1024]",
       "%y, %s = quantize_mx %x {format = mxfp4} : f4e2m1"},
      {"quantize_mxfp8_bf16", "bf16[?n, 1024]", "f8e4m3[?n, 1024]",
       "%y, %s = quantize_mx %x {format = mxfp8_e4m3} : f8e4m3"},
      {"quantize_nvfp4_bf16", "bf16[?n, 1024]", "f4e2m1[?n, 1024]",
       "%y, %s = quantize_mx %x, %g {format = nvfp4} : f4e2m1"},
  };
  for (const Function& each : functions) {
    const bool has_tensor_scale = each.operations.find("%g") != std::string_view::npos;
    const std::string_view parameters = has_tensor_scale ? ", %g: f32[]" : "";
    std::vector<InputShape> inputs = {{{rows, 1024}}};
    if (has_tensor_scale) inputs.push_back({{}});
    all.push_back({std::string(each.name),
                   fmt::format("func @rows(%x: {}{}) -> ({}) {{\n  {}\n  return %y\n}}\n", each.x,
                               parameters, each.y, each.operations),
                   inputs});
  }
}

/// Codes in blocks along rows of 1024 to bf16; fp8 with an f32 scale for 128 columns, which costs
/// what squares of 128 x 128 cost, and back.
void add_blocks(std::vector<ElementwiseRow>& all) {
  const auto add_mx = [&](std::string_view name, std::string_view code, std::string_view scale,
                          int64_t block) {
    const bool has_tensor_scale = name == "nvfp4";
    std::vector<InputShape> inputs = {{{rows, 1024}}, {{rows, 1024 / block}}};
    if (has_tensor_scale) inputs.push_back({{}});
    all.push_back({fmt::format("dequantize_{}_bf16", name),
                   fmt::format("func @blocks(%q: {}[?n, 1024], %s: {}[?n, {}]{}) -> (bf16[?n, "
                               "1024]) {{\n  %y = dequantize_mx %q, %s{} {{format = {}}} : bf16\n"
                               "  return %y\n}}\n",
                               code, scale, 1024 / block, has_tensor_scale ? ", %g: f32[]" : "",
                               has_tensor_scale ? ", %g" : "", name),
                   inputs});
  };
  add_mx("mxfp4", "f4e2m1", "f8e8m0", 32);
  add_mx("mxfp8_e4m3", "f8e4m3", "f8e8m0", 32);
  add_mx("nvfp4", "f4e2m1", "f8e4m3", 16);
  const auto add_squares = [&](std::string_view name, std::string_view from, std::string_view to,
                               std::string_view operation) {
    all.push_back({std::string(name),
                   fmt::format("func @squares(%x: {}[?n, 1024], %s: f32[8]) -> ({}[?n, 1024]) "
                               "{{\n  {}\n  return %y\n}}\n",
                               from, to, operation),
                   {{{rows, 1024}}, {{8}}}});
  };
  add_squares("dequantize_fp8_squares", "f8e4m3", "bf16",
              "%w = convert %x : f32 %p = mul %w, %s {broadcast = blocked, axes = [1], "
              "block = [128]} %y = convert %p : bf16");
  add_squares("quantize_fp8_squares", "bf16", "f8e4m3",
              "%w = convert %x : f32 %p = div %w, %s {broadcast = blocked, axes = [1], "
              "block = [128]} %y = convert %p {overflow = saturate} : f8e4m3");
}

void add_quantized(std::vector<ElementwiseRow>& all) {
  const auto add = [&](std::string_view name, std::string_view extents, const Dims& parameters,
                       std::string_view attributes) {
    const std::string text = fmt::format(
        "func @quantize(%x: f32[?n, ?c], %s: f32[{0}], %z: u8[{0}]) -> (u8[?n, ?c]) {{\n"
        "  %y = quantize_linear %x, %s, %z {1}: u8\n  return %y\n}}\n",
        extents, attributes);
    all.push_back({std::string(name), text, {{{rows, columns}}, {parameters}, {parameters}}});
  };
  add("quantize_linear_u8", "", {}, "");
  add("quantize_linear_u8_reciprocal", "", {}, "{scaling = reciprocal} ");
  add("quantize_linear_u8_columns", "?c", {columns}, "");
  all.push_back({"dequantize_linear_i4_groups",
                 R"(func @dequantize(%q: i4[?n, 4096], %s: f16[?n, 128]) -> (f16[?n, 4096]) {
  %y = dequantize_linear %q, %s {block_size = 32} : f16
  return %y
}
)",
                 {{{rows, 4096}}, {{rows, 128}}}});
}

}  // namespace

Dims Extents::of(const Dims& extents) const {
  Dims numbers;
  for (const int64_t extent : extents) {
    numbers.push_back(extent == bench::rows ? rows : extent == bench::columns ? columns : extent);
  }
  return numbers;
}

std::vector<ElementwiseRow> elementwise_rows() {
  std::vector<ElementwiseRow> all;
  for (const std::string_view op : {"add", "mul", "max"}) {
    for (const BroadcastPattern& pattern : broadcast_patterns()) {
      all.push_back(binary(op, "f32", pattern));
    }
  }
  add_fused(all);
  add_patterns(all);
  add_scaled_rows(all);
  add_quantized(all);
  add_quantized_rows(all);
  add_blocks(all);
  add_single_ops(all);
  return all;
}

std::vector<ElementwiseRow> square_rows() {
  ElementwiseRow row = binary("add", "f32", broadcast_patterns().front());
  row.name = "transposed_f32";
  row.inputs[1].layout = Layout::transposed;
  ElementwiseRow codes = scaled_rows("transposed_u4", "u4", "f32", columns);
  ElementwiseRow to_codes = scaled_rows("transposed_f32_to_u4", "f32", "u4", columns);
  for (ElementwiseRow* each : {&codes, &to_codes}) each->inputs[0].layout = Layout::transposed;
  return {row, codes, to_codes};
}

}  // namespace castor::bench
