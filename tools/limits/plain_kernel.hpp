// SPDX-License-Identifier: Apache-2.0
// Plain kernels: loops that only load some tensors' bytes and store another's. What the machine
// allows to any code that moves equally many bytes; the denominator of stream_fraction.
#pragma once

#include <xbyak/xbyak.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "jit/target.hpp"
#include "tools/limits/measure.hpp"

namespace castor::limits {

/// Bits of an element loaded and of one stored.
struct Ratio {
  int source_bits = 8;
  int destination_bits = 8;
};

/// The tensors of a plain kernel, each aligned to 64 or nearly so.
struct PlainTensors {
  std::vector<std::span<const std::byte>> sources;
  std::span<std::byte> destination;

  size_t bytes() const;
};

/// Vectors that one group of a plain kernel moves.
struct Streams {
  std::vector<int> loads;  ///< from each source; 0 as for stores
  int stores = 1;          ///< 0: of a tensor that is too small beside the others to count

  int vectors() const;
  friend auto operator<=>(const Streams&, const Streams&) = default;
};
Streams streams_of(const Ratio& ratio);
/// As near to the tensors' bytes as a group of few vectors comes: within 1 %, where possible.
/// Tensors of less than a 48th of all bytes are left out.
Streams streams_of(const PlainTensors& tensors);

/// Maximum number of sources that a plain kernel loads.
inline constexpr size_t max_sources = 6;

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
std::vector<PlainVariant> all_plain_variants(const Streams& streams);
/// Those of them that the host runs; with non-temporal stores only when asked for.
std::vector<PlainVariant> plain_variants(const Streams& streams, const jit::Host& host,
                                         bool non_temporal);

/// The least number of elements that a variant moves in whole iterations: of types of 3 or 6 bits
/// no element ends where an iteration does, but every few.
int64_t whole_iterations(const Ratio& ratio, const PlainVariant& variant);

/// Code of one variant. Every byte of the sources is loaded once and every byte of the destination
/// stored once (with bytes just loaded), in ascending order, in full vectors. The last bytes, too
/// few for an iteration, are left out.
class PlainKernel {
 public:
  PlainKernel(const Streams& streams, const PlainVariant& variant);

  const PlainVariant& variant() const { return variant_; }
  /// How much of the tensors' bytes the kernel moves, at most 1; 0 where no iteration fits.
  double fraction(const PlainTensors& tensors) const;

  /// The tensors have at least one iteration's bytes. Valid while this object lives.
  Contender contender(const PlainTensors& tensors) const;

 private:
  size_t iterations(const PlainTensors& tensors) const;
  /// Bytes that one iteration moves of a tensor from which a group moves that many vectors.
  size_t bytes_of(int vectors) const;
  void emit();

  Streams streams_;
  PlainVariant variant_;
  Xbyak::CodeGenerator code_;
};

}  // namespace castor::limits
