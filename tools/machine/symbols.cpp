// SPDX-License-Identifier: Apache-2.0
#include "tools/machine/symbols.hpp"

#include <algorithm>
#include <bit>

#include "tools/prove/term/float_terms.hpp"

namespace castor::machine {

namespace {

using prove::Term;
using prove::TermOp;

/// The constants' values; nothing where one entry is no constant.
std::optional<std::vector<uint64_t>> values_of(std::span<const Term> entries) {
  std::vector<uint64_t> values;
  for (const Term& entry : entries) {
    const auto value = Symbols::value_of(entry);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

}  // namespace

Symbols::Symbols(prove::Terms& terms) : terms_(terms) {
  for (int value = 0; value < 256; ++value) {
    constant_bytes_.push_back({terms.constant(8, static_cast<prove::Bits>(value)), 0});
  }
}

std::optional<uint64_t> Symbols::value_of(Bits a) {
  if (!a.is_constant()) return std::nullopt;
  return static_cast<uint64_t>(a.value());
}

Term Symbols::extract(Bits a, int low, int width) {
  if (a.op() != TermOp::extend_sign) return prove::extract(a, low, width);
  const Term inner = a.operand(0);
  if (low + width <= inner.width()) return prove::extract(inner, low, width);
  if (low < inner.width() - 1) return prove::extract(a, low, width);
  const Term sign = prove::bit(inner, inner.width() - 1);
  return width == 1 ? sign : prove::extend_sign(sign, width);
}

Term Symbols::look_up(std::span<const Bits> entries, Bits index) const {
  const int width = entries[0].width();
  if (const auto value = value_of(index)) return entries[*value];
  if (const auto values = values_of(entries)) return terms_.table(*values, width, index);
  return prove::entry_of(entries, index);
}

namespace {

/// The bits at which parts of the term end, one after another.
void add_ends(const Term& term, int begin, std::vector<int>& ends) {
  if (term.op() == TermOp::concat) {
    const Term low = term.operand(1);
    add_ends(low, begin, ends);
    add_ends(term.operand(0), begin + low.width(), ends);
  } else {
    ends.push_back(begin + term.width());
  }
}

}  // namespace

Term Symbols::mul(Bits a, Bits b) {
  const Term& constant = a.is_constant() ? a : b;
  const Term& other = a.is_constant() ? b : a;
  if (!constant.is_constant() || !std::has_single_bit(static_cast<uint64_t>(constant.value()))) {
    return a * b;
  }
  return prove::shift_left(other, std::countr_zero(static_cast<uint64_t>(constant.value())));
}

Term Symbols::or_of_parts(Bits a, Bits b) {
  std::vector<int> ends;
  add_ends(a, 0, ends);
  add_ends(b, 0, ends);
  std::ranges::sort(ends);
  Term result;
  int begin = 0;
  for (const int end : ends) {
    if (end == begin) continue;
    const Term part = extract(a, begin, end - begin) | extract(b, begin, end - begin);
    result = result ? prove::concat(part, result) : part;
    begin = end;
  }
  return result;
}

std::optional<Term> Symbols::narrowed(Bits a, int most) {
  const bool is_extended = a.op() == TermOp::concat && a.operand(0).is_constant(0);
  const Term low = is_extended ? a.operand(1) : a;
  if (low.width() > most) return std::nullopt;
  return low;
}

Term Symbols::float_add(Bits a, Bits b, Rounding rounding) {
  return prove::float_add(format_of(a.width()), rounding, a, b);
}
Term Symbols::float_mul(Bits a, Bits b, Rounding rounding) {
  return prove::float_mul(format_of(a.width()), rounding, a, b);
}
Term Symbols::float_div(Bits a, Bits b, Rounding rounding) {
  return prove::float_div(format_of(a.width()), rounding, a, b);
}
Term Symbols::float_sqrt(Bits a, Rounding rounding) {
  return prove::float_sqrt(format_of(a.width()), rounding, a);
}
Term Symbols::float_fma(Bits a, Bits b, Bits c, Rounding rounding) {
  return prove::float_fma(format_of(a.width()), rounding, a, b, c);
}
Term Symbols::float_round(Bits a, Rounding rounding) {
  return prove::float_round(format_of(a.width()), rounding, a);
}
Term Symbols::float_convert(Bits a, int width, Rounding rounding) {
  return prove::float_convert(format_of(a.width()), format_of(width), rounding, a);
}
Term Symbols::float_to_integer(Bits a, int width, bool is_signed, Rounding rounding) {
  return is_signed ? prove::float_to_signed(format_of(a.width()), rounding, width, a)
                   : prove::float_to_unsigned(format_of(a.width()), rounding, width, a);
}
Term Symbols::float_from_integer(Bits a, int width, bool is_signed, Rounding rounding) {
  return is_signed ? prove::signed_to_float(format_of(width), rounding, a)
                   : prove::unsigned_to_float(format_of(width), rounding, a);
}

Term Symbols::join(const Byte* bytes, int count) {
  // Runs of consecutive bytes of one term, the lowest first.
  Term joined;
  for (int i = 0; i < count;) {
    const Byte first = bytes[i];
    int length = 1;
    while (i + length < count && bytes[i + length].term.same_as(first.term) &&
           bytes[i + length].index == first.index + length) {
      ++length;
    }
    const bool is_whole = first.index == 0 && first.term.width() == 8 * length;
    const Term run = is_whole ? first.term : extract(first.term, 8 * first.index, 8 * length);
    joined = joined ? prove::concat(run, joined) : run;
    i += length;
  }
  return joined;
}

int Symbols::run_of(const Byte* bytes, int most) {
  int count = 1;
  while (count < most) {
    const Byte& next = bytes[count];
    const bool goes_on = next.term.same_as(bytes[0].term) && next.index == bytes[0].index + count;
    const bool are_constants = next.term.is_constant() && bytes[0].term.is_constant();
    if (!goes_on && !are_constants) break;
    ++count;
  }
  return count;
}

void Symbols::split(Bits a, Byte* bytes) {
  for (int i = 0; i < a.width() / 8; ++i) bytes[i] = {a, static_cast<uint8_t>(i)};
}

}  // namespace castor::machine
