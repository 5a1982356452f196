// SPDX-License-Identifier: Apache-2.0
// Drawing programs. A program is a pure function of its seed.
#pragma once

#include "tools/fuzz/cells.hpp"
#include "tools/fuzz/program.hpp"

namespace castor::fuzz {

/// Most inputs, results and elements (with gaps) of a tensor that a program has. Programs that
/// stream have tensors of up to `max_streamed_bytes`.
inline constexpr size_t max_inputs = 10;
inline constexpr size_t max_results = 6;
inline constexpr int64_t max_reach = 8192;
inline constexpr int64_t max_streamed_bytes = int64_t{1} << 20;

/// The seed of program `index` (from 0) of a run: program 0's is the run's own.
uint64_t program_seed(uint64_t run_seed, uint64_t index);

/// A seed whose program hits the cell on the tiers that it concerns. It has the topmost bit set
/// and the cell's number after it; the other bits are drawn from `seed`.
uint64_t directed_seed(size_t cell_index, uint64_t seed);

/// The program of a seed: one made for a cell where the seed says so, else a random one.
Program generate(uint64_t seed);

}  // namespace castor::fuzz
