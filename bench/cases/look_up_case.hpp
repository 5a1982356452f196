// SPDX-License-Identifier: Apache-2.0
// One look-up of the benchmark, and its function.
#pragma once

#include <string>
#include <vector>

#include "bench/cases/functions.hpp"

namespace castor::bench {

/// What has a table: the tensor, each plane of an image [N, C, H, W], or each channel of
/// [N, H, W, C].
enum class Tables : uint8_t { tensor, nchw, nhwc };

struct LookUpCell {
  ElementType codes;
  ElementType element;
  Tables tables;
  bool is_constant = false;  ///< the table is a constant of the function

  /// "LookUp/u8/u8/nchw", with "/constant".
  std::string name() const;
  TypePair pair() const { return {codes, element}; }
  /// The extents of tensors of that many elements, a multiple of 4096.
  Dims extents(int64_t elements) const;
  Dims table_extents() const;
  /// The entries of a constant are `table`.
  Result<FunctionPtr> function(const Dims& extents, std::span<const std::byte> table) const;
};

/// Every benchmark of a look-up.
std::vector<LookUpCell> look_up_cells();

}  // namespace castor::bench
