// SPDX-License-Identifier: Apache-2.0
// What proofs of packers have in common.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "ir/support/result.hpp"

namespace castor::prove {

inline constexpr int packed_lanes = 16;
inline constexpr int packed_elements = 4;  ///< in a k group
inline constexpr int packed_vector_bytes = 64;
inline constexpr uint32_t packed_sign_flips = 0x8080'8080;

inline Error wrong_layout(std::string_view what) {
  return {ErrorCode::internal, fmt::format("{} is not what the packed layout has there", what)};
}

}  // namespace castor::prove
