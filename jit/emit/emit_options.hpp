// SPDX-License-Identifier: Apache-2.0
// What emitters are asked for besides code. Data: no emitter's header is included.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace castor::jit {

/// Their defaults are code alone, as the cache wants it.
struct EmitOptions {
  /// Whether the code has notes, loops and lanes. They do not change its bytes.
  bool annotate = false;
  /// Text of the IR operation with that index, for notes; may be empty.
  std::function<std::string(uint32_t)> origin_text{};
};

}  // namespace castor::jit
