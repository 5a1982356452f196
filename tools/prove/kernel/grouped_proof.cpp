// SPDX-License-Identifier: Apache-2.0
// Kernels of grouped convolutions in NHWC, whose lanes are output channels.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tools/prove/kernel/sliding_call.hpp"

namespace castor::prove {

namespace {

using jit::GroupedNhwcSpec;

/// One call: a row range, three positions of columns, two vectors of channels.
class GroupedCall : SlidingCall<GroupedNhwcSpec> {
 public:
  GroupedCall(const KernelSubject<GroupedNhwcSpec>& kernel, int range, ResultProver& prover)
      : SlidingCall(kernel, prover),
        number_(range),
        range_(spec_.ranges[static_cast<size_t>(range)]),
        lanes_(target_.vector_bits() / 32) {}

  void lay_out(KernelCall& call) {
    x_ = call.add_inputs("x", inner_rows() * row_bytes(), 8);
    start_ = call.add_inputs("start", channels(), 32);
    lay_out_panels(call);
    fill_positions();
    fill_vectors();
    const uint64_t positions = call.add_numbers<jit::NhwcPlace>("the positions", positions_);
    const uint64_t vectors = call.add_numbers<jit::NhwcVector>("the vectors", vectors_);
    std::array<uint8_t, GroupedNhwcSpec::pixel_bytes> padding;
    padding.fill(padding_byte);
    const bool has_epilogue = prover_.epilogue() != nullptr;
    const int64_t pixel = has_epilogue ? 1 : 4 * channels();
    arguments_ = {
        .range = number_,
        .input = pointer_to<const std::byte>(x_.address -
                                             static_cast<uint64_t>(range_.above * row_bytes())),
        .pixel_step = pixel_step(),
        .row_step = row_bytes(),
        .output_pixel_step = pixel,
        .output_step = 2 * pixel,
        .output_row_step = 2 * row_outputs() * pixel,
        .prefetched = 256,
        .places = pointer_to<const jit::NhwcPlace>(positions),
        .places_end = pointer_to<const jit::NhwcPlace>(positions +
                                                       sizeof(jit::NhwcPlace) * positions_.size()),
        .weights = pointer_to<const int32_t>(panel_.address),
        .start = pointer_to<const int32_t>(start_.address),
        .vectors = pointer_to<const jit::NhwcVector>(vectors),
        .vectors_end =
            pointer_to<const jit::NhwcVector>(vectors + sizeof(jit::NhwcVector) * vectors_.size()),
        .padding = pointer_to<const std::byte>(call.add_numbers<uint8_t>("the padding", padding))};
    if (has_epilogue) {
      operands_.emplace(call, *prover_.epilogue(), ResultShape{results(), channels(), 0});
      arguments_.epilogue = pointer_to<const jit::EpilogueOperand>(operands_->table());
      return;
    }
    output_ = call.add_inputs("the output", results() * channels(), 32, true);
    arguments_.output = static_cast<int64_t>(output_.address);
  }

  const jit::GroupedNhwcArguments& arguments() const { return arguments_; }

  Status compare(KernelCall& call) {
    ++prover_.proof().calls;
    for (int vector = 0; vector < vector_count; ++vector) {
      for (int lane = 0; lane < lanes_; ++lane) {
        if ((new_lanes(vector) >> lane & 1) == 0) continue;
        if (Status status = compare_channel(call, vector, lane); !status) return status;
      }
    }
    return {};
  }

 private:
  static constexpr int position_count = 3;
  static constexpr int vector_count = 2;
  static constexpr int pad = 1;  ///< pixels before the image

  int first_pixel(int position) const {
    return position * spec_.outputs * spec_.column_stride - pad;
  }
  /// Pixels of a row: the last one of the last position is not there.
  int row_pixels() const {
    return std::max(first_pixel(position_count - 1) + spec_.pixels() - 1, 1);
  }
  /// The last position has its first output alone.
  int row_outputs() const { return (position_count - 1) * spec_.outputs + 1; }
  /// Where lanes are masked, the second vector's first half is the first one's last half.
  int first_channel(int vector) const {
    if (vector == 0) return 0;
    return spec_.masks_lanes ? lanes_ / 2 : lanes_;
  }
  uint32_t new_lanes(int vector) const {
    const uint32_t all = (1u << lanes_) - 1;
    return vector > 0 && spec_.masks_lanes ? all & ~(all >> (lanes_ / 2)) : all;
  }
  int channels() const { return first_channel(vector_count - 1) + lanes_; }
  /// The first channel of x that a vector reads.
  int first_input(int vector) const {
    if (spec_.is_partial) return 0;
    if (!spec_.is_depthwise()) return 4 * vector;
    return spec_.repeats ? first_channel(vector) / 2 : first_channel(vector);
  }
  /// Bytes that are read of a pixel.
  int read_bytes() const {
    if (spec_.is_partial) return 12;
    return target_.has_avx512() || !spec_.is_depthwise() ? GroupedNhwcSpec::pixel_bytes : lanes_;
  }
  int pixel_bytes() const { return first_input(vector_count - 1) + read_bytes(); }
  int input_rows() const { return spec_.input_rows(range_); }
  /// Those that are in memory: others are outside of the image.
  int inner_rows() const { return input_rows() - range_.above - range_.below; }
  /// Columns are two apart, as with two phases; the pixels between are not the call's.
  int pixel_step() const { return 2 * pixel_bytes(); }
  int64_t row_bytes() const { return int64_t{row_pixels()} * pixel_step(); }
  int64_t results() const { return int64_t{2} * range_.outputs * row_outputs(); }

  bool is_in_image(int position, int pixel) const {
    const int at = first_pixel(position) + pixel;
    return at >= 0 && at < row_pixels();
  }
  bool is_stored(int position, int output) const {
    return position * spec_.outputs + output < row_outputs();
  }

  void fill_positions() {
    for (int position = 0; position < position_count; ++position) {
      jit::NhwcPlace& at = positions_.emplace_back();
      at.input = int64_t{first_pixel(position)} * pixel_step();
      at.output = int64_t{2} * position * spec_.outputs;
      at.is_inner = 1;
      for (int pixel = 0; pixel < spec_.pixels(); ++pixel) {
        const int inside = std::clamp(first_pixel(position) + pixel, 0, row_pixels() - 1);
        at.offsets[pixel] = int64_t{inside - first_pixel(position)} * pixel_step();
        if (is_in_image(position, pixel)) {
          at.loaded[pixel] = loaded_mask(pixel);
        } else {
          at.is_inner = 0;
        }
      }
      for (int output = 0; output < spec_.outputs; ++output) {
        if (is_stored(position, output)) {
          at.stored[output] = 0xffff;
        } else {
          at.is_inner = 0;
        }
      }
    }
  }

  uint16_t loaded_mask(int pixel) const {
    if (spec_.is_partial) return static_cast<uint16_t>((1u << read_bytes()) - 1);
    if (!spec_.is_depthwise()) return 0xffff;
    return static_cast<uint16_t>(0xfu << (4 * (pixel % 4)));
  }

  void fill_vectors() {
    for (int vector = 0; vector < vector_count; ++vector) {
      jit::NhwcVector& of = vectors_.emplace_back();
      of.lanes = new_lanes(vector);
      of.channel = first_channel(vector);
      of.input = first_input(vector);
      for (int lane = 0; lane < std::min(lanes_, 8); ++lane) {
        of.lanes_mask[lane] = (of.lanes >> lane & 1) != 0 ? -1 : 0;
      }
    }
  }

  // ---- panels: orders, weights by row, zero points

  int held() const { return 32 / element_bits(); }
  int panel_elements() const { return panel_size(spec_) * lanes_ * held(); }

  void lay_out_panels(KernelCall& call) {
    std::vector<Term> elements;
    for (int i = 0; i < vector_count * panel_elements(); ++i) {
      const int in_panel = i % panel_elements();
      const int index = in_panel / (lanes_ * held());
      const int lane = in_panel / held() % lanes_;
      const int element = in_panel % held();
      if (index < spec_.orders()) {
        elements.push_back(call.terms().constant(element_bits(), order(index, lane, element)));
      } else if (is_tap(index - spec_.orders(), element)) {
        elements.push_back(call.terms().input(fmt::format("w[{}]", i), element_bits()));
      } else {
        elements.push_back(call.terms().constant(element_bits(), 0));
      }
    }
    panel_ = call.add_elements("the panels", std::move(elements), element_bits());
  }

  /// The byte of a pixel, or of four, that a byte of a lane is.
  int order_byte(int order, int lane, int i) const {
    if (spec_.is_depthwise()) return 16 * i + lane / 2;
    return (4 * order + lane / 4 + i) % read_bytes();
  }
  uint32_t order(int index, int lane, int element) const {
    if (!has_pairs()) return static_cast<uint32_t>(order_byte(index, lane, element));
    return static_cast<uint32_t>(order_byte(index, lane, element)) | 0x8000u;  // and a byte of 0
  }

  /// Whether an element of a weight is a tap's; others are 0, since what they meet is anything.
  bool is_tap(int index, int element) const {
    if (!spec_.is_depthwise()) return true;
    const int weights = spec_.rows * spec_.row_weights() * spec_.weight_parts();
    const int parts = index < weights ? spec_.weight_parts() : 1;
    const int weight = index / parts % spec_.row_weights();
    const int part = index % parts;
    const int byte = parts == 2 ? 2 * element + part : element;
    for (int output = 0; output < spec_.outputs; ++output) {
      for (int k_group = 0; k_group < spec_.row_k_groups(); ++k_group) {
        if (!spec_.takes(output, k_group) || spec_.weight_of(output, k_group) != weight) continue;
        const int pixel = 4 * k_group + byte - output * spec_.column_stride;
        return pixel >= 0 && pixel < spec_.columns;
      }
    }
    return false;
  }

  std::span<const Term> weights_at(int vector, int lane, int index) const {
    const int first =
        vector * panel_elements() + ((spec_.orders() + index) * lanes_ + lane) * held();
    return std::span(panel_.elements)
        .subspan(static_cast<size_t>(first), static_cast<size_t>(held()));
  }

  // ---- what must be stored

  Status compare_channel(KernelCall& call, int vector, int lane) {
    for (int position = 0; position < position_count; ++position) {
      for (int output = 0; output < spec_.outputs; ++output) {
        if (!is_stored(position, output)) continue;
        for (int row = 0; row < range_.outputs; ++row) {
          Status status = compare_result(call, vector, lane, position, output, row);
          if (!status) return status;
        }
      }
    }
    return {};
  }

  Status compare_result(KernelCall& call, int vector, int lane, int position, int output, int row) {
    const Term sum = sum_of(call.terms(), vector, lane, position, output, row);
    const int64_t pixel = 2 * (row * row_outputs() + position * spec_.outputs + output);
    const int64_t channel = first_channel(vector) + lane;
    if (operands_) return prover_.compare_results(call, *operands_, pixel, channel, sum);
    const int64_t number = pixel * channels() + channel;
    const Term before = output_.elements[static_cast<size_t>(number)];
    return prover_.compare_sum(call, output_.address + static_cast<uint64_t>(4 * number),
                               spec_.adds ? sum + before : sum,
                               fmt::format("channel {} of pixel {}", channel, pixel));
  }

  Term sum_of(Terms& terms, int vector, int lane, int position, int output, int row) const {
    Term sum = start_.elements[static_cast<size_t>(first_channel(vector) + lane)];
    Term window_sum = terms.constant(32, 0);
    const auto weights = [&](int index) { return weights_at(vector, lane, index); };
    for (int tap_row = 0; tap_row < spec_.rows; ++tap_row) {
      const int input_row = row * spec_.row_stride + tap_row;
      for (int k_group = 0; k_group < spec_.row_k_groups(); ++k_group) {
        if (!spec_.takes(output, k_group)) continue;
        std::array<Term, bytes_of_k_group> bytes;
        for (int i = 0; i < bytes_of_k_group; ++i) {
          bytes[static_cast<size_t>(i)] = tap(terms, vector, lane, position, input_row, k_group, i);
        }
        const int weight = spec_.weight_of(output, k_group);
        sum = added(sum, bytes, weights, tap_row * spec_.row_weights() + weight);
        if (!spec_.sums_window_of(k_group)) continue;
        window_sum = added(window_sum, bytes, weights,
                           spec_.rows * spec_.row_weights() + spec_.zero_point_of(output, k_group));
      }
    }
    return sum - window_sum;
  }

  /// A byte of a lane's k group as it is multiplied; of i16 pairs of channels, every second one.
  Term tap(Terms& terms, int vector, int lane, int position, int input_row, int k_group,
           int i) const {
    int pixel = k_group;
    int byte = spec_.repeats ? lane / 2 : lane;
    if (spec_.is_depthwise()) {
      pixel = 4 * k_group + i;
      if (pixel >= spec_.pixels()) return terms.constant(8, 0);  // meets a weight of 0
    } else {
      pixel = k_group / spec_.k_groups;
      byte = order_byte(k_group % spec_.k_groups, lane, has_pairs() ? i / 2 : i);
      if (has_pairs() && i % 2 == 1) return terms.constant(8, 0);
    }
    const bool is_outside = input_row < range_.above || input_row >= input_rows() - range_.below;
    if (is_outside || !is_in_image(position, pixel)) return padding(terms);
    const int64_t at = (input_row - range_.above) * row_bytes() +
                       int64_t{first_pixel(position) + pixel} * pixel_step() + first_input(vector) +
                       byte;
    return signed_as_multiplied(x_.elements[static_cast<size_t>(at)]);
  }

  const int number_;
  const jit::RowRange& range_;
  const int lanes_;
  CallOperand x_, panel_, start_, output_;
  std::vector<jit::NhwcPlace> positions_;
  std::vector<jit::NhwcVector> vectors_;
  std::optional<EpilogueCall> operands_;
  jit::GroupedNhwcArguments arguments_;
};

}  // namespace

Result<ConvProof> prove_kernel(const KernelSubject<GroupedNhwcSpec>& kernel, const Decide& decide) {
  ResultProver prover(kernel.epilogue, decide);
  if (Status status = prover.check_provable(); !status) return status.error();
  for (size_t range = 0; range < kernel.spec.ranges.size(); ++range) {
    Status status = prove_call(kernel.code, GroupedCall(kernel, static_cast<int>(range), prover));
    if (!status) return status.error();
  }
  return prover.proof();
}

}  // namespace castor::prove
