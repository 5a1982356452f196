// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/pack_rows.hpp"

#include <algorithm>
#include <cstring>

#include "ir/support/integer_math.hpp"

namespace castor::detail {

InputBlock::InputBlock(const jit::DensePlan& block_plan, const PlaneInput& block_input,
                       const BlockPlace& block_place, std::byte* destination)
    : plan(block_plan),
      planes(block_plan.planes()),
      input(block_input),
      place(block_place),
      to(destination) {
  const ConvolutionGeometry& geometry = plan.geometry;
  const bool nhwc = geometry.layout == ConvolutionLayout::nhwc;
  for (const ConvolutionAxis& axis : geometry.axes) pixels *= axis.input;
  channel_step = nhwc ? 1 : pixels;
  pixel_step = nhwc ? geometry.channels : 1;
  group = input.x + place.image * geometry.channels * pixels +
          place.group * geometry.group_channels() * channel_step;
  if (plan.engine == jit::ProductEngine::u8_i8_dot) {
    flip = input.is_signed ? 0x80 : 0;
    pad = static_cast<uint8_t>(input.zero_point + flip);
  }
  if (planes == nullptr) return;
  rows = place.block.rows + planes->row_phases.max_shift;
  width = place.block.columns + planes->column_phases.max_shift;
}

PhasePlanes InputBlock::phase_planes(int64_t slice, size_t row_phase, size_t column_phase) const {
  const std::optional<int64_t> outer = jit::outer_position(plan.geometry, place.outer, slice);
  PhasePlanes of;
  of.slice = slice;
  of.number = static_cast<int64_t>(row_phase * planes->column_phases.phases.size() + column_phase);
  if (!outer) return of;
  of.pixel = *outer * plan.rows.input * plan.columns.input;
  of.input_row =
      place.row * plan.rows.stride + planes->row_phases.phases[row_phase] - plan.rows.pad_begin;
  of.begin = place.column * plan.columns.stride + planes->column_phases.phases[column_phase] -
             plan.columns.pad_begin;
  // Steps along an axis before `end` is reached.
  const auto steps = [](int64_t from, int64_t end, int64_t stride, int64_t max) {
    const int64_t distance = std::max<int64_t>(end - from, 0);
    return std::min(stride == 1 ? distance : ceil_div(distance, stride), max);  // divisions cost
  };
  of.first_row = steps(of.input_row, 0, plan.rows.stride, rows);
  of.end_row = std::max(steps(of.input_row, plan.rows.input, plan.rows.stride, rows), of.first_row);
  of.first = steps(of.begin, 0, plan.columns.stride, width);
  of.end = std::max(steps(of.begin, plan.columns.input, plan.columns.stride, width), of.first);
  // Without data that is no position, and may exceed all numbers.
  of.column = wrapped_sum(of.begin, wrapped_product(of.first, plan.columns.stride));
  return of;
}

uint32_t* InputBlock::plane(const PhasePlanes& of, int64_t k_group) const {
  const int64_t number = (of.slice * plan.k_groups + k_group) * planes->phases() + of.number;
  return reinterpret_cast<uint32_t*>(to) + number * planes->plane_size;
}

KGroupSource InputBlock::source_of(int64_t k_group, int64_t pixel) const {
  const int64_t count = jit::channels_of_k_group(plan.engine);
  const int64_t first = k_group * count;
  KGroupSource source;
  source.step = wrapped_product(plan.columns.stride, pixel_step);
  for (int64_t i = 0; i < std::min(count, plan.geometry.group_channels() - first); ++i) {
    source.channels[i] = at(first + i, pixel);
  }
  return source;
}

namespace {

void interleave(const InputBlock& in, const KGroupSource& source, int64_t count, uint32_t* to) {
  if (in.plan.engine == jit::ProductEngine::u8_i8_dot) {
    interleave_bytes(source, in.flip, count, to);
  } else {
    interleave_pairs(source, in.input.is_signed, in.input.zero_point, count, to);
  }
}

/// Copies columns of a channel's row from `column` on, be they inside the input or padding.
void copy_with_padding(const InputBlock& in, const std::byte* row, int64_t column, int64_t count,
                       std::byte* to) {
  const int64_t first = std::clamp<int64_t>(-column, 0, count);
  const int64_t end = std::clamp<int64_t>(in.plan.columns.input - column, first, count);
  std::memset(to, in.input.zero_point, static_cast<size_t>(count));
  if (first < end) {
    std::memcpy(to + first, row + (column + first), static_cast<size_t>(end - first));
  }
}

/// Packs one row of a columns4 plane by way of copies of the row with its padding.
void pack_columns(const InputBlock& in, const PhasePlanes& of, const std::byte* row, uint32_t* to) {
  constexpr int64_t max_bytes = 2048;
  const int64_t held = jit::channels_of_k_group(in.plan.engine);
  const int64_t stride = in.plan.columns.stride;
  const int64_t at_once = (max_bytes - held) / stride + 1;
  std::array<std::byte, max_bytes> copy;
  KGroupSource source = {.step = stride};
  for (int64_t k = 0; k < held; ++k) source.channels[k] = copy.data() + k;
  for (int64_t i = 0; i < in.width; i += at_once) {
    const int64_t count = std::min(at_once, in.width - i);
    copy_with_padding(in, row, of.begin + i * stride, (count - 1) * stride + held, copy.data());
    interleave(in, source, count, to + i);
  }
}

/// Packs one row of a plane: padding, data, padding.
void pack_row(const InputBlock& in, const PhasePlanes& of, int64_t k_group, int64_t row,
              uint32_t* to) {
  if (row < of.first_row || row >= of.end_row) {
    std::fill_n(to, in.width, in.padding());
    return;
  }
  const int64_t pixel =
      of.pixel + (of.input_row + row * in.plan.rows.stride) * in.plan.columns.input;
  if (in.holds_columns()) return pack_columns(in, of, in.at(k_group, pixel), to);
  std::fill_n(to, of.first, in.padding());
  if (of.first < of.end) {
    interleave(in, in.source_of(k_group, pixel + of.column), of.end - of.first, to + of.first);
  }
  std::fill_n(to + of.end, in.width - of.end, in.padding());
}

/// Copies elements as kernels read them: i16 pairs widened and less the zero point.
void copy_elements(const InputBlock& in, const std::byte* from, int64_t count, std::byte* to) {
  if (in.plan.engine == jit::ProductEngine::i16_pairs) {
    for (int64_t i = 0; i < count; ++i) {
      const int value =
          in.input.is_signed ? static_cast<int8_t>(from[i]) : static_cast<uint8_t>(from[i]);
      const auto word = static_cast<int16_t>(value - in.input.zero_point);
      std::memcpy(to + 2 * i, &word, sizeof(word));
    }
  } else if (in.flip == 0) {
    std::memcpy(to, from, static_cast<size_t>(count));
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i] ^ std::byte{in.flip};
  }
}

/// Copies columns of a row from a pixel on, `elements` of each.
void copy_columns(const InputBlock& in, const std::byte* from, int64_t elements, int64_t columns,
                  std::byte* to) {
  if (in.pixel_step == elements) return copy_elements(in, from, columns * elements, to);
  for (int64_t column = 0; column < columns; ++column) {
    copy_elements(in, from + column * in.pixel_step, elements,
                  to + column * in.plan.input_rows().column_bytes);
  }
}

/// Copies one row from a pixel on: padding, data, padding.
void copy_row(const InputBlock& in, const std::byte* row, int64_t elements, std::byte* to) {
  const ConvolutionAxis& axis = in.plan.columns;
  const int64_t column_bytes = in.plan.input_rows().column_bytes;
  const int64_t columns = input_extent(in.place.block.columns, axis);
  const int64_t begin = in.place.column * axis.stride - axis.pad_begin;
  const int64_t first = std::clamp<int64_t>(-begin, 0, columns);
  const int64_t end = std::clamp<int64_t>(axis.input - begin, first, columns);
  const auto pad = [&](int64_t from, int64_t behind) {
    std::memset(to + from * column_bytes, in.pad,
                static_cast<size_t>((behind - from) * column_bytes));
  };
  if (row == nullptr) return pad(0, columns);
  pad(0, first);
  if (first < end) {
    copy_columns(in, row + (begin + first) * in.pixel_step, elements, end - first,
                 to + first * column_bytes);
  }
  pad(end, columns);
}

}  // namespace

void pack_rows(const InputBlock& in, const PhasePlanes& of, int64_t k_group, int64_t row) {
  uint32_t* plane = in.plane(of, k_group);
  if (in.is_plain && of.has_data()) {
    const int64_t pixel = of.pixel + of.input_row * in.plan.columns.input + of.column;
    return interleave(in, in.source_of(k_group, pixel + in.first_pixel), in.plain_pixels(),
                      plane + in.first_pixel);
  }
  for (; row < in.rows; ++row) pack_row(in, of, k_group, row, plane + row * in.planes->pitch);
}

void copy_rows(const InputBlock& in) {
  const jit::DensePlan& plan = in.plan;
  const bool nhwc = plan.geometry.layout == ConvolutionLayout::nhwc;
  const int64_t elements = nhwc ? plan.geometry.group_channels() : 1;
  const int64_t channels = nhwc ? 1 : plan.geometry.group_channels();
  const auto& rows = std::get<jit::CopiedRows>(plan.source);
  std::byte* plane = in.to;
  for (int64_t i = 0; i < plan.slices * channels; ++i, plane += rows.plane_bytes()) {
    const std::optional<int64_t> outer =
        jit::outer_position(plan.geometry, in.place.outer, i / channels);
    for (int64_t j = 0; j < input_extent(in.place.block.rows, plan.rows); ++j) {
      if (j % plan.rows.stride >= plan.rows.window()) continue;  // no tap reads it
      const int64_t row = in.place.row * plan.rows.stride - plan.rows.pad_begin + j;
      const bool is_input = outer && row >= 0 && row < plan.rows.input;
      const std::byte* from = nullptr;
      if (is_input) {
        from = in.at(i % channels, (*outer * plan.rows.input + row) * plan.columns.input);
      }
      copy_row(in, from, elements, plane + j * rows.row_bytes);
    }
  }
}

const std::byte* input_of(const jit::DensePlan& plan, const PlaneInput& input,
                          const BlockPlace& place) {
  const int64_t outer = jit::outer_position(plan.geometry, place.outer, 0).value_or(0);
  const int64_t row = outer * plan.rows.input + place.row * plan.rows.stride;
  return InputBlock(plan, input, place, nullptr)
      .at(0, row * plan.columns.input + place.column * plan.columns.stride);
}

}  // namespace castor::detail
