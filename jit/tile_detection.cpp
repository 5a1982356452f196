// SPDX-License-Identifier: Apache-2.0
#include "jit/tile_detection.hpp"

#include <sys/syscall.h>
#include <unistd.h>
#include <xbyak/xbyak_util.h>

#include "jit/tile_permission.hpp"

namespace castor::jit {

namespace {

using CpuType = Xbyak::util::Cpu;

/// Registers as cpuid gives them.
struct Leaf {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Leaf leaf_of(uint32_t number, uint32_t part) {
  uint32_t registers[4] = {};
  CpuType::getCpuid(0, registers);
  if (registers[0] < number) return {};
  CpuType::getCpuidEx(number, part, registers);
  return {registers[0], registers[1], registers[2], registers[3]};
}

uint64_t states_offered_by_linux() {
  uint64_t states = 0;
  return ::syscall(SYS_arch_prctl, xstate::get_supported, &states) == 0 ? states : 0;
}

}  // namespace

TileMachine detect_tiles() {
  TileMachine found;
  found.has_tiles = CpuType().has(CpuType::tAMX_TILE);
  if (!found.has_tiles) return found;
  const Leaf palette = leaf_of(0x1d, 1);
  found.row_bytes = palette.ebx & 0xffff;
  found.registers = palette.ebx >> 16;
  found.rows = palette.ecx & 0xffff;
  found.saved_states = CpuType::getXfeature();
  found.offered_states = states_offered_by_linux();
  return found;
}

std::string_view tiles_unusable_because(const TileMachine& machine) {
  constexpr uint64_t data = uint64_t{1} << xstate::tile_data;
  constexpr uint64_t configuration = data >> 1;
  if (!machine.has_tiles) return "";
  if (machine.registers < 8 || machine.rows < 16 || machine.row_bytes < 64) {
    return "the CPU's tile registers are fewer than 8 of 16 rows of 64 bytes";
  }
  if ((machine.saved_states & configuration) == 0 || (machine.saved_states & data) == 0) {
    return "the operating system does not save tile registers (XCR0)";
  }
  if ((machine.offered_states & data) == 0) {
    return "Linux does not offer tile data to processes (ARCH_GET_XCOMP_SUPP)";
  }
  return "";
}

}  // namespace castor::jit
