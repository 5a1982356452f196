// SPDX-License-Identifier: Apache-2.0
// A call of the dense microkernel: each result is the sum of products that its tables ask for, less
// the zero-point compensation, or the epilogue of that sum.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tools/prove/kernel/epilogue_proof.hpp"
#include "tools/prove/kernel/k_loop_proof.hpp"
#include "tools/prove/kernel/products.hpp"

namespace castor::prove {

/// How much a call does.
struct DenseCounts {
  int k_steps = 1;
  int k_groups = 2;  ///< where the tile loops over them
  int tiles = 1;
  int channel_tiles = 1;
};

/// A pixel of the call: where its input is, and its number among the results.
struct Pixel {
  int64_t source = 0;      ///< bytes of the input from the first one
  int64_t window_sum = 0;  ///< the number of its window sum
  int64_t result = 0;
};

/// One call of the microkernel.
class DenseCall {
 public:
  DenseCall(const KernelSubject<jit::DenseTile>& kernel, const DenseCounts& counts,
            ResultProver& prover)
      : tile_(kernel.spec),
        lanes_(kernel.target.vector_bits() / 32),
        counts_(counts),
        prover_(prover) {}

  /// Adds the operands, each of which has exactly what the call may touch.
  void lay_out(KernelCall& call);
  const jit::DenseArguments& arguments() const { return arguments_; }

  /// The call's numbers at the begin of the loop over k steps, in a k group of a tile, after some
  /// of its k steps; `k_steps` are those of the call, peeled ones included.
  KLoopNumbers loop_numbers(int tile, int64_t group, int k_steps_done, const Word& k_steps) const;

  /// The address of a register tile's entry in the call's table, and the entry's bytes.
  Word address_of_tile(int tile) const;
  std::span<const std::byte> bytes_of_tile(int tile) const;
  /// `compare` leaves out results of other tiles from now on.
  void look_at_tile(int tile);

  /// From here on, after the loop over the k steps of the only tile, the accumulators may hold
  /// anything.
  void forget_sums(const Accumulators& sums, SymbolMachine& machine);

  /// Whether all results, and packed input, are what they must be. Fails (internal), naming the
  /// first that is not.
  Status compare(KernelCall& call);

 private:
  using Origin = jit::TileOrigin;

  bool is_along_pixels() const { return tile_.vectorised == jit::Vectorised::pixels; }
  /// Pixels, of which some may not be stored.
  int pixels_of_tile() const { return is_along_pixels() ? lanes_ * tile_.vectors : tile_.pixels(); }
  bool takes_input() const { return tile_.source != jit::PixelSource::packed; }
  int element_bytes() const { return jit::bytes_of_channel(tile_.engine); }
  /// Bytes of a k group of weights.
  int weight_bytes() const { return elements() * element_bytes(); }
  int elements() const { return jit::channels_of_k_group(tile_.engine); }
  int64_t channels() const { return int64_t{tile_.channels} * counts_.channel_tiles; }
  /// Bytes of a pixel that a k step takes.
  int64_t step_bytes() const { return tile_.has_tiles() ? tile_.step_bytes : 4; }
  int64_t k_groups() const { return tile_.loops_k_groups ? counts_.k_groups : 1; }
  /// Output channels that a k step has weights of.
  int64_t weight_width() const;
  int64_t weight_steps() const { return counts_.k_steps * k_groups() * step_bytes() / 4; }
  /// Channels that are read of what is by channel: whole vectors of the last tile.
  int64_t read_channels() const {
    return int64_t{tile_.channels} * (counts_.channel_tiles - 1) + weight_width();
  }
  /// The same pitch for all tiles of registers: pixels are apart by whole k steps.
  int64_t pixel_step() const {
    return tile_.has_tiles() ? step_bytes() * counts_.k_steps : tile_.pixel_step;
  }
  int64_t row_step() const { return tile_.row_step; }

  /// Vectors of pixels, of which the last one, or with compression each, has lanes that are not
  /// stored.
  void lay_out_vectors();

  /// Tiles whose pixels follow each other in the output, and begin anywhere in the input.
  void lay_out_origins();

  /// jit::DenseTile::source_offset, with the step that the call has.
  int64_t source_offset(int position) const;

  void lay_out_operands(KernelCall& call);
  void set_pixel_tile_steps();
  void lay_out_zero_points(KernelCall& call);

  /// Whether results of a pixel, not of a channel, follow each other.
  bool has_rows_of_channels() const {
    return !is_along_pixels() && tile_.store != jit::StorePolicy::transposed;
  }

  void lay_out_results(KernelCall& call);

  // ---- what must be stored

  Status compare_result(KernelCall& call, const Pixel& pixel, int64_t channel);
  Term sum_of(const Pixel& pixel, int64_t channel) const;

  /// The first one that the code still does: with forgotten sums only peeled ones.
  int first_k_step() const { return sums_ ? counts_.k_steps - tile_.peeled_k_steps : 0; }

  /// The sum of a pixel and a channel after the loop; without a channel its window sum.
  Term forgotten_sum(const Pixel& pixel, std::optional<int64_t> channel) const;

  /// The k group that a k step takes of a pixel, as it is multiplied.
  std::vector<Term> pixels_of(const Pixel& pixel, int64_t group, int k, int64_t byte) const;

  std::span<const Term> weights_of(int64_t channel, int64_t step) const;

  /// The window sum times the zero point; of words the sum of their products with its sign changed.
  Term compensation(const Pixel& pixel, int64_t channel) const;

  Term own_window_sum(const Pixel& pixel) const;

  /// The input that the kernel packs for others.
  Status compare_packed(KernelCall& call);

  const jit::DenseTile& tile_;
  const int lanes_;
  const DenseCounts counts_;
  ResultProver& prover_;

  std::vector<Pixel> pixels_;
  std::vector<jit::ConvStore> stores_;
  std::vector<Origin> origins_;
  std::vector<int32_t> offsets_;
  int64_t results_of_row_ = 0;  ///< pixels of the output
  int64_t read_bytes_ = 0;      ///< that the first k step reads of the input
  int64_t k_group_step_ = 0;
  CallOperand x_, w_, start_, zero_points_, window_sums_, input_;
  uint64_t planes_ = 0;
  uint64_t output_ = 0;
  int64_t row_bytes_ = 0;
  std::optional<EpilogueCall> operands_;
  std::optional<std::pair<Accumulators, SymbolMachine>> sums_;  ///< where they were forgotten
  jit::DenseArguments arguments_;
};

}  // namespace castor::prove
