// SPDX-License-Identifier: Apache-2.0
// What proofs of packers have in common.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "ir/support/result.hpp"

namespace castor::prove::packed_layout {

inline constexpr int lanes = 16;
inline constexpr int elements = 4;  ///< in a k group
inline constexpr int vector_bytes = 64;
inline constexpr uint32_t sign_flips = 0x8080'8080;

inline Error wrong_layout(std::string_view what) {
  return {ErrorCode::internal, fmt::format("{} is not what the packed layout has there", what)};
}

}  // namespace castor::prove::packed_layout
