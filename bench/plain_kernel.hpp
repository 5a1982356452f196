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

/// The variants that the host runs: 256 and 512 bits, unrolled 1, 2 and 4 times, cached and, when
/// asked for, non-temporal stores.
std::vector<PlainVariant> plain_variants(const jit::Host& host, bool non_temporal);

/// Code of one variant. Every byte of the source is loaded once and every byte of the destination
/// stored once (with bytes just loaded), in ascending order, in as many loads and stores of full
/// vectors as the ratio asks for.
class PlainKernel {
 public:
  PlainKernel(const Ratio& ratio, const PlainVariant& variant);

  const PlainVariant& variant() const { return variant_; }
  /// Bytes of the source that one iteration loads.
  size_t iteration_bytes() const { return iteration_bytes_; }

  /// `source_bytes` is a multiple of iteration_bytes(); the destination has the bytes that the
  /// ratio gives it and is aligned to 64. Valid while this object lives.
  Contender contender(const std::byte* source, std::byte* destination, size_t source_bytes) const;

 private:
  PlainVariant variant_;
  size_t iteration_bytes_;
  Xbyak::CodeGenerator code_;
};

}  // namespace castor::bench
