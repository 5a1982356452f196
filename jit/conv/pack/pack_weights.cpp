// SPDX-License-Identifier: Apache-2.0
// Slots of sixteen channels are transposed by exchanges of lanes: a permutation of bytes puts slot
// s of channel c in lane s ^ c of vector c. Four rounds, one for each bit of a lane's number,
// exchange the lanes with that bit between vectors whose numbers differ in it. Then vector s has
// slot s of all channels, channel c in lane s ^ c, and one permutation is left.
#include "jit/conv/pack/pack_weights.hpp"

#include <fmt/format.h>

#include <array>

#include "jit/emit/assembler.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

using Xbyak::Operand;
using Xbyak::Reg64;
using Xbyak::Zmm;

constexpr int channels = PackWeights::channels;

/// Registers with one meaning throughout the code.
namespace reg {
const Reg64 arguments(Operand::RDI);
const Reg64 source(Operand::RSI);
const Reg64 channel_step(Operand::RDX);
const Reg64 three_steps(Operand::RCX);  ///< of channels, or of inputs that are apart
const Reg64 input_step(Operand::R8);
const Reg64 units(Operand::R9);  ///< left
const Reg64 to(Operand::R10);
const Reg64 step(Operand::R11);
const Reg64 scratch(Operand::RAX);  ///< the unit of one output channel
}  // namespace reg

/// Vectors 0 to 15 are those of channels, then of slots.
const Zmm order(24);
const Zmm flips(25);
const Zmm ones(26);
const Zmm exchanged(27);
constexpr int sum_vectors = 4;  ///< added to in rotation, for the latency of products
Zmm sum(int slot) { return Zmm(28 + slot % sum_vectors); }
const Xbyak::Opmask stored(5);
Xbyak::Opmask lanes_with(int bit) { return Xbyak::Opmask(1 + bit); }

/// Emits the code. The methods are in the order of the code that they emit.
class PackWeightsEmitter {
 public:
  PackWeightsEmitter(const PackWeights& unit, const Target& target, const CodeBuffer& buffer)
      : unit_(unit), code_(buffer, target.frame_pointers) {}

  MachineCode emit() {
    emit_entry();
    emit_weights();
    emit_exit();
    return code_.finish();
  }

 private:
  void emit_weights() {
    const Section loop = code_.section(CodeSection::weights_loop);
    Xbyak::Label next_unit;
    code_.align_to(32);
    code_.L(next_unit);
    const uint32_t begin = code_.position();
    for (int i = 0; i < channels; ++i) emit_channel(i);
    for (int bit = 3; bit >= 0; --bit) emit_exchange(bit);
    for (int slot = 0; slot < unit_.slots(); ++slot) emit_slot(slot);
    code_.add(reg::source, argument(offsetof(PackWeightsArguments, unit_step)));
    code_.add(reg::to, argument(offsetof(PackWeightsArguments, skip)));
    code_.dec(reg::units);
    code_.jnz(next_unit, Xbyak::CodeGenerator::T_NEAR);
    const int64_t bytes = int64_t{unit_.slots()} * 4 * channels;
    code_.note_loop({.begin = begin,
                     .elements = bytes,
                     .load_bytes = bytes,
                     .store_bytes = bytes,
                     .name = "units"});
  }
  void emit_entry() {
    const Section entry = code_.section(CodeSection::entry);
    code_.mov(reg::source, argument(offsetof(PackWeightsArguments, source)));
    code_.mov(reg::channel_step, argument(offsetof(PackWeightsArguments, channel_step)));
    code_.mov(reg::input_step, argument(offsetof(PackWeightsArguments, input_step)));
    const Reg64& step = unit_.is_one_vector() ? reg::channel_step : reg::input_step;
    code_.lea(reg::three_steps, code_.ptr[step + step * 2]);
    code_.mov(reg::units, argument(offsetof(PackWeightsArguments, units)));
    code_.mov(reg::to, argument(offsetof(PackWeightsArguments, to)));
    code_.mov(reg::step, argument(offsetof(PackWeightsArguments, step)));
    const Section constants = code_.section(CodeSection::constants);
    for (int bit = 0; bit < 4; ++bit) {
      constexpr uint32_t with_bit[] = {0xaaaa, 0xcccc, 0xf0f0, 0xff00};
      code_.mov(reg::scratch.cvt32(), with_bit[bit]);
      code_.kmovw(lanes_with(bit), reg::scratch.cvt32());
    }
    code_.kmovw(stored, code_.word[reg::arguments + offsetof(PackWeightsArguments, lanes)]);
    code_.vpbroadcastd(flips, code_.dword[reg::arguments + offsetof(PackWeightsArguments, flips)]);
    code_.vpternlogd(ones, ones, ones, 0xff);
    code_.vpabsb(ones, ones);
    code_.mov(reg::scratch, argument(offsetof(PackWeightsArguments, sums)));
    code_.vmovdqu32(sum(0), code_.ptr[reg::scratch]);
    for (int i = 1; i < sum_vectors; ++i) code_.vpxord(sum(i), sum(i), sum(i));
  }

  /// The slots of one output channel, each in its lane.
  void emit_channel(int index) {
    const Section load = code_.section(CodeSection::load_weights);
    const Zmm to(index);
    const Reg64& channel = reg::scratch;
    if (index == 0) code_.mov(channel, reg::source);
    code_.vmovdqu32(order, byte_order(index));
    if (!unit_.is_one_vector()) {
      code_.vmovdqu(Xbyak::Xmm(index), code_.ptr[channel]);
      code_.vinserti32x4(to, to, code_.ptr[channel + reg::input_step], 1);
      code_.vinserti32x4(to, to, code_.ptr[channel + reg::input_step * 2], 2);
      code_.vinserti32x4(to, to, code_.ptr[channel + reg::three_steps], 3);
      code_.vpermb(to, order, to);
      code_.add(channel, reg::channel_step);
      return;
    }
    if (index > 0 && index % 4 == 0) code_.lea(channel, code_.ptr[channel + reg::channel_step * 4]);
    switch (index % 4) {
      case 0: return code_.vpermb(to, order, code_.ptr[channel]);
      case 1: return code_.vpermb(to, order, code_.ptr[channel + reg::channel_step]);
      case 2: return code_.vpermb(to, order, code_.ptr[channel + reg::channel_step * 2]);
      default: return code_.vpermb(to, order, code_.ptr[channel + reg::three_steps]);
    }
  }

  /// Rounds for high bits come first: so the last ones make only the slots that there are.
  void emit_exchange(int bit) {
    const Section exchange = code_.section(CodeSection::exchange_lanes);
    const int distance = 1 << bit;
    const int wanted = (unit_.slots() + distance - 1) / distance * distance;  // by later rounds
    for (int i = 0; i < wanted; ++i) {
      if ((i & distance) != 0) continue;
      const Zmm other(i + distance);
      const bool both = i + distance < wanted;
      if (both) code_.vmovdqa32(exchanged, Zmm(i));
      code_.vmovdqa32(Zmm(i) | lanes_with(bit), other);
      if (both) code_.vmovdqa32(other | lanes_with(bit), exchanged);
    }
  }

  /// Lane c becomes channel c.
  void emit_slot(int slot) {
    const Zmm vector(slot);
    if (slot > 0) {
      const Section exchange = code_.section(CodeSection::exchange_lanes);
      code_.vmovdqu32(order, code_.constant(vector_constant<uint32_t>(
                                 512, [&](int lane) { return lane ^ slot; })));
      code_.vpermd(vector, order, vector);
    }
    {
      const Section sums = code_.section(CodeSection::sum_weights);
      code_.vpxord(vector, vector, flips);
      code_.vpdpbusd(sum(slot), ones, vector);
    }
    const Section stores = code_.section(CodeSection::stores);
    code_.vmovdqu32(code_.ptr[reg::to] | stored, vector);
    code_.add(reg::to, reg::step);
  }

  void emit_exit() {
    {
      const Section sums = code_.section(CodeSection::sum_weights);
      code_.mov(reg::scratch, argument(offsetof(PackWeightsArguments, sums)));
      for (int i = 1; i < sum_vectors; ++i) code_.vpaddd(sum(0), sum(0), sum(i));
      code_.vmovdqu32(code_.ptr[reg::scratch], sum(0));
    }
    const Section exit = code_.section(CodeSection::exit);
    code_.vzeroupper();
    code_.emit_return();
  }

  Xbyak::Address argument(size_t offset) { return code_.qword[reg::arguments + offset]; }
  /// Which bytes make up the lanes of a channel; lanes without a slot take any.
  Xbyak::Address byte_order(int channel) {
    const int input_step = unit_.is_one_vector() ? unit_.input_step : 16;
    return code_.constant(vector_constant<uint8_t>(512, [&](int i) {
      const int slot = (i / 4) ^ channel;
      if (slot >= unit_.slots()) return 0;
      const int input = slot / unit_.positions * 4 + i % 4;
      return input * input_step + slot % unit_.positions;
    }));
  }

  const PackWeights unit_;
  Assembler code_;
};

}  // namespace

bool fits(const PackWeights& unit, const Target& target) {
  const bool has_instructions =
      target.supports(Feature::avx512_vbmi) && target.supports(Feature::avx512_vnni);
  const bool fits_a_vector =
      !unit.is_one_vector() || (4 * unit.k_groups - 1) * unit.input_step + unit.positions <= 64;
  return has_instructions && fits_a_vector && unit.slots() >= 1 &&
         unit.slots() <= PackWeights::max_slots && (unit.k_groups == 1 || unit.is_one_vector());
}

Result<MachineCode> emit_kernel(const PackWeights& unit, const Target& target,
                                const EmitOptions& options) {
  return assemble(
      fmt::format("tier {}", name_of(target.tier)), options,
      [&](const CodeBuffer& buffer) { return PackWeightsEmitter(unit, target, buffer).emit(); });
}

}  // namespace castor::jit
