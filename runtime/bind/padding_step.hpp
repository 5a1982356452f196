// SPDX-License-Identifier: Apache-2.0
// Steps that fill what is around a tensor in scratch, for windows that reach beyond it.
#pragma once

#include "ir/shape/shape.hpp"
#include "runtime/bind/step_base.hpp"

namespace castor::detail {

/// One tensor with padding, which is dense. Another step writes what is inside.
struct PaddingStep : StepBase {
  Dims extents;  ///< with the padding
  Dims begins;   ///< by axis, indices of padding before the tensor
  Dims ends;     ///< and where it ends
  int64_t element_bytes = 0;
  uint64_t value = 0;  ///< bits of each element of the padding

  bool has_padding(int axis) const { return begins[axis] > 0 || ends[axis] < extents[axis]; }
};

}  // namespace castor::detail
