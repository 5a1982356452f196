// SPDX-License-Identifier: Apache-2.0
// Methods whose elements are f32 on one side: the library's own arithmetic, and one rounding.
#include <fmt/format.h>

#include "tools/prove/facts/replace.hpp"
#include "tools/prove/facts/requantize_spec.hpp"
#include "tools/prove/facts/requantize_symbolic.hpp"
#include "tools/prove/term/evaluate.hpp"
#include "tools/prove/term/float_terms.hpp"

namespace castor::prove {

using jit::RequantizeForm;

namespace {

constexpr Rounding nearest = Rounding::nearest_even;
constexpr int64_t min_i32 = std::numeric_limits<int32_t>::min();
constexpr int64_t max_i32 = std::numeric_limits<int32_t>::max();
constexpr FloatFormat f32 = f32_format;

/// What is true of the product of any x by a factor that is positive or infinite.
Term is_product(const Term& p, const Term& x) {
  const Term is_nan_too = ~is_nan(f32, x) | is_nan(f32, p);
  const Term zero = ~is_zero(f32, x) | is_zero(f32, p) | is_nan(f32, p);
  return is_nan_too & zero & (is_nan(f32, p) | equal(bit(p, 31), bit(x, 31)));
}

/// What is added to the product, a number.
Term half_in(const Term& y, const Term& number) {
  for (const uint32_t id : reachable_nodes(std::span(&y, 1))) {
    const Term node(&y.terms(), id);
    if (node.op() != TermOp::float_add) continue;
    if (node.operand(0).same_as(number)) return node.operand(1);
    if (node.operand(1).same_as(number)) return node.operand(0);
  }
  return {};
}

void check_from_float(const RequantizeForm& form, FactCheck& check,
                      const RequantizeTamper& tamper) {
  Terms terms;
  const Term x = terms.input("x", 32), factor = terms.input("factor", 32);
  const Term zero_point = extend_sign(terms.input("to zero point", 16), 32);
  const Term zero = like(x, 0);
  const std::array<Term, 4> constants = {factor, zero_point,
                                         signed_like(x, min_i32) - min_signed(zero_point, zero),
                                         signed_like(x, max_i32) - max_signed(zero_point, zero)};
  const auto& method = jit::embarc_from_float_method();
  const bool has_zero_point = method.constants(form).size() > 1;
  Term broken = terms.truth(false);
  const Term whole =
      requantized(method, form, jit::Tier::avx512, x,
                  std::span(constants).first(method.constants(form).size()), broken, tamper);
  const Term added = has_zero_point ? signed_64(zero_point) : terms.constant(64, 0);
  // The instruction's product and the bare one are the same number, or both are NaNs.
  const Term product = terms.input("product", 32);
  const Term y = replaced(whole, {{x86::mul(f32, nearest, x, factor), product}});
  const Term specified = replaced(library_from_float(form, x, factor, added),
                                  {{float_mul(f32, nearest, x, factor), product}});
  if (!check.holds(y && specified, name_of(form) + ": the lane program")) return;
  const Term of_product = broken | not_equal(y, specified);
  const Term known =
      at_most_unsigned(factor, like(factor, f32.infinity())) & is_product(product, x);
  if (!form.has_32_bits()) {
    check.never(known & of_product, name_of(form));
    return;
  }
  const Term number = if_then_else(~unordered(f32, product, product), product, zero);
  // Sums of a product that is a number and of a half of x's sign are the same on both sides, but
  // for zeros.
  const Term half = half_in(y, number);
  if (!check.holds(bool(half), name_of(form) + ": the sum")) return;
  const Term positive = ~bit(x, 31) & ~equal(x, zero);
  const Term half_specified = if_then_else(positive, like(x, 0x3f000000), like(x, 0xbf000000));
  const Term is_special = is_nan(f32, product) | is_zero(f32, x);
  check.never(known & ~is_special & (not_equal(number, product) | not_equal(half, half_specified)),
              name_of(form) + ": operands of the sum");
  const Term sum = terms.input("sum", 32);
  const Term y_of_sum = replaced(y, {{x86::add(f32, nearest, number, half), sum}});
  const Term specified_of_sum =
      replaced(specified, {{float_add(f32, nearest, product, half_specified), sum}});
  if (!check.holds(y_of_sum && specified_of_sum, name_of(form) + ": the sum")) return;
  check.never(~is_nan(f32, sum) & not_equal(y_of_sum, specified_of_sum), name_of(form));
  const Term of_nan = replaced(of_product, {{number, zero}});
  if (!check.holds(bool(of_nan), name_of(form) + ": the lane program of a NaN")) return;
  check.never(known & is_nan(f32, product) & of_nan, name_of(form) + ": NaN");
  for (const Bits bits : {Bits{0}, f32.sign()}) {
    const Term of_zero = replaced(of_product, {{product, like(product, bits)}});
    check.never(is_zero(f32, x) & of_zero, name_of(form) + ": zero");
  }
}

void check_to_float(const RequantizeForm& form, FactCheck& check, const RequantizeTamper& tamper) {
  Terms terms;
  const Term x = terms.input("x", castor::bits_of(form.from_element()));
  const Term factor = terms.input("factor", 32);
  const Term zero_point = extend_sign(terms.input("from zero point", 16), 32);
  const Term zero = like(zero_point, 0);
  const std::array<Term, 4> constants = {
      zero_point, signed_like(zero_point, min_i32) + max_signed(zero_point, zero),
      signed_like(zero_point, max_i32) + min_signed(zero_point, zero), factor};
  Term broken = terms.truth(false);
  const Term y = requantized(jit::embarc_to_float_method(), form, jit::Tier::avx512, x, constants,
                             broken, tamper);
  const Term clamped = min_signed(max_signed(extend_sign(x, 32), constants[1]), constants[2]);
  const Term found = clamped - zero_point;
  const Term specified = truncate(saturated(signed_64(x) - signed_64(zero_point), 32), 32);
  check.never(not_equal(found, specified), name_of(form) + ": the difference");
  const Term difference = terms.input("difference", 32);
  const Term of_found = replaced(y, {{found, difference}});
  const Term of_specified =
      replaced(library_to_float(x, factor, signed_64(zero_point)), {{specified, difference}});
  const bool same = of_found && of_specified && of_found.same_as(of_specified);
  check.holds(same && broken.is_constant(0), name_of(form) + ": the lane program");
}

/// The difference is exact, and the program's product is of it and the factor: rounded once.
void check_one_rounding(const jit::RequantizeMethod& method, const RequantizeForm& form,
                        FloatFormat format, FactCheck& check, const RequantizeTamper& tamper) {
  Terms terms;
  const Term x = terms.input("x", castor::bits_of(form.from_element()));
  const Term zero_point = terms.input("from zero point", 16);
  const auto number = [&](const Term& integer) {
    return signed_to_float(format, nearest, integer);
  };
  const Term zero = number(extend_sign(zero_point, 32));
  const Term factor = terms.input("factor", format.width());
  Term broken = terms.truth(false);
  const Term y =
      requantized(method, form, jit::Tier::avx512, x, std::array{zero, factor}, broken, tamper);
  const Term found = x86::sub(format, nearest, number(extend_sign(x, 32)), zero);
  const int64_t end = int64_t{1} << format.precision;
  check.never(~is_between(signed_64(x) - signed_64(zero_point), -end, end),
              name_of(form) + ": the difference is a float");
  Term product = x86::mul(format, nearest, found, factor);
  if (format == f64_format) product = x86::convert(f64_format, f32, nearest, product);
  check.holds(y.same_as(product) && broken.is_constant(0), name_of(form) + ": the lane program");
}

/// The constants of the methods are what they are named in the questions, for slices that are
/// drawn.
void check_factors(const jit::RequantizeMethod& method, size_t index, bool from_float,
                   const FactEffort& effort, FactCheck& check) {
  for (const RequantizeForm& form : forms_of(method)) {
    if (form.is_exact()) continue;
    SliceSource source(method, form, effort.seed);
    for (int i = 0; i < 50 * effort.samples; ++i) {
      const jit::SliceParameters slice = source.any();
      const auto constants = source.prepared(slice);
      const uint32_t factor = from_float
                                  ? library_factor_from_float(slice.to_scale, slice.to_frac)
                                  : library_factor_to_float(slice.from_scale, slice.from_frac);
      if (constants) check.holds((*constants)[index] == factor, name_of(form) + ": the factor");
    }
  }
}

}  // namespace

FactVerdict check_embarc_from_float(const FactEffort& effort, const RequantizeTamper& tamper) {
  FactCheck check(effort);
  const auto& method = jit::embarc_from_float_method();
  for (const RequantizeForm& form : forms_of(method)) {
    // 8 bits with a zero point, and 32 bits, have all that others have.
    const bool is_taken = effort.is_long || info(*form.to).is_asymmetric;
    if (is_taken) check_from_float(form, check, tamper);
  }
  check_factors(method, 0, true, effort, check);
  return check.verdict("questions");
}

FactVerdict check_embarc_to_float(const FactEffort& effort, const RequantizeTamper& tamper) {
  FactCheck check(effort);
  const auto& method = jit::embarc_to_float_method();
  for (const RequantizeForm& form : forms_of(method)) check_to_float(form, check, tamper);
  check_factors(method, 3, false, effort, check);
  return check.verdict("questions");
}

FactVerdict check_to_float(const FactEffort& effort, const RequantizeTamper& tamper) {
  FactCheck check(effort);
  const auto& method = jit::to_float_method();
  for (const RequantizeForm& form : forms_of(method)) {
    check_one_rounding(method, form, f32, check, tamper);
  }
  check_factors(method, 1, false, effort, check);
  return check.verdict("questions");
}

FactVerdict check_to_float_through_double(const FactEffort& effort,
                                          const RequantizeTamper& tamper) {
  FactCheck check(effort);
  const auto& method = jit::to_float_through_double_method();
  for (const RequantizeForm& form : forms_of(method)) {
    check_one_rounding(method, form, f64_format, check, tamper);
  }
  return check.verdict("questions");
}

}  // namespace castor::prove
