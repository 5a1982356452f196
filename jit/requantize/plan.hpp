// SPDX-License-Identifier: Apache-2.0
// What a requantization of a function becomes: its form, the methods for it, and their nests.
#pragma once

#include <vector>

#include "ir/function.hpp"
#include "jit/plan/nest.hpp"
#include "jit/requantize/method.hpp"

namespace castor::jit {

/// The form of a `requantize` operation; nothing where f32 is copied to f32.
std::optional<RequantizeForm> requantize_form(const Function& function, const Operation& operation);

/// The axis of quantization of either side, or Quantization::per_tensor.
int requantize_axis(const QuantizationPtr& from, const QuantizationPtr& to);

/// The parameters of a slice that the types have; those given at run time are the defaults. One
/// entry stands for all slices where there is but one.
SliceParameters slice_parameters(const QuantizationPtr& from, const QuantizationPtr& to,
                                 int64_t slice);

/// A method, and the constants of all slices.
struct ChosenMethod {
  const RequantizeMethod* method = nullptr;
  std::vector<SliceConstants> constants;
};
/// The fastest method that does every slice of types that have all parameters.
ChosenMethod choose_method(const RequantizeForm& form, const QuantizationPtr& from,
                           const QuantizationPtr& to, int64_t slices);

/// Tensors over the same extents, and the axis of quantization or Quantization::per_tensor.
struct RequantizedTensors {
  Dims extents;
  Dims source_strides;
  Dims destination_strides;
  int axis = Quantization::per_tensor;
};

/// Tensors whose rows are joined, and how often the constants of all slices are repeated one after
/// another for that, so that the innermost axis is long.
struct LongSlices {
  RequantizedTensors tensors;
  int64_t copies = 1;
};
/// Joins rows to at most `max_elements` elements where the axis of quantization is the innermost,
/// and short, and the tensors are dense.
LongSlices join_rows(const RequantizedTensors& tensors, int64_t max_elements);
/// Up to how many elements joining rows pays for any of these methods. `is_open`: parameters are
/// given at run time, so that each call repeats the constants.
int64_t max_joined_elements(std::span<const RequantizeMethod* const> methods,
                            const RequantizeForm& form, bool is_open);

/// The nest that computes by a method: operands are x, the constants of slices, and the result.
Nest requantize_nest(const RequantizeMethod& method, const RequantizeForm& form,
                     const Target& target);

/// Strides of such a nest over the tensors' extents: constants have one along the axis of
/// quantization.
std::vector<Dims> requantize_strides(const Nest& nest, const RequantizedTensors& tensors);

/// Elements of one slice that are consecutive in both tensors: the last axes from `first` on.
struct SliceRun {
  int first = 0;
  int64_t elements = 1;
};
SliceRun slice_run(const RequantizedTensors& tensors);

/// Whether bytes are looked up in a table of 256 for each slice, which a method makes. `is_open`:
/// parameters are given at run time, so that each call makes its tables.
bool takes_byte_tables(const RequantizeForm& form, const Target& target, int64_t run,
                       int64_t elements_of_slice, bool is_open);

}  // namespace castor::jit
