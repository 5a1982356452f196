// SPDX-License-Identifier: Apache-2.0
#include "bench/ports/instruction_timing.hpp"

#include <array>
#include <cstring>

#include "jit/target.hpp"

namespace castor::bench {

namespace {

constexpr int iterations_a_repetition = 16;
constexpr size_t buffer_floats = 2048 + 256;

using Code = Xbyak::CodeGenerator;

/// 1.0 in every lane of every vector register, all bits in every mask; the registers of a Slot.
void emit_state(Code& code, bool has_avx512) {
  using namespace Xbyak::util;
  code.mov(r11d, 3);
  for (const Xbyak::Reg64& reg : {rax, rcx, rdx, r8, r9, r10}) code.mov(reg.cvt32(), 1);
  if (!has_avx512) {
    for (int i = 0; i < 16; ++i) code.vmovups(Xbyak::Ymm(i), code.ptr[rsi]);
    return;
  }
  for (int i = 0; i < 32; ++i) code.vmovups(Xbyak::Zmm(i), code.ptr[rsi]);
  for (int i = 1; i < 8; ++i) code.kxnorq(Xbyak::Opmask(i), Xbyak::Opmask(i), Xbyak::Opmask(i));
}

/// AVX2 forms have registers 0 to 15 alone.
Slot slot_of(const InstructionForm& form, int index) {
  const bool narrow = form.tier == jit::Tier::avx2;
  return {.result = narrow ? index % 12 : index,
          .source = narrow ? 13 : 30,
          .second = narrow ? 14 : 31,
          .index = index};
}

}  // namespace

template <class EmitTurn>
std::unique_ptr<InstructionLoop> InstructionLoop::make(const EmitTurn& emit_turn) {
  std::unique_ptr<InstructionLoop> loop(new InstructionLoop);
  loop->buffer_ = std::make_shared<std::vector<float>>(buffer_floats, 1.0f);
  Code& code = *loop->code_;
  emit_state(code, jit::host().runs(jit::Tier::avx512));
  code.align(64);
  Xbyak::Label top;
  code.L(top);
  const size_t begin = code.getSize();
  size_t end = begin;
  for (int i = 0; i < copies * unrolling; ++i) {
    emit_turn(code, i % copies);
    if (i == copies - 1) end = code.getSize();
  }
  code.dec(Xbyak::util::rdi);
  code.jnz(top, Code::T_NEAR);
  code.vzeroupper();
  code.ret();
  const auto* bytes = reinterpret_cast<const std::byte*>(code.getCode());
  loop->body_.bytes.assign(bytes + begin, bytes + end);
  loop->body_.instruction_bytes = static_cast<uint32_t>(end - begin);
  loop->body_.pool_begin = loop->body_.instruction_bytes;
  code.setProtectModeRE();
  return loop;
}

std::unique_ptr<InstructionLoop> InstructionLoop::independent(
    const std::vector<const InstructionForm*>& forms) {
  return make([&](Code& code, int index) {
    for (size_t i = 0; i < forms.size(); ++i) {
      Slot slot = slot_of(*forms[i], index);
      if (forms.size() > 1) {
        slot.result = (slot.result + static_cast<int>(i) * 12) % 24;
        if (forms[i]->tier == jit::Tier::avx2) slot.result = slot.result % 6 + 6 * (i % 2 != 0);
      }
      forms[i]->emit(code, slot);
    }
  });
}

std::unique_ptr<InstructionLoop> InstructionLoop::chain(const InstructionForm& form) {
  if (form.chain == Chain::none) return nullptr;
  return make([&](Code& code, int index) {
    Slot slot = slot_of(form, index);
    slot.result = 0;
    if (form.chain == Chain::source) slot.source = 0;
    form.emit(code, slot);
  });
}

Contender InstructionLoop::contender() const {
  const auto run = code_->getCode<void (*)(size_t iterations, float* buffer)>();
  return {.run = [run, buffer = buffer_](size_t repetitions) {
    const auto address = (reinterpret_cast<uintptr_t>(buffer->data()) + 63) & ~uintptr_t{63};
    run(repetitions * iterations_a_repetition, reinterpret_cast<float*>(address));
  }};
}

double InstructionLoop::cycles(const Contender& clock, const Contender& measured) const {
  return median_over_groups(clock.minima.size(), [&](size_t group) {
    return measured.minima[group] * CoreClock::gigahertz(clock, group) /
           (copies * unrolling * iterations_a_repetition);
  });
}

jit::CodeLoop InstructionLoop::body_loop() const {
  return {.begin = 0, .end = body_.instruction_bytes, .name = "body"};
}

namespace {

double measure(const InstructionLoop& loop, const CoreClock& clock, double budget_ns) {
  std::array<Contender, 2> contenders = {clock.contender(), loop.contender()};
  measure_in_turn(contenders, {.budget_ns = budget_ns});
  return loop.cycles(contenders[0], contenders[1]);
}

}  // namespace

InstructionCycles measure_instruction(const InstructionForm& form, const CoreClock& clock,
                                      double budget_ns) {
  InstructionCycles cycles;
  cycles.throughput = measure(*InstructionLoop::independent({&form}), clock, budget_ns);
  const std::unique_ptr<InstructionLoop> chain = InstructionLoop::chain(form);
  if (chain != nullptr) cycles.latency = measure(*chain, clock, budget_ns);
  return cycles;
}

double measure_pair(const InstructionForm& one, const InstructionForm& other,
                    const CoreClock& clock, double budget_ns) {
  return measure(*InstructionLoop::independent({&one, &other}), clock, budget_ns);
}

}  // namespace castor::bench
