// SPDX-License-Identifier: Apache-2.0
// Slots of sixteen channels are transposed by blends: slot s of channel c is put in lane (s + c)
// mod 16 by the permutation that brings its bytes together. Four rounds, one for each bit of a
// lane's number l, let vector v take lane l from vector v + l; so vector -s has the slots s of all
// channels, channel c in lane s + c, and one rotation is left.
#include "jit/conv/pack/pack_weights.hpp"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "jit/emit/assembler.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

using Xbyak::Operand;
using Xbyak::Reg64;
using Xbyak::Zmm;

constexpr int channels = WeightUnit::channels;
constexpr int lanes = 16;

/// Registers with one meaning throughout the code.
namespace reg {
const Reg64 arguments(Operand::RDI);
const Reg64 source(Operand::RSI);
const Reg64 channel_step(Operand::RDX);
const Reg64 channel_step_3(Operand::RCX);
const Reg64 second(Operand::RCX);  ///< bytes to the other input channels
const Reg64 third(Operand::R8);
const Reg64 fourth(Operand::RBP);
const Reg64 units(Operand::R9);
const Reg64 channel(Operand::RAX);  ///< the unit of one output channel
const Reg64 to(Operand::R10);
const Reg64 step(Operand::RBX);
const Reg64 sums(Operand::RAX);
}  // namespace reg

const std::array saved_registers = {reg::step, reg::fourth};

constexpr int free_vectors = 24;  ///< for slots: one for each channel, and what rounds need
const Zmm order(24);
const Zmm flips(25);
const Zmm ones(26);
constexpr int sum_vectors = 4;  ///< added to in rotation, for the latency of products
Zmm sum(int slot) { return Zmm(28 + slot % sum_vectors); }
const Xbyak::Opmask stored(5);

/// Emits the code. The methods are in the order of the code that they emit.
class PackWeightsEmitter {
 public:
  PackWeightsEmitter(const WeightUnit& unit, std::span<uint8_t> buffer)
      : unit_(unit), code_(buffer) {}

  MachineCode emit() {
    Xbyak::Label next_unit;
    emit_entry();
    code_.align_to(32);
    code_.L(next_unit);
    for (int i = 0; i < channels; ++i) emit_channel(i);
    emit_transpose();
    for (int slot = 0; slot < unit_.slots(); ++slot) emit_slot(slot);
    emit_stores();
    code_.add(reg::source, argument(offsetof(WeightPacking, unit_step)));
    code_.dec(reg::units);
    code_.jnz(next_unit, Xbyak::CodeGenerator::T_NEAR);
    emit_exit();
    return code_.finish();
  }

 private:
  void emit_entry();
  void emit_channel(int index);
  std::vector<uint8_t> order_of(int index) const;
  void emit_transpose();
  void emit_round(int bit, const std::vector<bool>& wanted);
  void emit_slot(int slot);
  void emit_stores();
  void emit_exit();

  Xbyak::Address argument(size_t offset) { return code_.qword[reg::arguments + offset]; }
  Zmm of_slot(int slot) const { return Zmm(vectors_[static_cast<size_t>(-slot & (lanes - 1))]); }
  static Xbyak::Opmask lanes_with(int bit) { return Xbyak::Opmask(1 + bit); }

  const WeightUnit unit_;
  Assembler code_;
  std::array<int, lanes> vectors_ = {};  ///< registers
  std::vector<int> free_;
};

void PackWeightsEmitter::emit_entry() {
  code_.push_all(saved_registers);
  code_.mov(reg::source, argument(offsetof(WeightPacking, source)));
  code_.mov(reg::channel_step, argument(offsetof(WeightPacking, channel_step)));
  code_.mov(reg::units, argument(offsetof(WeightPacking, units)));
  if (unit_.is_one_vector()) {
    code_.lea(reg::channel_step_3, code_.ptr[reg::channel_step + reg::channel_step * 2]);
  } else {
    const std::array inputs = {reg::second, reg::third, reg::fourth};
    for (size_t i = 0; i < inputs.size(); ++i) {
      code_.mov(inputs[i], argument(offsetof(WeightPacking, inputs) + 8 * i));
    }
  }
  for (int bit = 0; bit < 4; ++bit) {
    constexpr uint32_t with_bit[] = {0xaaaa, 0xcccc, 0xf0f0, 0xff00};
    code_.mov(reg::step.cvt32(), with_bit[bit]);
    code_.kmovw(lanes_with(bit), reg::step.cvt32());
  }
  code_.vpbroadcastd(flips, code_.dword[reg::arguments + offsetof(WeightPacking, flips)]);
  code_.vpternlogd(ones, ones, ones, 0xff);
  code_.vpabsb(ones, ones);
  code_.kmovw(stored, code_.word[reg::arguments + offsetof(WeightPacking, lanes)]);
  code_.mov(reg::to, argument(offsetof(WeightPacking, to)));
  code_.mov(reg::step, argument(offsetof(WeightPacking, step)));
  code_.mov(reg::sums, argument(offsetof(WeightPacking, sums)));
  code_.vmovdqu32(sum(0), code_.ptr[reg::sums]);
  for (int i = 1; i < sum_vectors; ++i) code_.vpxord(sum(i), sum(i), sum(i));
}

/// The slots of one output channel, each in its lane.
void PackWeightsEmitter::emit_channel(int index) {
  const Zmm to(index);
  vectors_[static_cast<size_t>(index)] = index;
  code_.vmovdqu32(order, code_.constant(order_of(index)));
  if (!unit_.is_one_vector()) {
    if (index == 0) code_.mov(reg::channel, reg::source);
    code_.vmovdqu(Xbyak::Xmm(index), code_.ptr[reg::channel]);
    code_.vinserti32x4(to, to, code_.ptr[reg::channel + reg::second], 1);
    code_.vinserti32x4(to, to, code_.ptr[reg::channel + reg::third], 2);
    code_.vinserti32x4(to, to, code_.ptr[reg::channel + reg::fourth], 3);
    code_.vpermb(to, order, to);
    code_.add(reg::channel, reg::channel_step);
    return;
  }
  if (index == 0) code_.mov(reg::channel, reg::source);
  if (index > 0 && index % 4 == 0) {
    code_.lea(reg::channel, code_.ptr[reg::channel + reg::channel_step * 4]);
  }
  switch (index % 4) {
    case 0: return code_.vpermb(to, order, code_.ptr[reg::channel]);
    case 1: return code_.vpermb(to, order, code_.ptr[reg::channel + reg::channel_step]);
    case 2: return code_.vpermb(to, order, code_.ptr[reg::channel + reg::channel_step * 2]);
    default: return code_.vpermb(to, order, code_.ptr[reg::channel + reg::channel_step_3]);
  }
}

/// Which bytes make up the lanes of an output channel; lanes without a slot take any.
std::vector<uint8_t> PackWeightsEmitter::order_of(int index) const {
  const int input_step = unit_.is_one_vector() ? unit_.input_step : 16;
  return vector_constant<uint8_t>(512, [&](int i) {
    const int slot = (i / 4 - index) & (lanes - 1);
    if (slot >= unit_.slots()) return 0;
    const int input = slot / unit_.positions * 4 + i % 4;
    return input * input_step + slot % unit_.positions;
  });
}

/// Rounds for the high bits come first: so the last ones make only what is asked for.
void PackWeightsEmitter::emit_transpose() {
  std::array<std::vector<bool>, 5> wanted;  // by round: after those for bits 3 to `round`
  wanted[0].assign(lanes, false);
  for (int slot = 0; slot < unit_.slots(); ++slot) {
    wanted[0][static_cast<size_t>(-slot & (lanes - 1))] = true;
  }
  for (size_t bit = 0; bit < 4; ++bit) {
    wanted[bit + 1] = wanted[bit];
    for (size_t v = 0; v < lanes; ++v) {
      if (wanted[bit][v]) wanted[bit + 1][(v + (size_t{1} << bit)) % lanes] = true;
    }
  }
  for (int i = free_vectors; i-- > channels;) free_.push_back(i);
  for (int bit = 3; bit >= 0; --bit) emit_round(bit, wanted[static_cast<size_t>(bit)]);
}

/// Each vector v that is wanted takes its lanes with that bit from vector v + 2^bit.
void PackWeightsEmitter::emit_round(int bit, const std::vector<bool>& wanted) {
  const std::array<int, lanes> before = vectors_;
  const size_t distance = size_t{1} << bit;
  std::array<bool, lanes> is_done = {};
  for (size_t v = 0; v < lanes; ++v) {
    if (!wanted[v]) continue;
    const Zmm own(before[v]);
    const Zmm other(before[(v + distance) % lanes]);
    const size_t user = (v - distance) % lanes;  // of this vector as it was
    const bool is_last_use = !wanted[user] || is_done[user];
    if (is_last_use) {
      code_.vmovdqa32(own | lanes_with(bit), other);
    } else {
      vectors_[v] = free_.back();
      free_.pop_back();
      code_.vpblendmd(Zmm(vectors_[v]) | lanes_with(bit), own, other);
    }
    is_done[v] = true;
    const size_t next = (v + distance) % lanes;
    if (!wanted[next] || is_done[next]) {  // and the other one has had its last use
      const bool is_replaced = !wanted[next] || vectors_[next] != before[next];
      if (is_replaced) free_.push_back(before[next]);
    }
  }
}

/// Lane c becomes channel c.
void PackWeightsEmitter::emit_slot(int slot) {
  const Zmm vector = of_slot(slot);
  if (slot > 0) code_.valignd(vector, vector, vector, static_cast<uint8_t>(slot));
  code_.vpxord(vector, vector, flips);
  code_.vpdpbusd(sum(slot), ones, vector);
}

void PackWeightsEmitter::emit_stores() {
  for (int slot = 0; slot < unit_.slots(); ++slot) {
    code_.vmovdqu32(code_.ptr[reg::to] | stored, of_slot(slot));
    code_.add(reg::to, reg::step);
  }
  code_.add(reg::to, argument(offsetof(WeightPacking, skip)));
}

void PackWeightsEmitter::emit_exit() {
  code_.mov(reg::sums, argument(offsetof(WeightPacking, sums)));
  for (int i = 1; i < sum_vectors; ++i) code_.vpaddd(sum(0), sum(0), sum(i));
  code_.vmovdqu32(code_.ptr[reg::sums], sum(0));
  code_.vzeroupper();
  code_.pop_all(saved_registers);
  code_.ret();
}

}  // namespace

bool fits(const WeightUnit& unit, const Target& target) {
  const bool has_instructions =
      target.supports(Feature::avx512_vbmi) && target.supports(Feature::avx512_vnni);
  const bool fits_a_vector =
      !unit.is_one_vector() ||
      (4 * unit.k_groups - 1) * unit.input_step + unit.positions <= 4 * lanes;
  return has_instructions && fits_a_vector && unit.slots() >= 1 &&
         unit.slots() <= WeightUnit::max_slots && (unit.k_groups == 1 || unit.is_one_vector());
}

Result<MachineCode> emit_kernel(const WeightUnit& unit, const Target& target) {
  return assemble(fmt::format("tier {}", name_of(target.tier)), [&](std::span<uint8_t> buffer) {
    return PackWeightsEmitter(unit, buffer).emit();
  });
}

}  // namespace castor::jit
