// SPDX-License-Identifier: Apache-2.0
// The parameters of slices, from types or from the operands of a call.
#pragma once

#include "runtime/nest_call.hpp"
#include "runtime/requantization.hpp"

namespace castor::detail {

/// Reads the parameters of one side.
class SideReader {
 public:
  /// `nest` and `memory` are not looked at where the type has all parameters: null then.
  SideReader(const BoundSide& side, const BoundNest* nest, const CallMemory* memory);

  /// In the order of quantization_rules: scale, frac, zero point. One entry stands for all slices
  /// where there is but one.
  std::array<int32_t, 3> at(int64_t slice) const;

 private:
  struct Parameter {
    const std::byte* data = nullptr;  ///< of `element`; null: entries of the type
    int64_t stride = 1;               ///< in elements
    ElementType element = ElementType::i16;
    const std::vector<int32_t>* entries = nullptr;  ///< null: the default
    int32_t otherwise = 0;
    bool is_per_slice = false;

    int32_t at(int64_t slice) const;
  };
  std::array<Parameter, 3> parameters_;
};

/// Both sides.
class SliceReader {
 public:
  SliceReader(const BoundSide& from, const BoundSide& to, const BoundNest* nest,
              const CallMemory* memory)
      : from_(from, nest, memory), to_(to, nest, memory) {}

  jit::SliceParameters at(int64_t slice) const;

 private:
  SideReader from_;
  SideReader to_;
};

/// The constants of all slices by a method, one array after the other: `write(index, slice, bits)`.
/// False, with some of them written, where the method cannot do a slice.
template <class Write>
bool prepare_slices(const jit::RequantizeMethod& method, const jit::RequantizeForm& form,
                    const SliceReader& reader, int64_t slices, jit::Effort effort,
                    const Write& write) {
  const size_t count = method.constants(form).size();
  for (int64_t slice = 0; slice < slices; ++slice) {
    const auto constants = method.prepare(form, reader.at(slice), effort);
    if (!constants) return false;
    for (size_t i = 0; i < count; ++i) write(i, slice, (*constants)[i]);
  }
  return true;
}

}  // namespace castor::detail
