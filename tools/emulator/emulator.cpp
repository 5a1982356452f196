// SPDX-License-Identifier: Apache-2.0
#include "tools/emulator/emulator.hpp"

#include <Zydis/Zydis.h>
#include <fmt/format.h>
#include <signal.h>

#include <atomic>

#include "jit/emulated_features.hpp"
#include "tools/emulator/frame_state.hpp"
#include "tools/emulator/function.hpp"
#include "tools/emulator/permission.hpp"
#include "tools/emulator/tiles.hpp"
#include "tools/machine/step.hpp"

namespace castor::emulator {

namespace {

using jit::Feature;
using jit::FeatureSet;
using jit::Tier;

constexpr size_t longest_instruction = 15;
constinit std::atomic<uint64_t> count{0};
constinit std::atomic<uint64_t> functions{0};

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

/// Any other instruction that the table has.
bool carry_out_by_table(SignalFrame& frame, const Decoded& decoded) {
  const machine::Row* row = machine::row_of(decoded.instruction, decoded.operands);
  if (row == nullptr || row->effect == machine::Effect::tile_product) return false;
  FrameState state(frame, decoded.instruction.length);
  return machine::Stepper(state, decoded.instruction, decoded.operands, *row).run().ok();
}

/// Whether the instruction at the frame's RIP is one that is emulated.
bool step(SignalFrame& frame) {
  Decoded decoded;
  if (!decode(frame.instruction(), decoded)) return false;
  if (!carry_out_tile_instruction(frame, decoded.instruction, decoded.operands) &&
      !carry_out_by_table(frame, decoded)) {
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

/// A call of a function that may be read only; any other fault stays one.
void on_fault(int signal, siginfo_t* fault, void* context) {
  SignalFrame frame(*static_cast<ucontext_t*>(context));
  const bool is_call = fault->si_code == SEGV_ACCERR && fault->si_addr == frame.instruction() &&
                       is_code(fault->si_addr);
  if (is_call) {
    const Status status = carry_out_function(frame);
    if (status.ok()) {
      functions.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    fmt::print(stderr, "emulator: {}\n", status.error().message);
  }
  ::signal(signal, SIG_DFL);  // the instruction raises it again
}

void handle(int signal, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(signal, &action, nullptr);
}

/// Tells the host, and looks up the table once, so that handlers initialise nothing of it.
FeatureSet tell_host(const jit::Emulation& emulation) {
  const bool in_time = jit::emulate(emulation);
  const jit::Host& machine = jit::host();
  if (!in_time || machine.emulated == FeatureSet{} || !machine.runs(Tier::amx)) return {};
  machine::row_of(ZydisDecodedInstruction{}, nullptr);
  handle(SIGILL, on_illegal_instruction);
  return machine.emulated;
}

}  // namespace

FeatureSet emulated() { return {Feature::avx512_fp16, Feature::amx_tile, Feature::amx_int8}; }

void install_calls() { handle(SIGSEGV, on_fault); }

FeatureSet features_above(Tier tier) {
  FeatureSet all;
  for (const jit::TierInfo& row : jit::tier_table()) all = all | row.features;
  return all - info(tier).features;
}

FeatureSet install(FeatureSet left_alone) {
  static const jit::Emulation emulation = {
      .features = emulated(), .not_of_host = left_alone, .arch_prctl = arch_prctl};
  return tell_host(emulation);
}

FeatureSet install_with_functions(FeatureSet left_alone) {
  static const jit::Emulation emulation = {.features = features_above(Tier::avx2),
                                           .not_of_host = left_alone,
                                           .arch_prctl = arch_prctl,
                                           .one_by_one = emulated() - left_alone,
                                           .calls_for_functions = without_execution};
  const FeatureSet installed = tell_host(emulation);
  if (installed != FeatureSet{}) install_calls();
  return installed;
}

uint64_t instruction_count() { return count.load(std::memory_order_relaxed); }

uint64_t function_count() { return functions.load(std::memory_order_relaxed); }

}  // namespace castor::emulator
