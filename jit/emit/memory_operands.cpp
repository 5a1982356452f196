// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/memory_operands.hpp"

#include <bit>

#include "jit/emit/byte_table.hpp"
#include "jit/emit/class_encoder.hpp"
#include "jit/emit/e5m2_encoder.hpp"
#include "jit/emit/e5m2_encoder_avx2.hpp"
#include "jit/emit/f4_encoder.hpp"
#include "jit/emit/fnuz_encoder.hpp"
#include "jit/emit/nf4_encoder.hpp"
#include "jit/emit/nine_bit_encoder.hpp"
#include "jit/emit/power_encoder.hpp"
#include "jit/emit/resize_ops.hpp"
#include "jit/emit/signed_code_encoder.hpp"
#include "jit/emit/threshold_encoder.hpp"

namespace castor::jit {

namespace {

/// Stores a whole chunk; past the caches only where the code has aligned it.
void emit_store_whole(Assembler& code, const Xbyak::Address& to, const Xmm& from, int bits,
                      Stores stores) {
  if (stores == Stores::streaming && bits >= 128) {
    code.vmovntps(to, from);
  } else {
    emit_move_whole(code, to, from, bits);
  }
}

/// How lanes become elements, or the 16-bit lanes that are to be encoded.
Narrowing narrowing_to_16_bits(Narrowing narrowing) {
  switch (narrowing) {
    case Narrowing::encode_16_bits:
    case Narrowing::encode_by_class:
    case Narrowing::look_up_9_bits:
    case Narrowing::f16_to_f4:
    case Narrowing::bf16_to_f4:
    case Narrowing::f16_to_nf4:
    case Narrowing::bf16_to_nf4:
    case Narrowing::bf16_to_power:
    case Narrowing::fnuz_code:
    case Narrowing::bf16_to_fnuz:
    case Narrowing::f16_to_e5m2fnuz:
    case Narrowing::f16_to_e5m2: return Narrowing::truncate;
    case Narrowing::high_half_to_power:
    case Narrowing::encode_high_half: return Narrowing::high_half;
    default: return narrowing;
  }
}

/// The encoder of a store; null where it has none.
std::unique_ptr<Encoder> encoder_of(const LaneInst& store, ElementType element,
                                    const LaneProgram& program, const Target& target) {
  switch (store.narrowing) {
    case Narrowing::encode_16_bits:
    case Narrowing::encode_high_half:
      return std::make_unique<ThresholdEncoder>(
          program.threshold_tables[static_cast<size_t>(store.table)]);
    case Narrowing::encode_by_class:
      return std::make_unique<ClassEncoder>(program.class_tables[static_cast<size_t>(store.table)]);
    case Narrowing::look_up_9_bits:
      return std::make_unique<NineBitEncoder>(program.tables[static_cast<size_t>(store.table)]);
    case Narrowing::signed_code: return std::make_unique<SignedCodeEncoder>(element);
    case Narrowing::f16_to_f4: return std::make_unique<F4Encoder>(ElementType::f16);
    case Narrowing::bf16_to_f4: return std::make_unique<F4Encoder>(ElementType::bf16);
    case Narrowing::f16_to_nf4: return std::make_unique<Nf4Encoder>(ElementType::f16);
    case Narrowing::bf16_to_nf4: return std::make_unique<Nf4Encoder>(ElementType::bf16);
    case Narrowing::bf16_to_fnuz: return std::make_unique<Bf16FnuzEncoder>(element);
    case Narrowing::fnuz_code: return std::make_unique<FnuzEncoder>();
    case Narrowing::f16_to_e5m2fnuz: return std::make_unique<E5m2FnuzEncoder>();
    case Narrowing::bf16_to_power:
    case Narrowing::high_half_to_power: return std::make_unique<PowerEncoder>();
    case Narrowing::f16_to_e5m2:
      if (!target.has_avx512()) return std::make_unique<E5m2EncoderAvx2>();
      return std::make_unique<E5m2Encoder>();
    default: return nullptr;
  }
}

}  // namespace

Xbyak::Address address_of(Assembler& code, const ChunkAddress& chunk) {
  if (chunk.scale == 0) return code.ptr[chunk.base + chunk.displacement];
  return code.ptr[chunk.base + chunk.index * chunk.scale + chunk.displacement];
}

void MemorySource::reserve_constants(LaneEmitter& emitter) {
  if (!is_sub_byte(element_)) return;
  unpacker_.emplace(emitter.target(), element_);
  unpacker_->reserve_constants(emitter);
}

void emit_load_lanes(LaneEmitter& emitter, const Xmm& to, const Xbyak::Address& from,
                     ElementType element, int lane_bits) {
  Assembler& code = emitter.code();
  const int element_bits = lane_bits_of(element);
  if (element_bits == lane_bits) {
    return emit_move_whole(code, to, from, emitter.lanes() * element_bits);
  }
  const LoadMnemonic extend = extension(element_bits, lane_bits, is_signed_integer(element));
  if (emitter.lanes() * lane_bits >= 128) return extend(code, to, from);
  // From memory the instruction would read the elements of a whole register.
  emit_move_whole(code, to, from, emitter.lanes() * element_bits);
  extend(code, to, to);
}

void emit_load_lanes_masked(LaneEmitter& emitter, const Xmm& to, const Xbyak::Address& from,
                            ElementType element, int lane_bits) {
  const int element_bits = lane_bits_of(element);
  if (element_bits == lane_bits) return emit_move_masked(emitter.code(), to, from, element_bits);
  extension(element_bits, lane_bits, is_signed_integer(element))(emitter.code(), to, from);
}

/// later = the tail's mask from an element on.
static void emit_mask_from(Assembler& code, const Xbyak::Opmask& later, int element) {
  code.kshiftrq(later, tail_mask, static_cast<uint8_t>(element));
}

void MemorySource::emit_load(LaneEmitter& emitter, const LaneInst& inst, const Xmm& to) {
  ChunkAddress chunk = locator_.emit_chunk_address(operand_, 0);
  const int lane_bits = bits_of(inst.type);
  const int elements_before = (emitter.half() + inst.chunk) * emitter.lanes();
  chunk.displacement += elements_before * lane_bits_of(element_) / 8;
  const Xbyak::Address from = address_of(emitter.code(), chunk);
  if (unpacker_ && chunk.mode == ChunkMode::whole) return unpacker_->emit_unpack(emitter, from, to);
  if (chunk.mode != ChunkMode::masked)
    return emit_load_lanes(emitter, to, from, element_, lane_bits);
  const auto emit_masked = [&](const Xbyak::Opmask& mask) {
    if (divides_ && element_ == ElementType::f32) {
      emitter.code().vbroadcastss(to, emitter.code().constant_of(std::bit_cast<uint32_t>(1.0f)));
      return emit_load_lanes_masked(emitter, to | mask, from, element_, lane_bits);
    }
    emit_load_lanes_masked(emitter, to | mask | Xbyak::util::T_z, from, element_, lane_bits);
  };
  if (elements_before == 0) return emit_masked(tail_mask);
  const OwnedMask later = emitter.scratch_mask();
  emit_mask_from(emitter.code(), later.get(), elements_before);
  emit_masked(later.get());
}

void MemorySink::reserve_constants(LaneEmitter& emitter) {
  if (table_ != nullptr) return reserve_element_table(emitter, *table_, store_.narrowing);
  if (is_sub_byte(element_)) {
    bit_packer_.emplace(emitter.target(), element_);
    bit_packer_->reserve_constants(emitter);
  }
  encoder_ = encoder_of(store_, element_, emitter.program(), emitter.target());
  if (encoder_) encoder_->reserve_constants(emitter);
  saturated_.reserve_constants(emitter);
  packs_ = packs_ && needs_packing(store_, element_, emitter.lanes(), emitter.target());
  if (!packs_) return;
  const int bits = encoder_ ? 16 : lane_bits_of(element_);
  packer_ = Packer(emitter, bits_of(store_.type), bits,
                   encoder_ ? narrowing_to_16_bits(store_.narrowing) : saturated_.narrowing());
  packer_.reserve_constants(emitter);
  if (store_.b == no_lane) return;
  sign_packer_ = Packer(emitter, bits_of(store_.type), bits, Narrowing::saturate_to_signed);
  packer_.leave_order();
  sign_packer_.leave_order();
  code_signs_.reserve_constants(emitter, bits);
}

void MemorySink::set_store(const LaneInst& inst, const LaneProgram& program) {
  store_ = inst;
  code_signs_ = CodeSigns(element_);
  saturated_ = SaturatedBytes(inst, element_, program);
  if (looks_up(inst.narrowing)) table_ = &program.tables[static_cast<size_t>(inst.table)];
}

/// Whether the encoder packs codes in the mode that chunks are in.
bool MemorySink::makes_nibbles() const {
  return encoder_ && encoder_->makes_nibbles() && locator_.mode(operand_) == ChunkMode::whole;
}

/// Adds a chunk. True when that completes a vector of bytes or elements, which is then in `full`.
bool MemorySink::emit_collect(LaneEmitter& emitter, const LaneInst& inst, OwnedVector& full) {
  OwnedVector packed;
  OwnedVector signs;
  if (inst.b != no_lane) sign_packer_.emit_push(emitter, emitter.take(inst.b), signs);
  if (!packer_.emit_push(emitter, emitter.take(inst.a), packed)) return false;
  if (!encoder_) {
    full = std::move(packed);
    const int bits = emitter.target().vector_bits();
    if (inst.b != no_lane) {
      code_signs_.emit(emitter, full.as(bits), signs.as(bits), 8);
      packer_.emit_restore_order(emitter, full);  // once, of both
    }
    saturated_.emit(emitter, full, bits);
    return true;
  }
  if (!first_vector_) {
    first_vector_.emplace(std::move(packed));
    return false;
  }
  const int bits = emitter.target().vector_bits();
  const Xmm first = first_vector_->as(bits);
  full = makes_nibbles() ? encoder_->emit_encode_nibbles(emitter, first, packed.as(bits))
                         : encoder_->emit_encode(emitter, first, packed.as(bits));
  first_vector_.reset();
  return true;
}

/// Stores a whole vector of elements; sub-byte elements, except in tiles, as their packed bytes.
void MemorySink::emit_store_vector(LaneEmitter& emitter, const ChunkAddress& to, OwnedVector full) {
  Assembler& code = emitter.code();
  const int bits = emitter.target().vector_bits();
  const Xbyak::Address address = address_of(code, to);
  const bool as_bytes = to.mode == ChunkMode::tiled;
  if (!bit_packer_ || as_bytes) {
    const Stores stores = as_bytes ? Stores::cached : locator_.stores();
    return emit_store_whole(code, address, full.as(bits), bits, stores);
  }
  if (makes_nibbles()) {
    constexpr int packed_bits = 256;
    const bool streams = has_streaming_stores(emitter.target(), element_);
    return emit_store_whole(code, address, full.as(packed_bits), packed_bits,
                            streams ? locator_.stores() : Stores::cached);
  }
  const bool clean = store_.narrowing == Narrowing::fits_unsigned ||
                     store_.narrowing == Narrowing::saturate_to_unsigned ||
                     encodes(store_.narrowing);
  bit_packer_->emit_store(emitter, address, full.as(bits), clean,
                          locator_.stores() == Stores::streaming);
}

/// Looks up a chunk of bytes, which gives several vectors of elements, and stores these.
void MemorySink::emit_store_looked_up(LaneEmitter& emitter, const LaneInst& inst) {
  const int element_bits = bits_of(element_);
  const std::vector<OwnedVector> vectors =
      emit_look_up_elements(emitter, *table_, inst.narrowing, element_bits, emitter.use(inst.a));
  Assembler& code = emitter.code();
  ChunkAddress chunk = locator_.emit_chunk_address(operand_, 0);
  const int bits = emitter.target().vector_bits();
  for (const OwnedVector& vector : vectors) {
    const Xbyak::Address to = address_of(code, chunk);
    if (chunk.mode == ChunkMode::masked) {
      // The mask of a vector's elements is the lower part of what is left of the chunk's.
      emit_move_masked(code, to | tail_mask, vector.as(bits), element_bits);
      code.kshiftrq(tail_mask, tail_mask, static_cast<uint8_t>(bits / element_bits));
    } else {
      const Stores stores = chunk.mode == ChunkMode::whole ? locator_.stores() : Stores::cached;
      emit_store_whole(code, to, vector.as(bits), bits, stores);
    }
    chunk.displacement += bits / 8;
  }
}

/// Narrows a chunk of Narrowing::magnitude_code.
OwnedVector MemorySink::emit_one_chunk_of_codes(LaneEmitter& emitter, const LaneInst& inst) const {
  const int lane_bits = bits_of(inst.type);
  OwnedVector narrowed = emitter.scratch();
  const Xmm value = emitter.use(inst.a);
  const Xmm codes = narrowed.as(width_of(value));
  emitter.code().vpsrld(codes, value, 8);
  if (inst.b != no_lane) {
    const OwnedVector signs = emitter.take(inst.b);
    code_signs_.emit(emitter, codes, signs.as(width_of(value)), lane_bits);
  }
  emit_truncate(emitter, narrowed.as(emitter.lanes() * 8), codes, lane_bits, 8);
  return narrowed;
}

/// Narrows a chunk's lanes to its elements, in the low part of a register.
OwnedVector MemorySink::emit_one_chunk(LaneEmitter& emitter, const LaneInst& inst) const {
  if (inst.narrowing == Narrowing::magnitude_code) return emit_one_chunk_of_codes(emitter, inst);
  const int lane_bits = bits_of(inst.type);
  OwnedVector narrowed = emitter.scratch();
  const Xmm value = emitter.use(inst.a);
  if (!encoder_) {
    emit_narrow_one(emitter, narrowed, value, lane_bits, lane_bits_of(element_),
                    saturated_.narrowing());
    saturated_.emit(emitter, narrowed, std::max(128, emitter.lanes() * lane_bits_of(element_)));
    return narrowed;
  }
  Xmm floats = value;
  if (lane_bits != 16 && inst.narrowing != Narrowing::signed_code) {
    emit_narrow_one(emitter, narrowed, value, lane_bits, 16, narrowing_to_16_bits(inst.narrowing));
    floats = narrowed.as(emitter.lanes() * 16);
  }
  return encoder_->emit_encode_one(emitter, floats);
}

void MemorySink::emit_store(LaneEmitter& emitter, const LaneInst& inst) {
  if (table_ != nullptr) return emit_store_looked_up(emitter, inst);
  const int element_bits = lane_bits_of(element_);
  const int lane_bits = bits_of(inst.type);
  Assembler& code = emitter.code();
  const ChunkMode mode = locator_.mode(operand_);
  if (packs_ && (mode == ChunkMode::whole || mode == ChunkMode::tiled)) {
    OwnedVector full;
    if (!emit_collect(emitter, inst, full)) return;
    const int chunks = packer_.chunks() * (encoder_ ? 2 : 1);
    return emit_store_vector(
        emitter, locator_.emit_chunk_address(operand_, chunks - 1 - inst.chunk), std::move(full));
  }
  if (bit_packer_ && mode == ChunkMode::whole) {
    OwnedVector codes = emitter.take(inst.a);
    return emit_store_vector(emitter, locator_.emit_chunk_address(operand_, 0), std::move(codes));
  }
  OwnedVector narrowed;
  Xmm value = emitter.use(inst.a);
  if (lane_bits != element_bits) {
    narrowed = emit_one_chunk(emitter, inst);
    value = narrowed.as(emitter.lanes() * element_bits);
  }
  const ChunkAddress chunk = locator_.emit_chunk_address(operand_, -inst.chunk);
  const Xbyak::Address to = address_of(code, chunk);
  if (chunk.mode == ChunkMode::masked && inst.chunk > 0) {
    const OwnedMask later = emitter.scratch_mask();
    emit_mask_from(code, later.get(), inst.chunk * emitter.lanes());
    emit_move_masked(code, to | later.get(), value, element_bits);
  } else if (chunk.mode == ChunkMode::masked) {
    emit_move_masked(code, to | tail_mask, value, element_bits);
  } else {
    const int bits = emitter.lanes() * element_bits;
    const Stores stores = chunk.mode == ChunkMode::whole ? locator_.stores() : Stores::cached;
    emit_store_whole(code, to, vector_register(value.getIdx(), bits), bits, stores);
  }
}

}  // namespace castor::jit
