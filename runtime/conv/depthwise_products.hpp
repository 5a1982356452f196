// SPDX-License-Identifier: Apache-2.0
// How the weights of depthwise and grouped layers are multiplied, in either order of channels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/cache/code_cache.hpp"

namespace castor::detail {

/// How weights are multiplied. Less their zero points where all of these differences are signed
/// bytes, or unsigned ones by signed input; else as they are, and window sums are subtracted. (Of
/// a depthwise filter's taps that stand alone in their dwords there are no sums.)
struct DepthwiseProducts {
  bool signed_input = false;  ///< by unsigned weights; else 128 is added to signed input
  bool subtracts_window_sums = false;
};

/// Kernels by signed_input, subtracts_window_sums, and whether they add to what other slices of the
/// filter have left.
template <class Spec>
using ProductCodes = KernelCodePtr<Spec>[2][2][2];

/// Where kernels come from, and what they apply; null: nothing.
struct KernelSource {
  CodeCache& cache;
  const jit::Target& target;
  const jit::TileEpilogue* epilogue;
};

/// Finds the kernels of `spec` for all these products; those that add only for filters of several
/// slices.
template <class Spec>
Status find_product_codes(const Spec& spec, std::span<const DepthwiseProducts> all,
                          bool x_is_signed, int64_t slices, ProductCodes<Spec>& codes,
                          const KernelSource& from) {
  for (const DepthwiseProducts& products : all) {
    for (const bool adds : {false, true}) {
      if (adds && slices == 1) continue;
      Spec one = spec;
      one.signed_input = products.signed_input;
      one.flips_input = x_is_signed && !products.signed_input;
      one.subtracts_window_sums = products.subtracts_window_sums;
      one.adds = adds;
      Result<KernelCodePtr<Spec>> code = from.cache.get(one, from.target, from.epilogue);
      if (!code.ok()) return code.error();
      codes[products.signed_input][products.subtracts_window_sums][adds] = std::move(code).value();
    }
  }
  return {};
}

inline int32_t number_of(std::byte byte, bool is_signed) {
  return is_signed ? static_cast<int8_t>(byte) : static_cast<uint8_t>(byte);
}

struct WeightRange {
  int32_t min = 0;
  int32_t max = 0;
};

inline WeightRange range_of(const std::byte* weights, int64_t count, bool is_signed) {
  const uint8_t flip = is_signed ? 0x80 : 0;  // keeps the order
  uint8_t min = 255;
  uint8_t max = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto weight = static_cast<uint8_t>(std::to_integer<uint8_t>(weights[i]) ^ flip);
    min = std::min(min, weight);
    max = std::max(max, weight);
  }
  return {min - flip, max - flip};
}

}  // namespace castor::detail
