// SPDX-License-Identifier: Apache-2.0
// Every loop of the golden listings, with what the port models say of it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "ir/support/result.hpp"
#include "jit/code.hpp"
#include "jit/core/core_tuning.hpp"
#include "jit/listing/listing.hpp"
#include "jit/target.hpp"

namespace castor::test {

struct GoldenLoop {
  std::string listing;  ///< "f32-to-u8.avx2"
  jit::Tier tier;
  size_t nest = 0;
  jit::CodeLoop loop;
  /// By port model; none where the core lacks an instruction.
  std::array<std::optional<jit::PortCycles>, jit::port_model_count> cycles;
};

/// The codes of one listing, and their loops in the order in which they begin.
struct GoldenLoops {
  std::string listing;
  std::vector<jit::MachineCode> codes;
  std::vector<GoldenLoop> loops;
};

/// The loops of every file in tests/data/golden/listings whose name begins with `only`.
Result<std::vector<GoldenLoops>> golden_loops(std::string_view only = "");

}  // namespace castor::test
