// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/broadcast_operands.hpp"

#include "jit/emit/resize_ops.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

/// Loads one element into every lane of its width.
void emit_broadcast(Assembler& code, const Xmm& to, const Xbyak::Address& from, int bits) {
  switch (bits) {
    case 8: return code.vpbroadcastb(to, from);
    case 16: return code.vpbroadcastw(to, from);
    case 32: return code.vpbroadcastd(to, from);
    default: return code.vpbroadcastq(to, from);
  }
}

/// A register of `bits` bits, at least of 128.
Xmm at_least_128(const Xmm& vector, int bits) {
  return vector_register(vector.getIdx(), std::max(bits, 128));
}

Xbyak::Zmm whole(const Xmm& vector) { return Xbyak::Zmm(vector.getIdx()); }

/// Permutes the lanes of `from` by the numbers in the lanes of `order`.
void emit_permute(Assembler& code, const Xmm& to, const Xmm& order, const Xmm& from,
                  int lane_bits) {
  switch (lane_bits) {
    case 8: return code.vpermb(to, order, from);
    case 16: return code.vpermw(to, order, from);
    case 32: return code.vpermd(whole(to), whole(order), whole(from));
    default: return code.vpermq(whole(to), whole(order), whole(from));
  }
}

}  // namespace

void emit_broadcast_element(LaneEmitter& emitter, const Xmm& to, const Xbyak::Address& from,
                            ElementType element, int lane_bits) {
  Assembler& code = emitter.code();
  const int element_bits = bits_of(element);
  const Xmm lanes = at_least_128(to, emitter.lanes() * lane_bits);
  if (element_bits == lane_bits) return emit_broadcast(code, lanes, from, lane_bits);
  const Xmm elements = at_least_128(to, emitter.lanes() * element_bits);
  emit_broadcast(code, elements, from, element_bits);
  extension(element_bits, lane_bits, is_signed_integer(element))(code, to, elements);
}

void UniformSource::emit_load(LaneEmitter& emitter, const LaneInst& inst, const Xmm& to) {
  Assembler& code = emitter.code();
  const int lane_bits = bits_of(inst.type);
  const Xmm lanes = at_least_128(to, emitter.lanes() * lane_bits);
  if (is_sub_byte(element_)) {
    return emit_broadcast(code, lanes, code.ptr[gpr::stack + frame_.staging_offset(operand_)],
                          lane_bits);
  }
  emit_broadcast_element(emitter, to, code.ptr[frame_.emit_pointer(operand_)], element_, lane_bits);
}

/// Whether each chunk of the main loop is in one period.
bool RepeatedSource::reads_one_element(const LaneEmitter& emitter) const {
  return baked_period_ > 0 && baked_period_ % emitter.lanes() == 0;
}

/// scratch = a bit for each of the chunk's periods: one more than the number, counted from the
/// chunk's first period, of the one that its last element belongs to.
void RepeatedSource::emit_select_periods(LaneEmitter& emitter) const {
  Assembler& code = emitter.code();
  code.mov(gpr::scratch, period_numbers_);
  if (locator_.mode(operand_) == ChunkMode::whole) {
    code.movzx(gpr::counter.cvt32(), code.byte[gpr::scratch + gpr::phase + (emitter.lanes() - 1)]);
  } else {
    code.add(gpr::scratch, gpr::phase);
    code.mov(gpr::counter, frame_.chunk_count());
    code.movzx(gpr::counter.cvt32(), code.byte[gpr::scratch + gpr::counter - 1]);
  }
  code.inc(gpr::counter.cvt32());
  code.or_(gpr::scratch, -1);
  code.bzhi(gpr::scratch, gpr::scratch, gpr::counter);
}

void RepeatedSource::reserve_constants(LaneEmitter& emitter) {
  if (reads_one_element(emitter)) return;
  for (const LaneInst& inst : emitter.program().code) {
    if (inst.op != LaneOp::load || static_cast<size_t>(inst.imm) != operand_) continue;
    for (int chunk = 0; chunk < baked_period_; ++chunk) {
      emitter.reserve_vector(order(emitter, bits_of(inst.type), int64_t{chunk} * emitter.lanes()));
    }
  }
}

/// The order that permutes source elements, one per lane of a chunk, to the lanes of the chunk that
/// begins with that element of an iteration.
std::vector<uint8_t> RepeatedSource::order(const LaneEmitter& emitter, int lane_bits,
                                           int64_t element) const {
  const int lanes = emitter.lanes();
  const int64_t first = element % (int64_t{lanes} * baked_period_);
  return lanes_constant(lane_bits, std::max(lane_bits * lanes, 128), [&](int lane) {
    return lane < lanes ? static_cast<int>((first + lane) / baked_period_) : 0;
  });
}

void RepeatedSource::emit_load(LaneEmitter& emitter, const LaneInst& inst, const Xmm& to) {
  const bool in_main_loop = locator_.mode(operand_) == ChunkMode::whole;
  if (in_main_loop && reads_one_element(emitter)) {
    const int64_t number = locator_.element_of_iteration() / baked_period_;
    const Xbyak::Address from =
        emitter.code().ptr[frame_.emit_pointer(operand_) + gpr::period * (bits_of(element_) / 8) +
                           static_cast<size_t>(number * bits_of(element_) / 8)];
    return emit_broadcast_element(emitter, to, from, element_, bits_of(inst.type));
  }
  if (baked_period_ > 0 && in_main_loop) return emit_load_by_order(emitter, bits_of(inst.type), to);
  emit_load_by_table(emitter, bits_of(inst.type), to);
}

/// Loads the elements of `baked_period_` chunks, which have one element per lane of a chunk, and
/// permutes them to the lanes of this chunk.
void RepeatedSource::emit_load_by_order(LaneEmitter& emitter, int lane_bits, const Xmm& to) {
  Assembler& code = emitter.code();
  const int element_bits = bits_of(element_);
  const int64_t element = locator_.element_of_iteration();
  const int64_t first = element / (int64_t{emitter.lanes()} * baked_period_) * emitter.lanes();
  const Xbyak::Address from =
      code.ptr[frame_.emit_pointer(operand_) + gpr::period * (element_bits / 8) +
               static_cast<size_t>(first * element_bits / 8)];
  const Xmm vector = at_least_128(to, emitter.lanes() * lane_bits);
  OwnedVector fallback;
  emit_load_lanes(emitter, vector, from, element_, lane_bits);
  emit_permute(code, vector, emitter.vector(order(emitter, lane_bits, element), fallback), vector,
               lane_bits);
}

void RepeatedSource::emit_load_by_table(LaneEmitter& emitter, int lane_bits, const Xmm& to) {
  Assembler& code = emitter.code();
  const int element_bits = bits_of(element_);
  const OwnedMask mask = emitter.scratch_mask();
  emit_select_periods(emitter);
  code.kmovq(mask.get(), gpr::scratch);
  Xmm elements = to;
  elements.setOpmaskIdx(mask.get().getIdx());
  elements.setZero();
  const Xbyak::Address from =
      code.ptr[frame_.emit_pointer(operand_) + gpr::period * (element_bits / 8)];
  emit_load_lanes_masked(emitter, elements, from, element_, lane_bits);
  const OwnedVector by_table = emitter.scratch();
  const int bits = emitter.lanes() * lane_bits;
  const Xmm numbers = at_least_128(by_table.as(128), bits);
  code.mov(gpr::scratch, period_numbers_);
  const Xbyak::Address first = code.ptr[gpr::scratch + gpr::phase];
  if (lane_bits == 8) {
    code.vmovdqu8(numbers, first);
  } else {
    extension(8, lane_bits, false)(code, numbers, first);
  }
  emit_permute(code, at_least_128(to, bits), numbers, at_least_128(to, bits), lane_bits);
}

}  // namespace castor::jit
