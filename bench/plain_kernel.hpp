// SPDX-License-Identifier: Apache-2.0
// Plain kernels: loops that only load one tensor's bytes and store another's. What the machine
// allows to any code that moves as many bytes; the denominator of stream_fraction.
#pragma once

#include <xbyak/xbyak.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "bench/measure.hpp"
#include "jit/target.hpp"

namespace castor::bench {

/// Bits of an element loaded and of one stored.
struct Ratio {
  int source_bits = 8;
  int destination_bits = 8;
  friend auto operator<=>(const Ratio&, const Ratio&) = default;
};

/// One way to write the loop.
struct PlainVariant {
  int vector_bits = 256;
  bool non_temporal = false;  ///< stores past the caches, fenced before the return
  int unroll = 1;             ///< groups of loads and stores in one iteration

  /// "zmm nt x4".
  std::string name() const;
};

/// 256 and 512 bits, cached and non-temporal stores, unrolled 1, 2 and 4 times as far as the loop
/// stays short. The same on every machine, and so the number of elements that is measured.
std::vector<PlainVariant> all_plain_variants(const Ratio& ratio);
/// Those of them that the host runs; with non-temporal stores only when asked for.
std::vector<PlainVariant> plain_variants(const Ratio& ratio, const jit::Host& host,
                                         bool non_temporal);

/// The least number of elements that a variant moves in whole iterations: of types of 3 or 6 bits
/// no element ends where an iteration does, but every few.
int64_t whole_iterations(const Ratio& ratio, const PlainVariant& variant);

/// Code of one variant. Every byte of the source is loaded once and every byte of the destination
/// stored once (with bytes just loaded), in ascending order, in as many loads and stores of full
/// vectors as the ratio asks for.
class PlainKernel {
 public:
  PlainKernel(const Ratio& ratio, const PlainVariant& variant);

  const PlainVariant& variant() const { return variant_; }
  /// Bytes of the source that one iteration loads.
  size_t iteration_bytes() const { return iteration_bytes_; }

  /// `source_bytes` is a multiple of iteration_bytes() and not 0; the destination has the bytes
  /// that the ratio gives it and is aligned to 64. Valid while this object lives.
  Contender contender(const std::byte* source, std::byte* destination, size_t source_bytes) const;

 private:
  PlainVariant variant_;
  size_t iteration_bytes_;
  Xbyak::CodeGenerator code_;
};

}  // namespace castor::bench
