// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/padded_slices.hpp"

#include <algorithm>

namespace castor::detail {

namespace {

/// Whether a tile's kernel can run that many k steps.
bool takes(const jit::DenseTile& tile, int64_t k_steps) {
  const int64_t others = k_steps - tile.peeled_k_steps;
  return k_steps > 0 && others >= 0 && (tile.peeled_k_steps == 0 || others % 2 == 0);
}

/// Whether k steps are in the order of slices, one k group each.
bool has_slices_in_order(const jit::DensePlan& plan) {
  return plan.slices > 1 && !plan.tile.has_tiles() && !plan.tile.loops_k_groups &&
         plan.k_step_weights.empty();
}

/// Adds a times the weights of some k steps to each channel's value, modulo 2^32.
void add_products(std::span<const int32_t> k_groups, int64_t width, bool is_signed, int32_t a,
                  std::span<int32_t> values) {
  const auto byte_of = [is_signed](int32_t k_group, int shift) {
    return is_signed ? static_cast<int32_t>(static_cast<int8_t>(k_group >> shift))
                     : static_cast<int32_t>(static_cast<uint8_t>(k_group >> shift));
  };
  TileStarts sums{};
  for (size_t step = 0; step < k_groups.size(); step += static_cast<size_t>(width)) {
    for (size_t c = 0; c < values.size(); ++c) {
      const int32_t k_group = k_groups[step + c];
      sums[c] +=
          byte_of(k_group, 0) + byte_of(k_group, 8) + byte_of(k_group, 16) + byte_of(k_group, 24);
    }
  }
  for (size_t c = 0; c < values.size(); ++c) {
    const uint32_t product = static_cast<uint32_t>(a) * static_cast<uint32_t>(sums[c]);
    values[c] = static_cast<int32_t>(static_cast<uint32_t>(values[c]) + product);
  }
}

}  // namespace

InnerSlices::InnerSlices(const BoundDense& convolution, int64_t outer)
    : plan_(convolution.plan), count_(std::ssize(convolution.plan.k_steps)), end_(count_) {
  if (!jit::has_outer_padding(plan_.geometry)) return;
  const bool has_starts =
      int64_t{std::tuple_size_v<TileStarts>} >= plan_.packed_width(plan_.tile.channels);
  const bool sums_in_kernel = convolution.window_sums == jit::WindowSums::own;
  if (!has_slices_in_order(plan_) || !has_starts || sums_in_kernel) return;
  const auto is_inside = [&](int64_t slice) {
    return jit::outer_position(plan_.geometry, outer, slice).has_value();
  };
  int64_t first = 0;
  int64_t end = plan_.slices;
  while (first < end && !is_inside(first)) ++first;
  while (first < end && !is_inside(end - 1)) --end;
  const int64_t steps_of_slice = count_ / plan_.slices;
  const jit::DenseTile tile = kernel_tile(plan_.tile, convolution.applies_epilogue);
  if (!takes(tile, (end - first) * steps_of_slice)) return;
  first_ = first * steps_of_slice;
  end_ = end * steps_of_slice;
}

TileStarts InnerSlices::starts_of(const jit::DenseArguments& arguments, int channels,
                                  int32_t a) const {
  TileStarts starts{};
  std::copy_n(arguments.start, channels, starts.begin());
  if (a == 0) return starts;
  const int64_t width = plan_.packed_width(channels);
  const auto* k_groups = reinterpret_cast<const int32_t*>(arguments.weights);
  const std::span values = std::span(starts).first(static_cast<size_t>(channels));
  const auto add = [&](int64_t begin, int64_t end) {
    const std::span some(k_groups + begin * width, static_cast<size_t>((end - begin) * width));
    add_products(some, width, plan_.engine == jit::ProductEngine::u8_i8_dot, a, values);
  };
  add(0, first_);
  add(end_, count_);
  return starts;
}

void InnerSlices::leave_padding_out(int channels, const TileStarts& starts,
                                    jit::DenseArguments& arguments) const {
  arguments.start = starts.data();
  arguments.k_steps += first_;
  arguments.k_step_count = end_ - first_;
  arguments.weights += jit::k_group_bytes * plan_.packed_width(channels) * first_;
}

}  // namespace castor::detail
