// SPDX-License-Identifier: Apache-2.0
#include "runtime/bind/bound_code.hpp"

#include "runtime/conv/epilogue.hpp"
#include "runtime/requantize/requantization.hpp"

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
void visit_code(const BoundConvolution& convolution, const Visit& visit) {
  const MovementCode& movement = convolution.movement;
  for (const KernelCodePtr<jit::ConvTile>* code :
       {&convolution.code, &convolution.last_code, &convolution.sums_code,
        &convolution.input_code}) {
    visit_code(*code, visit);
  }
  visit_code(movement.weights, visit);
  visit_code(movement.last_weights, visit);
  visit_code(movement.planes, visit);
  visit_code(movement.windows, visit);
  for (const BlockTables& block : convolution.blocks) {
    for (const BoundTileRun& run : block.runs) {
      visit_code(run.code, visit);
      visit_code(run.last_code, visit);
    }
  }
  if (convolution.depthwise) visit_code(convolution.depthwise->codes, visit);
  if (convolution.grouped_nhwc) visit_code(convolution.grouped_nhwc->codes, visit);
}

template <class Visit>
void visit_code(const BoundNest& nest, const Visit& visit) {
  for (const KernelCodePtr<jit::NestSpec>* code :
       {&nest.main.code, &nest.streaming, &nest.any_start.code}) {
    visit_code(*code, visit);
  }
  if (nest.tiles) {
    for (const BoundTileCopy& copy : nest.tiles->copies) visit_code(copy.code, visit);
  }
  if (nest.convolution) visit_code(*nest.convolution, visit);
  if (nest.epilogue) visit_code(nest.epilogue->nest, visit);
  if (nest.requantization) {
    for (const BoundMethod& method : nest.requantization->methods) visit_code(method.nest, visit);
  }
  if (nest.tables) visit_code(nest.tables->code, visit);
}

template <class Visit>
void visit_code(const BoundState& bound, const Visit& visit) {
  for (const BoundNest& nest : bound.nests) visit_code(nest, visit);
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
