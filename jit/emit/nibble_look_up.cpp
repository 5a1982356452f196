// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/nibble_look_up.hpp"

#include <algorithm>
#include <functional>

#include "jit/emit/op_helpers.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

using Sixteen = NibbleTable::Sixteen;

constexpr int vector_bits = 256;
/// Added to an index with saturation: vpshufb gives 0 where that is 0x80 or more.
constexpr int none_from_sixteen_on = 0x70;

int byte_of(uint16_t entry, int byte) { return entry >> (8 * byte) & 0xff; }

bool has_byte(const Sixteen& entries, int byte) {
  return std::ranges::any_of(entries, [&](uint16_t entry) { return byte_of(entry, byte) != 0; });
}

std::vector<uint8_t> table_vector(const Sixteen& entries, int byte) {
  return vector_constant<uint8_t>(
      vector_bits, [&](int i) { return byte_of(entries[static_cast<size_t>(i % 16)], byte); });
}

/// The result's two bytes, each the exclusive or of what steps find.
class NibbleLookUp {
 public:
  NibbleLookUp(LaneEmitter& emitter, const NibbleTable& table, const Xmm& bytes, const Xmm& low,
               const Xmm& high)
      : emitter_(emitter), code_(emitter.code()), table_(table), bytes_(bytes), to_{low, high} {}

  void emit() {
    const OwnedVector owner = emitter_.scratch();
    const Xmm index = owner.as(vector_bits);
    emit_exceptions(index);
    emit_negative_zero(index);
    emit_halves(index);
    for (int byte = 0; byte < 2; ++byte) {
      if (!has_value_[byte]) emit_zero(emitter_, to_[byte]);
    }
  }

 private:
  Xbyak::Address repeated(int value) const {
    return code_.constant(repeated_constant<uint8_t>(vector_bits, value));
  }
  void emit_and_constant(const Xmm& to, const Xmm& from, int mask) {
    code_.vpand(to, from, repeated(mask));
  }

  /// Bits above the index do not count.
  void emit_halves(const Xmm& index) {
    Xmm moved = bytes_;
    OwnedVector owner;
    if (table_.shift != 0) {
      owner = emitter_.scratch();
      moved = owner.as(vector_bits);
      code_.vpaddb(moved, bytes_, repeated(table_.shift & 0xff));
    }
    emit_and_constant(index, moved, 0x0f);
    emit_step(table_.low, index);
    code_.vpsrlw(index, moved, 4);
    emit_and_constant(index, index, (1 << (table_.index_bits - 4)) - 1);
    emit_step(table_.high, index);
  }

  void emit_exceptions(const Xmm& index) {
    if (!has_byte(table_.exceptions, 0) && !has_byte(table_.exceptions, 1)) return;
    Xmm from = bytes_;
    const auto emit_to_index = [&](auto mnemonic, int constant) {
      (code_.*mnemonic)(index, from, repeated(constant));
      from = index;
    };
    if (table_.offset != 0) emit_to_index(&Assembler::vpaddb, table_.offset);
    if (table_.mask != 0xff) emit_to_index(&Assembler::vpand, table_.mask);
    emit_to_index(&Assembler::vpaddusb, none_from_sixteen_on);
    emit_step(table_.exceptions, index);
  }

  void emit_negative_zero(const Xmm& index) {
    if (table_.negative_zero == 0) return;
    code_.vpcmpeqb(index, bytes_, repeated(table_.sign()));
    for (int byte = 0; byte < 2; ++byte) {
      const int difference = byte_of(table_.negative_zero, byte);
      if (difference == 0) continue;
      emit_combine(byte, [&](const Xmm& to) { emit_and_constant(to, index, difference); });
    }
  }

  void emit_step(const Sixteen& entries, const Xmm& index) {
    for (int byte = 0; byte < 2; ++byte) {
      if (!has_byte(entries, byte)) continue;
      OwnedVector fallback;
      const Xmm table = emitter_.vector(table_vector(entries, byte), fallback);
      emit_combine(byte, [&](const Xmm& to) { code_.vpshufb(to, ymm(table), index); });
    }
  }

  void emit_combine(int byte, const std::function<void(const Xmm& to)>& emit_found) {
    if (!has_value_[byte]) {
      has_value_[byte] = true;
      return emit_found(to_[byte]);
    }
    const OwnedVector work = emitter_.scratch();
    const Xmm found = work.as(vector_bits);
    emit_found(found);
    code_.vpxor(to_[byte], to_[byte], found);
  }

  LaneEmitter& emitter_;
  Assembler& code_;
  const NibbleTable& table_;
  const Xmm bytes_;
  const Xmm to_[2];
  bool has_value_[2] = {false, false};
};

}  // namespace

void reserve_nibble_table(LaneEmitter& emitter, const NibbleTable& table) {
  for (const Sixteen* entries : {&table.exceptions, &table.low, &table.high}) {
    for (int byte = 0; byte < 2; ++byte) {
      if (has_byte(*entries, byte)) emitter.reserve_vector(table_vector(*entries, byte));
    }
  }
}

void emit_look_up_by_nibbles(LaneEmitter& emitter, const NibbleTable& table, const Xmm& bytes,
                             const Xmm& low, const Xmm& high) {
  NibbleLookUp(emitter, table, bytes, low, high).emit();
}

}  // namespace castor::jit
