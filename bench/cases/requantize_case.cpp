// SPDX-License-Identifier: Apache-2.0
#include "bench/cases/requantize_case.hpp"

#include <fmt/format.h>

#include <array>
#include <random>

#include "ir/builder.hpp"

namespace castor::bench {

namespace {

/// Slices of the axis of quantization.
constexpr int64_t slices = 64;

/// Bits that values leave free in containers of 32 bits.
constexpr int free_bits = 4;

constexpr std::array<std::string_view, 3> granularity_names = {"tensor", "outer_axis",
                                                               "inner_axis"};
constexpr std::array<std::string_view, 2> arithmetic_names = {"exact", "embarc"};

constexpr std::array<Side, 5> sides = {QuantizedFormat::fx8, QuantizedFormat::fx16,
                                       QuantizedFormat::sa8, QuantizedFormat::sa32, Side()};
std::string_view name_of(const Side& side) { return side ? info(*side).name : "f32"; }
ElementType element_of(const Side& side) { return side ? info(*side).container : ElementType::f32; }
bool has_axis(const Side& side) { return side && info(*side).is_asymmetric; }

int axis_of(const RequantizeCell& cell) {
  return cell.granularity == Granularity::outer_axis ? 0 : 1;
}

Quantization parameters_of(const RequantizeCell& cell, QuantizedFormat format, uint32_t seed) {
  std::mt19937 random(seed);
  const auto between = [&](int32_t min, int32_t max) {
    return min + static_cast<int32_t>(random() % static_cast<uint32_t>(max - min + 1));
  };
  const bool per_axis = cell.granularity != Granularity::tensor && info(format).is_asymmetric;
  Quantization result{.format = format,
                      .axis = per_axis ? axis_of(cell) : Quantization::per_tensor,
                      .scale = {},
                      .frac = std::vector<int32_t>{},
                      .zero_point = {}};
  const int value_bits = bits_of(info(format).container) - 1;
  if (!info(format).is_asymmetric) {
    result.frac = {value_bits - 2};
    return result;
  }
  result.scale = std::vector<int32_t>();
  result.zero_point = std::vector<int32_t>();
  for (int64_t i = 0; i < (per_axis ? slices : 1); ++i) {
    result.scale->push_back(between(1 << 14, (1 << 15) - 1));
    result.frac->push_back(value_bits - 2 + 14 - (value_bits == 31 ? free_bits : 0));
    result.zero_point->push_back(between(-20, 20));
  }
  return result;
}

TensorType type_of(const RequantizeCell& cell, const Side& side, const Dims& extents,
                   uint32_t seed) {
  if (!side) return {ElementType::f32, to_shape(extents)};
  return quantized_type(parameters_of(cell, *side, seed), to_shape(extents));
}

}  // namespace

std::string RequantizeCell::name() const {
  return fmt::format("{}/{}/{}/{}/{}", by_two ? "RequantizeThreads" : "Requantize",
                     arithmetic_names[static_cast<size_t>(arithmetic)], name_of(from), name_of(to),
                     granularity_names[static_cast<size_t>(granularity)]);
}

TypePair RequantizeCell::pair() const { return {element_of(from), element_of(to)}; }

Dims RequantizeCell::extents(int64_t elements) const {
  switch (granularity) {
    case Granularity::tensor: return {elements};
    case Granularity::outer_axis: return {slices, elements / slices};
    case Granularity::inner_axis: break;
  }
  return {elements / slices, slices};
}

Result<FunctionPtr> RequantizeCell::function(const Dims& extents) const {
  FunctionBuilder builder("requantize");
  const ValueId x = builder.parameter("x", type_of(*this, from, extents, 1));
  std::optional<Quantization> result;
  if (to) result = parameters_of(*this, *to, 2);
  builder.result(builder.requantize(x, result, {.arithmetic = arithmetic}));
  return builder.finish();
}

std::vector<RequantizeCell> requantize_cells() {
  std::vector<RequantizeCell> cells;
  for (RequantizeArithmetic arithmetic :
       {RequantizeArithmetic::exact, RequantizeArithmetic::embarc}) {
    for (Granularity granularity :
         {Granularity::tensor, Granularity::outer_axis, Granularity::inner_axis}) {
      for (const Side& from : sides) {
        for (const Side& to : sides) {
          if (!from && !to) continue;
          const bool needs_axis = granularity != Granularity::tensor;
          if (needs_axis && !has_axis(from) && !has_axis(to)) continue;
          cells.push_back({arithmetic, from, to, granularity});
        }
      }
    }
  }
  return cells;
}

}  // namespace castor::bench
