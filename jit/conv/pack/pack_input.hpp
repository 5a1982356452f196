// SPDX-License-Identifier: Apache-2.0
// Packing of a convolution's input: rows of bytes become rows of k groups, with padding. One k
// group is the 32-bit lane that one k step multiplies; the k groups of all pixels for one k step
// make a plane.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ir/support/result.hpp"
#include "jit/code.hpp"
#include "jit/emit/emit_options.hpp"
#include "jit/kernel/spec.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// Packed layout of the input: what the elements of a k group are.
enum class PackedLayout : uint8_t {
  nchw4c,    ///< adjacent input channels of a pixel
  columns4,  ///< adjacent columns of a channel
  im2col,    ///< adjacent taps of an output pixel's receptive field, channels outermost
};
/// Words of the values of PackedLayout, in order.
constexpr std::array<std::string_view, 3> names_of(PackedLayout) {
  return {"nchw4c", "columns4", "im2col"};
}

struct PackInputArguments;

/// Everything that the code depends on besides the target. K groups are of bytes: loops pack i16
/// pairs.
struct PackInput {
  static constexpr std::string_view name = "pack_input";
  using Arguments = const PackInputArguments;

  /// Vectors of im2col's rows of the filter that fit the registers.
  static constexpr int max_filter_rows = 28;

  PackedLayout layout = PackedLayout::nchw4c;
  /// Bytes from one k group's first element to the next's: 1 or 2; columns4: 1 to 4; im2col: 1
  /// to 64.
  int column_stride = 1;
  int filter_rows = 1;     ///< im2col: of all input channels; at most `max_filter_rows`
  int filter_columns = 1;  ///< im2col: taps of each row of the filter
  int dilation = 1;        ///< im2col: bytes from one tap to the next

  static constexpr auto fields(const auto& list) {
    return list(field("layout", &PackInput::layout),
                field("column_stride", &PackInput::column_stride),
                field("filter_rows", &PackInput::filter_rows),
                field("filter_columns", &PackInput::filter_columns),
                field("dilation", &PackInput::dilation));
  }

  int taps() const { return filter_rows * filter_columns; }
  /// Planes of im2col; elements of the last one that no tap takes may hold anything.
  int k_groups() const { return (taps() + 3) / 4; }
  /// Bytes of a row from the input of one vector to that of the next.
  int64_t vector_step() const { return int64_t{16} * column_stride; }
};

/// Whether there is code for it.
bool fits(const PackInput& spec, const Target& target);

/// Sixteen k groups of a row of a plane. What is equal for all rows is worked out once for them.
struct PackedVector {
  /// One bit for each byte from the first lane's input on that is input; the others are padding and
  /// are not read.
  uint64_t bytes = 0;
  uint64_t lanes = 0;  ///< one bit for each lane that is stored
};

/// The lowest `count` bits, 0 to 64.
constexpr uint64_t first_bits(int64_t count) {
  return count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

/// The argument of the code. All steps are in bytes, all counts at least 1.
struct PackInputArguments {
  const std::byte* source = nullptr;  ///< column 0 of the first row and channel; im2col: null
  /// From a row's column 0 to the input of its first lane; negative where the row begins in
  /// padding.
  int64_t first_column = 0;
  int64_t channels[3] = {};  ///< nchw4c: from there to the other channels of a k group
  int64_t source_k_group_step = 0;
  int64_t source_row_step = 0;
  std::byte* planes = nullptr;  ///< the first row of the first plane
  int64_t plane_step = 0;
  int64_t row_step = 0;  ///< from one row of a plane to the next
  int64_t k_groups = 0;  ///< planes; unused by im2col
  int64_t rows = 0;
  const PackedVector* vectors = nullptr;  ///< of each row, which are adjacent
  int64_t vector_count = 0;
  uint32_t flips = 0;    ///< the sign flip of four bytes, of padding too
  uint32_t padding = 0;  ///< four times the zero point, as the input has it
  /// im2col: column 0 of the input row that each row of the filter meets at the first output row;
  /// null where all of it is padding.
  const std::byte* const* filter_rows = nullptr;
};

/// Emits the code. A pure function of its arguments.
Result<MachineCode> emit_kernel(const PackInput& spec, const Target& target,
                                const EmitOptions& options = {});

}  // namespace castor::jit
