// SPDX-License-Identifier: Apache-2.0
// Source tensors of values that slow arithmetic down on some machines.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "bench/cases/functions.hpp"

namespace castor::bench {

enum class Special : uint8_t {
  nan,
  infinity,
  subnormal,         ///< the source's; f8e8m0: its 2^-127, which is one of f32
  subnormal_result,  ///< values that the destination rounds to subnormals
  mixed,             ///< all that the source has, zeros, and numbers near the largest
};
inline constexpr std::array all_specials = {Special::nan, Special::infinity, Special::subnormal,
                                            Special::subnormal_result, Special::mixed};
/// "subnormal_result".
std::string_view name_of(Special special);

/// `count` elements of the pair's source, all of that kind, of either sign where there are signs,
/// in random order; nothing where the formats have none. Depends on its arguments alone.
std::optional<std::vector<std::byte>> special_tile(Special special, const TypePair& pair,
                                                   size_t count);

}  // namespace castor::bench
