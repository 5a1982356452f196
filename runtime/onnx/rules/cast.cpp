// SPDX-License-Identifier: Apache-2.0
// Cast and CastLike; ir/README.md, Convert, says what their attributes mean.
#include <fmt/format.h>

#include "runtime/onnx/rules/rules.hpp"

namespace castor::onnx {

namespace {

/// Cast-24 brings round_mode, for f8e8m0.
Rounding rounding_of(const Node& node, Translation& into) {
  const std::string_view mode = node.text("round_mode", "up");
  if (mode == "down") return Rounding::down;
  if (mode == "nearest") return Rounding::half_up;  // halves go up
  if (mode != "up") {
    into.refuse(fmt::format("round_mode is {}, expected up, down or nearest", mode));
  }
  return Rounding::up;
}

ConvertOptions to_f8e8m0(const Node& node, Rounding rounding) {
  ConvertOptions options{.rounding = rounding};
  if (node.integer("saturate", 1) == 0) options.overflow = Overflow::nan;
  return options;
}

bool is_narrow_integer(ElementType type) { return is_integer(type) && bits_of(type) <= 4; }

ConvertOptions options_of(const Node& node, Translation& into, ElementType from, ElementType to) {
  const Rounding rounding = rounding_of(node, into);
  if (from == to) return {};
  if (to == ElementType::f8e8m0) return to_f8e8m0(node, rounding);
  ConvertOptions options;
  if (is_float(to) && bits_of(to) == 8) {
    if (node.integer("saturate", 1) != 0) options.overflow = Overflow::saturate;
  } else if (to == ElementType::f4e2m1) {
    options.nan = NanMode::zero;
  } else if (is_narrow_integer(to) && is_float(from)) {
    options.overflow = Overflow::wrap;
  }
  return options;
}

Outputs cast_to(const Node& node, Translation& into, std::optional<ElementType> to) {
  const ValueId x = into.input(node, 0);
  if (!to) into.refuse("castor lacks the element type that it casts to");
  if (into.refusal()) return {};
  return {into.builder().convert(x, *to, options_of(node, into, into.element(x), *to))};
}

}  // namespace

Outputs cast(const Node& node, Translation& into) {
  return cast_to(node, into, element_type_of(node.integer("to", 0)));
}

Outputs cast_like(const Node& node, Translation& into) {
  return cast_to(node, into, into.type_of_input(node, 1).element);
}

}  // namespace castor::onnx
