// SPDX-License-Identifier: Apache-2.0
// Pooling: its windows and its result's type.
// Source: ONNX, MaxPool-12 without indices; ir/README.md, Pooling.
#pragma once

#include <vector>

#include "ir/function.hpp"
#include "ir/shape/convolution.hpp"
#include "ir/support/export.hpp"

namespace castor {

/// The windows of one pooling: those of a convolution with these axes.
struct PoolingGeometry {
  int first_axis = 0;  ///< the operand's first spatial axis; the others follow
  std::vector<ConvolutionAxis> axes{};

  /// The operand's axis that spatial axis `i` is.
  int axis_at(size_t i) const { return first_axis + static_cast<int>(i); }
};

/// The geometry for an operand of those extents. The error names the attribute, what was found and
/// what was expected.
CASTOR_API Result<PoolingGeometry> pooling_geometry(const Operation& operation, const Dims& x);

/// What each kernel position of a verified operation takes of an operand that has its padding
/// around it: of every axis the elements from `begins` on, `steps` apart.
struct PoolingTaps {
  Dims steps;
  std::vector<Dims> begins{};  ///< by kernel position, in row-major order
};
CASTOR_API PoolingTaps pooling_taps(const Operation& operation, int rank);

/// The result's extents.
CASTOR_API Result<Dims> pooled_extents(const Operation& operation, const Dims& x);

/// The result's type. Unknown extents are as in convolution_type.
CASTOR_API Result<TensorType> pooling_type(const Operation& operation, const TensorType& x);

}  // namespace castor
