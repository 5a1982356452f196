// SPDX-License-Identifier: Apache-2.0
// oneDNN 2 and 3 through a few C functions, compiled against the headers that are found (build.py).
// A call is made once and then run: memory, primitive and arguments stay.
#pragma once

#include <dnnl.hpp>

#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#define HAS_NARROW_TYPES (DNNL_VERSION_MAJOR * 100 + DNNL_VERSION_MINOR >= 307)
#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace peer {

using dnnl::memory;
using dims = memory::dims;
using type = memory::data_type;

inline dnnl::engine& engine() {
  static dnnl::engine made(dnnl::engine::kind::cpu, 0);
  return made;
}

inline dnnl::stream& stream() {
  static dnnl::stream made(engine());
  return made;
}

/// A primitive with the memory of its arguments.
struct Call {
  dnnl::primitive primitive;
  std::unordered_map<int, memory> arguments;
  std::string implementation;
};

inline thread_local std::string last_error;

inline type type_named(const std::string& name) {
  static const std::unordered_map<std::string, type> types = {
    {"f32", type::f32},
    {"bf16", type::bf16},
    {"f16", type::f16},
    {"i32", type::s32},
    {"i8", type::s8},
    {"u8", type::u8},
#if DNNL_VERSION_MAJOR >= 3
    {"f64", type::f64},
#if HAS_NARROW_TYPES
    {"f8e4m3", type::f8_e4m3},
    {"f8e5m2", type::f8_e5m2},
    {"i4", type::s4},
    {"u4", type::u4},
    {"f4e2m1", type::f4_e2m1},
    {"f8e8m0", type::e8m0},
#endif
#endif
  };
  const auto found = types.find(name);
  if (found == types.end()) throw std::invalid_argument("no " + name);
  return found->second;
}

/// Row-major, or with channels, the second axis, last.
inline memory::desc described(const dims& shape, type element, bool channels_last) {
  dims strides(shape.size(), 1);
  int64_t stride = 1;
  const auto take = [&](size_t axis) {
    strides[axis] = stride;
    stride *= shape[axis];
  };
  if (channels_last) take(1);
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (!channels_last || axis != 1) take(axis);
  }
  return {shape, element, strides};
}

/// The same shape in a layout of oneDNN's choice.
inline memory::desc any_layout(const dims& shape, type element) {
  return {shape, element, memory::format_tag::any};
}

inline memory over(const memory::desc& description, const void* data) {
  return {description, engine(), const_cast<void*>(data)};
}

/// A vector in memory of oneDNN's own.
template <typename T>
memory vector_of(const T* values, int64_t count, type element) {
  memory made({{count}, element, memory::format_tag::a}, engine());
  void* const data = made.map_data();
  std::memcpy(data, values, static_cast<size_t>(count) * sizeof(T));
  made.unmap_data(data);
  return made;
}

/// The weights in the layout that a primitive asked for.
inline memory packed(const memory& plain, const memory::desc& wanted) {
  if (plain.get_desc() == wanted) return plain;
  memory made(wanted, engine());
  dnnl::reorder(plain, made).execute(stream(), const_cast<memory&>(plain), made);
  stream().wait();
  return made;
}

/// One scale and zero point of the source and of the result, a scale for each output channel.
struct Quantization {
  float x_scale, y_scale;
  const float* w_scales;
  int32_t x_zero_point, y_zero_point;
  bool has_scales;
  bool has_groups;
  int64_t channels;
};

inline dnnl::primitive_attr attributes_of(const Quantization& q, int channel_axis_mask) {
  dnnl::primitive_attr attributes;
#if DNNL_VERSION_MAJOR >= 3
  if (q.x_zero_point != 0) attributes.set_zero_points_mask(DNNL_ARG_SRC, 0);
  if (q.has_scales) {
    attributes.set_scales_mask(DNNL_ARG_SRC, 0);
    attributes.set_scales_mask(DNNL_ARG_WEIGHTS, channel_axis_mask);
    attributes.set_scales_mask(DNNL_ARG_DST, 0);
    attributes.set_zero_points_mask(DNNL_ARG_DST, 0);
  }
#else
  static_cast<void>(channel_axis_mask);
  if (q.x_zero_point != 0) attributes.set_zero_points(DNNL_ARG_SRC, 0, {q.x_zero_point});
  if (q.has_scales) {
    std::vector<float> factors;
    for (int64_t m = 0; m < q.channels; ++m) {
      factors.push_back(q.x_scale * q.w_scales[m] / q.y_scale);
    }
    attributes.set_output_scales(1 << 1, factors);
    attributes.set_zero_points(DNNL_ARG_DST, 0, {q.y_zero_point});
  }
#endif
  return attributes;
}

/// The arguments that hold what the attributes announce.
inline void add_quantization(Call& call, const Quantization& q) {
#if DNNL_VERSION_MAJOR >= 3
  if (q.x_zero_point != 0) {
    call.arguments.insert(
        {DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC, vector_of(&q.x_zero_point, 1, type::s32)});
  }
  if (!q.has_scales) return;
  call.arguments.insert({DNNL_ARG_ATTR_SCALES | DNNL_ARG_SRC, vector_of(&q.x_scale, 1, type::f32)});
  call.arguments.insert(
      {DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS, vector_of(q.w_scales, q.channels, type::f32)});
  call.arguments.insert({DNNL_ARG_ATTR_SCALES | DNNL_ARG_DST, vector_of(&q.y_scale, 1, type::f32)});
  call.arguments.insert(
      {DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_DST, vector_of(&q.y_zero_point, 1, type::s32)});
#else
  static_cast<void>(call);
  static_cast<void>(q);
#endif
}

template <typename Make>
void* guarded(const Make& make) {
  try {
    return make();
  } catch (const std::exception& failure) {
    last_error = failure.what();
    return nullptr;
  }
}

}  // namespace peer
