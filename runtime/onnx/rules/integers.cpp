// SPDX-License-Identifier: Apache-2.0
// ConvInteger and MatMulInteger.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "runtime/onnx/rules/rules.hpp"

namespace castor::onnx {

namespace {

AutoPad auto_pad_of(const Node& node, Translation& into) {
  constexpr std::array<std::string_view, 4> names = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
  const std::string_view name = node.text("auto_pad", "NOTSET");
  const auto at = std::ranges::find(names, name);
  if (at == names.end()) {
    into.refuse(
        fmt::format("auto_pad is {}, expected NOTSET, SAME_UPPER, SAME_LOWER or VALID", name));
    return AutoPad::notset;
  }
  return static_cast<AutoPad>(at - names.begin());
}

}  // namespace

ConvolutionOptions convolution_options_of(const Node& node, Translation& into) {
  const AutoPad auto_pad = auto_pad_of(node, into);
  // ONNX ignores pads beside an auto_pad, castor refuses them.
  const bool has_pads = auto_pad == AutoPad::notset;
  return {.auto_pad = auto_pad,
          .group = node.integer("group", 1),
          .layout = ConvolutionLayout::nchw,
          .dilations = node.integers("dilations"),
          .kernel_shape = node.integers("kernel_shape"),
          .pads = has_pads ? node.integers("pads") : std::vector<int64_t>(),
          .strides = node.integers("strides")};
}

Outputs conv_integer(const Node& node, Translation& into) {
  const ValueId x = into.input(node, 0);
  const ValueId w = into.input(node, 1);
  const ValueId x_zero_point = into.optional_input(node, 2);
  const ValueId w_zero_point = into.optional_input(node, 3);
  const ConvolutionOptions options = convolution_options_of(node, into);
  if (into.refusal()) return {};
  return {into.builder().conv_integer(x, w, options, x_zero_point, w_zero_point)};
}

Outputs matmul_integer(const Node& node, Translation& into) {
  const ValueId a = into.input(node, 0);
  const ValueId b = into.input(node, 1);
  const ValueId a_zero_point = into.optional_input(node, 2);
  const ValueId b_zero_point = into.optional_input(node, 3);
  if (into.refusal()) return {};
  return {into.builder().matmul_integer(a, b, a_zero_point, b_zero_point)};
}

}  // namespace castor::onnx
