// SPDX-License-Identifier: Apache-2.0
// Arithmetic on integers but division: modulo 2^N, in lanes of the type's own width, bytes at
// least, of which the low N bits count.
#include "jit/lower/elementwise_families.hpp"

namespace castor::jit {

namespace {

Operands low_operands(const Elementwise& op) {
  return {op.operand(0).as_low_bits(), op.operand(1).as_low_bits()};
}

LaneId smaller(const Elementwise& op, LaneId a, LaneId b) {
  return op.is_signed() ? op.builder.min_signed(a, b) : op.builder.min_unsigned(a, b);
}

LaneId larger(const Elementwise& op, LaneId a, LaneId b) {
  return op.is_signed() ? op.builder.max_signed(a, b) : op.builder.max_unsigned(a, b);
}

LaneId zero(const Elementwise& op) { return op.builder.constant(op.integer_type(), 0); }

}  // namespace

LaneTensor add_integers(const Elementwise& op) {
  const auto [a, b] = low_operands(op);
  return op.low_bits(op.builder.add(a, b));
}

LaneTensor sub_integers(const Elementwise& op) {
  const auto [a, b] = low_operands(op);
  return op.low_bits(op.builder.sub(a, b));
}

LaneTensor mul_integers(const Elementwise& op) {
  const auto [a, b] = low_operands(op);
  return op.low_bits(op.builder.mul(a, b));
}

LaneTensor min_integers(const Elementwise& op) {
  const auto [a, b] = op.integers();
  return op.exact(smaller(op, a, b));
}

LaneTensor max_integers(const Elementwise& op) {
  const auto [a, b] = op.integers();
  return op.exact(larger(op, a, b));
}

LaneTensor squared_difference_of_integers(const Elementwise& op) {
  const auto [a, b] = low_operands(op);
  const LaneId difference = op.builder.sub(a, b);
  return op.low_bits(op.builder.mul(difference, difference));
}

LaneTensor prelu_of_integers(const Elementwise& op) {
  if (!op.is_signed()) return op.operand(0);
  const LaneId x = op.integer(0);
  const LaneId scaled = op.builder.mul(x, op.operand(1).as_low_bits());
  return op.low_bits(op.builder.select(op.builder.greater_signed(zero(op), x), scaled, x));
}

LaneTensor abs_of_integer(const Elementwise& op) {
  return op.is_signed() ? op.low_bits(op.builder.absolute(op.integer(0))) : op.operand(0);
}

LaneTensor neg_of_integer(const Elementwise& op) {
  return op.low_bits(op.builder.sub(zero(op), op.operand(0).as_low_bits()));
}

LaneTensor sign_of_integer(const Elementwise& op) {
  if (!op.is_signed()) return op.exact(op.builder.is_nonzero(op.integer(0)));
  const auto constant = [&](int64_t value) {
    return op.builder.constant(op.integer_type(), static_cast<uint64_t>(value));
  };
  return op.exact(
      op.builder.min_signed(op.builder.max_signed(op.integer(0), constant(-1)), constant(1)));
}

LaneTensor relu_of_integer(const Elementwise& op) {
  return op.is_signed() ? op.exact(op.builder.max_signed(op.integer(0), zero(op))) : op.operand(0);
}

/// Whether the operand is known to be in the range that `clamp` has.
bool is_clamped(const Elementwise& op) {
  const std::optional<SmallRange> range = op.operand(0).range();
  if (!range) return false;
  const auto lo = integer_bound(op, "lo");
  const auto hi = integer_bound(op, "hi");
  return (!lo || static_cast<int64_t>(*lo) <= range->lo) &&
         (!hi || static_cast<int64_t>(*hi) >= range->hi);
}

LaneTensor clamp_integer(const Elementwise& op) {
  if (is_clamped(op)) return op.operand(0);
  LaneId x = op.integer(0);
  if (const auto lo = integer_bound(op, "lo")) {
    x = larger(op, x, op.builder.constant(op.integer_type(), *lo));
  }
  if (const auto hi = integer_bound(op, "hi")) {
    x = smaller(op, x, op.builder.constant(op.integer_type(), *hi));
  }
  return op.exact(x);
}

LaneTensor same_integer(const Elementwise& op) { return op.operand(0); }

}  // namespace castor::jit
