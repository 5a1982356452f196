// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/kernel/dense_call.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/prove/kernel/loop_memory.hpp"

namespace castor::prove {

namespace {

constexpr int64_t tile_lanes = jit::DenseTile::tile_rows;

}  // namespace

void DenseCall::lay_out(KernelCall& call) {
  is_along_pixels() ? lay_out_vectors() : lay_out_origins();
  lay_out_operands(call);
  lay_out_results(call);
  if (!origins_.empty()) {
    arguments_.places = pointer_to<const Origin>(call.add_numbers<Origin>("origins", origins_));
  }
  if (!stores_.empty()) {
    arguments_.stores =
        pointer_to<const jit::ConvStore>(call.add_numbers<jit::ConvStore>("stores", stores_));
  }
  arguments_.tiles = counts_.tiles;
}

KLoopNumbers DenseCall::loop_numbers(int tile, int64_t group, int k_steps_done,
                                     const Word& k_steps) const {
  const Word looped = k_steps + number(-tile_.peeled_k_steps);
  const auto index = static_cast<size_t>(tile);
  const auto first_vector = index * static_cast<size_t>(tile_.vectors);
  const bool along = is_along_pixels();
  const int64_t pixel = along ? stores_[first_vector].pixel : origins_[index].pixel;
  const int64_t at = along ? stores_[first_vector].source : origins_[index].source;
  const int64_t done = group * counts_.k_steps + k_steps_done;
  const auto address = [](uint64_t base, int64_t bytes) { return Word{base, 0} + number(bytes); };
  KLoopNumbers numbers = {
      .source = address(takes_input() ? planes_ : x_.address, at + group * k_group_step_),
      .weights = address(w_.address, done * weight_width() * weight_bytes()),
      .input = {},
      .k_steps_end = Word{std::bit_cast<uint64_t>(arguments_.k_steps), 0} + 4 * looped,
      .offset = -4 * looped + number(4 * k_steps_done)};
  if (takes_input()) {
    const int64_t channels_done = int64_t{elements()} * k_steps_done;
    numbers.input = address(input_.address, pixel + channels_done * arguments_.input_step);
  }
  return numbers;
}

Word DenseCall::address_of_tile(int tile) const {
  const auto first = is_along_pixels() ? std::bit_cast<uint64_t>(arguments_.stores)
                                       : std::bit_cast<uint64_t>(arguments_.places);
  return {first + static_cast<uint64_t>(tile) * bytes_of_tile(tile).size(), 0};
}

std::span<const std::byte> DenseCall::bytes_of_tile(int tile) const {
  const auto index = static_cast<size_t>(tile);
  const auto vectors = static_cast<size_t>(tile_.vectors);
  return is_along_pixels() ? std::as_bytes(std::span(stores_).subspan(index * vectors, vectors))
                           : std::as_bytes(std::span(origins_).subspan(index, 1));
}

void DenseCall::look_at_tile(int tile) {
  std::erase_if(pixels_,
                [&](const Pixel& pixel) { return pixel.window_sum / pixels_of_tile() != tile; });
}

void DenseCall::forget_sums(const Accumulators& sums, SymbolMachine& machine) {
  sums.make_inputs(machine);
  sums_.emplace(sums, machine);
}

Status DenseCall::compare(KernelCall& call) {
  ++prover_.proof().calls;
  for (const Pixel& pixel : pixels_) {
    for (int64_t channel = 0; channel < channels(); ++channel) {
      if (Status status = compare_result(call, pixel, channel); !status) return status;
    }
  }
  if (takes_input() && !tile_.reads_input_once) {
    if (Status status = compare_packed(call); !status) return status;
  }
  return {};
}

int64_t DenseCall::weight_width() const {
  const int64_t lanes = tile_.has_tiles() ? 16 : lanes_;
  return is_along_pixels() ? tile_.channels : tile_.vectors_of(static_cast<int>(lanes)) * lanes;
}

void DenseCall::lay_out_vectors() {
  const int vectors = counts_.tiles * tile_.vectors;
  for (int v = 0; v < vectors; ++v) {
    jit::ConvStore store;
    store.pixel = results_of_row_;
    store.source = int64_t{4} * lanes_ * v;
    store.lanes = (1u << lanes_) - 1;
    if (tile_.store == jit::StorePolicy::compressed) store.lanes &= 0x5b6du >> (v % 2);
    if (v + 1 == vectors && !takes_input()) store.lanes &= (1u << (lanes_ - 3)) - 1;
    int stored = 0;
    for (int lane = 0; lane < lanes_; ++lane) {
      if ((store.lanes >> lane & 1) == 0) continue;
      pixels_.push_back({store.source + 4 * lane, int64_t{lanes_} * v + lane, results_of_row_++});
      store.order[stored] = lane;
      store.stored[stored++] = -1;
    }
    store.first_lanes = (1u << stored) - 1;
    stores_.push_back(store);
  }
  read_bytes_ = int64_t{4} * lanes_ * vectors;
}

void DenseCall::lay_out_origins() {
  for (int i = 0; i < counts_.tiles; ++i) {
    const Origin origin = {.pixel = results_of_row_, .source = int64_t{8} * i};
    origins_.push_back(origin);
    for (int pixel = 0; pixel < tile_.pixels(); ++pixel) {
      const int64_t at = origin.source + source_offset(tile_.position_of(pixel));
      pixels_.push_back({at, results_of_row_, results_of_row_});
      ++results_of_row_;
    }
    const int last = tile_.has_tiles() ? tile_.lines() * tile_.line_positions() - 1
                                       : tile_.position_of(tile_.pixels() - 1);
    read_bytes_ = std::max(read_bytes_, origin.source + source_offset(last) + step_bytes());
  }
}

int64_t DenseCall::source_offset(int position) const {
  if (!tile_.has_tiles()) {
    return position / tile_.columns * row_step() + position % tile_.columns * pixel_step();
  }
  const int in_line = tile_.line_positions();
  return position / in_line * row_step() + position % in_line * pixel_step();
}

void DenseCall::lay_out_operands(KernelCall& call) {
  const int64_t apart = is_along_pixels() ? read_bytes_ + 4 : step_bytes();
  for (int k = 0; k < counts_.k_steps; ++k) {
    offsets_.push_back(static_cast<int32_t>(k * apart));
  }
  k_group_step_ = (counts_.k_steps + 1) * apart;
  const int64_t bytes = read_bytes_ + offsets_.back() + (k_groups() - 1) * k_group_step_;
  arguments_ = {
      .k_steps = pointer_to<const int32_t>(call.add_numbers<int32_t>("offsets", offsets_)),
      .k_step_count = counts_.k_steps,
      .k_groups = k_groups(),
      .k_group_step = k_group_step_,
      .pixel_step = pixel_step(),
      .channel_tiles = counts_.channel_tiles,
      .weight_tile_bytes = weight_steps() * weight_width() * weight_bytes()};
  if (takes_input()) {
    input_ = call.add_inputs("the input", elements() * counts_.k_steps * results_of_row_, 8);
    arguments_.input = pointer_to<const std::byte>(input_.address);
    arguments_.input_step = results_of_row_;
    planes_ = call.add_output("packed input", bytes);
    arguments_.source = pointer_to<const std::byte>(planes_);
  } else {
    x_ = call.add_inputs("x", bytes / element_bytes(), 8 * element_bytes());
    arguments_.source = pointer_to<const std::byte>(x_.address);
  }
  w_ = call.add_inputs("w", counts_.channel_tiles * weight_steps() * weight_width() * elements(),
                       8 * element_bytes());
  arguments_.weights = pointer_to<const std::byte>(w_.address);
  const bool by_pixel = tile_.has_first_values_by_pixel;
  start_ = call.add_inputs("start", by_pixel ? results_of_row_ * tile_lanes : read_channels(), 32);
  arguments_.start = pointer_to<const int32_t>(start_.address);
  if (tile_.has_tiles()) set_pixel_tile_steps();
  if (tile_.window_sums != jit::WindowSums::none) lay_out_zero_points(call);
}

void DenseCall::set_pixel_tile_steps() {
  for (int p = 1; p < tile_.pixel_tiles(); ++p) {
    arguments_.pixel_tile_steps[p - 1] =
        source_offset(tile_.first_position(p)) - source_offset(tile_.first_position(p - 1));
  }
}

void DenseCall::lay_out_zero_points(KernelCall& call) {
  const int bits = tile_.window_sums == jit::WindowSums::i16_pairs ? 16 : 32;
  if (tile_.window_sums != jit::WindowSums::products) {
    zero_points_ = call.add_inputs("zero points", read_channels() * 32 / bits, bits);
    arguments_.weight_zero_points = pointer_to<const int32_t>(zero_points_.address);
  }
  if (tile_.window_sums == jit::WindowSums::own) return;
  const int64_t sums = is_along_pixels() ? read_bytes_ / 4 : results_of_row_;
  window_sums_ = call.add_inputs("window sums", sums * 32 / bits, bits);
  arguments_.window_sums = pointer_to<int32_t>(window_sums_.address);
}

void DenseCall::lay_out_results(KernelCall& call) {
  const ResultShape shape = has_rows_of_channels()
                                ? ResultShape{results_of_row_, channels(), read_channels()}
                                : ResultShape{channels(), results_of_row_, 0};
  if (prover_.epilogue() != nullptr) {
    operands_.emplace(call, *prover_.epilogue(), shape);
    arguments_.epilogue = pointer_to<const jit::EpilogueOperand>(operands_->table());
    return;
  }
  row_bytes_ = 4 * shape.row + 12;
  output_ = call.add_output("the output", shape.rows * row_bytes_ - 12);
  arguments_.output = pointer_to<int32_t>(output_);
  arguments_.output_step = row_bytes_;
}

Status DenseCall::compare_result(KernelCall& call, const Pixel& pixel, int64_t channel) {
  const Term sum = sum_of(pixel, channel);
  const bool is_pixel = has_rows_of_channels();
  const int64_t row = is_pixel ? pixel.result : channel;
  const int64_t element = is_pixel ? channel : pixel.result;
  if (operands_) return prover_.compare_results(call, *operands_, row, element, sum);
  return prover_.compare_sum(call, output_ + static_cast<uint64_t>(row * row_bytes_ + 4 * element),
                             sum, fmt::format("channel {} of pixel {}", channel, pixel.result));
}

Term DenseCall::sum_of(const Pixel& pixel, int64_t channel) const {
  const int64_t start = tile_.has_first_values_by_pixel
                            ? pixel.result * tile_lanes + channel % tile_.channels % tile_lanes
                            : channel;
  Term sum = sums_ ? forgotten_sum(pixel, channel) : start_.elements[static_cast<size_t>(start)];
  for (int64_t group = 0; group < k_groups(); ++group) {
    for (int k = first_k_step(); k < counts_.k_steps; ++k) {
      for (int64_t byte = 0; byte < step_bytes(); byte += 4) {
        const int64_t step = (group * counts_.k_steps + k) * step_bytes() / 4 + byte / 4;
        sum = added_products(sum, pixels_of(pixel, group, k, byte), weights_of(channel, step),
                             signs_of(tile_));
      }
    }
  }
  return sum - compensation(pixel, channel);
}

Term DenseCall::forgotten_sum(const Pixel& pixel, std::optional<int64_t> channel) const {
  const auto of_channel = static_cast<int>(channel.value_or(tile_.channels));
  const auto in_tile = static_cast<int>(pixel.window_sum % pixels_of_tile());
  const auto& [sums, machine] = *sums_;
  return is_along_pixels() ? sums.at(machine, of_channel, in_tile)
                           : sums.at(machine, in_tile, of_channel);
}

std::vector<Term> DenseCall::pixels_of(const Pixel& pixel, int64_t group, int k,
                                       int64_t byte) const {
  std::vector<Term> some;
  for (int i = 0; i < elements(); ++i) {
    if (takes_input()) {
      const Term x = input_.elements[static_cast<size_t>(
          (int64_t{elements()} * k + i) * results_of_row_ + pixel.result)];
      some.push_back(pixel_as_multiplied(tile_, x));
      continue;
    }
    const int64_t at =
        (pixel.source + offsets_[static_cast<size_t>(k)] + group * k_group_step_ + byte) /
            element_bytes() +
        i;
    const Term x = x_.elements[static_cast<size_t>(at)];
    some.push_back(tile_.has_sign_flip ? x ^ 0x80 : x);
  }
  return some;
}

std::span<const Term> DenseCall::weights_of(int64_t channel, int64_t step) const {
  const int64_t channel_tile = channel / tile_.channels;
  const int64_t k_group =
      (channel_tile * weight_steps() + step) * weight_width() + channel % tile_.channels;
  return std::span(w_.elements)
      .subspan(static_cast<size_t>(k_group * elements()), static_cast<size_t>(elements()));
}

Term DenseCall::compensation(const Pixel& pixel, int64_t channel) const {
  const auto sum = static_cast<size_t>(pixel.window_sum);
  const auto zero = static_cast<size_t>(channel);
  switch (tile_.window_sums) {
    case jit::WindowSums::none: break;
    case jit::WindowSums::i32: return window_sums_.elements[sum] * zero_points_.elements[zero];
    case jit::WindowSums::i16_pairs: {
      const Term none = start_.elements[0] - start_.elements[0];
      return -added_products(none, std::span(window_sums_.elements).subspan(2 * sum, 2),
                             std::span(zero_points_.elements).subspan(2 * zero, 2),
                             {.x_is_signed = true, .w_is_signed = true});
    }
    case jit::WindowSums::products:
      if (sums_ && !tile_.has_tiles()) break;  // a part of the first values
      return window_sums_.elements[sum];
    case jit::WindowSums::own: return own_window_sum(pixel) * zero_points_.elements[zero];
    case jit::WindowSums::own_products: break;  // refused by prove_kernel
  }
  return start_.elements[0] - start_.elements[0];
}

Term DenseCall::own_window_sum(const Pixel& pixel) const {
  if (sums_) return forgotten_sum(pixel, std::nullopt);
  Term sum = start_.elements[0] - start_.elements[0];
  for (int k = 0; k < counts_.k_steps; ++k) {
    for (const Term& x : pixels_of(pixel, 0, k, 0)) {
      sum = sum + widened(x, signs_of(tile_).x_is_signed);
    }
  }
  return sum;
}

Status DenseCall::compare_packed(KernelCall& call) {
  for (const Pixel& pixel : pixels_) {
    for (int k = first_k_step(); k < counts_.k_steps; ++k) {
      const std::vector<Term> expected = pixels_of(pixel, 0, k, 0);
      for (size_t i = 0; i < expected.size(); ++i) {
        const int64_t at = pixel.source + offsets_[static_cast<size_t>(k)];
        const uint64_t element = i * static_cast<uint64_t>(element_bytes());
        const Term found =
            call.stored(planes_ + static_cast<uint64_t>(at) + element, 8 * element_bytes());
        if (found && found.same_as(expected[i])) continue;
        return Error(ErrorCode::internal,
                     fmt::format("packed element {} of k step {} at pixel {} is not the input's", i,
                                 k, pixel.result));
      }
    }
  }
  return {};
}

}  // namespace castor::prove
