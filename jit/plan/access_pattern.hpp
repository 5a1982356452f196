// SPDX-License-Identifier: Apache-2.0
// Strides of operands over a nest's iteration space, and the form that follows from them.
#pragma once

#include <optional>

#include "ir/verify/infer.hpp"
#include "jit/plan/nest.hpp"

namespace castor::jit {

/// Strides over the iteration space's axes of a tensor whose axis i is axis `axes[i]` of them; 0
/// where the tensor repeats its elements.
Dims strides_in_space(const Dims& axes, const Dims& extents, const Dims& strides,
                      const Dims& space_extents);

/// Strides of a reshaped view of a tensor: the same elements in row-major order; 0 where there are
/// none. Nothing where no strides can say so.
std::optional<Dims> reshaped_strides(const Dims& extents, const Dims& strides, const Dims& target);

/// The iteration space of a nest, periods merged. `strides[k]` are the strides of operand k over
/// the extents of the space; none of these is 0.
IterationSpace nest_space(const Nest& nest, const Dims& extents, std::span<const Dims> strides,
                          const Target& target);

/// Extents of every value of the function if unknown ones are long. Fails where these do not fit.
Result<BoundShapes> likely_shapes(const Function& function);

/// Strides of an epilogue's operands over its space, if tensors are dense.
std::vector<Dims> likely_strides(const Nest& nest, const BoundShapes& shapes);

/// The forms that the nests of a function most likely have: with dense tensors, and unknown extents
/// that are long. The function's extents are bound once for all of its nests.
class LikelyForms {
 public:
  explicit LikelyForms(const Function& function) : shapes_(likely_shapes(function)) {}

  /// The likely form of a nest of the function.
  NestForm form_of(const Nest& nest, const Target& target) const;

 private:
  Result<BoundShapes> shapes_;
};

/// The likely form of one nest; for several nests of a function, LikelyForms takes less time.
inline NestForm likely_form(const Function& function, const Nest& nest, const Target& target) {
  return LikelyForms(function).form_of(nest, target);
}

}  // namespace castor::jit
