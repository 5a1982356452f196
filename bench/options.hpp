// SPDX-License-Identifier: Apache-2.0
// The command line: what this program takes itself, and what it leaves to Google Benchmark.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <castor/castor.hpp>

#include "ir/support/result.hpp"
#include "jit/target.hpp"

namespace castor::bench {

struct Options {
  std::optional<jit::Tier> tier;  ///< --castor_isa=TIER
  /// --benchmark_min_time=SECONDS: spent on each conversion in the caches; six times as much on
  /// each in memory.
  double cell_seconds = 0.1;
  /// --castor_stores=automatic|cached|streaming: in memory. On a machine whose outermost cache is
  /// larger than the footprint, `automatic` stores through the caches.
  StorePolicy stores = StorePolicy::automatic;
  bool writes_file = false;      ///< --benchmark_out=FILE is given
  bool file_is_json = true;      ///< by --benchmark_out_format
  bool displays_text = true;     ///< by --benchmark_format
  std::vector<char*> remaining;  ///< the program's name and everything but --castor_...
};

/// Reads the arguments. Fails (invalid_argument) at an unknown tier or policy, or a time that is no
/// number.
Result<Options> read_options(int argc, char** argv);

}  // namespace castor::bench
