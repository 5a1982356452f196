// SPDX-License-Identifier: Apache-2.0
#include "bench/cases/functions.hpp"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "ir/builder.hpp"
#include "ir/text/text.hpp"

namespace castor::bench {

std::string TypePair::name() const { return fmt::format("{}_{}", name_of(from), name_of(to)); }

Result<FunctionPtr> conversions(std::span<const TypePair> pairs, int rank) {
  FunctionBuilder builder("convert");
  const Shape shape(static_cast<size_t>(rank), Dim::any());
  for (const TypePair& pair : pairs) {
    const ValueId source = builder.parameter("", {pair.from, shape});
    builder.result(builder.convert(source, pair.to));
  }
  return builder.finish();
}

Result<FunctionPtr> conversion(ElementType from, ElementType to, int rank) {
  return conversions(std::array{TypePair{from, to}}, rank);
}

Result<FunctionPtr> ten_conversions() {
  using enum ElementType;
  FunctionBuilder builder("chain");
  ValueId value = builder.parameter("x", {f64, {Dim::any()}});
  for (const ElementType to : {f32, f16, bf16, i32, f16, bf16, i16, f16, u8, i8}) {
    value = builder.convert(value, to);
  }
  builder.result(value);
  return builder.finish();
}

Result<FunctionPtr> ten_elementwise_ops() {
  return parse_function(R"(
func @ten(%x: u8[?n, ?c], %mean: f32[?c], %scale: f32[?c], %low: f32[]) -> (f16[?n, ?c]) {
  %f = convert %x : f32
  %d = sub %f, %mean
  %y = mul %d, %scale
  %m = max %y, %low
  %c = clamp %m {lo = -6.0, hi = 6.0}
  %s = squared_difference %c, %mean
  %p = add %s, %d
  %k = less %p, %scale
  %z = select %k, %p, %c
  %h = convert %z : f16
  return %h
}
)");
}

Result<FunctionPtr> converted_constant(size_t bytes) {
  FunctionBuilder builder("constant");
  const TensorType type{ElementType::f32, {Dim(bytes / sizeof(float))}};
  const std::vector<std::byte> zeros(bytes);
  builder.result(builder.convert(builder.constant(type, zeros), ElementType::u8));
  return builder.finish();
}

}  // namespace castor::bench
