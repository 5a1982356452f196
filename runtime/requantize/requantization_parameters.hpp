// SPDX-License-Identifier: Apache-2.0
// The parameters of slices in a call, and the constants that methods make of them.
#pragma once

#include <array>
#include <span>

#include "jit/requantize/plan.hpp"
#include "runtime/call/nest_call.hpp"
#include "runtime/requantize/requantize_step.hpp"

namespace castor::detail {

/// Reads parameters: from the types, and from the operands of a call, which are those of the step.
class SliceReader {
 public:
  SliceReader(const BoundRequantization& requantization, std::span<const StepOperand> operands,
              const CallMemory& memory);

  jit::SliceParameters at(int64_t slice) const;

 private:
  /// A parameter that is an operand.
  struct Operand {
    int32_t jit::SliceParameters::*parameter = nullptr;
    const std::byte* data = nullptr;
    ElementType element = ElementType::i16;
    int64_t step = 0;  ///< from one slice's entry to the next one's, in elements
  };
  void add(const BoundSide& side, std::span<int32_t jit::SliceParameters::*const> parameters,
           std::span<const StepOperand> operands, const CallMemory& memory);

  QuantizationPtr from_;
  QuantizationPtr to_;
  std::array<Operand, 6> operands_;
  size_t count_ = 0;
};

/// The constants of all slices, an array of each: `slices` entries, several times over.
struct ConstantArrays {
  std::span<const ElementType> types;
  int64_t slices = 1;
  int64_t copies = 1;
  std::array<std::byte*, jit::max_slice_constants> data = {};

  size_t bytes_of(size_t array) const {
    return static_cast<size_t>(*byte_size(types[array], slices * copies));
  }
  void set(int64_t slice, const jit::SliceConstants& constants) const;
  /// Once all slices are set: the copies.
  void repeat() const;
};

}  // namespace castor::detail
