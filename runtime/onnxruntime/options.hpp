// SPDX-License-Identifier: Apache-2.0
// The provider's options, as applications give them.
#pragma once

#include <optional>

#include "jit/target.hpp"
#include "runtime/onnxruntime/host.hpp"

namespace castor::onnxruntime {

inline constexpr const char* provider_name = "CastorExecutionProvider";

struct Options {
  std::optional<jit::Tier> isa{};  ///< nothing: the best that the machine has
  int threads = 1;        ///< tasks that a call is split into at most; default: CPUs of the process
  double min_gain = 1;    ///< how many times faster a group is expected to be for it to be taken
  bool perf_map = false;  ///< write /tmp/perf-PID.map, in which perf finds the kernels' names
  bool explain = false;   ///< say for each node why it is left, as warnings
  bool is_enabled = true;  ///< false where the session writes compiled models, which castor cannot
};

/// Reads `isa`, `threads`, `min_gain`, `perf_map` and `explain`. Refuses (invalid_argument) values
/// that make no sense; the message names the option, what was found and what was expected.
Result<Options> read_options(const Host& host, const abi::OrtSessionOptions* session);

}  // namespace castor::onnxruntime
