// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/facts/float_lemmas.hpp"

#include <fmt/format.h>

namespace castor::prove {

namespace {

std::string declared(std::string_view names, std::string_view type) {
  std::string text;
  while (!names.empty()) {
    const size_t end = std::min(names.find(' '), names.size());
    text += fmt::format("(declare-const {} {})\n", names.substr(0, end), type);
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return text;
}

/// 2^exponent in decimal, exponent >= 0.
std::string decimal_power(int exponent) {
  std::string digits = "1";  // the lowest first
  for (int i = 0; i < exponent; ++i) {
    int carry = 0;
    for (char& digit : digits) {
      const int value = 2 * (digit - '0') + carry;
      digit = static_cast<char>('0' + value % 10);
      carry = value / 10;
    }
    if (carry != 0) digits += '1';
  }
  return {digits.rbegin(), digits.rend()};
}

}  // namespace

std::string power(int exponent) {
  if (exponent >= 0) return decimal_power(exponent) + ".0";
  return fmt::format("(/ 1.0 {}.0)", decimal_power(-exponent));
}

std::string real(double number) {
  return number < 0 ? fmt::format("(- {:.6f})", -number) : fmt::format("{:.6f}", number);
}

RealLemma& RealLemma::reals(std::string_view names) {
  text_ += declared(names, "Real");
  return *this;
}

RealLemma& RealLemma::integers(std::string_view names) {
  text_ += declared(names, "Int");
  return *this;
}

RealLemma& RealLemma::define(std::string_view name, std::string_view expression) {
  text_ += fmt::format("(define-fun {} () Real {})\n", name, expression);
  return *this;
}

RealLemma& RealLemma::assume(std::string_view condition) {
  text_ += fmt::format("(assert {})\n", condition);
  return *this;
}

RealLemma& RealLemma::bounded(std::string_view expression, std::string_view magnitude) {
  return assume(fmt::format("(and (<= {0} {1}) (<= (- {1}) {0}))", expression, magnitude));
}

RealLemma& RealLemma::rounded(std::string_view result, std::string_view exact,
                              std::string_view magnitude, int precision) {
  return bounded(fmt::format("(- {} {})", result, exact),
                 fmt::format("(+ (* {} {}) {})", power(-precision), magnitude,
                             power(precision > 24 ? -1000 : -140)));
}

std::string RealLemma::claiming(std::string_view claim) const {
  return text_ + fmt::format("(assert (not {}))\n", claim);
}

}  // namespace castor::prove
