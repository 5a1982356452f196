// SPDX-License-Identifier: Apache-2.0
// Packing of a cache block's input: nchw4c planes, columns4 planes, im2col, or copies of rows.
#pragma once

#include <array>

#include "jit/conv/dense_plan.hpp"
#include "jit/conv/pack/pack_input.hpp"
#include "runtime/cache/code_cache.hpp"

namespace castor::detail {

/// The input of a call.
struct PlaneInput {
  const std::byte* x = nullptr;  ///< of the whole batch
  bool is_signed = false;
  int32_t zero_point = 0;  ///< as x has it
};

/// One block of output pixels of one group of one image.
struct BlockPlace {
  int64_t image = 0;
  int64_t group = 0;
  int64_t outer = 0;  ///< output position along the outer spatial axes, row-major
  int64_t row = 0;
  int64_t column = 0;
  jit::CacheBlock block;
};

/// The input of one block.
class InputBlock {
 public:
  InputBlock(const jit::DensePlan& plan, const PlaneInput& input, const BlockPlace& place)
      : plan_(plan), input_(input), place_(place) {
    const ConvolutionGeometry& geometry = plan.geometry;
    const bool nhwc = geometry.layout == ConvolutionLayout::nhwc;
    for (const ConvolutionAxis& axis : geometry.axes) pixels_ *= axis.input;
    channel_step_ = nhwc ? 1 : pixels_;
    pixel_step_ = nhwc ? geometry.channels : 1;
    group_ = input.x + place.image * geometry.channels * pixels_ +
             place.group * geometry.group_channels() * channel_step_;
    sign_flip_ = input.is_signed && !keeps_signs(plan.engine) ? 0x80 : 0;
    if (!has_pairs()) pad_ = static_cast<uint8_t>(input.zero_point + sign_flip_);
    end_ = input.x + geometry.batch * geometry.channels * pixels_;
  }

  const std::byte* at(int64_t channel, int64_t pixel) const {
    return group_ + channel * channel_step_ + pixel * pixel_step_;
  }

 protected:
  bool has_pairs() const { return plan_.engine == jit::ProductEngine::i16_pairs; }
  const jit::DensePlan& plan_;
  const PlaneInput& input_;
  const BlockPlace& place_;
  int64_t pixels_ = 1;        ///< of an image
  int64_t channel_step_ = 0;  ///< bytes
  int64_t pixel_step_ = 0;
  const std::byte* group_ = nullptr;  ///< its first channel at the image's first pixel
  const std::byte* end_ = nullptr;    ///< after the whole batch
  uint8_t sign_flip_ = 0;             ///< xor of 8-bit elements
  uint8_t pad_ = 0;  ///< padding as packed, of 8-bit elements; i16 pairs have zeros
};

/// Copies a block's rows with their padding, as kernels read them.
void copy_rows(const InputBlock& in, std::byte* to);

/// The vectors of the row that was packed last, which other rows and blocks may have as well.
struct RowVectors {
  static constexpr int64_t max_count = 256;
  int64_t first = 0;  ///< bytes from the first lane's input to the row's first pixel
  int64_t end = 0;    ///< after its last one
  int64_t lanes = 0;  ///< 0: none were packed
  int64_t count = 0;
  std::array<jit::PackedVector, max_count> vectors;

  /// Makes the vectors of lanes `step` bytes apart.
  void set(int64_t first_byte, int64_t end_byte, int64_t lane_count, int64_t step);
};

/// The code that packs a plan's input; null where loops do it.
Result<KernelCodePtr<jit::PackInput>> find_input_packer(const jit::DensePlan& plan,
                                                        const jit::Target& target,
                                                        CodeCache& cache);

/// Packs the input of a block, or copies its rows; padding is the zero point. Where whole rows are
/// taken, the first `packed_pixels` pixels may be left out. `code` may be null, but not for im2col.
void pack_input(const jit::DensePlan& plan, const KernelCode<jit::PackInput>* code,
                const PlaneInput& input, const BlockPlace& place, std::byte* to,
                RowVectors& vectors, int64_t packed_pixels = 0);

/// Where a block begins in the input itself.
const std::byte* input_of(const jit::DensePlan& plan, const PlaneInput& input,
                          const BlockPlace& place);

}  // namespace castor::detail
