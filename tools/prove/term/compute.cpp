// SPDX-License-Identifier: Apache-2.0
// Operations of terms on given values.
#include "tools/prove/term/soft_float.hpp"
#include "tools/prove/term/term.hpp"

namespace castor::prove {
namespace {

Bits shifted(TermOp op, Bits a, Bits count, int width) {
  const bool out = count >= static_cast<Bits>(width);
  const int by = out ? 0 : static_cast<int>(count);
  if (op == TermOp::shift_left) return out ? 0 : a << by;
  if (op == TermOp::shift_right) return out ? 0 : a >> by;
  const Bits sign = is_negative(a, width) ? ~Bits{0} : 0;
  if (out) return sign;
  return by == 0 ? a : (a >> by) | (sign << (width - by));
}

Bits computed_float(const Node& node, int operand_width, std::span<const Bits> v) {
  const FloatDetail detail = FloatDetail::unpacked(node.detail);
  const FloatFormat format = detail.format;
  const Rounding rounding = detail.rounding;
  switch (node.op) {
    case TermOp::float_add: return soft::add(format, rounding, v[0], v[1]);
    case TermOp::float_mul: return soft::mul(format, rounding, v[0], v[1]);
    case TermOp::float_div: return soft::div(format, rounding, v[0], v[1]);
    case TermOp::float_sqrt: return soft::sqrt(format, rounding, v[0]);
    case TermOp::float_fma: return soft::fma(format, rounding, v[0], v[1], v[2]);
    case TermOp::float_remainder: return soft::remainder(format, v[0], v[1]);
    case TermOp::float_round: return soft::round(format, rounding, v[0]);
    case TermOp::float_convert: return soft::convert(detail.from, format, rounding, v[0]);
    case TermOp::float_to_signed: return soft::to_integer(format, rounding, node.width, true, v[0]);
    case TermOp::float_to_unsigned:
      return soft::to_integer(format, rounding, node.width, false, v[0]);
    case TermOp::signed_to_float:
      return soft::from_integer(format, rounding, operand_width, true, v[0]);
    default: return soft::from_integer(format, rounding, operand_width, false, v[0]);
  }
}

}  // namespace

Bits compute(const Terms& terms, const Node& node, std::span<const Bits> v) {
  const auto width_of = [&](size_t i) { return terms.node(node.operands[i]).width; };
  const int width = node.width;
  const auto result = [&]() -> Bits {
    switch (node.op) {
      case TermOp::constant:
      case TermOp::input: return node.value;
      case TermOp::add: return v[0] + v[1];
      case TermOp::mul: return v[0] * v[1];
      case TermOp::udiv: return v[1] == 0 ? ~Bits{0} : v[0] / v[1];
      case TermOp::urem: return v[1] == 0 ? v[0] : v[0] % v[1];
      case TermOp::bit_and: return v[0] & v[1];
      case TermOp::bit_or: return v[0] | v[1];
      case TermOp::bit_xor: return v[0] ^ v[1];
      case TermOp::shift_left:
      case TermOp::shift_right:
      case TermOp::shift_right_signed: return shifted(node.op, v[0], v[1], width);
      case TermOp::extract: return v[0] >> static_cast<int>(node.detail);
      case TermOp::concat: return v[0] << width_of(1) | v[1];
      case TermOp::extend_sign: return sign_extended(v[0], width_of(0));
      case TermOp::if_then_else: return v[0] != 0 ? v[1] : v[2];
      case TermOp::equal: return v[0] == v[1] ? 1 : 0;
      case TermOp::less_unsigned: return v[0] < v[1] ? 1 : 0;
      case TermOp::less_signed:
        return (v[0] ^ sign_bit(width_of(0))) < (v[1] ^ sign_bit(width_of(0))) ? 1 : 0;
      case TermOp::table: return terms.table_entries(node.detail)[static_cast<size_t>(v[0])];
      default: return computed_float(node, width_of(0), v);
    }
  }();
  return result & low_mask(width);
}

}  // namespace castor::prove
