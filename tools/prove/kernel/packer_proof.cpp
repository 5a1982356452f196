// SPDX-License-Identifier: Apache-2.0
// Packers: every byte of a packed layout is the element that the layout has there, with its sign
// flip, or padding.
#include <fmt/format.h>

#include <algorithm>

#include "tools/prove/kernel/conv_proof.hpp"
#include "tools/prove/kernel/kernel_call.hpp"
#include "tools/prove/kernel/loop_model.hpp"
#include "tools/prove/kernel/packed_layout.hpp"
#include "tools/prove/term/polynomial.hpp"

namespace castor::prove {

using namespace packed_layout;

namespace {

// ---- input

/// How much a call packs.
struct InputCounts {
  int k_groups = 1;
  int rows = 1;
  int vectors = 1;
  int left_out = 0;      ///< lanes of a row's last vector
  int first_column = 0;  ///< where the input begins; negative: in padding
  int last_padding = 0;  ///< bytes of padding after the input of a row
};

/// One call of a packer of input.
class InputCall {
 public:
  InputCall(const KernelSubject<jit::PackInput>& kernel, const InputCounts& counts, uint32_t flips,
            ConvProof& proof)
      : spec_(kernel.spec), counts_(counts), flips_(flips), proof_(proof) {}

  void lay_out(KernelCall& call) {
    const int64_t taken =
        (int64_t{lanes} * counts_.vectors - counts_.left_out - 1) * spec_.column_stride +
        last_element() + 1;
    row_bytes_ = counts_.first_column + taken - counts_.last_padding;
    x_ = call.add_inputs("x", channels() * channel_bytes(), 8);
    planes_ = call.add_output("the planes", planes() * plane_step() - 64);
    fill_vectors();
    arguments_ = {.source = is_im2col() ? nullptr : pointer_to<const std::byte>(x_.address),
                  .first_column = counts_.first_column,
                  .channels = {channel_bytes(), 2 * channel_bytes(), 3 * channel_bytes()},
                  .source_k_group_step =
                      (spec_.layout == jit::PackedLayout::nchw4c ? elements : 1) * channel_bytes(),
                  .source_row_step = row_bytes_,
                  .planes = pointer_to<std::byte>(planes_),
                  .plane_step = plane_step(),
                  .row_step = row_step(),
                  .k_groups = counts_.k_groups,
                  .rows = counts_.rows,
                  .vectors = pointer_to<const jit::PackedVector>(
                      call.add_numbers<jit::PackedVector>("the vectors", vectors_)),
                  .vector_count = counts_.vectors,
                  .flips = flips_,
                  .padding = padding};
    if (!is_im2col()) return;
    std::vector<uint64_t> rows;
    for (int i = 0; i < spec_.filter_rows; ++i) {
      rows.push_back(is_padding(i) ? 0 : x_.address + static_cast<uint64_t>(i * channel_bytes()));
    }
    arguments_.filter_rows =
        pointer_to<const std::byte* const>(call.add_numbers<uint64_t>("the filter's rows", rows));
  }

  const jit::PackInputArguments& arguments() const { return arguments_; }

  Status compare(KernelCall& call) {
    ++proof_.calls;
    const int stored = lanes * counts_.vectors - counts_.left_out;
    for (int plane = 0; plane < planes(); ++plane) {
      for (int row = 0; row < counts_.rows; ++row) {
        for (int lane = 0; lane < stored; ++lane) {
          for (int i = 0; i < elements; ++i) {
            if (Status status = compare_byte(call, plane, row, lane, i); !status) return status;
            ++proof_.elements;
          }
        }
      }
    }
    return {};
  }

 private:
  bool is_im2col() const { return spec_.layout == jit::PackedLayout::im2col; }
  int planes() const { return is_im2col() ? spec_.k_groups() : counts_.k_groups; }
  /// Channels of the input, or with im2col the rows that the filter's rows meet.
  int channels() const {
    if (is_im2col()) return spec_.filter_rows;
    return spec_.layout == jit::PackedLayout::nchw4c ? elements * counts_.k_groups
                                                     : counts_.k_groups;
  }
  int64_t channel_bytes() const { return counts_.rows * row_bytes_; }
  int64_t row_step() const { return int64_t{4} * lanes * counts_.vectors; }
  int64_t plane_step() const { return counts_.rows * row_step() + 64; }

  /// The first of several rows of a filter, which is above the image.
  bool is_padding(int filter_row) const {
    return is_im2col() && counts_.first_column < 0 && spec_.filter_rows > 1 && filter_row == 0;
  }

  /// Bytes from a lane's first element to its last one in the input.
  int64_t last_element() const {
    switch (spec_.layout) {
      case jit::PackedLayout::nchw4c: return 0;
      case jit::PackedLayout::columns4: return elements - 1;
      case jit::PackedLayout::im2col: return int64_t{spec_.filter_columns - 1} * spec_.dilation;
    }
    return 0;
  }

  /// Bytes that a vector loads of a row.
  int64_t loaded_bytes() const {
    return spec_.layout == jit::PackedLayout::nchw4c ? int64_t{lanes} * spec_.column_stride : 64;
  }

  void fill_vectors() {
    for (int v = 0; v < counts_.vectors; ++v) {
      jit::PackedVector vector;
      for (int b = 0; b < loaded_bytes(); ++b) {
        const int64_t position = counts_.first_column + v * spec_.vector_step() + b;
        if (position >= 0 && position < row_bytes_) vector.bytes |= uint64_t{1} << b;
      }
      const int stored = v + 1 == counts_.vectors ? lanes - counts_.left_out : lanes;
      vector.lanes = jit::first_bits(stored);
      vectors_.push_back(vector);
    }
  }

  Status compare_byte(KernelCall& call, int plane, int row, int lane, int i) {
    const uint64_t address =
        planes_ + static_cast<uint64_t>(plane * plane_step() + row * row_step() + 4 * lane + i);
    if (is_im2col() && elements * plane + i >= spec_.taps()) {
      call.allow(address, 1);
      return {};
    }
    const Term found = call.stored(address, 8);
    const uint32_t flip = flips_ >> (8 * i) & 0xff;
    const Term x = element_of(call.terms(), plane, row, lane, i) ^ flip;
    if (found && found.same_as(x)) return {};
    return wrong_layout(
        fmt::format("byte {} of lane {} in row {} of plane {}", i, lane, row, plane));
  }

  Term element_of(Terms& terms, int plane, int row, int lane, int i) const {
    int64_t channel = plane;
    int64_t column = counts_.first_column + lane * spec_.column_stride;
    switch (spec_.layout) {
      case jit::PackedLayout::nchw4c: channel = elements * plane + i; break;
      case jit::PackedLayout::columns4: column += i; break;
      case jit::PackedLayout::im2col: {
        const int tap = elements * plane + i;
        channel = tap / spec_.filter_columns;
        column += int64_t{tap % spec_.filter_columns} * spec_.dilation;
        if (is_padding(static_cast<int>(channel))) return terms.constant(8, padding & 0xff);
        break;
      }
    }
    if (column < 0 || column >= row_bytes_) return terms.constant(8, padding & 0xff);
    return x_.elements[static_cast<size_t>(channel * channel_bytes() + row * row_bytes_ + column)];
  }

  static constexpr uint32_t padding = 0x2525'2525;

  const jit::PackInput& spec_;
  const InputCounts counts_;
  const uint32_t flips_;
  ConvProof& proof_;
  int64_t row_bytes_ = 0;
  CallOperand x_;
  uint64_t planes_ = 0;
  std::vector<jit::PackedVector> vectors_;
  jit::PackInputArguments arguments_;
};

// ---- weights

/// How much a call packs.
struct WeightCounts {
  int units = 1;
  uint32_t lanes = 0xffff;  ///< output channels that are stored
};

/// One call of a packer of weights.
class WeightCall {
 public:
  WeightCall(const KernelSubject<jit::PackWeights>& kernel, const WeightCounts& counts,
             uint32_t flips, ConvProof& proof)
      : unit_(kernel.spec), counts_(counts), flips_(flips), proof_(proof) {}

  void lay_out(KernelCall& call) {
    w_ = call.add_inputs(
        "w", int64_t{lanes - 1} * channel_step() + (counts_.units - 1) * unit_step() + unit_bytes(),
        8);
    sums_ = call.add_inputs("sums", lanes, 32, true);
    const int first = std::countr_zero(counts_.lanes);
    const int count = std::popcount(counts_.lanes);
    const uint64_t packed = call.add_output(
        "the packed weights", counts_.units * unit_.slots() * step() +
                                  (counts_.units - 1) * skip() - (step() - 4 * count));
    to_ = packed - static_cast<uint64_t>(4 * first);
  }

  jit::PackWeightsArguments arguments() const {
    return {.source = pointer_to<const std::byte>(w_.address),
            .channel_step = channel_step(),
            .input_step = input_step(),
            .unit_step = unit_step(),
            .units = counts_.units,
            .to = to_,
            .step = step(),
            .skip = skip(),
            .lanes = counts_.lanes,
            .sums = pointer_to<int32_t>(sums_.address),
            .flips = flips_};
  }

  Status compare(KernelCall& call) {
    ++proof_.calls;
    for (int channel = 0; channel < lanes; ++channel) {
      Term sum = sums_.elements[static_cast<size_t>(channel)];
      for (int unit = 0; unit < counts_.units; ++unit) {
        for (int slot = 0; slot < unit_.slots(); ++slot) {
          for (int i = 0; i < elements; ++i) {
            const Term w = weight(channel, unit, slot, i);
            sum = sum + extend_sign(w, 32);
            if ((counts_.lanes >> channel & 1) == 0) continue;
            const int64_t at =
                (int64_t{unit} * unit_.slots() + slot) * step() + unit * skip() + 4 * channel + i;
            const Term found = call.stored(to_ + static_cast<uint64_t>(at), 8);
            if (!found || !found.same_as(w)) {
              return wrong_layout(
                  fmt::format("byte {} of slot {} of unit {}, channel {}", i, slot, unit, channel));
            }
            ++proof_.elements;
          }
        }
      }
      const Term found = call.stored(sums_.address + static_cast<uint64_t>(4 * channel), 32);
      if (!found || polynomial_of(found) != polynomial_of(sum)) {
        return wrong_layout(fmt::format("the sum of channel {}", channel));
      }
      ++proof_.elements;
    }
    return {};
  }

 private:
  int64_t channel_step() const { return counts_.units * unit_step() + 64; }
  int64_t input_step() const { return unit_.is_one_vector() ? unit_.input_step : 16; }
  int64_t unit_step() const { return unit_.is_one_vector() ? 7 : unit_.positions; }
  int64_t unit_bytes() const {
    return unit_.bytes_read() + (unit_.is_one_vector() ? 0 : (elements - 1) * input_step());
  }
  int64_t step() const { return 4 * lanes + 8; }
  int64_t skip() const { return 24; }

  Term weight(int channel, int unit, int slot, int i) const {
    const int input = slot / unit_.positions * elements + i;
    const int64_t at = channel * channel_step() + unit * unit_step() + input * input_step() +
                       slot % unit_.positions;
    return w_.elements[static_cast<size_t>(at)] ^ (flips_ >> (8 * i) & 0xff);
  }

  const jit::PackWeights& unit_;
  const WeightCounts counts_;
  const uint32_t flips_;
  ConvProof& proof_;
  CallOperand w_;
  CallOperand sums_;
  uint64_t to_ = 0;
};

}  // namespace

Result<ConvProof> prove_kernel(const KernelSubject<jit::PackInput>& kernel, const Decide&) {
  const InputCounts calls[] = {
      {},
      {.k_groups = 2,
       .rows = 2,
       .vectors = 2,
       .left_out = 5,
       .first_column = -3,
       .last_padding = 2},
      {.k_groups = 3, .rows = 3, .vectors = 3, .first_column = 4},
      {.vectors = 1, .left_out = 15, .first_column = -1, .last_padding = 0},
  };
  ConvProof proof;
  for (const InputCounts& counts : calls) {
    for (const uint32_t flips : {uint32_t{0}, sign_flips}) {
      if (Status status = prove_call(kernel.code, InputCall(kernel, counts, flips, proof));
          !status) {
        return status.error();
      }
    }
  }
  if (Status status = prove_every_count(kernel, proof); !status) return status.error();
  return proof;
}

Result<ConvProof> prove_kernel(const KernelSubject<jit::PackWeights>& kernel, const Decide&) {
  const WeightCounts calls[] = {{}, {.units = 3, .lanes = 0x7fe}, {.units = 2, .lanes = 1}};
  ConvProof proof;
  for (const WeightCounts& counts : calls) {
    for (const uint32_t flips : {uint32_t{0}, sign_flips}) {
      if (Status status = prove_call(kernel.code, WeightCall(kernel, counts, flips, proof));
          !status) {
        return status.error();
      }
    }
  }
  if (Status status = prove_every_count(kernel, proof); !status) return status.error();
  return proof;
}

}  // namespace castor::prove
