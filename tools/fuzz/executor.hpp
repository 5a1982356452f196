// SPDX-License-Identifier: Apache-2.0
// Running prepared programs as machine code between guard pages, and comparing.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "castor/castor.hpp"
#include "tools/fuzz/finding.hpp"
#include "tools/fuzz/spoil.hpp"

namespace castor::fuzz {

/// Changes a call's outputs before they are compared: how tests plant mismatches.
using Tamper = std::function<void(const Prepared&, std::span<const View> outputs)>;

/// How a call went: what it found in its runtime's cache, and what ran.
struct CallTrace {
  bool found_function = false;
  bool found_code = false;
  bool emitted_code = false;
  bool refused_in_place = false;  ///< as it had to be
  bool refused_extents = false;   ///< as it had to be
  std::optional<BoundKernel> bound;
};

/// Owns pages for every tensor and two runtimes for each tier, the second one's code with
/// frame pointers, for the life of a run. A read or
/// write beyond the pages ends the process with SIGSEGV: whoever wants to survive that runs in a
/// child. Not thread safe.
class Executor {
 public:
  /// Fails where a runtime cannot be made. May throw std::bad_alloc.
  static Result<Executor> create(const std::vector<Tier>& tiers, Tamper tamper = {});

  /// Copies the program's images into the pages, runs it on that tier and compares every byte.
  Finding run(const Prepared& prepared, size_t tier, CallTrace& trace);

 private:
  Executor() = default;

  Call lay_out(const Prepared& prepared);
  /// Runs the program's bad call, then the program; what was refused that should not be, or the
  /// other way round.
  Finding run_kernel(const Prepared& prepared, const Runtime& runtime, const Call& call,
                     CallTrace& trace);
  Finding run_bound(const Prepared& prepared, const BoundKernel& bound, const Call& call,
                    CallTrace& trace);
  Finding run_with_bad_scale(const Prepared& prepared, const BoundKernel& bound, const Call& call);
  Finding compare(const Prepared& prepared);
  Finding compare_result(const Prepared& prepared, size_t result);
  Finding compare_input(const Prepared& prepared, size_t input, std::span<const std::byte> wanted);
  Finding compare_untouched(const Prepared& prepared);
  std::byte* base_of_result(const Prepared& prepared, size_t result);
  test::GuardedPages& input_pages(size_t input) { return pages_[input]; }
  test::GuardedPages& output_pages(size_t output);

  std::deque<test::GuardedPages> pages_;
  std::vector<Runtime> runtimes_;  ///< by tier, without frame pointers and with them
  Tamper tamper_;
};

}  // namespace castor::fuzz
