// SPDX-License-Identifier: Apache-2.0
#include "tools/emulator/signal_frame.hpp"

#include <cpuid.h>

#include <cstring>

namespace castor::emulator {

namespace {

constexpr size_t mxcsr_offset = 24;
constexpr size_t xmm_offset = 160;
constexpr size_t saved_states_offset = 472;  // the kernel keeps words of its own in FXSAVE's area
constexpr size_t xstate_bv_offset = 512;

struct Range {
  size_t offset;
  size_t bytes;
};

/// Where a component from 2 on is in XSAVE's standard format, which signal frames have.
Range range_of(int component) {
  static const auto ranges = [] {
    std::array<Range, 18> found{};
    for (unsigned i = 2; i < found.size(); ++i) {
      unsigned eax = 0;
      unsigned ebx = 0;
      unsigned ecx = 0;
      unsigned edx = 0;
      __cpuid_count(0xd, i, eax, ebx, ecx, edx);
      found[i] = {ebx, eax};
    }
    return found;
  }();
  return ranges[static_cast<size_t>(component)];
}

}  // namespace

SignalFrame::SignalFrame(ucontext_t& context)
    : context_(context), area_(reinterpret_cast<std::byte*>(context.uc_mcontext.fpregs)) {}

const uint8_t* SignalFrame::instruction() const {
  return reinterpret_cast<const uint8_t*>(context_.uc_mcontext.gregs[REG_RIP]);
}

void SignalFrame::skip(size_t bytes) {
  context_.uc_mcontext.gregs[REG_RIP] += static_cast<greg_t>(bytes);
}

void SignalFrame::return_to_caller() {
  greg_t& stack = context_.uc_mcontext.gregs[REG_RSP];
  std::memcpy(&context_.uc_mcontext.gregs[REG_RIP], reinterpret_cast<const void*>(stack),
              sizeof(greg_t));
  stack += static_cast<greg_t>(sizeof(greg_t));
}

greg_t& SignalFrame::general_slot(int number) const {
  constexpr std::array order = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                REG_R12, REG_R13, REG_R14, REG_R15};
  const auto index = static_cast<size_t>(order[static_cast<size_t>(number)]);
  return context_.uc_mcontext.gregs[index];
}

uint64_t SignalFrame::general(int number) const {
  return static_cast<uint64_t>(general_slot(number));
}

void SignalFrame::set_general(int number, uint64_t value) {
  general_slot(number) = static_cast<greg_t>(value);
}

void SignalFrame::set_flags(bool zero, bool carry) {
  constexpr greg_t carry_bit = 0x1;
  constexpr greg_t zero_bit = 0x40;
  constexpr greg_t others = 0x4 | 0x10 | 0x80 | 0x800;  // PF, AF, SF, OF
  greg_t& flags = context_.uc_mcontext.gregs[REG_EFL];
  flags &= ~(others | carry_bit | zero_bit);
  flags |= (zero ? zero_bit : 0) | (carry ? carry_bit : 0);
}

uint32_t SignalFrame::mxcsr() const {
  uint32_t value = 0;
  std::memcpy(&value, area_ + mxcsr_offset, sizeof value);
  return value;
}

size_t SignalFrame::offset_of(Component component) const {
  return component == sse ? xmm_offset : range_of(component).offset;
}

std::array<SignalFrame::Part, 3> SignalFrame::parts(int zmm_index) const {
  const auto i = static_cast<size_t>(zmm_index);
  if (i >= 16) {
    const size_t offset = offset_of(upper_registers) + (i - 16) * 64;
    return {{{upper_registers, offset, 64, 0}, {}, {}}};
  }
  return {{{sse, offset_of(sse) + i * 16, 16, 0},
           {avx, offset_of(avx) + i * 16, 16, 16},
           {upper_halves, offset_of(upper_halves) + i * 32, 32, 32}}};
}

bool SignalFrame::is_present(Component component) const {
  uint64_t present = 0;
  std::memcpy(&present, area_ + xstate_bv_offset, sizeof present);
  return (present >> component & 1) != 0;
}

void SignalFrame::make_present(Component component) {
  if (is_present(component)) return;
  const size_t bytes = component == sse ? size_t{256} : range_of(component).bytes;
  std::memset(area_ + offset_of(component), 0, bytes);
  uint64_t present = 0;
  std::memcpy(&present, area_ + xstate_bv_offset, sizeof present);
  present |= uint64_t{1} << component;
  std::memcpy(area_ + xstate_bv_offset, &present, sizeof present);
}

ZmmBytes SignalFrame::zmm(int index) const {
  ZmmBytes bytes{};
  for (const Part& part : parts(index)) {
    if (part.bytes != 0 && is_present(part.component)) {
      std::memcpy(bytes.data() + part.at, area_ + part.offset, part.bytes);
    }
  }
  return bytes;
}

void SignalFrame::set_zmm(int index, const ZmmBytes& bytes) {
  for (const Part& part : parts(index)) {
    if (part.bytes == 0) continue;
    make_present(part.component);
    std::memcpy(area_ + part.offset, bytes.data() + part.at, part.bytes);
  }
}

uint64_t SignalFrame::opmask(int index) const {
  uint64_t bits = 0;
  if (is_present(opmasks)) {
    std::memcpy(&bits, area_ + offset_of(opmasks) + static_cast<size_t>(index) * 8, sizeof bits);
  }
  return bits;
}

void SignalFrame::set_opmask(int index, uint64_t bits) {
  make_present(opmasks);
  std::memcpy(area_ + offset_of(opmasks) + static_cast<size_t>(index) * 8, &bits, sizeof bits);
}

std::optional<TileConfigBytes> SignalFrame::tile_config() const {
  uint64_t saved = 0;
  std::memcpy(&saved, area_ + saved_states_offset, sizeof saved);
  if ((saved >> tile_configuration & 1) == 0) return std::nullopt;
  TileConfigBytes config{};
  if (is_present(tile_configuration)) {
    std::memcpy(config.data(), area_ + offset_of(tile_configuration), config.size());
  }
  return config;
}

}  // namespace castor::emulator
