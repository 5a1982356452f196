// SPDX-License-Identifier: Apache-2.0
// Facts of requantization, by method.
#include "tools/prove/facts/requantize_symbolic.hpp"

namespace castor::prove {

std::vector<Fact> requantize_facts() {
  const auto fact = [](std::string name, std::string claim,
                       FactVerdict (*check)(const FactEffort&, const RequantizeTamper&)) {
    return Fact{std::move(name), std::move(claim),
                [check](const FactEffort& effort) { return check(effort, {}); }};
  };
  return {
      fact("requantize: linear, embarc", "all slices: 32-bit lines are the library's results",
           check_embarc_lines),
      fact("requantize: linear, exact",
           "all slices whose divisor is a power of two: lines are the formula's results",
           check_exact_lines),
      fact("requantize: rounded float", "all slices: roundings cross no middle between results",
           check_rounded_floats),
      fact("requantize: rounded double", "all slices: roundings cross no middle between results",
           check_rounded_doubles),
      fact("requantize: split rounded float",
           "all slices: roundings cross no middle between results", check_split_floats),
      fact("requantize: whole accumulators",
           "all products: where f64 is used, the bits that the library cuts off do not show",
           check_whole_accumulators),
      fact("requantize: i32 product",
           "all slices: halves of differences give the library's results", check_i32_products),
      fact("requantize: i32 product that saturates",
           "all slices: the same, where differences that saturate give saturated results",
           check_saturating_i32_products),
      fact("requantize: i32 accumulator",
           "all slices: 32-bit sums are the library's, and what saturates is known before",
           check_i32_accumulators),
      fact("requantize: embarc, from float", "all factors and zero points: the library's results",
           check_embarc_from_float),
      fact("requantize: embarc, to float", "all factors and zero points: the library's results",
           check_embarc_to_float),
      fact("requantize: to float", "all factors and zero points: one rounding of exact numbers",
           check_to_float),
      fact("requantize: to float through double",
           "all factors and zero points: one rounding of exact numbers",
           check_to_float_through_double),
      fact("requantize: float quotient",
           "all slices: a rounded quotient is on the exact one's side of each middle",
           check_float_quotients),
      fact("requantize: double", "all slices: lifted products cross no middle between results",
           check_doubles),
      fact("requantize: cut accumulator",
           "all slices: f64 has what the library keeps, and rounds it as the library does",
           check_cut_accumulators),
      fact("requantize: constants", "drawn slices have the constants that the questions above name",
           check_constants),
  };
}

}  // namespace castor::prove
