// SPDX-License-Identifier: Apache-2.0
// Packing of dense convolutions' weights: by generated code, and by loops where there is none.
#pragma once

#include <span>
#include <vector>

#include "jit/conv/dense_plan.hpp"
#include "jit/conv/pack/pack_weights.hpp"
#include "runtime/cache/code_cache.hpp"

namespace castor::detail {

/// Weights as kernels read them.
template <class Int>
struct DenseWeights {
  std::span<Int> k_groups;  ///< by group, channel tile, k step and channel of the tile
  /// By output channel, the sum of its weights as the kernel has them, but for zero points that
  /// i16 pairs are without; 0 where pixels are less x's zero point, so that nothing needs it.
  std::span<Int> sums;
};

/// Weights as a call has them.
struct WeightInput {
  const std::byte* w = nullptr;  ///< row-major
  bool is_signed = false;
  const int32_t* zero_points = nullptr;  ///< by output channel; i16 pairs are less them
};

/// The weights of one output channel as packing sees them. Where k steps are listed, they are the
/// k groups of a filter of one position.
struct WeightExtents {
  int64_t channels = 0;  ///< of input
  int64_t k_groups = 0;  ///< of channels
  int64_t slices = 1;
  int64_t in_slice = 1;    ///< positions along the last two axes
  bool is_listed = false;  ///< in an order of their own, not that of memory

  int64_t positions() const { return slices * in_slice; }
};

/// How a plan's weights are packed: in units along the positions of large filters, else along the
/// k groups.
struct WeightPackers {
  struct Unit {
    jit::PackWeights spec;
    KernelCodePtr<jit::PackWeights> code;  ///< null where loops do it
  };
  /// Units at the same positions of the filter, whose k groups follow each other.
  struct Range {
    bool is_last = false;  ///< whether they are packed as `last`
    int64_t count = 0;
    int64_t whole = 0;     ///< the first ones, all of whose input channels there are
    int64_t channel = 0;   ///< their first input channel
    int64_t position = 0;  ///< their first position in the filter
    int64_t k_step = 0;    ///< their first k step
  };
  WeightExtents extents;
  Unit whole;
  Unit last;  ///< of what whole units leave; has no slots where that is nothing
  std::vector<Range> ranges;
};
Result<WeightPackers> find_weight_packers(const jit::DensePlan& plan, const jit::Target& target,
                                          CodeCache& cache);

/// K groups of all packed weights.
size_t packed_k_groups(const jit::DensePlan& plan);
/// K groups of a whole tile's packed weights.
int64_t tile_k_groups(const jit::DensePlan& plan);
/// Where the packed weights of a group's tile begin, in k groups.
int64_t packed_tile(const jit::DensePlan& plan, int64_t group, int64_t tile);

/// The parts of packed weights that begin at `data`.
template <class Int>
DenseWeights<Int> packed_weights(const jit::DensePlan& plan, Int* data) {
  const size_t count = packed_k_groups(plan);
  return {{data, count}, {data + count, static_cast<size_t>(plan.geometry.out_channels)}};
}

/// Whether packing all weights is faster than tile by tile: groups have few output channels.
bool packs_groups_at_once(const jit::DensePlan& plan);
/// Packs all weights, and adds them up.
void pack_weights(const jit::DensePlan& plan, const WeightPackers& packers,
                  const WeightInput& input, const DenseWeights<int32_t>& to);
/// Packs one tile of a group alone to `to`, and adds up its channels.
void pack_weight_tile(const jit::DensePlan& plan, const WeightPackers& packers,
                      const WeightInput& input, int64_t group, int64_t tile, int32_t* to,
                      int32_t* sums);

}  // namespace castor::detail
