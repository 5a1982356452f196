// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/query/subjects.hpp"

#include "tools/fuzz/cells.hpp"

namespace castor::prove {
namespace {

void add_clamps(ElementType type, std::vector<ElementwiseOp>& ops) {
  constexpr std::pair<std::optional<double>, std::optional<double>> bounds[] = {
      {-1.5, 6.25}, {0.0, 6.0}, {{}, 2.5}, {-0.0, {}}};
  for (const auto& [lo, hi] : bounds) {
    ops.push_back({.op = OpKind::clamp, .type = type, .lo = lo, .hi = hi});
  }
}

}  // namespace

std::vector<Conversion> all_conversions() {
  std::vector<Conversion> conversions;
  for (const fuzz::ConversionCell& cell : fuzz::conversion_cells()) {
    conversions.push_back({cell.from, cell.to, cell.options});
  }
  return conversions;
}

std::vector<ElementwiseOp> all_elementwise_ops() {
  std::vector<ElementwiseOp> ops;
  for (const fuzz::OperationTypeCell& cell : fuzz::operation_type_cells()) {
    if (!is_specified(cell.op) || is_older_layout(cell.type)) continue;
    if (cell.op == OpKind::clamp) {
      add_clamps(cell.type, ops);
    } else {
      ops.push_back({cell.op, cell.type});
    }
  }
  return ops;
}

}  // namespace castor::prove
