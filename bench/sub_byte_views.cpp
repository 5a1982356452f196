// SPDX-License-Identifier: Apache-2.0
// SubByteViews/<source>/<destination>/<layout>: what an element costs in views of sub-byte tensors
// that no whole bytes make up. The tensor of sub-byte elements has the layout, the other is dense.
#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "bench/benchmarks.hpp"
#include "bench/data.hpp"
#include "ir/interpreter/interpreter.hpp"

namespace castor::bench {

namespace {

/// A matrix of some 32,768 elements: both tensors are in L2.
struct ViewLayout {
  std::string_view name;
  Dims extents;
  Dims strides;
  int64_t offset = 0;
};

const ViewLayout layouts[] = {
    {"dense", {128, 256}, {256, 1}},  // for comparison
    {"inside_byte", {128, 256}, {256, 1}, 1}, {"rows_of_257", {127, 257}, {259, 1}},
    {"rows_of_31", {1057, 31}, {33, 1}},      {"rows_of_5", {6553, 5}, {7, 1}},
    {"every_second", {128, 256}, {512, 2}},   {"every_third", {128, 256}, {768, 3}},
    {"transposed", {128, 256}, {1, 128}},     {"transposed_inside_byte", {127, 257}, {1, 131}, 1},
};

struct ViewCell {
  TypePair pair;
  ViewLayout layout;

  std::string name() const {
    return fmt::format("SubByteViews/{}/{}/{}", name_of(pair.from), name_of(pair.to), layout.name);
  }
  bool reads_codes() const { return is_sub_byte(pair.from); }
  int64_t elements() const { return layout.extents[0] * layout.extents[1]; }
};

std::vector<ViewCell> view_cells() {
  std::vector<ViewCell> cells;
  const auto add = [&](ElementType type) {
    for (const TypePair& pair : {TypePair{type, ElementType::f32}, {ElementType::f32, type}}) {
      for (const ViewLayout& layout : layouts) cells.push_back({pair, layout});
    }
  };
  for (const ElementType type : value_types) {
    if (is_sub_byte(type)) add(type);
  }
  for (const ElementType type : older_layouts) add(type);
  return cells;
}

size_t bytes_for(ElementType type, int64_t elements) {
  return static_cast<size_t>(byte_size(type, elements).value_or(0));
}

/// Bytes of the tensor of codes.
size_t span_bytes(ElementType type, const ViewLayout& layout) {
  int64_t last = layout.offset;
  for (int axis = 0; axis < layout.extents.rank(); ++axis) {
    last += (layout.extents[axis] - 1) * layout.strides[axis];
  }
  return bytes_for(type, last + 1);
}

/// The view of one of the tensors, at `data`.
template <class AnyView>
AnyView view_of(const ViewCell& cell, ElementType type, std::byte* data) {
  const auto& [name, extents, strides, offset] = cell.layout;
  if (!is_sub_byte(type)) return {data, type, extents, bytes_for(type, cell.elements())};
  return {data, type, extents, strides, offset, span_bytes(type, cell.layout)};
}

Result<BoundCall> prepare(Session& session, const ViewCell& cell) {
  const auto& [from, to] = cell.pair;
  const Result<std::span<std::byte>> memory = session.memory(l2_footprint);
  if (!memory) return memory.error();
  const ConstView source = view_of<ConstView>(cell, from, memory->data());
  const size_t offset = (source.bytes + 4096) / 64 * 64;
  const View destination = view_of<View>(cell, to, memory->data() + offset);
  if (offset + destination.bytes > memory->size()) {
    return Error{ErrorCode::internal, fmt::format("{}: the tensors do not fit", cell.name())};
  }
  fill(memory->first(source.bytes), ordinary_tile(from, to, tile_elements));
  const Result<FunctionPtr> function = conversion(from, to, 2);
  if (!function) return function.error();
  Result<BoundCall> call = bind_call(session.runtime(), *function, {source}, {destination});
  if (!call) return call.error();

  // Compared with the interpreter: all bytes, those between the rows included.
  std::memset(destination.data, 0xA5, destination.bytes);
  if (Status status = call->run(); !status) return status.error();
  const auto* found = static_cast<const std::byte*>(destination.data);
  const std::vector<std::byte> ours(found, found + destination.bytes);
  std::memset(destination.data, 0xA5, destination.bytes);
  if (Status status = interpret(**function, call->inputs, call->outputs); !status) {
    return status.error();
  }
  if (std::memcmp(ours.data(), found, ours.size()) == 0) return call;
  return Error{ErrorCode::internal, "the result differs from the interpreter's"};
}

Status run_cell(benchmark::State& state, Session& session, const ViewCell& cell) {
  const Result<BoundCall> call = prepare(session, cell);
  if (!call) return call.error();
  std::vector<Contender> all = {call->contender()};
  measure_in_turn(all, session.effort(l2_footprint));
  report_time(state, all[0].median_ns());
  state.counters["ns_per_element"] = all[0].median_ns() / static_cast<double>(cell.elements());
  return {};
}

}  // namespace

void register_sub_byte_views(Session& session, const Selection& selected) {
  register_cells(session, selected, view_cells(), run_cell);
}

}  // namespace castor::bench
