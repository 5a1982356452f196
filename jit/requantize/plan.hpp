// SPDX-License-Identifier: Apache-2.0
// What a requantization of a function becomes: its form, the methods for it, and their nests.
#pragma once

#include <vector>

#include "ir/function.hpp"
#include "jit/nest.hpp"
#include "jit/requantize/method.hpp"

namespace castor::jit {

/// The form of a `requantize` operation; nothing where f32 is copied to f32.
std::optional<RequantizeForm> requantize_form(const Function& function, const Operation& operation);

/// The axis of quantization of either side, or Quantization::per_tensor.
int requantize_axis(const QuantizationPtr& from, const QuantizationPtr& to);

/// The nest that computes by a method: operands are x, the constants of slices, and the result.
Nest requantize_nest(const RequantizeMethod& method, const RequantizeForm& form,
                     const Target& target);

/// Strides of such a nest over the tensors' extents: constants lie along the axis.
std::vector<Dims> requantize_strides(const Nest& nest, const Dims& source, const Dims& destination,
                                     int axis);

/// Elements side by side in both tensors that share a slice: the last axes from `first` on.
struct SliceRun {
  int first = 0;
  int64_t elements = 1;
};
SliceRun slice_run(const Dims& extents, const Dims& source_strides, const Dims& destination_strides,
                   int axis);

/// Whether bytes are looked up in a table of 256 for each slice, which a method makes. `is_open`:
/// parameters are given at run time, so that each call makes its tables.
bool takes_byte_tables(const RequantizeForm& form, const Target& target, int64_t run,
                       int64_t elements_of_slice, bool is_open);

}  // namespace castor::jit
