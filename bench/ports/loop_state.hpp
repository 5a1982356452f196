// SPDX-License-Identifier: Apache-2.0
// With which registers and memory a loop of generated code can be run on its own.
#pragma once

#include <Zydis/Zydis.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "ir/support/result.hpp"
#include "jit/code.hpp"
#include "jit/listing/decoder.hpp"

namespace castor::bench {

inline constexpr size_t general_registers = 16;

/// What the loop finds when it begins: a general register (ZydisRegisterGetId), or eight bytes of
/// memory at a distance from what a register holds.
struct LoopSource {
  int reg = 0;
  std::optional<int64_t> slot{};  ///< none: the register itself
  friend auto operator<=>(const LoopSource&, const LoopSource&) = default;
};

/// What a loop needs to run. A loop counts in one register: it ends where `cmp counter, limit` says
/// so, or where `add counter, step`, `sub` or `dec` gives 0 or less. A counter may be a pointer
/// that goes through records.
struct LoopNeeds {
  std::set<LoopSource> sources;   ///< all that are read before they are written
  std::set<LoopSource> pointers;  ///< those sources that addresses are made of
  std::set<LoopSource> offsets;   ///< those pointers to 32-bit offsets within a buffer
  std::set<LoopSource> masks;     ///< those pointers to masks
  std::array<int64_t, general_registers>
      steps{};                      ///< what an iteration adds to each register, by constants
  int counter = 0;                  ///< the register that counts
  std::optional<LoopSource> limit;  ///< none: the loop counts to 0
  bool end_is_included = false;     ///< an iteration begins with the counter at the limit, or at 0
};

/// Reads an iteration, routines that are called included, as a list: branches but the last are not
/// taken, so inner loops run once. Fails (unsupported) where an address is made of something that
/// is neither of these, and where the loop ends otherwise.
Result<LoopNeeds> loop_needs(std::span<const jit::DecodedInstruction> body);

}  // namespace castor::bench
