// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/scalar_ops.hpp"

#include "jit/emit/control_flow.hpp"
#include "jit/emit/frame.hpp"
#include "jit/emit/op_helpers.hpp"

namespace castor::jit {

namespace {

using Xbyak::Reg64;

const Reg64 quotient(Xbyak::Operand::RAX);
const Reg64 remainder(Xbyak::Operand::RDX);

/// Both operands, lane by lane, on the stack; results overwrite a's lanes.
class LanesInMemory {
 public:
  LanesInMemory(LaneEmitter& emitter, LaneType type)
      : emitter_(emitter),
        lane_bits_(bits_of(type)),
        a_(emitter.scratch_slot()),
        b_(emitter.scratch_slot()) {}

  void emit_fill(const Xmm& a, const Xmm& b) {
    emitter_.code().vmovups(emitter_.address(a_), a);
    emitter_.code().vmovups(emitter_.address(b_), b);
  }
  // The lane that a register, or a number, counts.
  Xbyak::Address a(const Reg64& lane) const { return at(a_, lane * lane_bytes()); }
  Xbyak::Address b(const Reg64& lane) const { return at(b_, lane * lane_bytes()); }
  Xbyak::Address a(int lane) const { return at(a_, static_cast<size_t>(lane * lane_bytes())); }
  Xbyak::Address b(int lane) const { return at(b_, static_cast<size_t>(lane * lane_bytes())); }
  Xbyak::Address results() const { return emitter_.address(a_); }

 private:
  int lane_bytes() const { return lane_bits_ / 8; }
  template <class Offset>
  Xbyak::Address at(const OwnedSlot& slot, const Offset& offset) const {
    const Xbyak::RegExp address = emitter_.address(slot).getRegExp() + offset;
    return lane_bits_ == 32 ? emitter_.code().dword[address] : emitter_.code().qword[address];
  }

  LaneEmitter& emitter_;
  const int lane_bits_;
  const OwnedSlot a_;
  const OwnedSlot b_;
};

void emit_division(LaneEmitter& emitter, const LaneInst& inst, const Reg64& wanted) {
  Assembler& code = emitter.code();
  LanesInMemory lanes(emitter, inst.type);
  const Xmm a = emitter.use(inst.a);
  const Xmm b = emitter.use(inst.b);
  lanes.emit_fill(a, b);
  const OwnedSlot kept = emitter.scratch_slot();
  code.mov(emitter.address(kept), gpr::extent);  // which `div` overwrites
  for (int lane = 0; lane < emitter.lanes(); ++lane) {
    code.mov(quotient, lanes.a(lane));
    code.xor_(remainder.cvt32(), remainder.cvt32());
    code.div(lanes.b(lane));
    code.mov(lanes.a(lane), wanted);
  }
  code.mov(gpr::extent, emitter.address(kept));
  code.vmovups(emitter.define(), lanes.results());
}

/// fprem subtracts multiples of the divisor in steps, each exact; it is done when C2 is clear.
void emit_partial_remainders(Assembler& code) {
  constexpr uint8_t c2_of_high_byte = 0x04;
  emit_loop_while(code, Condition::not_equal, Jump::shortest, [&] {
    code.fprem();
    code.fnstsw(code.ax);
    code.test(code.ah, c2_of_high_byte);
  });
}

/// Overwrites `scratch`.
void emit_remainders(LaneEmitter& emitter, const LanesInMemory& lanes) {
  Assembler& code = emitter.code();
  const OwnedSlot environment = emitter.scratch_slot();
  const OwnedSlot kept = emitter.scratch_slot();
  const Reg64& lane = gpr::counter;
  code.mov(emitter.address(kept), lane);
  code.fnstenv(emitter.address(environment));
  code.fninit();  // exceptions masked
  code.mov(lane.cvt32(), emitter.lanes() - 1);
  emit_loop_while(code, Condition::not_negative, Jump::shortest, [&] {
    code.fld(lanes.b(lane));
    code.fld(lanes.a(lane));
    emit_partial_remainders(code);
    code.fstp(lanes.a(lane));
    code.fstp(code.st0);
    code.dec(lane);
  });
  code.fldenv(emitter.address(environment));
  code.mov(lane, emitter.address(kept));
}

/// AVX-512: compares and logic leave the bits above the chunk's lanes clear.
void emit_remainders_opmask(LaneEmitter& emitter, const LaneInst& inst) {
  Assembler& code = emitter.code();
  LanesInMemory lanes(emitter, inst.type);
  const Xmm a = emitter.use(inst.a);
  const Xmm b = emitter.use(inst.b);
  const Opmask mask = emitter.use_mask(inst.mask);
  const Xmm to = emitter.define_from(inst.c);
  code.kortestq(mask, mask);
  emit_unless(code, Condition::equal, [&] {
    lanes.emit_fill(a, b);
    emit_remainders(emitter, lanes);
    const bool single = bits_of(inst.type) == 32;
    single ? code.vmovups(to | mask, lanes.results()) : code.vmovupd(to | mask, lanes.results());
  });
}

void emit_remainders_vector(LaneEmitter& emitter, const LaneInst& inst) {
  Assembler& code = emitter.code();
  LanesInMemory lanes(emitter, inst.type);
  const Xmm a = emitter.use(inst.a);
  const Xmm b = emitter.use(inst.b);
  const Xmm mask = emitter.use(inst.mask);
  const OwnedVector all = emitter.scratch();
  const Xmm to = emitter.define_from(inst.c);
  code.vptest(mask, mask);
  emit_unless(code, Condition::equal, [&] {
    lanes.emit_fill(a, b);
    emit_remainders(emitter, lanes);
    const Xmm results = all.as(width_of(to));
    code.vmovups(results, lanes.results());
    code.vpblendvb(to, to, results, mask);
  });
}

}  // namespace

void emit_divide_each(LaneEmitter& e, const LaneInst& i) { emit_division(e, i, quotient); }
void emit_remainder_each(LaneEmitter& e, const LaneInst& i) { emit_division(e, i, remainder); }

void emit_float_remainder_each(LaneEmitter& emitter, const LaneInst& inst) {
  emitter.has_avx512() ? emit_remainders_opmask(emitter, inst)
                       : emit_remainders_vector(emitter, inst);
}

}  // namespace castor::jit
