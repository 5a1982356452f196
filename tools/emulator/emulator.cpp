// SPDX-License-Identifier: Apache-2.0
#include "tools/emulator/emulator.hpp"

#include <Zydis/Zydis.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "jit/emulated_features.hpp"
#include "tools/emulator/fp16.hpp"
#include "tools/emulator/permission.hpp"
#include "tools/emulator/signal_frame.hpp"
#include "tools/emulator/tiles.hpp"

namespace castor::emulator {

namespace {

using jit::Feature;
using jit::FeatureSet;
using jit::Tier;

constexpr size_t longest_instruction = 15;
constinit std::atomic<uint64_t> count{0};

struct Decoded {
  ZydisDecodedInstruction instruction;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

bool decode(const uint8_t* bytes, Decoded& decoded) {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, longest_instruction,
                                             &decoded.instruction, decoded.operands));
}

/// The operands of one instruction: its result, sources in registers, and an immediate.
struct Operands {
  ZydisRegister to = ZYDIS_REGISTER_NONE;
  ZydisRegister sources[2] = {};
  int source_count = 0;
  uint8_t immediate = 0;
};

/// Nothing of an operand in memory.
bool find_operands(const Decoded& decoded, Operands& found) {
  for (int i = 0; i < decoded.instruction.operand_count_visible; ++i) {
    const ZydisDecodedOperand& operand = decoded.operands[i];
    if (operand.encoding == ZYDIS_OPERAND_ENCODING_MASK) continue;
    if (operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
      found.immediate = static_cast<uint8_t>(operand.imm.value.u);
    } else if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) {
      return false;
    } else if (i == 0) {
      found.to = operand.reg.value;
    } else if (found.source_count < 2) {
      found.sources[found.source_count++] = operand.reg.value;
    }
  }
  return true;
}

int index_of(ZydisRegister vector) { return ZydisRegisterGetId(vector); }

RoundingMode rounding_of(const ZydisDecodedInstruction& instruction, uint32_t mxcsr) {
  switch (instruction.avx.rounding.mode) {
    case ZYDIS_ROUNDING_MODE_RN: return RoundingMode::nearest_even;
    case ZYDIS_ROUNDING_MODE_RD: return RoundingMode::down;
    case ZYDIS_ROUNDING_MODE_RU: return RoundingMode::up;
    case ZYDIS_ROUNDING_MODE_RZ: return RoundingMode::toward_zero;
    default: return static_cast<RoundingMode>(mxcsr >> 13 & 3);
  }
}

uint64_t element(const ZmmBytes& vector, int bits, int index) {
  uint64_t value = 0;
  const auto bytes = static_cast<size_t>(bits) / 8;
  std::memcpy(&value, vector.data() + static_cast<size_t>(index) * bytes, bytes);
  return value;
}

void set_element(ZmmBytes& vector, int bits, int index, uint64_t value) {
  const auto bytes = static_cast<size_t>(bits) / 8;
  std::memcpy(vector.data() + static_cast<size_t>(index) * bytes, &value, bytes);
}

void carry_out(SignalFrame& frame, const ZydisDecodedInstruction& instruction,
               const LaneInstruction& row, const Operands& operands) {
  const auto& mask = instruction.avx.mask;
  const bool is_masked = mask.reg != ZYDIS_REGISTER_NONE && mask.reg != ZYDIS_REGISTER_K0;
  const uint64_t active = is_masked ? frame.opmask(index_of(mask.reg)) : ~uint64_t{0};
  const bool zeroes = mask.mode == ZYDIS_MASK_MODE_ZEROING;
  const bool to_mask = row.result_bits == 1;
  const ZmmBytes a = frame.zmm(index_of(operands.sources[0]));
  const ZmmBytes b = row.sources == 2 ? frame.zmm(index_of(operands.sources[1])) : ZmmBytes{};
  const ZmmBytes old = to_mask ? ZmmBytes{} : frame.zmm(index_of(operands.to));
  const RoundingMode rounding = rounding_of(instruction, frame.mxcsr());
  const int lanes = instruction.avx.vector_length / std::max(row.source_bits, row.result_bits);
  ZmmBytes result{};
  uint64_t bits = 0;
  for (int i = 0; i < lanes; ++i) {
    const bool computes = (active >> i & 1) != 0;
    const uint64_t before = to_mask ? 0 : element(old, row.result_bits, i);
    uint64_t value = zeroes ? 0 : before;
    if (computes) {
      value = row.compute({.a = element(a, row.source_bits, i),
                           .b = element(b, row.source_bits, i),
                           .old = before,
                           .immediate = operands.immediate,
                           .rounding = rounding});
    }
    if (to_mask) {
      bits |= value << i;
    } else {
      set_element(result, row.result_bits, i, value);
    }
  }
  if (to_mask) {
    frame.set_opmask(index_of(operands.to), bits);
  } else {
    frame.set_zmm(index_of(operands.to), result);
  }
}

bool carry_out_lanes(SignalFrame& frame, const Decoded& decoded) {
  const LaneInstruction* row = fp16_instruction(decoded.instruction.mnemonic);
  Operands operands;
  if (row == nullptr || !find_operands(decoded, operands)) return false;
  if (operands.source_count != row->sources) return false;
  carry_out(frame, decoded.instruction, *row, operands);
  return true;
}

/// Whether the instruction at the frame's RIP is one that is emulated.
bool step(SignalFrame& frame) {
  Decoded decoded;
  if (!decode(frame.instruction(), decoded)) return false;
  if (!carry_out_tile_instruction(frame, decoded.instruction, decoded.operands) &&
      !carry_out_lanes(frame, decoded)) {
    return false;
  }
  frame.skip(decoded.instruction.length);
  count.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void on_illegal_instruction(int signal, siginfo_t*, void* context) {
  SignalFrame frame(*static_cast<ucontext_t*>(context));
  if (step(frame)) return;
  ::signal(signal, SIG_DFL);  // the instruction raises it again
}

}  // namespace

FeatureSet emulated() { return {Feature::avx512_fp16, Feature::amx_tile, Feature::amx_int8}; }

FeatureSet install(TilesOfCpu tiles) {
  static const jit::Emulation emulation = {
      .features = emulated(),
      .not_of_host = tiles == TilesOfCpu::left_alone
                         ? FeatureSet{Feature::amx_tile, Feature::amx_int8}
                         : FeatureSet{},
      .arch_prctl = arch_prctl};
  const bool in_time = jit::emulate(emulation);
  const jit::Host& machine = jit::host();
  if (!in_time || machine.emulated == FeatureSet{} || !machine.runs(Tier::amx)) return {};
  struct sigaction action = {};
  action.sa_sigaction = on_illegal_instruction;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGILL, &action, nullptr);
  return machine.emulated;
}

uint64_t instruction_count() { return count.load(std::memory_order_relaxed); }

}  // namespace castor::emulator
