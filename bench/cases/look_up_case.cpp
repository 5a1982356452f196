// SPDX-License-Identifier: Apache-2.0
#include "bench/cases/look_up_case.hpp"

#include <fmt/format.h>

#include <array>

#include "ir/builder.hpp"
#include "ir/shape/look_up.hpp"

namespace castor::bench {

namespace {

constexpr int64_t channels = 64;
constexpr int64_t width = 8;
constexpr std::array<std::string_view, 3> table_names = {"tensor", "nchw", "nhwc"};

}  // namespace

std::string LookUpCell::name() const {
  return fmt::format("LookUp/{}/{}/{}{}", castor::name_of(codes), castor::name_of(element),
                     table_names[static_cast<size_t>(tables)], is_constant ? "/constant" : "");
}

Dims LookUpCell::extents(int64_t elements) const {
  const int64_t height = elements / (channels * width);
  switch (tables) {
    case Tables::tensor: return {elements};
    case Tables::nchw: return {1, channels, height, width};
    case Tables::nhwc: break;
  }
  return {1, height, width, channels};
}

Dims LookUpCell::table_extents() const {
  const int64_t entries = look_up_entries(codes);
  return tables == Tables::tensor ? Dims{entries} : Dims{channels, entries};
}

Result<FunctionPtr> LookUpCell::function(const Dims& extents,
                                         std::span<const std::byte> table) const {
  FunctionBuilder builder("look_up");
  const ValueId x = builder.parameter("x", {codes, to_shape(extents)});
  const TensorType type = {element, to_shape(table_extents())};
  const ValueId t = is_constant ? builder.constant(type, table) : builder.parameter("t", type);
  std::optional<int> axis;
  if (tables != Tables::tensor) axis = tables == Tables::nchw ? 1 : 3;
  builder.result(builder.look_up(x, t, axis));
  return builder.finish();
}

std::vector<LookUpCell> look_up_cells() {
  using enum ElementType;
  constexpr TypePair pairs[] = {{u8, u8}, {i8, i8},  {u8, f16},  {u8, f32},
                                {u4, u8}, {u4, f16}, {nf4, f32}, {u8, u4}};
  std::vector<LookUpCell> cells;
  for (const TypePair& pair : pairs) {
    for (const Tables tables : {Tables::tensor, Tables::nchw, Tables::nhwc}) {
      for (const bool is_constant : {false, true}) {
        if (is_constant && tables != Tables::tensor) continue;
        cells.push_back({pair.from, pair.to, tables, is_constant});
      }
    }
  }
  return cells;
}

}  // namespace castor::bench
