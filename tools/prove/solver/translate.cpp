// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/solver/translate.hpp"

#include <fmt/format.h>

#include <array>

#include "tools/prove/term/evaluate.hpp"

namespace castor::prove {
namespace {

std::string decimal(Bits value) {
  std::string digits;
  do {
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
    value /= 10;
  } while (value != 0);
  return digits;
}

z3::sort sort_of(z3::context& context, FloatFormat format) {
  return context.fpa_sort(format.exponent_bits, format.precision);
}

}  // namespace

z3::expr Translation::operator()(const Term& term) {
  for (const uint32_t id : reachable_nodes(std::span(&term, 1))) {
    if (!expressions_.contains(id)) expressions_.emplace(id, of_node(terms_.node(id)));
  }
  return expressions_.at(term.id());
}

z3::expr Translation::input(uint64_t number, int width) {
  return context_.bv_const(fmt::format("i{}", number).c_str(), static_cast<unsigned>(width));
}

z3::expr Translation::operand(const Node& node, size_t index) const {
  return expressions_.at(node.operands[index]);
}

z3::expr Translation::bits(int width, Bits value) {
  return context_.bv_val(decimal(value).c_str(), static_cast<unsigned>(width));
}

z3::expr Translation::truth(const z3::expr& condition) {
  return z3::ite(condition, bits(1, 1), bits(1, 0));
}

z3::expr Translation::number(Z3_ast ast) {
  context_.check_error();
  return {context_, ast};
}

z3::expr Translation::mode(Rounding rounding) {
  switch (rounding) {
    case Rounding::nearest_even: return number(Z3_mk_fpa_rne(context_));
    case Rounding::down: return number(Z3_mk_fpa_rtn(context_));
    case Rounding::up: return number(Z3_mk_fpa_rtp(context_));
    case Rounding::toward_zero: return number(Z3_mk_fpa_rtz(context_));
    case Rounding::nearest_away: return number(Z3_mk_fpa_rna(context_));
  }
  return number(Z3_mk_fpa_rne(context_));
}

/// A decision tree over the index's bits, highest first, that ends where all entries are equal.
z3::expr Translation::table(const Node& node) {
  const std::vector<uint64_t>& entries = terms_.table_entries(node.detail);
  const z3::expr index = operand(node, 0);
  std::vector<z3::expr> level;
  for (const uint64_t entry : entries) level.push_back(bits(node.width, entry));
  for (unsigned bit = 0; level.size() > 1; ++bit) {
    const z3::expr set = index.extract(bit, bit) == bits(1, 1);
    std::vector<z3::expr> next;
    for (size_t i = 0; i < level.size(); i += 2) {
      const bool same = z3::eq(level[i], level[i + 1]);
      next.push_back(same ? level[i] : z3::ite(set, level[i + 1], level[i]));
    }
    level = std::move(next);
  }
  return level.front();
}

bool Translation::is_abstract(const Node& node) const {
  return arithmetic_ == Arithmetic::any_function && may_be_any_function(terms_, node);
}

z3::expr Translation::of_node(const Node& node) {
  const auto a = [&] { return operand(node, 0); };
  const auto b = [&] { return operand(node, 1); };
  const auto low = static_cast<unsigned>(node.detail);
  switch (node.op) {
    case TermOp::constant: return bits(node.width, node.value);
    case TermOp::input: return input(node.detail, node.width);
    case TermOp::add: return a() + b();
    case TermOp::mul:
      if (is_abstract(node)) return any_function(node);
      return a() * b();
    case TermOp::udiv: return is_abstract(node) ? any_function(node) : z3::udiv(a(), b());
    case TermOp::urem: return is_abstract(node) ? any_function(node) : z3::urem(a(), b());
    case TermOp::bit_and: return a() & b();
    case TermOp::bit_or: return a() | b();
    case TermOp::bit_xor: return a() ^ b();
    case TermOp::shift_left: return z3::shl(a(), b());
    case TermOp::shift_right: return z3::lshr(a(), b());
    case TermOp::shift_right_signed: return z3::ashr(a(), b());
    case TermOp::extract: return a().extract(low + node.width - 1, low);
    case TermOp::concat: return z3::concat(a(), b());
    case TermOp::extend_sign: return z3::sext(a(), node.width - a().get_sort().bv_size());
    case TermOp::if_then_else: return z3::ite(a() == bits(1, 1), b(), operand(node, 2));
    case TermOp::equal: return truth(a() == b());
    case TermOp::less_unsigned: return truth(z3::ult(a(), b()));
    case TermOp::less_signed: return truth(z3::slt(a(), b()));
    case TermOp::table: return table(node);
    case TermOp::float_remainder: return any_function(node);
    case TermOp::float_add:
    case TermOp::float_mul:
    case TermOp::float_div:
    case TermOp::float_sqrt:
    case TermOp::float_fma:
      if (is_abstract(node)) return any_function(node);
      return of_float_node(node);
    default: return of_float_node(node);
  }
}

z3::expr Translation::float_operand(const Node& node, size_t index, FloatFormat format) {
  return number(Z3_mk_fpa_to_fp_bv(context_, operand(node, index), sort_of(context_, format)));
}

/// SMT's one NaN becomes the format's nan(), which z3 leaves open.
z3::expr Translation::float_bits(const z3::expr& value, FloatFormat format) {
  const z3::expr is_nan = number(Z3_mk_fpa_is_nan(context_, value));
  return z3::ite(is_nan, bits(format.width(), format.nan()),
                 number(Z3_mk_fpa_to_ieee_bv(context_, value)));
}

/// Where the rounded number is inside [low, high) as the float format can tell, else x86's answer.
z3::expr Translation::to_integer(const Node& node, bool is_signed) {
  const FloatDetail detail = FloatDetail::unpacked(node.detail);
  const FloatFormat format = detail.format;
  const unsigned width = node.width;
  const z3::expr operand_value = float_operand(node, 0, format);
  const z3::expr rounded =
      number(Z3_mk_fpa_round_to_integral(context_, mode(detail.rounding), operand_value));
  const z3::expr finite = !number(Z3_mk_fpa_is_nan(context_, rounded)) &&
                          !number(Z3_mk_fpa_is_infinite(context_, rounded));
  z3::expr inside = finite;
  const int limit = is_signed ? node.width - 1 : node.width;  // numbers are below 2^limit
  const auto power = [&](bool negative) {
    const int field = limit + format.bias();
    const Bits pattern = static_cast<Bits>(field) << format.fraction_bits();
    const z3::expr bit_pattern = bits(format.width(), pattern | (negative ? format.sign() : 0));
    return number(Z3_mk_fpa_to_fp_bv(context_, bit_pattern, sort_of(context_, format)));
  };
  if (limit <= format.bias()) {
    inside = inside && number(Z3_mk_fpa_lt(context_, rounded, power(false)));
    if (is_signed) inside = inside && number(Z3_mk_fpa_geq(context_, rounded, power(true)));
  }
  if (!is_signed) {
    inside = inside && (!number(Z3_mk_fpa_is_negative(context_, rounded)) ||
                        number(Z3_mk_fpa_is_zero(context_, rounded)));
  }
  const z3::expr nearest = mode(Rounding::toward_zero);
  const z3::expr converted =
      number(is_signed ? Z3_mk_fpa_to_sbv(context_, nearest, rounded, width)
                       : Z3_mk_fpa_to_ubv(context_, nearest, rounded, width));
  const Bits indefinite = is_signed ? sign_bit(node.width) : low_mask(node.width);
  return z3::ite(inside, converted, bits(node.width, indefinite));
}

z3::expr Translation::from_integer(const Node& node, bool is_signed) {
  const FloatDetail detail = FloatDetail::unpacked(node.detail);
  const z3::sort sort = sort_of(context_, detail.format);
  const z3::expr rounding = mode(detail.rounding);
  const auto make = is_signed ? Z3_mk_fpa_to_fp_signed : Z3_mk_fpa_to_fp_unsigned;
  return float_bits(number(make(context_, rounding, operand(node, 0), sort)), detail.format);
}

/// Only equal calls are known to be equal. Operands are of the result's width.
z3::expr Translation::any_function(const Node& node) {
  const std::string name = fmt::format("{}_{:x}", name_of(node.op), node.detail);
  const z3::sort sort = context_.bv_sort(node.width);
  z3::sort_vector domain(context_);
  z3::expr_vector operands(context_);
  for (size_t i = 0; i < node.operand_count; ++i) {
    domain.push_back(sort);
    operands.push_back(operand(node, i));
  }
  return context_.function(name.c_str(), domain, sort)(operands);
}

z3::expr Translation::of_float_node(const Node& node) {
  const FloatDetail detail = FloatDetail::unpacked(node.detail);
  const FloatFormat format = detail.format;
  const auto in = [&](size_t i) { return float_operand(node, i, format); };
  const auto result = [&](Z3_ast ast) { return float_bits(number(ast), format); };
  const z3::expr rounding = mode(detail.rounding);
  switch (node.op) {
    case TermOp::float_add: return result(Z3_mk_fpa_add(context_, rounding, in(0), in(1)));
    case TermOp::float_mul: return result(Z3_mk_fpa_mul(context_, rounding, in(0), in(1)));
    case TermOp::float_div: return result(Z3_mk_fpa_div(context_, rounding, in(0), in(1)));
    case TermOp::float_sqrt: return result(Z3_mk_fpa_sqrt(context_, rounding, in(0)));
    case TermOp::float_fma: return result(Z3_mk_fpa_fma(context_, rounding, in(0), in(1), in(2)));
    case TermOp::float_round: return result(Z3_mk_fpa_round_to_integral(context_, rounding, in(0)));
    case TermOp::float_convert: {
      const z3::expr from = float_operand(node, 0, detail.from);
      return result(Z3_mk_fpa_to_fp_float(context_, rounding, from, sort_of(context_, format)));
    }
    case TermOp::float_to_signed: return to_integer(node, true);
    case TermOp::float_to_unsigned: return to_integer(node, false);
    case TermOp::signed_to_float: return from_integer(node, true);
    case TermOp::unsigned_to_float: return from_integer(node, false);
    default: return any_function(node);
  }
}

}  // namespace castor::prove
