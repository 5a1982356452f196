// SPDX-License-Identifier: Apache-2.0
// Packing by generated code, several planes at a time, and row by row where there is none, or where
// it would read past the end of the input.
#include "runtime/conv/pack_input.hpp"

#include <algorithm>

#include "ir/support/integer_math.hpp"
#include "runtime/conv/pack_rows.hpp"

namespace castor::detail {

namespace {

constexpr int64_t lanes = jit::ConvStore::max_lanes;
constexpr size_t max_vectors = std::tuple_size_v<decltype(KeptVectors::vectors)>;

uint32_t bits(int64_t begin, int64_t end) { return (1u << end) - (1u << begin); }

/// Calls the code for rows of planes, with a table of their vectors.
class RowCalls {
 public:
  RowCalls(const InputBlock& in, const KernelCode<jit::PackInput>* code, KeptVectors& kept)
      : in_(in), code_(code), kept_(kept) {}

  bool has_code() const { return code_ != nullptr; }
  void call(const jit::PackInputArguments& arguments) const { code_->call(&arguments); }

  /// Packs rows before the data, rows with data, for whose vectors visit(begin, end, vector) is
  /// called, and rows after the data.
  template <class Visit>
  void pack_rows(const PhasePlanes& of, int64_t rows, jit::PackInputArguments arguments,
                 Visit with_data) const {
    const int64_t end_row = std::min(of.end_row, rows);
    std::byte* planes = arguments.planes;
    const auto call_for = [&](int64_t from, int64_t to, auto visit) {
      if (from >= to) return;
      arguments.planes = planes + from * arguments.row_step;
      arguments.rows = to - from;
      pack_row(arguments, in_.width, visit);
    };
    call_for(of.first_row, end_row, with_data);
    const auto only_padding = [](int64_t, int64_t, jit::PackedVector&) {};
    arguments.source_row_step = 0;
    call_for(0, of.first_row, only_padding);
    call_for(end_row, rows, only_padding);
  }

  /// Packs k groups 0 to `end` of rows, after visit(begin, end, vector) of each vector of them.
  template <class Visit>
  void pack_row(const jit::PackInputArguments& arguments, int64_t end, Visit visit) const {
    kept_.rows = {};
    for (int64_t begin = 0; begin < end;) {
      size_t count = 0;
      for (; count < max_vectors && begin < end; begin += lanes, ++count) {
        const int64_t behind = std::min(begin + lanes, end);
        kept_.vectors[count] = {.destination = static_cast<int32_t>(4 * begin),
                                .lanes = bits(0, behind - begin) << lanes};
        visit(begin, behind, kept_.vectors[count]);
      }
      kept_.count = static_cast<int64_t>(count);
      call_for_kept(arguments);
    }
  }

  /// Packs all rows as one.
  void pack_one_row(const PhasePlanes& of, int64_t rows,
                    const jit::PackInputArguments& arguments) const {
    const int64_t pitch = in_.planes->pitch;
    const int64_t end = rows < in_.rows ? rows * pitch : (rows - 1) * pitch + in_.width;
    const KeptVectors::Rows key = {of.first_row, of.end_row, of.first, of.end, end};
    if (kept_.count > 0 && kept_.rows == key) return call_for_kept(arguments);
    int64_t row = of.first_row;  // the first whose data end after the vector's beginning
    pack_row(arguments, end, [&](int64_t begin, int64_t behind, jit::PackedVector& vector) {
      while (row < of.end_row && row * pitch + of.end <= begin) ++row;
      uint32_t present = 0;
      for (int64_t i = row; i < of.end_row && i * pitch + of.first < behind; ++i) {
        const int64_t data = i * pitch + of.first;  // the row's first k group with data
        const int64_t from = std::max(data, begin);
        const int64_t to = std::min(i * pitch + of.end, behind);
        if (present == 0) {
          vector.source = (i - of.first_row) * in_.plan.columns.input + (from - data);
        }
        present |= bits(from - begin, to - begin);
      }
      vector.lanes |= present;
    });
    if (end > static_cast<int64_t>(max_vectors) * lanes) kept_.count = 0;
    kept_.rows = key;
  }

 private:
  void call_for_kept(jit::PackInputArguments arguments) const {
    arguments.vectors = kept_.vectors.data();
    arguments.vector_count = kept_.count;
    code_->call(&arguments);
  }

  const InputBlock& in_;
  const KernelCode<jit::PackInput>* code_;
  KeptVectors& kept_;
};

/// Packs the planes of one block.
class InputPacker {
 public:
  InputPacker(const InputBlock& in, const KernelCode<jit::PackInput>* code, KeptVectors& kept)
      : in_(in), plan_(in.plan), planes_(*in.planes), calls_(in, code, kept) {}

  void pack() const {
    for (int64_t slice = 0; slice < plan_.slices; ++slice) {
      for (size_t r = 0; r < planes_.row_phases.phases.size(); ++r) {
        for (size_t c = 0; c < planes_.column_phases.phases.size(); ++c) {
          pack_planes(in_.phase_planes(slice, r, c));
        }
      }
    }
  }

 private:
  void pack_planes(const PhasePlanes& of) const {
    if (planes_.layout == jit::PackedLayout::im2col) return pack_im2col(of);
    if (!calls_.has_code() || !of.has_data()) {
      for (int64_t i = 0; i < plan_.k_groups; ++i) pack_rows(in_, of, i, 0);
      return;
    }
    if (in_.holds_columns()) return pack_columns(of);
    const int64_t whole = plan_.geometry.group_channels() / jit::channels_of_k_group(plan_.engine);
    if (whole > 0) pack_k_groups(of, 0, whole);
    if (whole < plan_.k_groups) pack_k_groups(of, whole, plan_.k_groups);
  }

  /// Packs k groups that have the same number of channels: by code, but for rows at the end of the
  /// input.
  void pack_k_groups(const PhasePlanes& of, int64_t begin, int64_t end) const {
    int64_t k_group = end;
    while (k_group > begin && bytes_left(of, k_group - 1) < 0) --k_group;
    if (k_group > begin) call(of, begin, k_group, in_.rows);
    for (; k_group < end; ++k_group) {
      const int64_t row_bytes = saturated_product(plan_.rows.stride, plan_.columns.input);
      const int64_t short_rows = ceil_div(-bytes_left(of, k_group), row_bytes);
      const int64_t rows = std::max(of.end_row - short_rows, of.first_row);
      const bool is_worthwhile = rows > of.first_row && !in_.is_plain;
      if (is_worthwhile) call(of, k_group, k_group + 1, rows);
      pack_rows(in_, of, k_group, is_worthwhile ? rows : 0);
    }
  }

  /// Bytes of the input after all that the code reads of a k group; negative if it reads too far.
  int64_t bytes_left(const PhasePlanes& of, int64_t k_group) const {
    const int64_t last = std::min<int64_t>(4 * k_group + 3, plan_.geometry.group_channels() - 1);
    const int64_t end_row = of.input_row + (of.end_row - 1) * plan_.rows.stride + 1;
    const std::byte* end = in_.at(last, of.pixel + end_row * plan_.columns.input);
    const int64_t all = plan_.geometry.batch * plan_.geometry.channels * in_.pixels;
    return in_.input.x + all - end - (jit::pack_input_spec(plan_).bytes_read() - 1);
  }

  /// The arguments for all rows with data from a k group's on.
  jit::PackInputArguments arguments_of(const PhasePlanes& of, int64_t k_group) const {
    jit::PackInputArguments arguments;
    arguments.source_row_step = wrapped_product(plan_.rows.stride, plan_.columns.input);
    arguments.planes = reinterpret_cast<std::byte*>(in_.plane(of, k_group));
    arguments.plane_step = 4 * planes_.phases() * planes_.plane_size;
    arguments.row_step = 4 * planes_.pitch;
    arguments.k_groups = 1;
    arguments.rows = 1;
    arguments.flips = in_.flip * 0x01010101u;
    arguments.padding = in_.padding();
    return arguments;
  }

  /// Packs the first `rows` rows of some nchw4c planes.
  void call(const PhasePlanes& of, int64_t begin, int64_t end, int64_t rows) const {
    const int64_t first_row = of.input_row + of.first_row * plan_.rows.stride;
    const KGroupSource source =
        in_.source_of(begin, of.pixel + first_row * plan_.columns.input + of.column);
    jit::PackInputArguments arguments = arguments_of(of, begin);
    arguments.source = source.channels[0];
    for (int i = 1; i < 4; ++i) {
      arguments.channels[i - 1] = source.channels[i] != nullptr ? i * in_.channel_step : 0;
    }
    arguments.source_k_group_step = 4 * in_.channel_step;
    arguments.k_groups = end - begin;
    if (in_.is_plain) {
      arguments.source += in_.first_pixel;
      arguments.planes += 4 * in_.first_pixel;
      arguments.pixels = in_.plain_pixels();
      calls_.call(arguments);
    } else if (has_whole_rows(of)) {
      calls_.pack_one_row(of, rows, arguments);
    } else {
      calls_.pack_rows(of, rows, arguments,
                       [&](int64_t from, int64_t to, jit::PackedVector& vector) {
                         const int64_t first = std::clamp(of.first, from, to);
                         const int64_t behind = std::clamp(of.end, first, to);
                         if (first == behind) return;
                         vector.source = (first - of.first) * plan_.columns.stride;
                         vector.lanes |= bits(first - from, behind - from);
                       });
    }
  }

  /// Whether the data of all rows are adjacent in the input.
  bool has_whole_rows(const PhasePlanes& of) const {
    return plan_.columns.stride == 1 && plan_.rows.stride == 1 &&
           of.end - of.first == plan_.columns.input;
  }

  /// Says which bytes of a row's vectors are input. Nothing outside the row is read.
  auto bytes_of_vectors(const PhasePlanes& of) const {
    return [this, &of](int64_t begin, int64_t, jit::PackedVector& vector) {
      constexpr int64_t vector_bytes = 64;
      vector.source = of.begin + begin * plan_.columns.stride;
      const int64_t first = std::clamp<int64_t>(-vector.source, 0, vector_bytes);
      const int64_t end =
          std::clamp<int64_t>(plan_.columns.input - vector.source, first, vector_bytes);
      vector.bytes = jit::first_bits(end) & ~jit::first_bits(first);
    };
  }

  void pack_columns(const PhasePlanes& of) const {
    const int64_t first_row = of.input_row + of.first_row * plan_.rows.stride;
    jit::PackInputArguments arguments = arguments_of(of, 0);
    arguments.source = in_.at(0, of.pixel + first_row * plan_.columns.input);
    arguments.source_k_group_step = in_.pixels;
    arguments.k_groups = plan_.k_groups;
    arguments.padding ^= arguments.flips;
    calls_.pack_rows(of, in_.rows, arguments, bytes_of_vectors(of));
  }

  /// Adjacent output rows whose receptive fields have no padding above or below are packed
  /// together.
  void pack_im2col(const PhasePlanes& of) const {
    std::array<const std::byte*, jit::PackInput::max_filter_rows> filter_rows = {};
    jit::PackInputArguments arguments = arguments_of(of, 0);
    std::byte* const planes = arguments.planes;
    arguments.filter_rows = filter_rows.data();
    arguments.plane_step = 4 * planes_.plane_size;
    arguments.padding ^= arguments.flips;
    const auto first_input_row = [&](int64_t row) {
      return of.input_row + row * plan_.rows.stride;
    };
    const auto is_inside = [&](int64_t row) {
      return first_input_row(row) >= 0 &&
             first_input_row(row) + plan_.rows.window() <= plan_.rows.input;
    };
    for (int64_t row = 0; row < in_.rows; row += arguments.rows) {
      int64_t end = row;
      while (end < in_.rows && is_inside(end)) ++end;
      arguments.rows = std::max<int64_t>(end - row, 1);
      arguments.planes = planes + row * arguments.row_step;
      find_filter_rows(first_input_row(row), filter_rows.data());
      calls_.pack_row(arguments, in_.width, bytes_of_vectors(of));
    }
  }

  void find_filter_rows(int64_t first_row, const std::byte** to) const {
    for (int64_t channel = 0; channel < plan_.geometry.group_channels(); ++channel) {
      for (int64_t tap = 0; tap < plan_.rows.kernel; ++tap) {
        const int64_t row = first_row + tap * plan_.rows.dilation;
        const bool is_input = row >= 0 && row < plan_.rows.input;
        *to++ = is_input ? in_.at(channel, row * plan_.columns.input) : nullptr;
      }
    }
  }

  const InputBlock& in_;
  const jit::DensePlan& plan_;
  const jit::PackedPlanes& planes_;
  const RowCalls calls_;
};

}  // namespace

Result<KernelCodePtr<jit::PackInput>> find_input_packer(const jit::DensePlan& plan,
                                                        const jit::Target& target,
                                                        CodeCache& cache) {
  const bool is_nchw = plan.geometry.layout == ConvolutionLayout::nchw;
  if (!is_nchw || plan.planes() == nullptr) return KernelCodePtr<jit::PackInput>();
  const jit::PackInput spec = jit::pack_input_spec(plan);
  if (!fits(spec, target)) return KernelCodePtr<jit::PackInput>();
  return cache.get(spec, target);
}

void pack_input(const jit::DensePlan& plan, const KernelCode<jit::PackInput>* code,
                const PlaneInput& input, const BlockPlace& place, std::byte* to, KeptVectors& kept,
                int64_t packed_pixels) {
  InputBlock in(plan, input, place, to);
  if (std::holds_alternative<jit::CopiedRows>(plan.source)) return copy_rows(in);
  in.is_plain = jit::pack_input_spec(plan).is_plain;
  in.first_pixel = packed_pixels;
  InputPacker(in, code, kept).pack();
}

}  // namespace castor::detail
