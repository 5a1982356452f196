// SPDX-License-Identifier: Apache-2.0
#include "tests/support/elementwise_cases.hpp"

#include <algorithm>
#include <bit>

#include "tools/testing/samples.hpp"

namespace castor::test {

namespace {

constexpr size_t random_pairs = 20'000;

/// Bounds of clamp: apart, absent, zeros of either sign, the wrong way round, fractions, beyond
/// every type; and a little more than midpoints of bf16, f32 and f16.
std::vector<std::string> clamp_attributes(ElementType type) {
  std::vector<std::string> all = {"",
                                  "lo = 1, hi = 3",
                                  "lo = -1.5, hi = 2.5",
                                  "lo = 2, hi = -1",
                                  "lo = 0.0",
                                  "lo = -0.0, hi = 0.0",
                                  "hi = -0.0",
                                  "hi = 0.3",
                                  "lo = 0.1, hi = 1.1",
                                  "lo = -1000, hi = 1e30",
                                  "lo = -inf, hi = 4629700416936869889",
                                  "hi = 4611686293305294849",
                                  "lo = -2049.0000000001, hi = 2049.0000000001"};
  if (is_integer(type)) all.push_back("lo = 9223372036854775807");
  return all;
}

bool is_computation(const OpInfo& row) {
  return row.family == OpFamily::elementwise && row.op != OpKind::convert &&
         row.op != OpKind::convert_promote_types;
}

uint64_t low_bits(int count) { return ~uint64_t{0} >> (64 - count); }

void add_float_edges(std::vector<uint64_t>& out, ElementType type) {
  const FloatFormat& format = info(type).format;
  const int mantissa = format.mantissa_bits;
  const auto exponent = [&](int64_t value) {
    return static_cast<uint64_t>(value + format.bias) << mantissa;
  };
  const uint64_t infinity = low_bits(format.exponent_bits) << mantissa;
  const uint64_t quiet = uint64_t{1} << (mantissa - 1);
  const uint64_t one = exponent(0);
  const uint64_t min_normal = uint64_t{1} << mantissa;
  for (uint64_t magnitude : {uint64_t{0},
                             uint64_t{1},
                             uint64_t{2},
                             uint64_t{3},
                             min_normal - 1,
                             min_normal,
                             min_normal + 1,
                             exponent(-2),
                             exponent(-1) - 1,
                             exponent(-1),
                             exponent(-1) + 1,
                             one - 1,
                             one,
                             one + 1,
                             one | quiet,
                             exponent(1),
                             exponent(1) | quiet,
                             exponent(2) | quiet / 2,
                             exponent(3) | 5,
                             exponent(mantissa) | 1,
                             exponent(mantissa + 1) | 1,
                             exponent(-7) | 3,
                             infinity - 1,
                             infinity - min_normal,
                             infinity / 2,
                             infinity,
                             infinity | 1,
                             infinity | quiet,
                             infinity | quiet | 1,
                             infinity | low_bits(mantissa),
                             infinity | (quiet - 1)}) {
    out.push_back(magnitude);
    out.push_back(magnitude | uint64_t{1} << (bits_of(type) - 1));
  }
}

void add_integer_edges(std::vector<uint64_t>& out, ElementType type) {
  for (uint64_t near = 0; near < 4; ++near) {
    out.push_back(near);
    out.push_back(uint64_t{0} - near);
  }
  for (int bit = 2; bit < bits_of(type); ++bit) {
    const uint64_t power = uint64_t{1} << bit;
    for (uint64_t value : {power - 1, power, power + 1}) {
      out.push_back(value);
      if (bit % 8 >= 6) out.push_back(uint64_t{0} - value);
    }
  }
  for (uint64_t value : {uint64_t{10}, uint64_t{100}, uint64_t{12345}, uint64_t{0x55555555}}) {
    out.push_back(value);
    out.push_back(uint64_t{0} - value);
  }
}

/// Every element of `a` with every one of `b`.
std::vector<std::vector<uint64_t>> pairs(const std::vector<uint64_t>& a,
                                         const std::vector<uint64_t>& b) {
  std::vector<std::vector<uint64_t>> both(2);
  for (uint64_t first : a) {
    for (uint64_t second : b) {
      both[0].push_back(first);
      both[1].push_back(second);
    }
  }
  return both;
}

void append(std::vector<uint64_t>& to, const std::vector<uint64_t>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

/// Multiples of random numbers, rounded, and their neighbours, with those numbers: quotients whose
/// own rounding may reach the next integer.
template <class Float, class Bits>
void add_near_multiples(std::vector<std::vector<uint64_t>>& both, ElementType type) {
  const std::vector<uint64_t> divisors = samples::random_patterns(type, random_pairs / 4, 14);
  for (size_t i = 0; i < divisors.size(); ++i) {
    const auto divisor = std::bit_cast<Float>(static_cast<Bits>(divisors[i]));
    const auto factor = static_cast<Float>(i % 2 == 0 ? i % 61 : i * i * i);
    const Bits multiple = std::bit_cast<Bits>(divisor * factor);
    for (Bits near : {Bits(multiple - 1), multiple, Bits(multiple + 1)}) {
      both[0].push_back(near);
      both[1].push_back(divisors[i]);
    }
  }
}

std::vector<std::vector<uint64_t>> pairs_of(ElementType type) {
  if (bits_of(type) <= 8) return pairs(samples::all_patterns(type), samples::all_patterns(type));
  auto both = pairs(edge_patterns(type), edge_patterns(type));
  append(both[0], samples::random_patterns(type, random_pairs, 11));
  append(both[1], samples::random_patterns(type, random_pairs, 12));
  // Numbers near each other: quotients near integers, sums that cancel.
  const std::vector<uint64_t> close = samples::random_patterns(type, random_pairs / 4, 13);
  append(both[0], close);
  for (size_t i = 0; i < close.size(); ++i) {
    both[1].push_back((close[i] ^ (i % 16)) & low_bits(bits_of(type)));
  }
  if (type == ElementType::f32) add_near_multiples<float, uint32_t>(both, type);
  if (type == ElementType::f64) add_near_multiples<double, uint64_t>(both, type);
  return both;
}

std::vector<uint64_t> singles_of(ElementType type) {
  if (bits_of(type) <= 16) return samples::all_patterns(type);
  std::vector<uint64_t> patterns = samples::boundary_patterns(type);
  append(patterns, samples::random_patterns(type, random_pairs, 10));
  return patterns;
}

}  // namespace

std::string ElementwiseCase::name() const {
  return std::string(name_of(op)) + " {" + attributes + "} of " + std::string(name_of(type));
}

ElementType ElementwiseCase::operand_type(size_t i) const {
  return op == OpKind::select && i == 0 ? ElementType::boolean : type;
}

ElementType ElementwiseCase::result_type() const {
  return info(op).infer == InferRule::comparison ? ElementType::boolean : type;
}

std::string ElementwiseCase::text() const {
  std::string parameters;
  std::string arguments;
  for (size_t i = 0; i < operands(); ++i) {
    const std::string name = "%x" + std::to_string(i);
    const char* comma = i == 0 ? "" : ", ";
    parameters += comma + name + ": " + std::string(name_of(operand_type(i))) + "[?n]";
    arguments += comma + name;
  }
  const std::string braces = attributes.empty() ? "" : " {" + attributes + "}";
  return "func @f(" + parameters + ") -> (" + std::string(name_of(result_type())) +
         "[?n]) {\n  %y = " + std::string(name_of(op)) + " " + arguments + braces +
         "\n  return %y\n}\n";
}

std::vector<ElementwiseCase> elementwise_cases(ElementType type) {
  std::vector<ElementwiseCase> cases;
  for (const OpInfo& row : op_table()) {
    if (!is_computation(row) || !admits(row.types, type)) continue;
    if (row.op != OpKind::clamp) {
      cases.push_back({row.op, type, ""});
      continue;
    }
    for (const std::string& bounds : clamp_attributes(type)) {
      cases.push_back({row.op, type, bounds});
    }
  }
  return cases;
}

std::vector<std::vector<uint64_t>> operands_of(const ElementwiseCase& row) {
  std::vector<std::vector<uint64_t>> operands;
  if (row.operands() == 1) {
    operands = {singles_of(row.type)};
  } else {
    operands = pairs_of(row.type);
  }
  if (row.operands() == 3) {
    std::vector<uint64_t> conditions(operands[0].size());
    for (size_t i = 0; i < conditions.size(); ++i) conditions[i] = i * 0x9e3779b1 >> 7 & 3;
    for (size_t i = 1; i < conditions.size(); i += 9) conditions[i] = i & 0xff;
    operands.insert(operands.begin(), conditions);
  }
  for (std::vector<uint64_t>& operand : operands) {
    if (operand.size() % 2 == 0) operand.push_back(operand[operand.size() / 3]);
  }
  return operands;
}

std::vector<uint64_t> edge_patterns(ElementType type) {
  if (bits_of(type) <= 8) return samples::all_patterns(type);
  std::vector<uint64_t> patterns;
  is_float(type) ? add_float_edges(patterns, type) : add_integer_edges(patterns, type);
  for (uint64_t& pattern : patterns) pattern &= low_bits(bits_of(type));
  std::sort(patterns.begin(), patterns.end());
  patterns.erase(std::unique(patterns.begin(), patterns.end()), patterns.end());
  return patterns;
}

}  // namespace castor::test
