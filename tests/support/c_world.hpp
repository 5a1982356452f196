// SPDX-License-Identifier: Apache-2.0
// Functions of every kind, each with tensors, at any stage on their way through the C API.
#pragma once

#include <castor/castor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace castor::test {

/// A tensor of a function: element type, size of elements, extents.
struct TensorRow {
  castor_element_type element;
  size_t element_bytes;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides = {};  ///< none: dense

  size_t bytes() const {
    int64_t elements = 1;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      elements =
          strides.empty() ? elements * shape[axis] : elements + (shape[axis] - 1) * strides[axis];
    }
    return static_cast<size_t>(elements) * element_bytes;
  }
};

struct FunctionRow {
  const char* name;
  std::string_view text;
  std::vector<TensorRow> inputs;
  TensorRow output;
};

inline const std::vector<FunctionRow>& functions() {
  static const std::vector<FunctionRow> rows = {
      {"elementwise",
       "func @f(%x: u8[?n, 3], %mean: f32[3], %s: f32[3]) -> (f16[?n, 3]) {\n"
       "  %c = constant [0.5, 0.25, 0.125] : f32[3]\n  %f = convert %x : f32\n"
       "  %d = sub %f, %mean\n  %y = mul %d, %s\n  %z = mul %y, %c\n  %h = convert %z : f16\n"
       "  return %h\n}\n",
       {{CASTOR_U8, 1, {40, 3}}, {CASTOR_F32, 4, {3}}, {CASTOR_F32, 4, {3}}},
       {CASTOR_F16, 2, {40, 3}}},
      {"transposed",
       "func @f(%x: f32[?n, ?m], %b: u4[]) -> (f16[?n, ?m]) {\n  %a = convert %b : f32\n"
       "  %c = add %x, %a\n  %y = convert %c : f16\n  return %y\n}\n",
       {{CASTOR_F32, 4, {64, 48}, {1, 64}}, {CASTOR_U4, 1, {}}},
       {CASTOR_F16, 2, {64, 48}}},
      {"two_nests",
       "func @f(%x: f32[?n, 8], %y: f32[?n, 8]) -> (f32[4, ?]) {\n  %a = add %x, %y\n"
       "  %b = reshape %a : [4, ?]\n  %c = sqrt %b\n  return %c\n}\n",
       {{CASTOR_F32, 4, {6, 8}}, {CASTOR_F32, 4, {6, 8}}},
       {CASTOR_F32, 4, {4, 12}}},
      {"convolution",
       "func @f(%x: u8[?n, 8, 12, 12], %w: i8[16, 8, 3, 3], %z: u8[]) -> (i32[?n, 16, 12, 12]) {\n"
       "  %y = conv_integer %x, %w, %z {pads = [1, 1, 1, 1]}\n  return %y\n}\n",
       {{CASTOR_U8, 1, {1, 8, 12, 12}}, {CASTOR_I8, 1, {16, 8, 3, 3}}, {CASTOR_U8, 1, {}}},
       {CASTOR_I32, 4, {1, 16, 12, 12}}},
      {"convolution_and_epilogue",
       "func @f(%x: u8[?n, 2, 20, 20], %s: f32[4, 1, 1]) -> (u8[?n, 4, 20, 20]) {\n"
       "  %w = constant [1, 2, 3, 4, 5, 6, 7, -8] : i8[4, 2, 1, 1]\n  %y = conv_integer %x, %w\n"
       "  %f = convert %y : f32\n  %r = mul %f, %s\n"
       "  %q = convert %r {overflow = saturate, rounding = nearest_even} : u8\n  return %q\n}\n",
       {{CASTOR_U8, 1, {1, 2, 20, 20}}, {CASTOR_F32, 4, {4, 1, 1}}},
       {CASTOR_U8, 1, {1, 4, 20, 20}}},
      {"depthwise",
       "func @f(%x: u8[1, 8, 9, 9], %w: i8[8, 1, 3, 3]) -> (i32[1, 8, 7, 7]) {\n"
       "  %y = conv_integer %x, %w {group = 8}\n  return %y\n}\n",
       {{CASTOR_U8, 1, {1, 8, 9, 9}}, {CASTOR_I8, 1, {8, 1, 3, 3}}},
       {CASTOR_I32, 4, {1, 8, 7, 7}}},
      {"grouped_nhwc",
       "func @f(%x: u8[1, 9, 9, 8], %w: i8[8, 4, 3, 3]) -> (i32[1, 7, 7, 8]) {\n"
       "  %y = conv_integer %x, %w {group = 2, layout = nhwc}\n  return %y\n}\n",
       {{CASTOR_U8, 1, {1, 9, 9, 8}}, {CASTOR_I8, 1, {8, 4, 3, 3}}},
       {CASTOR_I32, 4, {1, 7, 7, 8}}},
      {"requantize",
       "func @f(%x: sa8<axis = 1, scale = ?, frac = [3, 4], zero_point = [1, -2]>[?n, 2, ?m], "
       "%s: i16[2]) -> (fx8<frac = 5>[?n, 2, ?m]) {\n"
       "  %y = requantize %x, %s {arithmetic = embarc} : fx8<frac = 5>\n  return %y\n}\n",
       {{CASTOR_I8, 1, {2, 2, 70}}, {CASTOR_I16, 2, {2}}},
       {CASTOR_I8, 1, {2, 2, 70}}},
  };
  return rows;
}

/// How much is there before a step.
enum class Ready { runtime, function, kernel, bound };

inline void run_in_order(void*, int32_t count, void (*task)(void*, int32_t), void* context) {
  for (int32_t i = 0; i < count; ++i) task(context, i);
}
inline constexpr castor_executor in_order = {
    sizeof(castor_executor), nullptr, 3, 0, run_in_order, -1};

inline constexpr std::byte untouched{0x5a};

/// One function on its way, with memory for its tensors.
class World {
 public:
  World(const FunctionRow& function_row, Ready ready, bool interpret) : row(function_row) {
    castor_runtime_options options = CASTOR_RUNTIME_OPTIONS;
    options.interpret = interpret ? 1 : 0;
    must(castor_runtime_create(&options, &runtime, nullptr));
    if (ready >= Ready::function) must(parse(nullptr, &function));
    if (ready >= Ready::kernel) must(castor_runtime_compile(runtime, function, &kernel, nullptr));
    for (const TensorRow& tensor : row.inputs) {
      std::vector<std::byte>& data = input_data.emplace_back(tensor.bytes());
      for (size_t i = 0; i < data.size(); ++i) data[i] = std::byte(i % 23 + 1);
      inputs.push_back(view(tensor, data));
    }
    output_data.assign(row.output.bytes(), untouched);
    output = view(row.output, output_data);
    if (ready >= Ready::bound) must(bind_views(nullptr, &bound));
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World() {
    castor_bound_kernel_destroy(bound);
    castor_kernel_destroy(kernel);
    castor_function_destroy(function);
    castor_runtime_destroy(runtime);
  }

  castor_status parse(castor_error* error, castor_function** to) const {
    return castor_function_parse(row.text.data(), row.text.size(), "f", nullptr, to, error);
  }
  castor_status bind_views(castor_error* error, castor_bound_kernel** to) const {
    return castor_kernel_bind_views(kernel, inputs.data(), inputs.size(), &output, 1, nullptr, to,
                                    error);
  }
  castor_status run(const castor_run_options* options, castor_error* error) const {
    return castor_bound_kernel_run(bound, inputs.data(), inputs.size(), &output, 1, options, error);
  }
  bool output_is_untouched() const {
    return std::ranges::all_of(output_data, [](std::byte byte) { return byte == untouched; });
  }

  const FunctionRow& row;
  castor_runtime* runtime = nullptr;
  castor_function* function = nullptr;
  castor_kernel* kernel = nullptr;
  castor_bound_kernel* bound = nullptr;
  std::vector<std::vector<std::byte>> input_data;
  std::vector<std::byte> output_data;
  std::vector<castor_view> inputs;
  castor_view output = {};

 private:
  static void must(castor_status status) { EXPECT_EQ(status, CASTOR_OK); }
  static castor_view view(const TensorRow& tensor, std::vector<std::byte>& data) {
    return {data.data(),
            tensor.element,
            static_cast<int32_t>(tensor.shape.size()),
            tensor.shape.data(),
            tensor.strides.empty() ? nullptr : tensor.strides.data(),
            0,
            data.size()};
  }
};

}  // namespace castor::test
