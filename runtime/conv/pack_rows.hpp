// SPDX-License-Identifier: Apache-2.0
// Packing of a block's input row by row, by loops; and what packing of any kind knows of a block.
#pragma once

#include "runtime/conv/interleave.hpp"
#include "runtime/conv/pack_input.hpp"

namespace castor::detail {

/// The planes of one slice of the filter and one stride phase of rows and of columns: one for each
/// k group, with data at the same positions.
struct PhasePlanes {
  int64_t slice = 0;
  int64_t number = 0;     ///< among the planes of one k group
  int64_t pixel = 0;      ///< of the input: the slice's first
  int64_t input_row = 0;  ///< of the planes' first row; may be negative
  int64_t first_row = 0;  ///< with data
  int64_t end_row = 0;    ///< after the last one with data
  int64_t begin = 0;      ///< column of the input of a row's first k group; may be negative
  int64_t column = 0;     ///< column of the input of the first k group with data
  int64_t first = 0;      ///< k group of a row with data
  int64_t end = 0;        ///< after the last
  bool has_data() const { return first_row < end_row && first < end; }
};

/// The input of one block, and where it is packed to.
struct InputBlock {
  InputBlock(const jit::DensePlan& block_plan, const PlaneInput& block_input,
             const BlockPlace& block_place, std::byte* destination);

  const jit::DensePlan& plan;
  const jit::PackedPlanes* planes;  ///< null where rows are copied
  const PlaneInput& input;
  const BlockPlace& place;
  std::byte* to;
  int64_t pixels = 1;        ///< of an image
  int64_t channel_step = 0;  ///< bytes
  int64_t pixel_step = 0;
  const std::byte* group;   ///< the group's first channel at the image's first pixel
  uint8_t flip = 0;         ///< xor of 8-bit elements
  uint8_t pad = 0;          ///< padding as packed, of 8-bit elements; i16 pairs have zeros
  int64_t rows = 0;         ///< of a plane
  int64_t width = 0;        ///< k groups of a row
  bool is_plain = false;    ///< PackInput::is_plain
  int64_t first_pixel = 0;  ///< of a plain block: the first one to be packed

  bool holds_columns() const { return planes->layout == jit::PackedLayout::columns4; }
  uint32_t padding() const { return pad * 0x01010101u; }
  const std::byte* at(int64_t channel, int64_t pixel) const {
    return group + channel * channel_step + pixel * pixel_step;
  }
  /// Pixels of a plain block, which are adjacent, from the first one to be packed on.
  int64_t plain_pixels() const { return (rows - 1) * plan.columns.input + width - first_pixel; }
  PhasePlanes phase_planes(int64_t slice, size_t row_phase, size_t column_phase) const;
  uint32_t* plane(const PhasePlanes& of, int64_t k_group) const;
  /// The channels of a k group at a pixel.
  KGroupSource source_of(int64_t k_group, int64_t pixel) const;
};

/// Packs the rows from `row` on of one plane.
void pack_rows(const InputBlock& in, const PhasePlanes& of, int64_t k_group, int64_t row);

/// Copies the rows of the block, as kernels read them.
void copy_rows(const InputBlock& in);

}  // namespace castor::detail
