// SPDX-License-Identifier: Apache-2.0
// Gives codes of small floats their signs, which lanes beside them have in their highest bit
// (AVX2).
#pragma once

#include "ir/types/element_type.hpp"
#include "jit/emit/lane_emitter.hpp"

namespace castor::jit {

class CodeSigns {
 public:
  CodeSigns() = default;
  explicit CodeSigns(ElementType element);

  /// The constant for lanes of that width.
  void reserve_constants(LaneEmitter& emitter, int lane_bits) const;
  /// Lanes of 8 or 32 bits: `codes`, without a sign, get that of `signs`, which is overwritten.
  void emit(LaneEmitter& emitter, const Xbyak::Xmm& codes, const Xbyak::Xmm& signs,
            int lane_bits) const;

 private:
  std::vector<uint8_t> sign_bits(int lane_bits) const;

  bool has_one_zero_ = false;  ///< fnuz: zero has no sign
  int code_bits_ = 8;
};

}  // namespace castor::jit
