// SPDX-License-Identifier: Apache-2.0
#include "bench/growing_tensors.hpp"

#include <fmt/format.h>

#include <numeric>
#include <vector>

#include "bench/port_bound.hpp"

namespace castor::bench {

namespace {

/// Along which axis tensors grow, and their extent along the other one.
struct Growth {
  bool along_columns = false;
  int64_t other = 1;

  Extents extents(int64_t length) const {
    return along_columns ? Extents{other, length} : Extents{length, other};
  }
};

/// In the order in which they are tried: long rows tell most about the main loop alone.
std::vector<Growth> growths(const ElementwiseCase& each, bool has_outer_loop) {
  if (!each.has_columns()) return {{false, 1}};
  std::vector<Growth> all = {{true, 1}, {true, 2}, {false, 64}, {false, 128}, {false, 256}};
  if (has_outer_loop) std::swap(all[0], all[1]);
  return all;
}

/// The greatest length of which the tensors take no more than the footprint.
Result<int64_t> longest(const ElementwiseCase& each, const Growth& growth, size_t footprint_bytes) {
  if (!growth.along_columns) {
    const Result<Extents> extents = extents_for(each, footprint_bytes, growth.other);
    if (!extents) return extents.error();
    return extents->rows;
  }
  constexpr int64_t step = 64;
  int64_t length = 0;
  while (true) {
    const Result<Extents> fit = extents_for(each, footprint_bytes, length + step);
    if (!fit || fit->rows < growth.other) return length;
    length += step;
  }
}

Result<LoopSlope> slope_of(Session& session, const ElementwiseCase& each, const BoundCall& call,
                           const Growth& growth, int64_t iteration_elements) {
  const Result<Dims> one = each.result_shape(growth.extents(1));
  if (!one) return one.error();
  const int64_t step_elements = element_count(*one).value_or(1);
  // Whole rows of whole iterations: an inner loop of that many columns leaves no tail.
  const int64_t unit = growth.along_columns ? step_elements * iteration_elements
                                            : std::lcm(step_elements, iteration_elements);
  const Result<int64_t> length = longest(each, growth, large_l1_footprint.bytes);
  if (!length) return length.error();
  const int64_t max_units = *length * step_elements / unit;
  const Extents max = growth.extents(max_units * unit / step_elements);
  const auto tensors = filled_tensors(session, each, max, large_l1_footprint);
  if (!tensors) return tensors.error();
  return LoopSlope::prepare(max_units, unit, [&](int64_t elements) -> Result<BoundCall> {
    const Extents extents = growth.extents(elements / step_elements);
    Result<BoundCall> smaller = bind_tensors(session, each, extents, *tensors);
    if (smaller && !same_loops(smaller->kernel, call.kernel)) {
      return Error{ErrorCode::internal,
                   fmt::format("{} rows of {} columns take another kind of loop", extents.rows,
                               extents.columns)};
    }
    return smaller;
  });
}

}  // namespace

Result<LoopSlope> growing_slope(Session& session, const ElementwiseCase& each,
                                const BoundCall& call, int64_t iteration_elements) {
  Result<LoopSlope> slope = Error{ErrorCode::internal, "no growth was tried"};
  for (const Growth& growth : growths(each, has_outer_loop(call.kernel))) {
    slope = slope_of(session, each, call, growth, iteration_elements);
    if (slope) break;
  }
  return slope;
}

Result<ElementwiseTensors> filled_tensors(Session& session, const ElementwiseCase& each,
                                          const Extents& extents, const Footprint& footprint) {
  const Result<std::span<std::byte>> memory = session.memory(footprint);
  if (!memory) return memory.error();
  const Result<ElementwiseTensors> tensors = place_tensors(each, extents, *memory);
  if (tensors) fill_inputs(each, extents, *tensors);
  return tensors;
}

Result<BoundCall> bind_tensors(const Session& session, const ElementwiseCase& each,
                               const Extents& extents, const ElementwiseTensors& tensors,
                               std::optional<Layout> layout) {
  const Result<View> result = result_view(each, extents, tensors);
  if (!result) return result.error();
  return bind_call(session.runtime(), each.function, input_views(each, extents, tensors, layout),
                   {*result});
}

}  // namespace castor::bench
