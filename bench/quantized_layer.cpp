// SPDX-License-Identifier: Apache-2.0
// QuantizedLayer/<nchw or nhwc>: a layer of f32 in and out that quantizes its input by its own
// range, 3x3 64 -> 64 at 56 x 56, with scales, bias and relu; /range: with the range of the result,
// by which the next layer quantizes. conv_ratio: its time over that of the convolution alone.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "bench/benchmarks.hpp"
#include "bench/cases/convolution_case.hpp"
#include "bench/data.hpp"
#include "ir/builder.hpp"

namespace castor::bench {

namespace {

using enum ElementType;

constexpr int64_t channels = 64;
constexpr int64_t side = 56;

enum class LayerPart : uint8_t {
  convolution,  ///< u8 -> i32
  layer,
  layer_and_range,
};

struct Cell {
  ConvolutionLayout layout = ConvolutionLayout::nchw;
  bool with_range = false;

  std::string name() const {
    return fmt::format("QuantizedLayer/{}{}", layout == ConvolutionLayout::nchw ? "nchw" : "nhwc",
                       with_range ? "/range" : "");
  }
  Dims extents() const {
    return layout == ConvolutionLayout::nchw ? Dims{1, channels, side, side}
                                             : Dims{1, side, side, channels};
  }
  Shape by_channel() const {
    return layout == ConvolutionLayout::nchw ? Shape{channels, 1, 1} : Shape{channels};
  }
};

ValueId of_channels(FunctionBuilder& builder, const Cell& cell, float first, float step) {
  std::vector<float> values;
  for (int64_t m = 0; m < channels; ++m) values.push_back(first + step * static_cast<float>(m));
  return builder.constant({f32, cell.by_channel()}, std::as_bytes(std::span(values)));
}

Result<FunctionPtr> function_of(const Cell& cell, LayerPart part) {
  FunctionBuilder builder("layer");
  const bool is_alone = part == LayerPart::convolution;
  const ValueId x = builder.parameter("x", {is_alone ? u8 : f32, to_shape(cell.extents())});
  std::vector<std::byte> weights(channels * channels * 9);
  fill_with_patterns(weights, 5);
  const ValueId w = builder.constant({i8, {channels, channels, 3, 3}}, weights);
  ConvolutionOptions options;
  options.pads = {1, 1, 1, 1};
  options.layout = cell.layout;
  if (is_alone) {
    const auto middle = std::byte{128};
    const ValueId zero_point = builder.constant({u8, {}}, {&middle, 1});
    builder.result(builder.conv_integer(x, w, options, zero_point));
    return builder.finish();
  }
  const auto [codes, scale, zero_point] = builder.dynamic_quantize_linear(x, u8);
  const ValueId sums = builder.conv_integer(codes, w, options, zero_point);
  const ValueId scales =
      builder.binary(OpKind::mul, of_channels(builder, cell, 0.001F, 0.0001F), scale);
  const ValueId scaled = builder.binary(OpKind::mul, builder.convert(sums, f32), scales);
  const ValueId y = builder.unary(
      OpKind::relu, builder.binary(OpKind::add, scaled, of_channels(builder, cell, -8.0F, 0.25F)));
  builder.result(y);
  if (part == LayerPart::layer_and_range) {
    builder.result(builder.reduce(OpKind::reduce_min, y));
    builder.result(builder.reduce(OpKind::reduce_max, y));
  }
  return builder.finish();
}

/// Results in memory of their own.
struct Results {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<View> views;
};

Results results_of(const Cell& cell, LayerPart part) {
  Results results;
  const ElementType element = part == LayerPart::convolution ? i32 : f32;
  const size_t scalars = part == LayerPart::layer_and_range ? 2 : 0;
  for (size_t i = 0; i <= scalars; ++i) {
    const Dims extents = i == 0 ? cell.extents() : Dims();
    auto& bytes = results.bytes.emplace_back(
        static_cast<size_t>(byte_size(element, *element_count(extents)).value()));
    results.views.push_back({bytes.data(), element, extents, bytes.size()});
  }
  return results;
}

/// A call whose results are those of the lowest tier: the interpreter would take seconds.
Result<BoundCall> checked_call(const Session& session, const Cell& cell, LayerPart part,
                               const ConstView& x, Results& results) {
  const Result<FunctionPtr> function = function_of(cell, part);
  if (!function) return function.error();
  Results expected = results_of(cell, part);
  const Result<BoundCall> lowest =
      bind_call(session.all_tiers().front().runtime, *function, {x}, expected.views);
  if (!lowest) return lowest.error();
  if (Status status = lowest->run(); !status) return status.error();
  Result<BoundCall> call = bind_call(session.runtime(), *function, {x}, results.views);
  if (!call) return call;
  if (Status status = call->run(); !status) return status.error();
  if (results.bytes == expected.bytes) return call;
  return Error{ErrorCode::internal, "a result differs from that of the lowest tier"};
}

Status run_cell(benchmark::State& state, Session& session, const Cell& cell) {
  const auto count = static_cast<size_t>(*element_count(cell.extents()));
  std::mt19937 random(7);
  std::vector<float> x(count);
  std::vector<uint8_t> codes(count);
  for (size_t i = 0; i < count; ++i) {
    codes[i] = static_cast<uint8_t>(random() >> 24);
    x[i] = static_cast<float>(static_cast<int32_t>(random())) * 0x1p-30F;
  }
  const LayerPart part = cell.with_range ? LayerPart::layer_and_range : LayerPart::layer;
  Results results = results_of(cell, part);
  Results sums = results_of(cell, LayerPart::convolution);
  const auto layer = checked_call(session, cell, part,
                                  {x.data(), f32, cell.extents(), count * sizeof(float)}, results);
  if (!layer) return layer.error();
  const auto convolution = checked_call(session, cell, LayerPart::convolution,
                                        {codes.data(), u8, cell.extents(), count}, sums);
  if (!convolution) return convolution.error();
  std::vector<Contender> all = {layer->contender(), convolution->contender()};
  measure_in_turn(all, session.effort(l2_footprint));
  report_time(state, all[0].median_ns());
  state.counters["conv_ns"] = all[1].median_ns();
  state.counters["conv_ratio"] = median_ratio(all[0], all[1]);
  return {};
}

}  // namespace

void register_quantized_layer(Session& session, const Selection& selected) {
  std::vector<Cell> cells;
  for (const ConvolutionLayout layout : {ConvolutionLayout::nchw, ConvolutionLayout::nhwc}) {
    for (const bool with_range : {false, true}) cells.push_back({layout, with_range});
  }
  register_cells(session, selected, cells, run_cell);
}

}  // namespace castor::bench
