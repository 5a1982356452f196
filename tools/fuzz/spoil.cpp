// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/spoil.hpp"

#include <algorithm>

#include "ir/rewrite/canonicalize.hpp"
#include "ir/verify/infer.hpp"
#include "ir/verify/requantize.hpp"
#include "tools/fuzz/layout.hpp"
#include "tools/testing/samples.hpp"

namespace castor::fuzz {

namespace {

const Image& image_of(const Prepared& prepared, size_t tensor) {
  const size_t inputs = prepared.inputs.size();
  return tensor < inputs ? prepared.inputs[tensor] : prepared.outputs[tensor - inputs];
}

bool same_strides(const Image& a, const Image& b) {
  if (!(a.shape == b.shape)) return false;
  for (int axis = 0; axis < a.shape.rank(); ++axis) {
    if (a.shape[axis] > 1 && a.place.strides[axis] != b.place.strides[axis]) return false;
  }
  return true;
}

/// Whether the call would be refused if the result began where the other tensor does. An input with
/// the result's strides could be taken for one that is computed in place.
bool would_overlap(const Prepared& prepared, size_t result, size_t other) {
  const size_t inputs = prepared.inputs.size();
  if (inputs + result == other || count_of(image_of(prepared, other).shape) == 0) return false;
  const Image& written = prepared.outputs[result];
  const Image& read = image_of(prepared, other);
  return other >= inputs || !are_stored_alike(written.element, read.element) ||
         !same_strides(written, read);
}

/// Whether elements that a result needs are computed with the scale that an input is. What nothing
/// needs is not computed, and not checked.
bool counts_as_scale(const Prepared& prepared, size_t input) {
  const FunctionPtr function = canonicalize(prepared.function);
  std::vector<Dims> shapes;
  for (const Image& image : prepared.inputs) shapes.push_back(image.shape);
  const Result<BoundShapes> bound = bind_shapes(*function, shapes);
  if (!bound) return false;
  const ValueId scale = function->parameters[input];
  return std::ranges::any_of(function->operations, [&](const Operation& operation) {
    return operation.op == OpKind::requantize &&
           count_of(bound->values[operation.results[0]]) > 0 &&
           (operation.operands[source_parameter(0)] == scale ||
            operation.operands[destination_parameter(0)] == scale);
  });
}

template <class View>
void spoil_view(View& view, BadCall::Kind kind, size_t needed_bytes) {
  if (kind == BadCall::Kind::null) view.data = nullptr;
  if (kind == BadCall::Kind::bytes) view.bytes = needed_bytes - 1;
  if (kind != BadCall::Kind::shape) return;
  if (view.shape.empty()) {
    view.shape = {2};
    view.strides = {1};
  } else {
    --view.shape[0];
  }
}

/// Bytes that the view needs; two results that alternate have an image that is larger.
size_t bytes_needed(const Image& image) {
  const int64_t reach = image.place.offset + reach_of(image.shape, image.place.strides);
  return samples::storage_bytes(image.element, static_cast<size_t>(reach));
}

/// The address of the first byte of a view's first element.
template <class View>
uintptr_t address_of_first(const View& view) {
  return reinterpret_cast<uintptr_t>(view.data) + first_byte_of(view.element, view.offset);
}

}  // namespace

bool can_spoil(const Prepared& prepared) {
  const BadCall& bad = prepared.program.bad_call;
  if (bad.kind == BadCall::Kind::none || bad.kind == BadCall::Kind::extents) return false;
  if (count_of(image_of(prepared, bad.tensor).shape) == 0) return false;
  if (bad.kind == BadCall::Kind::scale) return counts_as_scale(prepared, bad.tensor);
  return bad.kind != BadCall::Kind::overlap ||
         would_overlap(prepared, bad.tensor - prepared.inputs.size(), bad.other);
}

std::optional<Call> spoil(const Prepared& prepared, const Call& call) {
  if (!can_spoil(prepared) || prepared.program.bad_call.kind == BadCall::Kind::scale) return {};
  const BadCall& bad = prepared.program.bad_call;
  const size_t inputs = prepared.inputs.size();
  Call spoilt = call;
  if (bad.kind == BadCall::Kind::overlap) {
    View& view = spoilt.outputs[bad.tensor - inputs];
    const uintptr_t target = bad.other < inputs
                                 ? address_of_first(call.inputs[bad.other])
                                 : address_of_first(call.outputs[bad.other - inputs]);
    view.data = reinterpret_cast<void*>(target - first_byte_of(view.element, view.offset));
    return spoilt;
  }
  const size_t needed = bytes_needed(image_of(prepared, bad.tensor));
  if (bad.tensor < inputs) {
    spoil_view(spoilt.inputs[bad.tensor], bad.kind, needed);
  } else {
    spoil_view(spoilt.outputs[bad.tensor - inputs], bad.kind, needed);
  }
  return spoilt;
}

}  // namespace castor::fuzz
