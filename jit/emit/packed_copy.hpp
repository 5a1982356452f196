// SPDX-License-Identifier: Apache-2.0
// Sub-byte elements that a nest stores as they are: their bytes are copied, and never unpacked.
#pragma once

#include <memory>
#include <vector>

#include "jit/emit/packed_loop.hpp"

namespace castor::jit {

/// Copies the bytes of elements that keep their codes and their storage.
class PackedCopy final : public PackedLoop {
 public:
  /// Null where codes or their order in bytes change. `map`: what becomes of each code.
  static std::unique_ptr<PackedCopy> of(ElementType from, ElementType to,
                                        const std::vector<uint8_t>& map, const Target& target);

  std::string_view name() const override { return "copy"; }
  /// Those of three or four vectors of whole bytes.
  int elements() const override { return vectors_ * vector_bits_ / element_bits_; }
  void emit(Stores stores, LaneEmitter& emitter, const Frame& frame,
            NestLoops& loops) const override;

 private:
  PackedCopy(int element_bits, int vector_bits);

  int element_bits_;
  int vector_bits_;
  int vectors_;  ///< three hold whole groups of eight elements of 3 and 6 bits
};

}  // namespace castor::jit
