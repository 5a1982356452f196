// SPDX-License-Identifier: Apache-2.0
// The library's products of 32-bit differences in 32-bit lanes (jit/requantize/i32_product.cpp).
#include <fmt/format.h>

#include "tools/prove/facts/replace.hpp"
#include "tools/prove/facts/requantize_halves.hpp"
#include "tools/prove/facts/requantize_spec.hpp"
#include "tools/prove/facts/requantize_symbolic.hpp"

namespace castor::prove {

using jit::RequantizeForm;

namespace {

Term stored(const RequantizeForm& form, const Term& value, const Term& to_zero_point) {
  const int bits = castor::bits_of(form.to_element());
  return truncate(saturated(saturated(value + to_zero_point, 32), bits), bits);
}

/// The product methods' constants of a slice, as inputs.
struct ProductProgram {
  ProductProgram(Terms& terms, const RequantizeForm& form, bool far_saturates, int count,
                 const RequantizeTamper& tamper)
      : halves(terms), broken(terms.truth(false)) {
    const Term x = terms.input("x", 32);
    const Term zero_point = extend_sign(terms.input("from zero point", 16), 32);
    to_zero_point = signed_64(terms.input("to zero point", 16));
    const Term zero = like(zero_point, 0);
    constexpr int64_t far = (int64_t{1} << 31) - (int64_t{1} << 16);
    Term low = signed_like(x, far_saturates ? -far : min_i32);
    Term high = signed_like(x, far_saturates ? far : max_i32);
    if (!far_saturates) low = low + max_signed(zero_point, zero);
    if (!far_saturates) high = high + min_signed(zero_point, zero);
    difference = min_signed(max_signed(x, low), high) - zero_point;
    specified_difference = saturated(signed_64(x) - signed_64(zero_point), 32);
    sum = shift_left(to_zero_point, count) + (Bits{1} << (count - 1));
    std::vector<Term> constants = {zero_point, halves.scale_32(), halves.upper_scale(),
                                   truncate(sum, 32), terms.constant(32, static_cast<Bits>(count))};
    if (!far_saturates) constants.insert(constants.end(), {low, high});
    const auto& method =
        far_saturates ? jit::saturating_i32_product_method() : jit::i32_product_method();
    const Term whole = requantized(method, form, jit::Tier::avx2, x, constants, broken, tamper);
    const Term of_halves = replaced(whole, {{difference, halves.difference()}});
    y = of_halves ? halves.with_inputs(of_halves, extend_zero(halves.b, 32)) : Term();
  }

  /// That no sum exceeds 32 bits.
  Term fits() const {
    const Term max = shift_left(unsigned_64(halves.scale), 15);
    const auto is_i32 = [](const Term& number) { return is_between(number, min_i32, max_i32); };
    return is_i32(sum) & is_i32(sum - max) & is_i32(sum + max);
  }

  Halves halves;
  Term broken;
  Term to_zero_point;
  Term difference;
  Term specified_difference;
  Term sum;
  Term y;  ///< what is stored, by the products of halves; no term where there are others
};

void check_product(const RequantizeForm& form, bool far_saturates, int count, FactCheck& check,
                   const RequantizeTamper& tamper) {
  const std::string subject = fmt::format("{}, shift {}", name_of(form), count + 16);
  Terms terms;
  const ProductProgram program(terms, form, far_saturates, count, tamper);
  if (!check.holds(bool(program.y), subject + ": the lane program")) return;
  const Halves& halves = program.halves;
  const Term shift = terms.constant(64, static_cast<Bits>(count + 16));
  Term specified;
  for (int u = 0; u < 32 && check.goes_on(); u += step_of(check.effort(), 12)) {
    specified =
        stored(form, accumulated(halves.product(), u + 16, shift, true), program.to_zero_point);
    check.never(
        program.fits() & halves.have_size(u) & (program.broken | not_equal(program.y, specified)),
        fmt::format("{}, {} redundant sign bits", subject, u));
  }
  if (!far_saturates) {
    check.never(not_equal(signed_64(program.difference), program.specified_difference),
                "the difference");
    return;
  }
  // Differences that are not the library's are far, and far ones saturate.
  constexpr int64_t far = (int64_t{1} << 31) - (int64_t{1} << 16) - (int64_t{1} << 15);
  const Term found = signed_64(program.difference);
  const Term other = program.specified_difference;
  const auto are_between = [&](int64_t low, int64_t high) {
    return is_between(found, low, high) & is_between(other, low, high);
  };
  check.never(not_equal(found, other) & ~are_between(far, max_i32) & ~are_between(min_i32, -far),
              "far differences");
  const Term p = terms.input("product", 64);
  const Term least = terms.input("product of the least far difference", 64);
  const Term zero_point = program.to_zero_point;
  const Term magnitude = if_then_else(less_signed(zero_point, 0), -zero_point, zero_point);
  const int bits = castor::bits_of(form.to_element());
  const Term beyond = magnitude + (Bits{1} << (bits - 1)) + 1;
  const Term admitted = less_signed(beyond, shift_right_signed(least, count + 16)) &
                        is_between(least, 0, int64_t{1} << 46) &
                        is_between(p, -(int64_t{1} << 46), int64_t{1} << 46);
  const Term value = rounded_quotient(p, shift, true);
  const Term y = stored(form, value, zero_point);
  const Term saturates = (~at_most_signed(least, p) | equal(y, sign_bit(bits) - 1)) &
                         (~at_most_signed(p, -least) | equal(y, sign_bit(bits)));
  check.never(admitted & ~saturates, subject + ": far differences saturate");
}

FactVerdict check_products(bool far_saturates, const FactEffort& effort,
                           const RequantizeTamper& tamper) {
  const auto& method =
      far_saturates ? jit::saturating_i32_product_method() : jit::i32_product_method();
  FactCheck check(effort);
  for (const RequantizeForm& form : forms_of(method)) {
    for (int count = 1; count <= 31 && check.goes_on(); count += step_of(effort, 30)) {
      check_product(form, far_saturates, count, check, tamper);
    }
  }
  if (!far_saturates) check_halves(check);  // once for all
  return check.verdict("questions");
}

}  // namespace

FactVerdict check_i32_products(const FactEffort& effort, const RequantizeTamper& tamper) {
  return check_products(false, effort, tamper);
}

FactVerdict check_saturating_i32_products(const FactEffort& effort,
                                          const RequantizeTamper& tamper) {
  return check_products(true, effort, tamper);
}

}  // namespace castor::prove
