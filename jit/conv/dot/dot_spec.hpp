// SPDX-License-Identifier: Apache-2.0
// The kernel of dot products: rows of weights by pixels. Both are stored along K, and vectors are
// loaded along K, so that nothing is transposed. An accumulator has the products of one output
// channel and one pixel; its lanes are added up at the end.
//
// Weights are read as they are stored. Dense kernels would pack those of a call first, and, without
// products of bytes, constant ones as i16 pairs, twice as many bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ir/support/result.hpp"
#include "jit/code.hpp"
#include "jit/conv/dot_product.hpp"
#include "jit/emit/emit_options.hpp"
#include "jit/kernel/spec.hpp"
#include "jit/target.hpp"

namespace castor::jit {

struct DotArguments;

/// Everything that the code depends on besides the target.
struct DotTile {
  static constexpr std::string_view name = "dot";
  using Arguments = const DotArguments;

  static constexpr int channels = 4;    ///< output channels at a time
  static constexpr int max_pixels = 6;  ///< whose accumulators there may be registers for

  /// Not tile registers. Of bytes, `u8_i8_dot` for signed weights, `i8_u8_dot` for unsigned ones.
  ProductEngine engine = ProductEngine::u8_i8_dot;
  int pixels = 1;
  /// Whether K is no multiple of a step: then the last step overlaps the one before, and pixels
  /// have zeros there.
  bool has_tail = false;
  bool w_is_signed = false;  ///< how weights are widened, for i16 pairs
  /// Whether weights are added up, because packed pixels still have their zero point: only where
  /// bytes are multiplied.
  bool sums_weights = false;
  bool has_zero_points = false;  ///< whether weights have some, by output channel

  /// Rows of accumulators: pixels, and the sums of weights.
  int rows() const { return pixels + (sums_weights ? 1 : 0); }

  static constexpr auto fields(const auto& list) {
    return list(field("engine", &DotTile::engine), field("pixels", &DotTile::pixels),
                field("tail", &DotTile::has_tail), field("signed_w", &DotTile::w_is_signed),
                field("sums_weights", &DotTile::sums_weights),
                field("zero_points", &DotTile::has_zero_points));
  }
};

/// The engine of vectors for weights of that sign.
ProductEngine dot_engine(bool w_is_signed, const Target& target);

/// Weights of an output channel that a step takes: a vector of bytes, or half of one, widened.
int dot_step(ProductEngine engine, const Target& target);

/// Whether the target has the engine, and registers for accumulators and operands, and the spec has
/// nothing that its engine does not use.
bool fits(const DotTile& tile, const Target& target);

/// The argument of the code. Output channels are taken four at a time, the last four perhaps with
/// some of those before; so are the pixels of the last tile.
struct DotArguments {
  /// Packed pixels: tile by tile, step by step, a vector of each pixel; the last step of a tail
  /// begins with zeros, for weights that an earlier step has multiplied.
  const std::byte* pixels = nullptr;
  const std::byte* weights = nullptr;  ///< the first output channel's
  int64_t channel_step = 0;            ///< bytes from one output channel's weights to the next's
  int64_t steps = 0;                   ///< whole ones, at least 1
  int64_t tail = 0;  ///< bytes from where the next whole step would be to that of the tail
  /// Where weights are added up: for the step of the tail a vector of bytes, 1 for each weight that
  /// others have not, else 0.
  const std::byte* tail_ones = nullptr;
  int64_t last_channel = 0;  ///< the first one of the last four
  int64_t tiles = 0;         ///< at least 1
  /// By pixel as packed: the sum of its channels less the zero point. Where weights have some.
  const int32_t* pixel_sums = nullptr;
  const int32_t* weight_zero_points = nullptr;  ///< by output channel
  int64_t input_zero_point = 0;                 ///< packed pixels', in the low 32 bits
  int32_t* output = nullptr;                    ///< first channel of the first pixel
  int64_t output_step = 0;                      ///< bytes from one pixel to the next
  int32_t* last_output = nullptr;  ///< first channel of the first pixel of the last tile
};

/// Emits the code. A pure function of its arguments.
Result<MachineCode> emit_kernel(const DotTile& tile, const Target& target,
                                const EmitOptions& options = {});

}  // namespace castor::jit
