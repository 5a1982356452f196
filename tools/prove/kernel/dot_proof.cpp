// SPDX-License-Identifier: Apache-2.0
// Dot kernels: calls of a few counts, with output channels and pixels that the last ones overlap.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tools/prove/kernel/conv_proof.hpp"
#include "tools/prove/kernel/kernel_call.hpp"
#include "tools/prove/kernel/products.hpp"
#include "tools/prove/term/polynomial.hpp"

namespace castor::prove {

namespace {

using jit::DotArguments;
using jit::DotTile;

/// How much a call multiplies.
struct DotCounts {
  int64_t steps = 1;  ///< whole ones
  int64_t tiles = 1;
  int64_t overlap = 0;  ///< pixels that the last tile shares with the one before
  int64_t channels = DotTile::channels;
};

class DotCall {
 public:
  DotCall(const KernelSubject<DotTile>& kernel, const DotCounts& counts, ConvProof& proof)
      : tile_(kernel.spec),
        counts_(counts),
        step_(dot_step(tile_.engine, kernel.target)),
        depth_(counts.steps * step_ + (tile_.has_tail ? remainder : 0)),
        proof_(proof) {}

  void lay_out(KernelCall& call) {
    std::vector<Term> packed;
    const CallOperand all = call.add_inputs("pixel elements", packed_pixels() * depth_, bits());
    for (int64_t i = 0; i < packed_pixels() * vectors() * step_; ++i) {
      const int64_t element = pixel_element(i);
      packed.push_back(element < 0 ? call.terms().constant(bits(), 0)
                                   : all.elements[static_cast<size_t>(element)]);
    }
    x_ = all.elements;
    pixels_ = call.add_elements("the packed pixels", std::move(packed), bits());
    w_ = call.add_inputs("w", counts_.channels * depth_, 8);
    sums_ = call.add_inputs("sums of pixels", packed_pixels(), 32);
    zero_points_ = call.add_inputs("zero points", counts_.channels, 32);
    std::vector<uint8_t> ones(static_cast<size_t>(step_), 0);
    std::fill(ones.end() - remainder, ones.end(), uint8_t{1});
    ones_ = call.add_numbers("ones of the tail", std::span<const uint8_t>(ones));
    output_ = call.add_output("y", (pixels() - 1) * output_step() + 4 * counts_.channels);
    zero_point_ = call.terms().constant(32, input_zero_point);
  }

  DotArguments arguments() const {
    return {.pixels = pointer_to<const std::byte>(pixels_.address),
            .weights = pointer_to<const std::byte>(w_.address),
            .channel_step = depth_,
            .steps = counts_.steps,
            .tail = remainder - step_,
            .tail_ones = pointer_to<const std::byte>(ones_),
            .last_channel = counts_.channels - DotTile::channels,
            .tiles = counts_.tiles,
            .pixel_sums = pointer_to<const int32_t>(sums_.address),
            .weight_zero_points = pointer_to<const int32_t>(zero_points_.address),
            .input_zero_point = input_zero_point,
            .output = pointer_to<int32_t>(output_),
            .output_step = output_step(),
            .last_output = pointer_to<int32_t>(address_of(pixels() - tile_.pixels, 0))};
  }

  Status compare(KernelCall& call) {
    ++proof_.calls;
    for (int64_t pixel = 0; pixel < pixels(); ++pixel) {
      for (int64_t channel = 0; channel < counts_.channels; ++channel) {
        const Term found = call.stored(address_of(pixel, channel), 32);
        const Term expected = sum_of(call.terms(), packed_index(pixel), channel);
        if (!found || polynomial_of(found) != polynomial_of(expected)) {
          return Error{ErrorCode::internal,
                       fmt::format("wrong is channel {} of pixel {}", channel, pixel)};
        }
        ++proof_.elements;
      }
    }
    return {};
  }

 private:
  static constexpr int64_t remainder = 5;  ///< weights of the tail that no step before has
  static constexpr int32_t input_zero_point = 121;

  int bits() const { return 8 * jit::bytes_of_channel(tile_.engine); }
  /// Vectors of a pixel.
  int64_t vectors() const { return counts_.steps + (tile_.has_tail ? 1 : 0); }
  int64_t packed_pixels() const { return counts_.tiles * tile_.pixels; }
  int64_t pixels() const { return packed_pixels() - counts_.overlap; }
  int64_t output_step() const { return 4 * counts_.channels + 8; }
  uint64_t address_of(int64_t pixel, int64_t channel) const {
    return output_ + static_cast<uint64_t>(pixel * output_step() + 4 * channel);
  }
  /// The packed pixel whose sum an output is in the end.
  int64_t packed_index(int64_t pixel) const {
    return pixel < pixels() - tile_.pixels ? pixel : pixel + counts_.overlap;
  }
  /// Which of all elements of pixels a packed one is; -1: a zero.
  int64_t pixel_element(int64_t packed) const {
    const int64_t lane = packed % step_;
    const int64_t vector = packed / step_;
    const int64_t p = vector % tile_.pixels;
    const int64_t at = vector / tile_.pixels % vectors();
    const int64_t pixel = vector / tile_.pixels / vectors() * tile_.pixels + p;
    const bool is_tail = at == counts_.steps;
    if (is_tail && lane < step_ - remainder) return -1;
    return pixel * depth_ + (is_tail ? depth_ - step_ : at * step_) + lane;
  }

  Term sum_of(Terms& terms, int64_t pixel, int64_t channel) const {
    const bool multiplies_bytes = jit::multiplies_bytes(tile_.engine);
    const ProductSigns signs = signs_of(tile_.engine);
    std::vector<Term> x;
    std::vector<Term> w;
    Term weights = terms.constant(32, 0);
    for (int64_t k = 0; k < depth_; ++k) {
      x.push_back(x_[static_cast<size_t>(pixel * depth_ + k)]);
      const Term& byte = w_.elements[static_cast<size_t>(channel * depth_ + k)];
      w.push_back(multiplies_bytes    ? byte
                  : tile_.w_is_signed ? extend_sign(byte, 16)
                                      : extend_zero(byte, 16));
      weights = weights + widened(w.back(), signs.w_is_signed);
    }
    Term sum = added_products(terms.constant(32, 0), x, w, signs);
    if (tile_.sums_weights) sum = sum - zero_point_ * weights;
    if (tile_.has_zero_points) {
      sum = sum - sums_.elements[static_cast<size_t>(pixel)] *
                      zero_points_.elements[static_cast<size_t>(channel)];
    }
    return sum;
  }

  const DotTile& tile_;
  const DotCounts counts_;
  const int64_t step_;
  const int64_t depth_;
  ConvProof& proof_;
  std::vector<Term> x_;  ///< by packed pixel and k
  CallOperand pixels_;
  CallOperand w_;
  CallOperand sums_;
  CallOperand zero_points_;
  uint64_t ones_ = 0;
  uint64_t output_ = 0;
  Term zero_point_;
};

}  // namespace

Result<ConvProof> prove_kernel(const KernelSubject<DotTile>& kernel, const Decide&) {
  const int64_t shared = kernel.spec.pixels - 1;
  const DotCounts calls[] = {{},
                             {.steps = 2, .tiles = 2, .overlap = shared, .channels = 5},
                             {.steps = 3, .tiles = 3, .channels = 11}};
  ConvProof proof;
  for (const DotCounts& counts : calls) {
    if (Status status = prove_call(kernel.code, DotCall(kernel, counts, proof)); !status) {
      return status.error();
    }
  }
  return proof;
}

}  // namespace castor::prove
