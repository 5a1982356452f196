// SPDX-License-Identifier: Apache-2.0
// Convolutions in channels-last layout.
#include "peer.hpp"

using namespace peer;

/// A convolution as library.py describes it.
struct ConvolutionTask {
  int32_t axes;
  int64_t channels, out_channels, kernel, stride, pad, groups;
  int64_t extents[4], out_extents[4];
  const char *x_type, *w_type, *y_type;
  const void *x, *w;
  const int32_t* bias;
  void* y;
  int32_t x_zero_point, y_zero_point;
  float x_scale, y_scale;
  const float* w_scales;
};

namespace {

// oneDNN 2 adds the bias to the sums, oneDNN 3 to their products with the scales.
constexpr type bias_type = DNNL_VERSION_MAJOR >= 3 ? type::f32 : type::s32;

memory bias_of(const ConvolutionTask& task) {
  if (bias_type == type::s32) return vector_of(task.bias, task.out_channels, type::s32);
  std::vector<float> scaled;
  for (int64_t m = 0; m < task.out_channels; ++m) {
    scaled.push_back(static_cast<float>(task.bias[m]) * task.x_scale * task.w_scales[m]);
  }
  return vector_of(scaled.data(), task.out_channels, type::f32);
}

struct ConvolutionForms {
  memory::desc x, w, w_any, y, bias;
  dims strides, dilations, pads;
};

ConvolutionForms forms_of(const ConvolutionTask& task) {
  const auto axes = static_cast<size_t>(task.axes);
  dims x = {1, task.channels}, y = {1, task.out_channels};
  x.insert(x.end(), task.extents, task.extents + axes);
  y.insert(y.end(), task.out_extents, task.out_extents + axes);
  dims w = {task.out_channels / task.groups, task.channels / task.groups};
  if (task.groups > 1) w.insert(w.begin(), task.groups);
  w.insert(w.end(), axes, task.kernel);
  const type w_type = type_named(task.w_type);
  return {described(x, type_named(task.x_type), true),
          described(w, w_type, false),
          any_layout(w, w_type),
          described(y, type_named(task.y_type), true),
          task.bias == nullptr ? memory::desc() : described({task.out_channels}, bias_type, false),
          dims(axes, task.stride),
          dims(axes, 0),
          dims(axes, task.pad)};
}

dnnl::convolution_forward::primitive_desc described_convolution(
    const ConvolutionForms& f, bool has_bias, const dnnl::primitive_attr& attributes) {
  const auto kind = dnnl::prop_kind::forward_inference;
  const auto direct = dnnl::algorithm::convolution_direct;
#if DNNL_VERSION_MAJOR >= 3
  if (has_bias) {
    return {engine(), kind,      direct,      f.x,    f.w_any, f.bias,
            f.y,      f.strides, f.dilations, f.pads, f.pads,  attributes};
  }
  return {engine(),  kind,        direct, f.x,    f.w_any,   f.y,
          f.strides, f.dilations, f.pads, f.pads, attributes};
#else
  using descriptor = dnnl::convolution_forward::desc;
  const descriptor made = has_bias ? descriptor(kind, direct, f.x, f.w_any, f.bias, f.y, f.strides,
                                                f.dilations, f.pads, f.pads)
                                   : descriptor(kind, direct, f.x, f.w_any, f.y, f.strides,
                                                f.dilations, f.pads, f.pads);
  return {made, attributes, engine()};
#endif
}

Call* made_convolution(const ConvolutionTask& task) {
  const ConvolutionForms forms = forms_of(task);
  const Quantization q = {task.x_scale,      task.y_scale,      task.w_scales,
                          task.x_zero_point, task.y_zero_point, task.w_scales != nullptr,
                          task.groups > 1,   task.out_channels};
  const int channels = q.has_groups ? 3 : 1;
  const auto description =
      described_convolution(forms, task.bias != nullptr, attributes_of(q, channels));
  auto call = std::make_unique<Call>();
  call->primitive = dnnl::convolution_forward(description);
  call->implementation = description.impl_info_str();
  call->arguments = {{DNNL_ARG_SRC, over(forms.x, task.x)},
                     {DNNL_ARG_WEIGHTS, packed(over(forms.w, task.w), description.weights_desc())},
                     {DNNL_ARG_DST, over(forms.y, task.y)}};
  if (task.bias != nullptr) call->arguments.insert({DNNL_ARG_BIAS, bias_of(task)});
  add_quantization(*call, q);
  return call.release();
}

}  // namespace

EXPORTED void* peer_convolution(const ConvolutionTask* task) {
  return guarded([&]() -> void* { return made_convolution(*task); });
}
