// SPDX-License-Identifier: Apache-2.0
// The scalar instructions that castor emits: numbers stay linear in the index, data goes through
// the domain.
#include <algorithm>
#include <bit>

#include "tools/machine/machine.hpp"

namespace castor::machine {

namespace {

int64_t as_signed(uint64_t value, int width) { return Number{value, width}.as_signed(); }

/// Flags of a - b. Numbers that grow alike with the index have a difference that does not.
template <class D>
Flags flags_of_difference(const Scalar<D>& a, const Scalar<D>& b) {
  if (!a.is_number() || !b.is_number() || a.word.slope != b.word.slope) return {};
  const int width = a.width;
  const uint64_t x = a.word.value;
  const uint64_t y = b.word.value & low_bits(width);
  const uint64_t difference = (x - y) & low_bits(width);
  const bool less = as_signed(x, width) < as_signed(y, width);
  const bool sign = as_signed(difference, width) < 0;
  return {.zero = difference == 0, .sign = sign, .carry = x < y, .overflow = sign != less};
}

uint64_t extracted(uint64_t from, uint64_t mask) {
  uint64_t result = 0;
  for (int to = 0; mask != 0; mask &= mask - 1, ++to) {
    result |= (from >> std::countr_zero(mask) & 1) << to;
  }
  return result;
}
uint64_t deposited(uint64_t from, uint64_t mask) {
  uint64_t result = 0;
  for (; mask != 0; mask &= mask - 1, from >>= 1) result |= (from & 1) << std::countr_zero(mask);
  return result;
}

}  // namespace

// ---- arithmetic

/// Flags of a result of logic, and of arithmetic but for its carry and overflow.
template <class D>
Flags Machine<D>::flags_of_result(const Scalar<D>& result, bool is_logic) const {
  if (!result.is_number()) return {};
  const int64_t now = as_signed(result.word.value, result.width);
  const int64_t slope = result.word.slope;
  if (slope != 0) {
    const bool is_count = slopes_of_counts_ && std::ranges::count(*slopes_of_counts_, slope) > 0;
    if (!is_count || (slope > 0 ? now <= 0 : now >= 0)) return {};
  }
  Flags flags = {
      .zero = now == 0, .sign = now < 0, .carry = std::nullopt, .overflow = std::nullopt};
  if (is_logic) flags.carry = flags.overflow = false;
  return flags;
}

/// A result from numbers; nothing where it is not linear in the index.
template <class D>
std::optional<Word> Machine<D>::combined_words(const Scalar<D>& a, const Scalar<D>& b) const {
  const Word x = a.word;
  const Word y = b.word;
  const bool grows = x.slope != 0 || y.slope != 0;
  switch (now().instruction.mnemonic) {
    case ZYDIS_MNEMONIC_ADD: return Word{x.value + y.value, x.slope + y.slope};
    case ZYDIS_MNEMONIC_SUB: return Word{x.value - y.value, x.slope - y.slope};
    case ZYDIS_MNEMONIC_SHL:
    case ZYDIS_MNEMONIC_SHLX:
      if (y.slope != 0) return std::nullopt;
      return product(x, Word{uint64_t{1} << (y.value & (a.width == 64 ? 63 : 31)), 0});
    case ZYDIS_MNEMONIC_SHR:
    case ZYDIS_MNEMONIC_SHRX:
      if (y.slope != 0) return std::nullopt;
      return shifted_right(x, static_cast<int>(y.value & (a.width == 64 ? 63 : 31)));
    default: break;
  }
  // The index adds multiples of what the mask keeps.
  const bool keeps_low = now().instruction.mnemonic == ZYDIS_MNEMONIC_AND && y.slope == 0 &&
                         std::has_single_bit(y.value + 1) &&
                         x.slope % static_cast<int64_t>(y.value + 1) == 0;
  if (keeps_low) return Word{x.value & y.value, 0};
  const bool sets_all = now().instruction.mnemonic == ZYDIS_MNEMONIC_OR && y.slope == 0 &&
                        (y.value & low_bits(a.width)) == low_bits(a.width);
  if (sets_all) return Word{low_bits(a.width), 0};
  if (grows) return std::nullopt;
  switch (now().instruction.mnemonic) {
    case ZYDIS_MNEMONIC_AND: return Word{x.value & y.value, 0};
    case ZYDIS_MNEMONIC_ANDN: return Word{~x.value & y.value, 0};
    case ZYDIS_MNEMONIC_OR: return Word{x.value | y.value, 0};
    case ZYDIS_MNEMONIC_XOR: return Word{x.value ^ y.value, 0};
    case ZYDIS_MNEMONIC_SAR:
      return Word{static_cast<uint64_t>(as_signed(x.value, a.width) >> (y.value & 63)), 0};
    case ZYDIS_MNEMONIC_BZHI:
      return Word{
          (y.value & 0xff) >= 64 ? x.value : x.value & ((uint64_t{1} << (y.value & 0xff)) - 1), 0};
    case ZYDIS_MNEMONIC_PEXT: return Word{extracted(x.value, y.value), 0};
    case ZYDIS_MNEMONIC_PDEP: return Word{deposited(x.value, y.value), 0};
    default: return std::nullopt;
  }
}

/// pext by runs of ones in the mask, each of which is one part of the value.
template <class D>
typename D::Bits Machine<D>::extracted_data(Bits a, uint64_t mask) {
  const int width = D::width(a);
  std::optional<Bits> result;
  while (mask != 0) {
    const int at = std::countr_zero(mask);
    const int count = std::countr_one(mask >> at);
    const Bits part = domain_->extract(a, at, count);
    result = result ? domain_->concat(part, *result) : part;
    mask &= ~(low_bits(count) << at);
  }
  return result ? domain_->extend_zero(*result, width) : domain_->constant(width, 0);
}

/// pdep alike, with zeros between the parts.
template <class D>
typename D::Bits Machine<D>::deposited_data(Bits a, uint64_t mask) {
  const int width = D::width(a);
  std::optional<Bits> result;
  int from = 0;
  int end = 0;  // bits that the result has so far
  const auto append = [&](Bits part) {
    end += D::width(part);
    result = result ? domain_->concat(part, *result) : part;
  };
  while (mask != 0) {
    const int at = std::countr_zero(mask);
    const int count = std::countr_one(mask >> at);
    if (at > end) append(domain_->constant(at - end, 0));
    append(domain_->extract(a, from, count));
    from += count;
    mask &= ~(low_bits(count) << at);
  }
  return result ? domain_->extend_zero(*result, width) : domain_->constant(width, 0);
}

/// A result from data. Masks of pext and pdep, and counts of bzhi, are numbers.
template <class D>
std::optional<typename D::Bits> Machine<D>::combined_data(Bits a, Bits b) {
  const int width = D::width(a);
  const auto known = D::value_of(b);
  switch (now().instruction.mnemonic) {
    case ZYDIS_MNEMONIC_ADD: return domain_->add(a, b);
    case ZYDIS_MNEMONIC_SUB: return domain_->sub(a, b);
    case ZYDIS_MNEMONIC_AND:
      return known ? deposited_data(extracted_data(a, *known), *known) : domain_->bit_and(a, b);
    case ZYDIS_MNEMONIC_ANDN: {
      const auto left_out = D::value_of(a);
      if (!left_out) return domain_->bit_and(D::bit_not(a), b);
      const uint64_t kept = ~*left_out & low_bits(width);
      return deposited_data(extracted_data(b, kept), kept);
    }
    case ZYDIS_MNEMONIC_OR: return domain_->or_of_parts(a, b);
    case ZYDIS_MNEMONIC_XOR: return domain_->bit_xor(a, b);
    default: break;
  }
  if (!known) return std::nullopt;
  const Bits count = domain_->constant(width, *known & (width == 64 ? 63 : 31));
  switch (now().instruction.mnemonic) {
    case ZYDIS_MNEMONIC_SHL:
    case ZYDIS_MNEMONIC_SHLX: return domain_->shift_left(a, count);
    case ZYDIS_MNEMONIC_SHR:
    case ZYDIS_MNEMONIC_SHRX: return domain_->shift_right(a, count);
    case ZYDIS_MNEMONIC_SAR: return domain_->shift_right_signed(a, count);
    case ZYDIS_MNEMONIC_BZHI:
      if ((*known & 0xff) >= static_cast<uint64_t>(width)) return a;
      return extracted_data(a, (uint64_t{1} << (*known & 0xff)) - 1);
    case ZYDIS_MNEMONIC_PEXT: return extracted_data(a, *known);
    case ZYDIS_MNEMONIC_PDEP: return deposited_data(a, *known);
    default: return std::nullopt;
  }
}

template <class D>
Result<Scalar<D>> Machine<D>::combined(const Scalar<D>& a, const Scalar<D>& b) {
  if (a.is_number() && b.is_number()) {
    const auto word = combined_words(a, b);
    if (!word) return unknown("a result that is not linear in the index");
    Scalar<D> result = Scalar<D>::number(a.width, word->value);
    result.word.slope = word->slope;
    return result;
  }
  const bool grows = (a.is_number() && a.word.slope != 0) || (b.is_number() && b.word.slope != 0);
  if (grows) return unknown("data is combined with a number that grows with the index");
  Bits second = b.bits(*domain_);
  const int width = a.width;
  if (D::width(second) < width) second = domain_->extend_sign(second, width);
  if (D::width(second) > width) second = domain_->extract(second, 0, width);
  const auto bits = combined_data(a.bits(*domain_), second);
  if (!bits) return unknown("no meaning on data");
  return Scalar<D>::of(*bits);
}

template <class D>
Status Machine<D>::arithmetic() {
  const auto& operands = now().operands;
  const ZydisMnemonic mnemonic = now().instruction.mnemonic;
  const bool has_three = now().instruction.operand_count_visible == 3;
  const auto a = read(operands[has_three ? 1 : 0]);
  if (!a) return a.error();
  const auto b = read(operands[has_three ? 2 : 1]);
  if (!b) return b.error();
  const bool is_same = operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
                       operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
                       operands[0].reg.value == operands[1].reg.value;
  if (mnemonic == ZYDIS_MNEMONIC_XOR && is_same) {
    flags_ = {.zero = true, .sign = false, .carry = false, .overflow = false};
    return write(operands[0], Scalar<D>::number(a->width, 0));
  }
  const auto result = combined(*a, *b);
  if (!result) return result.error();
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_SUB: flags_ = flags_of_difference(*a, *b); break;
    case ZYDIS_MNEMONIC_AND:
    case ZYDIS_MNEMONIC_ANDN:
    case ZYDIS_MNEMONIC_OR:
    case ZYDIS_MNEMONIC_XOR: flags_ = flags_of_result(*result, true); break;
    case ZYDIS_MNEMONIC_SHLX:
    case ZYDIS_MNEMONIC_SHRX:
    case ZYDIS_MNEMONIC_PEXT:
    case ZYDIS_MNEMONIC_PDEP: break;
    default: flags_ = flags_of_result(*result, false); break;
  }
  return write(operands[0], *result);
}

template <class D>
Status Machine<D>::swap_bytes() {
  const auto value = read(now().operands[0]);
  if (!value) return value.error();
  if (value->is_number() && !value->is_constant()) {
    return unknown("a result that is not linear in the index");
  }
  std::array<Byte, 8> bytes;
  const auto count = static_cast<size_t>(value->width / 8);
  domain_->split(value->bits(*domain_), bytes.data());
  std::reverse(bytes.data(), bytes.data() + count);
  return write(now().operands[0],
               Scalar<D>::of(domain_->join(bytes.data(), static_cast<int>(count))));
}

template <class D>
Status Machine<D>::multiply() {
  const auto& operands = now().operands;
  const bool has_three = now().instruction.operand_count_visible == 3;
  const auto a = read(operands[has_three ? 1 : 0]);
  if (!a) return a.error();
  const auto b = read(operands[has_three ? 2 : 1]);
  if (!b) return b.error();
  if (!a->is_number() || !b->is_number()) return unknown("no meaning on data");
  const auto word = product(a->word, b->word);
  if (!word) return unknown("a result that is not linear in the index");
  Scalar<D> result = Scalar<D>::number(a->width, word->value);
  result.word.slope = word->slope;
  flags_ = {};
  return write(operands[0], result);
}

/// Unsigned, of RDX:RAX whose upper half is 0. A number that grows by multiples of the divisor has
/// one remainder.
template <class D>
Status Machine<D>::divide() {
  constexpr size_t rax = 0;
  constexpr size_t rdx = 2;
  const auto by = read(now().operands[0]);
  if (!by) return by.error();
  const Scalar<D> dividend = general_[rax];
  const Scalar<D> upper = general_[rdx];
  const bool are_numbers = by->is_constant() && dividend.is_number() && upper.is_constant();
  if (!are_numbers || by->width < 32) return unknown("no meaning on data");
  const bool is_cut = dividend.word.value != (dividend.word.value & low_bits(by->width)) ||
                      (by->width < 64 && dividend.word.slope != 0);
  if (is_cut) return unknown("a dividend of more bits than the divisor");
  if (upper.word.value != 0 || by->word.value == 0) return unknown("the quotient does not fit");
  const auto divisor = static_cast<int64_t>(by->word.value);
  if (dividend.word.slope % divisor != 0)
    return unknown("a result that is not linear in the index");
  general_[rax] = Scalar<D>::number(64, dividend.word.value / by->word.value);
  general_[rax].word.slope = dividend.word.slope / divisor;
  general_[rdx] = Scalar<D>::number(64, dividend.word.value % by->word.value);
  flags_ = {};
  return {};
}

// ---- moves

template <class D>
Status Machine<D>::move() {
  const auto& operands = now().operands;
  auto value = read(operands[1]);
  if (!value) return value.error();
  const int width = operands[0].size;
  const bool by_sign = now().instruction.mnemonic == ZYDIS_MNEMONIC_MOVSXD ||
                       now().instruction.mnemonic == ZYDIS_MNEMONIC_MOVSX;
  if (value->width < width) {
    if (value->is_constant() || !value->is_number()) {
      const Bits bits = value->bits(*domain_);
      *value = Scalar<D>::of(by_sign ? domain_->extend_sign(bits, width)
                                     : domain_->extend_zero(bits, width));
    }
    value->width = width;
  }
  return write(operands[0], *value);
}

template <class D>
Status Machine<D>::mxcsr(bool loads) {
  if (!loads) return write(now().operands[0], Scalar<D>::number(32, mxcsr_));
  const auto value = read(now().operands[0]);
  if (!value) return value.error();
  if (!value->is_constant()) return unknown("MXCSR depends on data");
  // Given back to a caller it may say anything.
  constexpr uint64_t flushes_denormals = 0x8040;
  const bool flushes = (value->word.value & flushes_denormals) != 0;
  if (flushes && value->word.value != mxcsr_at_entry_) return unknown("no meaning with FTZ or DAZ");
  mxcsr_ = static_cast<uint32_t>(value->word.value);
  return {};
}

template <class D>
Status Machine<D>::scalar() {
  const auto& operands = now().operands;
  switch (now().instruction.mnemonic) {
    case ZYDIS_MNEMONIC_NOP:
    case ZYDIS_MNEMONIC_ENDBR64:
    case ZYDIS_MNEMONIC_PREFETCHT0:
    case ZYDIS_MNEMONIC_PREFETCHT1:
    case ZYDIS_MNEMONIC_PREFETCHW:
    case ZYDIS_MNEMONIC_SFENCE: return {};
    case ZYDIS_MNEMONIC_LDMXCSR: return mxcsr(true);
    case ZYDIS_MNEMONIC_STMXCSR: return mxcsr(false);
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_MOVZX:
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVSXD: return move();
    case ZYDIS_MNEMONIC_LEA: {
      const Result<Word> address = address_of(operands[1]);
      if (!address) return address.error();
      Scalar<D> value = Scalar<D>::number(operands[0].size, address->value);
      value.word.slope = address->slope;
      return write(operands[0], value);
    }
    case ZYDIS_MNEMONIC_CMP: {
      const auto a = read(operands[0]);
      if (!a) return a.error();
      const auto b = read(operands[1]);
      if (!b) return b.error();
      flags_ = flags_of_difference(*a, *b);
      return {};
    }
    case ZYDIS_MNEMONIC_TEST: {
      const auto a = read(operands[0]);
      if (!a) return a.error();
      const auto b = read(operands[1]);
      if (!b) return b.error();
      Scalar<D> result = Scalar<D>::number(a->width, a->word.value & b->word.value);
      const bool is_same = a->word == b->word;
      if (is_same) result.word.slope = a->word.slope;
      // The index adds multiples of what the mask keeps.
      const uint64_t mask = b->word.value;
      const bool is_kept = b->is_constant() && mask < 0x80 &&
                           a->word.slope % static_cast<int64_t>(std::bit_ceil(mask + 1)) == 0;
      const bool are_numbers = a->is_number() && b->is_number() &&
                               (is_same || is_kept || (a->is_constant() && b->is_constant()));
      flags_ = are_numbers ? flags_of_result(result, true) : Flags{};
      return {};
    }
    case ZYDIS_MNEMONIC_INC:
    case ZYDIS_MNEMONIC_DEC: {
      auto value = read(operands[0]);
      if (!value) return value.error();
      if (!value->is_number()) return unknown("no meaning on data");
      const bool adds = now().instruction.mnemonic == ZYDIS_MNEMONIC_INC;
      value->word.value = (value->word.value + (adds ? 1 : ~uint64_t{0})) & low_bits(value->width);
      const auto carry = flags_.carry;
      flags_ = flags_of_result(*value, false);
      flags_.carry = carry;
      return write(operands[0], *value);
    }
    case ZYDIS_MNEMONIC_NEG:
    case ZYDIS_MNEMONIC_NOT: {
      const auto value = read(operands[0]);
      if (!value) return value.error();
      if (!value->is_constant()) return unknown("no meaning on data");
      const bool negates = now().instruction.mnemonic == ZYDIS_MNEMONIC_NEG;
      const uint64_t x = value->word.value;
      const auto result = Scalar<D>::number(value->width, negates ? -x : ~x);
      if (negates) flags_ = flags_of_result(result, false);
      return write(operands[0], result);
    }
    case ZYDIS_MNEMONIC_ADD:
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_AND:
    case ZYDIS_MNEMONIC_ANDN:
    case ZYDIS_MNEMONIC_OR:
    case ZYDIS_MNEMONIC_XOR:
    case ZYDIS_MNEMONIC_SHL:
    case ZYDIS_MNEMONIC_SHR:
    case ZYDIS_MNEMONIC_SAR:
    case ZYDIS_MNEMONIC_SHLX:
    case ZYDIS_MNEMONIC_SHRX:
    case ZYDIS_MNEMONIC_BZHI:
    case ZYDIS_MNEMONIC_PEXT:
    case ZYDIS_MNEMONIC_PDEP: return arithmetic();
    case ZYDIS_MNEMONIC_BSWAP: return swap_bytes();
    case ZYDIS_MNEMONIC_IMUL: return multiply();
    case ZYDIS_MNEMONIC_DIV: return divide();
    case ZYDIS_MNEMONIC_PUSH: return push(read_register(operands[0].reg.value));
    case ZYDIS_MNEMONIC_POP: {
      const auto value = pop();
      if (!value) return value.error();
      return write(operands[0], *value);
    }
    case ZYDIS_MNEMONIC_CALL: return call();
    case ZYDIS_MNEMONIC_RET: return return_();
    default: break;
  }
  const ZydisInstructionCategory category = now().instruction.meta.category;
  if (category == ZYDIS_CATEGORY_X87_ALU) return x87();
  if (category == ZYDIS_CATEGORY_COND_BR || category == ZYDIS_CATEGORY_UNCOND_BR) return branch();
  if (category == ZYDIS_CATEGORY_CMOV) return conditional_move();
  return unknown("no meaning");
}

template Status Machine<Numbers>::scalar();
template Status Machine<Symbols>::scalar();

}  // namespace castor::machine
