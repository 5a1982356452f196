// SPDX-License-Identifier: Apache-2.0
// Comparisons and logic.
#include "ir/numerics/truth_ops.hpp"

#include "ir/numerics/compare.hpp"
#include "ir/numerics/unpacked.hpp"

namespace castor::numerics::truth_ops {

namespace {

enum class Order : uint8_t { less, equal, greater, unordered };

Order order_of(uint64_t a, uint64_t b, ElementType type) {
  const Unpacked first = decode(a, type);
  const Unpacked second = decode(b, type);
  if (first.kind == NumberClass::nan || second.kind == NumberClass::nan) return Order::unordered;
  if (is_greater(first, second)) return Order::greater;
  return is_greater(second, first) ? Order::less : Order::equal;
}

bool is_true(uint64_t x, ElementType type) { return decode(x, type).kind != NumberClass::zero; }

}  // namespace

uint64_t is_nan(uint64_t x, ElementType type) { return decode(x, type).kind == NumberClass::nan; }

uint64_t equal(uint64_t a, uint64_t b, ElementType type) {
  return order_of(a, b, type) == Order::equal;
}

uint64_t not_equal(uint64_t a, uint64_t b, ElementType type) {
  return order_of(a, b, type) != Order::equal;
}

uint64_t less(uint64_t a, uint64_t b, ElementType type) {
  return order_of(a, b, type) == Order::less;
}

uint64_t less_equal(uint64_t a, uint64_t b, ElementType type) {
  const Order order = order_of(a, b, type);
  return order == Order::less || order == Order::equal;
}

uint64_t greater(uint64_t a, uint64_t b, ElementType type) {
  return order_of(a, b, type) == Order::greater;
}

uint64_t greater_equal(uint64_t a, uint64_t b, ElementType type) {
  const Order order = order_of(a, b, type);
  return order == Order::greater || order == Order::equal;
}

uint64_t logical_and(uint64_t a, uint64_t b, ElementType type) {
  return is_true(a, type) && is_true(b, type);
}

uint64_t logical_or(uint64_t a, uint64_t b, ElementType type) {
  return is_true(a, type) || is_true(b, type);
}

uint64_t logical_xor(uint64_t a, uint64_t b, ElementType type) {
  return is_true(a, type) != is_true(b, type);
}

uint64_t logical_not(uint64_t x, ElementType type) { return !is_true(x, type); }

}  // namespace castor::numerics::truth_ops
