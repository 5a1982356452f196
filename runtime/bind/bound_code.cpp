// SPDX-License-Identifier: Apache-2.0
#include "runtime/bind/bound_code.hpp"

#include "runtime/bind/bound_state.hpp"
#include "runtime/conv/convolution.hpp"
#include "runtime/conv/convolution_output.hpp"

namespace castor::detail {

namespace {

/// Calls `visit` with each piece of code, some of them several times. (Templates, since a
/// std::function might allocate.)
template <class Spec, class Visit>
void visit_code(const KernelCodePtr<Spec>& code, const Visit& visit) {
  if (code != nullptr) visit(*code);
}

template <class Form, class Visit>
void visit_code(const KernelCodePtr<Form> (&codes)[2][2][2], const Visit& visit) {
  for (const auto& by_sums : codes) {
    for (const auto& by_adding : by_sums) {
      for (const KernelCodePtr<Form>& code : by_adding) visit_code(code, visit);
    }
  }
}

template <class Visit>
void visit_code(const BlockTables& block, const Visit& visit) {
  for (const BoundTiles& tiles : block.tiles) {
    visit_code(tiles.code, visit);
    visit_code(tiles.last_code, visit);
  }
}

template <class Visit>
void visit_code(const BoundDense& bound, const Visit& visit) {
  visit_code(bound.sums.code, visit);
  visit_code(bound.input_code, visit);
  visit_code(bound.weight_packers.whole.code, visit);
  visit_code(bound.weight_packers.last.code, visit);
  visit_code(bound.input_packer, visit);
  for (const BlockTables& block : bound.blocks) visit_code(block, visit);
}

template <class Visit>
void visit_code(const BoundConvolution& convolution, const Visit& visit) {
  if (const auto* dense = convolution.dense()) visit_code(*dense, visit);
  if (const auto* depthwise = convolution.depthwise()) visit_code(depthwise->codes, visit);
  if (const auto* grouped = convolution.grouped_nhwc()) visit_code(grouped->codes, visit);
  if (const auto* dot = convolution.dot()) visit_code(dot->code, visit);
  if (const auto* by_rows = convolution.weight_rows()) visit_code(by_rows->rows, visit);
}

template <class Visit>
void visit_code(const LaneStep& step, const Visit& visit) {
  visit_code(step.main.code, visit);
  if (step.any_start) visit_code(step.any_start->code, visit);
}

template <class Visit>
void visit_code(const ElementwiseStep& step, const Visit& visit) {
  visit_code(static_cast<const LaneStep&>(step), visit);
  visit_code(step.streaming, visit);
  if (!step.tiles) return;
  for (const BoundTileCopy& copy : step.tiles->copies) visit_code(copy.code, visit);
}

template <class Visit>
void visit_code(const FoldStep& step, const Visit& visit) {
  visit_code(static_cast<const LaneStep&>(step), visit);
  if (!step.tiles) return;
  for (const BoundTileCopy& copy : step.tiles->copies) visit_code(copy.code, visit);
}

template <class Visit>
void visit_code(const ConvolutionStep& step, const Visit& visit) {
  visit_code(*step.convolution, visit);
  if (step.epilogue) visit_code(static_cast<const LaneStep&>(*step.epilogue), visit);
}

template <class Visit>
void visit_code(const BoundRequantization& requantization, const Visit& visit) {
  for (const BoundMethod& method : requantization.methods) visit_code(method.step, visit);
}

template <class Visit>
void visit_code(const RequantizeStep& step, const Visit& visit) {
  visit_code(step.requantization, visit);
}

template <class Visit>
void visit_code(const TableStep& step, const Visit& visit) {
  if (const auto* tables = std::get_if<CallTables>(&step.tables)) {
    visit_code(tables->requantization, visit);
  }
  visit_code(step.code, visit);
}

template <class Visit>
void visit_code(const EmptyStep&, const Visit&) {}

template <class Visit>
void visit_code(const PaddingStep&, const Visit&) {}

template <class Visit>
void visit_code(const BoundState& bound, const Visit& visit);

template <class Visit>
void visit_code(const RowBlockStep& step, const Visit& visit) {
  visit_code(*step.block, visit);
  if (step.remainder) visit_code(*step.remainder, visit);
}

template <class Visit>
void visit_code(const BoundState& bound, const Visit& visit) {
  for (const Step& step : bound.steps) {
    std::visit([&](const auto& kind) { visit_code(kind, visit); }, step);
  }
}

}  // namespace

size_t code_bytes(const BoundState& bound) {
  size_t bytes = 0;
  size_t number = 0;
  visit_code(bound, [&](const AnyKernelCode& code) {
    size_t other_number = 0;
    bool was_seen = false;
    visit_code(bound, [&](const AnyKernelCode& other) {
      was_seen |= other_number++ < number && &other == &code;
    });
    if (!was_seen) bytes += code.block.size();
    ++number;
  });
  return bytes;
}

}  // namespace castor::detail
