// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/facts/magnitudes.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "ir/builder.hpp"
#include "jit/lower/magnitudes.hpp"
#include "tools/prove/facts/replace.hpp"
#include "tools/prove/spec/convert.hpp"
#include "tools/prove/term/float_terms.hpp"

namespace castor::prove {

namespace {

FloatFormat format_of(ElementType type) {
  return type == ElementType::f64 ? f64_format : f32_format;
}

Bits bits_of_number(ElementType type, double number) {
  if (type == ElementType::f64) return std::bit_cast<uint64_t>(number);
  if (type == ElementType::f32) return std::bit_cast<uint32_t>(static_cast<float>(number));
  return static_cast<uint64_t>(static_cast<int64_t>(number));
}

/// A constant of two elements of f32 or i32, converted where the type is wider.
ValueId constant_of(FunctionBuilder& builder, ElementType type, const MagnitudeRange& range) {
  const ElementType narrow = is_integer(type) ? ElementType::i32 : ElementType::f32;
  std::array<uint32_t, 2> elements = {};
  elements[0] = static_cast<uint32_t>(bits_of_number(narrow, range.least));
  elements[1] = static_cast<uint32_t>(bits_of_number(narrow, -range.largest));
  const ValueId constant =
      builder.constant({narrow, {2}}, std::as_bytes(std::span<const uint32_t>(elements)));
  return type == narrow ? constant : builder.convert(constant, type);
}

ValueId appended(FunctionBuilder& builder, const ElementwiseOp& op, std::span<const ValueId> v) {
  if (op.op == OpKind::clamp) return builder.clamp(v[0], op.lo, op.hi);
  if (op.op == OpKind::select) {
    return builder.select(builder.parameter("c", {ElementType::boolean, {2}}), v[0], v[1]);
  }
  return v.size() == 1 ? builder.unary(op.op, v[0]) : builder.binary(op.op, v[0], v[1]);
}

/// An operand's values: numbers whose magnitude is in the range.
Term is_in(const Term& a, ElementType type, const MagnitudeRange& range) {
  if (is_integer(type)) {
    if (range.largest > static_cast<double>(integer_max(type))) return a.terms().truth(true);
    const auto largest = static_cast<int64_t>(range.largest);
    return is_between(a, -largest, largest);
  }
  const FloatFormat format = format_of(type);
  const Term magnitude = magnitude_of(format, a);
  return at_most_unsigned(like(a, bits_of_number(type, range.least)), magnitude) &
         at_most_unsigned(magnitude, like(a, bits_of_number(type, range.largest)));
}

/// The largest number of the type that is at most the bound.
double rounded_down(ElementType type, double bound) {
  if (type != ElementType::f32) return bound;
  const auto near = static_cast<float>(bound);
  return static_cast<double>(near) > bound ? std::nextafter(near, 0.0F) : near;
}

std::string text_of(const ElementwiseOp& op, std::span<const MagnitudeRange> operands) {
  std::string text = fmt::format("{} {}", info(op.op).name, name_of(op.type));
  for (const MagnitudeRange& range : operands) {
    text += fmt::format(", {:a} to {:a}", range.least, range.largest);
  }
  return text;
}

}  // namespace

double planned_bound(const ElementwiseOp& op, std::span<const MagnitudeRange> operands) {
  FunctionBuilder builder("f");
  std::vector<ValueId> values;
  for (const MagnitudeRange& range : operands) {
    values.push_back(constant_of(builder, op.type, range));
  }
  const ValueId result = appended(builder, op, values);
  builder.result(result);
  const Result<FunctionPtr> function = builder.finish();
  if (!function) return std::numeric_limits<double>::infinity();
  return jit::Magnitudes(**function).bound((*function)->results[0]);
}

void check_bound(const ElementwiseOp& op, std::span<const MagnitudeRange> operands, double bound,
                 FactCheck& check) {
  Terms terms;
  const int bits = castor::bits_of(op.type);
  Term admitted = terms.truth(true);
  std::vector<Term> values;
  if (op.op == OpKind::select) values.push_back(terms.input("condition", 8));
  for (const MagnitudeRange& range : operands) {
    values.push_back(terms.input("operand", bits));
    admitted = admitted & is_in(values.back(), op.type, range);
  }
  const Term result = specified_result(op, values);
  const MagnitudeRange results{.least = 0, .largest = rounded_down(op.type, bound)};
  check.never(admitted & ~is_in(result, op.type, results), text_of(op, operands));
}

namespace {

/// Magnitudes of operands: of small and large numbers, powers of two and others.
constexpr std::array<MagnitudeRange, 5> float_ranges = {{{0.5, 4194304},
                                                         {0x1p-20, 0x1.8p3},
                                                         {1, 1},
                                                         {0x1.fffffep-100, 0x1.fffffep60},
                                                         {0x1p-149, 0x1p-126}}};
constexpr std::array<MagnitudeRange, 4> integer_ranges = {
    {{0, 1}, {0, 255}, {0, 46340}, {0, 0x7fffffff}}};

constexpr std::array float_ops = {OpKind::abs,  OpKind::neg,   OpKind::relu,       OpKind::floor,
                                  OpKind::ceil, OpKind::trunc, OpKind::round_even, OpKind::add,
                                  OpKind::sub,  OpKind::mul,   OpKind::div,        OpKind::min,
                                  OpKind::max,  OpKind::prelu, OpKind::clamp,      OpKind::select};
constexpr std::array integer_ops = {OpKind::relu, OpKind::add, OpKind::sub,   OpKind::mul,
                                    OpKind::min,  OpKind::max, OpKind::clamp, OpKind::select};

size_t operands_of(OpKind op) {
  const bool has_two = (op >= OpKind::add && op <= OpKind::max) || op == OpKind::prelu ||
                       op == OpKind::select || op == OpKind::mul || op == OpKind::div;
  return has_two ? 2 : 1;
}

/// Products and quotients of symbolic numbers of f64 are too much for the solver.
bool is_decided(OpKind op, ElementType type) {
  const bool multiplies = op == OpKind::mul || op == OpKind::div || op == OpKind::prelu;
  return !multiplies || castor::bits_of(type) == 32;
}

template <size_t count>
void check_op(const ElementwiseOp& op, const std::array<MagnitudeRange, count>& ranges, size_t step,
              FactCheck& check) {
  size_t met = 0;
  for (const MagnitudeRange& a : ranges) {
    for (const MagnitudeRange& b : ranges) {
      const bool has_two = operands_of(op.op) == 2;
      if (!has_two && &b != &ranges[0]) break;
      if (has_two && met++ % step != 0) continue;
      const std::array<MagnitudeRange, 2> both = {a, b};
      const auto operands = std::span<const MagnitudeRange>(both).first(has_two ? 2 : 1);
      const double bound = planned_bound(op, operands);
      if (std::isfinite(bound) && check.goes_on()) check_bound(op, operands, bound, check);
    }
  }
}

FactVerdict decide_magnitudes(bool of_floats, const FactEffort& effort) {
  FactCheck check(effort);
  const auto step = static_cast<size_t>(step_of(effort, 20));
  const auto check_all = [&](const auto& ops, const auto& ranges, ElementType type) {
    for (const OpKind kind : ops) {
      if (!is_decided(kind, type)) continue;
      ElementwiseOp op{.op = kind, .type = type};
      if (kind == OpKind::clamp) op.lo = -1.5, op.hi = 6.25;
      check_op(op, ranges, step, check);
    }
  };
  if (of_floats) {
    check_all(float_ops, float_ranges, ElementType::f32);
    if (effort.is_long) check_all(float_ops, float_ranges, ElementType::f64);
  } else {
    check_all(integer_ops, integer_ranges, ElementType::i32);
    check_all(integer_ops, integer_ranges, ElementType::i64);
  }
  return check.verdict("operations and bounds of operands, for all operands");
}

}  // namespace

std::vector<Fact> magnitude_facts() {
  return {{"magnitudes: floats", "results of all operands within bounds are numbers within bounds",
           [](const FactEffort& effort) { return decide_magnitudes(true, effort); }},
          {"magnitudes: integers", "results of all operands within bounds are within bounds",
           [](const FactEffort& effort) { return decide_magnitudes(false, effort); }}};
}

}  // namespace castor::prove
