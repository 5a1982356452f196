// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/saturated_bytes.hpp"

#include "jit/emit/byte_table.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

std::vector<uint8_t> bytes_of(const LaneEmitter& emitter, int value) {
  return repeated_constant<uint8_t>(emitter.target().vector_bits(), value);
}

/// The index of tables of 16: vpshufb gives 0 for a negative one.
constexpr int low_bits = 0xf;

/// What packs clamp to bytes; lanes of 64 bits are cut, which they do not.
Narrowing narrowing_to_bytes(const LaneInst& store) {
  switch (store.narrowing) {
    case Narrowing::look_up_u8: return Narrowing::fits_unsigned;
    case Narrowing::look_up_i8:
      return bits_of(store.type) == 64 ? Narrowing::fits_signed : Narrowing::saturate_to_signed;
    default: return store.narrowing;
  }
}

}  // namespace

SaturatedBytes::SaturatedBytes(const LaneInst& store, ElementType element,
                               const LaneProgram& program)
    : narrowing_(narrowing_to_bytes(store)) {
  if (looks_up_bytes(store.narrowing)) {
    table_ = &program.tables[static_cast<size_t>(store.table)];
    if (store.narrowing != Narrowing::look_up_i8) return;
    const bool is_unclamped = bits_of(store.type) < 64 && table_->index_bits < 8;
    if (is_unclamped) add_range_of(table_->index_bits, true);
    if (has_zero_of_negative(*table_)) {
      if (is_unclamped) limits_.pop_back();
    } else {
      is_masked_ = table_->index_bits == 4;
    }
  } else if (is_sub_byte(element) && is_integer(element)) {
    if (narrowing_ == Narrowing::saturate_to_signed) add_range_of(bits_of(element), true);
    if (narrowing_ == Narrowing::saturate_to_unsigned) add_range_of(bits_of(element), false);
  }
}

void SaturatedBytes::add_range_of(int bits, bool is_signed) {
  if (!is_signed) return limits_.push_back({CASTOR_BINARY(vpminub), (1 << bits) - 1});
  const int largest = (1 << (bits - 1)) - 1;
  limits_.push_back({CASTOR_BINARY(vpminsb), largest});
  limits_.push_back({CASTOR_BINARY(vpmaxsb), ~largest & 0xff});
}

void SaturatedBytes::reserve_constants(LaneEmitter& emitter) const {
  for (const Limit& limit : limits_) emitter.reserve_vector(bytes_of(emitter, limit.value));
  if (is_masked_) emitter.reserve_vector(bytes_of(emitter, low_bits));
  if (table_ != nullptr) reserve_byte_look_up(emitter, *table_);
}

void SaturatedBytes::emit(LaneEmitter& emitter, OwnedVector& bytes, int bits) const {
  const Xmm clamped = bytes.as(bits);
  for (const Limit& limit : limits_) {
    OwnedVector fallback;
    const Xmm value = emitter.vector(bytes_of(emitter, limit.value), fallback);
    limit.mnemonic(emitter.code(), clamped, clamped, vector_register(value.getIdx(), bits));
  }
  if (table_ == nullptr) return;
  if (is_masked_) {
    OwnedVector fallback;
    const Xmm mask = emitter.vector(bytes_of(emitter, low_bits), fallback);
    emit_and(emitter, clamped, clamped, vector_register(mask.getIdx(), bits));
  }
  OwnedVector codes = emitter.scratch();
  emit_look_up_bytes(emitter, *table_, clamped, codes.as(bits));
  bytes = std::move(codes);
}

}  // namespace castor::jit
