// SPDX-License-Identifier: Apache-2.0
#include "bench/ports/loop_replay.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <random>

#include "jit/target.hpp"

namespace castor::bench {

namespace {

using Code = Xbyak::CodeGenerator;
using jit::DecodedInstruction;

constexpr size_t region_bytes = size_t{2} << 20;  // a pointer is in the middle of its region
constexpr size_t region_middle = region_bytes / 2;
constexpr size_t stagger = 64 * 37;  // so that regions do not share the lower 12 bits of addresses
constexpr uint64_t number = 64;      // strides and all that is no pointer are this: a cache line
constexpr int64_t l1_share = int64_t{24} << 10;  // bytes of tensors in a call
constexpr int64_t unknown_bytes = 512;  // an iteration goes through, of loops that do not say
constexpr int64_t min_iterations = 12;
constexpr int64_t max_iterations = 192;
constexpr int sizes = 4;  // numbers of iterations that calls have, by turns without pattern
constexpr int64_t table_bytes = int64_t{64} << 10;  // on either side of a pointer
constexpr int64_t offset_lines = 64;                // cache lines that offsets lead to
constexpr int rounds_a_repetition = 8;              // calls of each size

/// The byte of a conditional jump that says which condition, as `jo`: of 2 and 6 bytes.
void never_take(std::span<std::byte> jump) {
  if (jump[0] == std::byte{0x0f}) {
    jump[1] = std::byte{0x80};
  } else {
    jump[0] = std::byte{0x70};
  }
}

/// vmovntps as the vmovups of the same operands, whose opcode differs.
void store_in_cache(const DecodedInstruction& decoded, std::span<std::byte> store) {
  const auto& raw = decoded.instruction.raw;
  const bool is_evex = decoded.instruction.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX;
  const size_t opcode = is_evex ? raw.evex.offset + 4u : raw.vex.offset + size_t{raw.vex.size};
  store[opcode] = std::byte{0x11};
}

bool is_conditional(const DecodedInstruction& decoded) {
  return decoded.instruction.meta.category == ZYDIS_CATEGORY_COND_BR;
}

void emit_vectors(Code& code, const float* ones) {
  using namespace Xbyak::util;
  code.mov(rax, reinterpret_cast<uint64_t>(ones));
  if (!jit::host().runs(jit::Tier::avx512)) {
    for (int i = 0; i < 16; ++i) code.vmovups(Xbyak::Ymm(i), code.ptr[rax]);
    return;
  }
  for (int i = 0; i < 32; ++i) code.vmovups(Xbyak::Zmm(i), code.ptr[rax]);
  for (int i = 1; i < 8; ++i) code.kxnorq(Xbyak::Opmask(i), Xbyak::Opmask(i), Xbyak::Opmask(i));
}

void fill_offsets(uint64_t middle) {
  auto* offsets = reinterpret_cast<int32_t*>(middle);
  constexpr int64_t count = table_bytes / sizeof(int32_t);
  for (int64_t i = -count; i < count; ++i) {
    const int32_t offset = static_cast<int32_t>((i & (offset_lines - 1)) * 64);
    std::memcpy(offsets + i, &offset, sizeof offset);
  }
}

void fill_masks(uint64_t middle) {
  std::memset(reinterpret_cast<std::byte*>(middle) - table_bytes, 0xff, size_t{2} * table_bytes);
}

const std::array callee_saved = {Xbyak::util::rbx, Xbyak::util::rbp, Xbyak::util::r12,
                                 Xbyak::util::r13, Xbyak::util::r14, Xbyak::util::r15};

/// Indices 0 to count - 1, each equally often, shuffled.
std::vector<uint8_t> shuffled_order(size_t count) {
  std::vector<uint8_t> order(count * rounds_a_repetition);
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint8_t>(i % count);
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  return order;
}

}  // namespace

LoopReplay::LoopReplay() : code_(std::make_unique<Code>(1 << 18)) {}

/// A region for each pointer, full of 1.0f; tables of offsets go through a few cache lines, masks
/// have all bits.
void LoopReplay::allocate(const LoopNeeds& needs) {
  const size_t bytes = (region_bytes + stagger) * needs.pointers.size() + 4096;
  memory_ = std::make_shared<std::vector<std::byte>>(bytes);
  constexpr float one = 1.0f;
  for (size_t i = 0; i + sizeof one <= bytes; i += sizeof one) {
    std::memcpy(memory_->data() + i, &one, sizeof one);
  }
  uint64_t address = (reinterpret_cast<uint64_t>(memory_->data()) + 63) / 64 * 64 + region_middle;
  for (const LoopSource& pointer : needs.pointers) {
    addresses_[pointer] = address;
    if (needs.offsets.contains(pointer)) fill_offsets(address);
    if (needs.masks.contains(pointer)) fill_masks(address);
    address += region_bytes + stagger;
  }
}

/// Entry, exit, and the kernel from the beginning of a cache line on; after the loop it jumps to
/// the exit.
void LoopReplay::emit(const jit::MachineCode& code, const jit::CodeLoop& loop,
                      std::span<const DecodedInstruction> body) {
  using namespace Xbyak::util;
  Code& c = *code_;
  for (const Xbyak::Reg64& reg : callee_saved) c.push(reg);
  c.mov(rax, reinterpret_cast<uint64_t>(saved_.data()));
  c.mov(c.ptr[rax], rsp);
  emit_vectors(c, reinterpret_cast<const float*>(memory_->data()));
  c.mov(rax, reinterpret_cast<uint64_t>(saved_.data() + 1));
  for (int i = 1; i < 16; ++i) c.mov(Xbyak::Reg64(i), c.ptr[rax + 8 * i]);
  c.mov(rax, c.ptr[rax]);
  Xbyak::Label begin, exit;
  c.jmp(begin, Code::T_NEAR);
  c.L(exit);
  c.lfence();  // else what is left of the loop overlaps with the next call, more of a long one
  c.mov(rax, c.ptr[reinterpret_cast<uint64_t>(saved_.data())]);
  c.mov(rsp, rax);
  for (size_t i = callee_saved.size(); i-- > 0;) c.pop(callee_saved[i]);
  c.vzeroupper();
  c.ret();
  while (c.getSize() % 64 != 0) c.nop();
  const size_t at = c.getSize();
  for (const std::byte byte : code.bytes) c.db(std::to_integer<int>(byte));
  const size_t end = c.getSize();

  auto* bytes = reinterpret_cast<std::byte*>(const_cast<uint8_t*>(c.getCode())) + at;
  for (const DecodedInstruction& decoded : body) {
    const std::span<std::byte> own(bytes + decoded.offset, decoded.instruction.length);
    if (is_conditional(decoded) && decoded.offset != body.back().offset) never_take(own);
    if (decoded.instruction.mnemonic == ZYDIS_MNEMONIC_VMOVNTPS) store_in_cache(decoded, own);
  }
  c.setSize(at + loop.begin);
  c.L(begin);
  c.setSize(at + loop.end);
  c.jmp(exit, Code::T_NEAR);
  c.setSize(end);
  c.setProtectModeRE();
}

uint64_t LoopReplay::value_of(const LoopSource& source) const {
  const auto pointer = addresses_.find(source);
  return pointer != addresses_.end() ? pointer->second : number;
}

/// Slots of the records that a pointer goes through, of as many as a call has iterations.
void LoopReplay::fill_records(const LoopNeeds& needs) {
  for (const LoopSource& source : needs.sources) {
    const int64_t step = needs.steps[static_cast<size_t>(source.reg)];
    if (!source.slot || step == 0) continue;
    const uint64_t base = value_of({.reg = source.reg}) + static_cast<uint64_t>(*source.slot);
    const uint64_t value = value_of(source);
    for (int64_t i = 0; i < max_iterations; ++i) {
      std::memcpy(reinterpret_cast<void*>(base + static_cast<uint64_t>(i * step)), &value,
                  sizeof value);
    }
  }
}

LoopReplay::Call LoopReplay::call_of(const LoopNeeds& needs, int64_t iterations) const {
  Call call;
  const auto counter = static_cast<size_t>(needs.counter);
  const int64_t last = (iterations - (needs.end_is_included ? 1 : 0)) * needs.steps[counter];
  for (int i = 0; i < 16; ++i) call.registers[static_cast<size_t>(i)] = value_of({.reg = i});
  const bool has_records = needs.pointers.contains({.reg = needs.counter});
  if (!has_records) call.registers[counter] = static_cast<uint64_t>(needs.limit ? 0 : -last);
  const uint64_t limit = call.registers[counter] + static_cast<uint64_t>(last);
  if (needs.limit && !needs.limit->slot) {
    call.registers[static_cast<size_t>(needs.limit->reg)] = limit;
  }
  for (const LoopSource& source : needs.sources) {
    const auto reg = static_cast<size_t>(source.reg);
    if (!source.slot || needs.steps[reg] != 0) continue;
    const uint64_t address = call.registers[reg] + static_cast<uint64_t>(*source.slot);
    call.slots.emplace_back(reinterpret_cast<uint64_t*>(address),
                            needs.limit == source ? limit : value_of(source));
  }
  return call;
}

void LoopReplay::run(const Call& call) const {
  for (const auto& [address, value] : call.slots) std::memcpy(address, &value, sizeof value);
  std::copy(call.registers.begin(), call.registers.end(), const_cast<uint64_t*>(saved_.data()) + 1);
  code_->getCode<void (*)()>()();
}

Status LoopReplay::try_in_child() const {
  const pid_t child = fork();
  if (child < 0) return Error{ErrorCode::internal, "no child process can be made"};
  if (child == 0) {
    alarm(2);
    run(many_.front());
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) {
    return Error{ErrorCode::unsupported, "the loop alone takes addresses that memory holds"};
  }
  return Error{ErrorCode::internal, fmt::format("the loop alone ends with signal {}",
                                                WIFSIGNALED(status) ? WTERMSIG(status) : 0)};
}

Result<std::unique_ptr<LoopReplay>> LoopReplay::prepare(const jit::MachineCode& code,
                                                        const jit::CodeLoop& loop) {
  const auto program = jit::decode(code);
  if (!program) return program.error();
  const std::vector<DecodedInstruction> body = jit::iteration_of(*program, loop);
  const auto takes_tiles = [](const DecodedInstruction& decoded) {
    return decoded.instruction.meta.category == ZYDIS_CATEGORY_AMX_TILE;
  };
  if (std::ranges::any_of(body, takes_tiles)) {
    return Error{ErrorCode::unsupported, "the loop alone has no configuration of tile registers"};
  }
  const Result<LoopNeeds> needs = loop_needs(body);
  if (!needs) return needs.error();
  std::unique_ptr<LoopReplay> replay(new LoopReplay);
  replay->allocate(*needs);
  replay->fill_records(*needs);
  replay->emit(code, loop, body);
  const int64_t known = loop.load_bytes + loop.store_bytes;
  const int64_t bytes = known > 0 ? known : unknown_bytes;
  const int64_t most = std::clamp(l1_share / bytes, min_iterations, max_iterations);
  const int64_t fewest = std::max<int64_t>(most / 2, sizes);
  for (int64_t i = 0; i < sizes; ++i) {
    replay->many_.push_back(replay->call_of(*needs, most - i));
    replay->few_.push_back(replay->call_of(*needs, fewest - i));
  }
  replay->iterations_ = most - fewest;
  if (Status status = replay->try_in_child(); !status) return status.error();
  return replay;
}

Contender LoopReplay::contender(const std::vector<Call>& calls) const {
  return {.run = [this, &calls, order = shuffled_order(sizes)](size_t repetitions) {
    for (size_t i = 0; i < repetitions; ++i) {
      for (const uint8_t index : order) run(calls[index]);
    }
  }};
}

double LoopReplay::measure(const CoreClock& clock, double budget_ns) const {
  std::array<Contender, 3> contenders = {clock.contender(), contender(many_), contender(few_)};
  measure_in_turn(contenders, {.budget_ns = budget_ns});
  const auto calls = static_cast<double>(sizes * rounds_a_repetition);
  return median_over_groups(contenders[0].minima.size(), [&](size_t group) {
    return (contenders[1].minima[group] - contenders[2].minima[group]) *
           CoreClock::gigahertz(contenders[0], group) / (calls * static_cast<double>(iterations_));
  });
}

}  // namespace castor::bench
