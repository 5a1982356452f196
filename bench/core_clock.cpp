// SPDX-License-Identifier: Apache-2.0
#include "bench/core_clock.hpp"

#include <span>

namespace castor::bench {

namespace {

constexpr int additions_an_iteration = 64;
constexpr int iterations_a_repetition = 32;

}  // namespace

CoreClock::CoreClock() {
  using namespace Xbyak::util;
  Xbyak::Label top;
  code_.xor_(eax, eax);
  code_.mov(ecx, 1);
  code_.align(64);
  code_.L(top);
  for (int i = 0; i < additions_an_iteration; ++i) code_.add(rax, rcx);
  code_.dec(rdi);
  code_.jnz(top, Xbyak::CodeGenerator::T_NEAR);
  code_.ret();
  code_.setProtectModeRE();
}

Contender CoreClock::contender() const {
  const auto chain = code_.getCode<void (*)(size_t iterations)>();
  return {.run = [chain](size_t repetitions) { chain(repetitions * iterations_a_repetition); }};
}

double CoreClock::gigahertz(const Contender& measured, size_t group) {
  return additions_an_iteration * iterations_a_repetition / measured.minima[group];
}

double CoreClock::gigahertz(const Contender& measured) {
  return additions_an_iteration * iterations_a_repetition / measured.median_ns();
}

double CoreClock::measure() const {
  Contender chain = contender();
  measure_in_turn(std::span(&chain, 1), {.budget_ns = 20e6});
  return gigahertz(chain);
}

}  // namespace castor::bench
