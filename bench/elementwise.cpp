// SPDX-License-Identifier: Apache-2.0
// Elementwise/<function>/<footprint>, and Elementwise/<function>/<rows>x<columns>.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "bench/benchmarks.hpp"
#include "bench/elementwise_check.hpp"
#include "bench/growing_tensors.hpp"
#include "bench/plain_contest.hpp"
#include "bench/stream_report.hpp"

namespace castor::bench {

namespace {

/// The function bound to filled tensors.
struct Prepared {
  ElementwiseCase each;
  BoundCall call;
  std::optional<BoundCall> untransposed;  ///< the same tensors, as if none lay transposed
};

struct Measured : StreamFigures {
  double untransposed_fraction = 0;  ///< the time of dense operands over ours
};

bool has_transposed(const ElementwiseRow& row) {
  return std::ranges::find(row.inputs, Layout::transposed, &InputShape::layout) != row.inputs.end();
}

/// A call of these tensors that is right.
Result<BoundCall> checked_call(const Session& session, const ElementwiseCell& cell,
                               const ElementwiseCase& each, const Extents& extents,
                               const ElementwiseTensors& tensors,
                               std::optional<Layout> layout = {}) {
  Result<BoundCall> call = bind_tensors(session, each, extents, tensors, layout);
  if (!call) return call;
  call->options = session.run_options(cell.footprint);
  if (Status status = run_and_check(*call, each); !status) return status.error();
  return call;
}

Result<Prepared> prepare(Session& session, const ElementwiseCell& cell) {
  const Result<ElementwiseCase> each = ElementwiseCase::read(cell.row);
  if (!each) return each.error();
  if (Status status = check_all_tiers(session, *each); !status) return status.error();
  const Result<Extents> extents = cell.extents(*each);
  if (!extents) return extents.error();
  const auto tensors = filled_tensors(session, *each, *extents, cell.footprint);
  if (!tensors) return tensors.error();
  const Result<BoundCall> call = checked_call(session, cell, *each, *extents, *tensors);
  if (!call) return call.error();
  Prepared prepared = {*each, *call, {}};
  if (!has_transposed(cell.row)) return prepared;
  Result<BoundCall> dense = checked_call(session, cell, *each, *extents, *tensors, Layout::dense);
  if (!dense) return dense.error();
  prepared.untransposed = std::move(dense).value();
  return prepared;
}

/// The main loop of a bound call, and tensors in L1 that grow along it.
Result<MainLoop> main_loop_of(Session& session, const ElementwiseCase& each,
                              const BoundCall& call) {
  Result<PortBound> bound = port_bound(call.kernel);
  if (!bound) return bound.error();
  Result<LoopSlope> slope = growing_slope(session, each, call, bound->elements);
  if (!slope) return slope.error();
  return MainLoop{std::move(bound).value(), std::move(slope).value()};
}

/// The cell's main loop; where the text fixes short rows, that of the same function on longer ones.
Result<MainLoop> find_main_loop(Session& session, const ElementwiseCell& cell,
                                const Prepared& prepared) {
  if (!cell.row.with_columns) return main_loop_of(session, prepared.each, prepared.call);
  ElementwiseCell longer = cell;
  longer.row = *cell.row.with_columns;
  longer.footprint = large_l1_footprint;  // whose memory is free
  const Result<Prepared> with_columns = prepare(session, longer);
  if (!with_columns) return with_columns.error();
  return main_loop_of(session, with_columns->each, with_columns->call);
}

Measured measure(Session& session, const ElementwiseCell& cell, const Prepared& prepared,
                 const MainLoop* loop) {
  std::vector<Contender> all = {prepared.call.contender(), session.clock().contender()};
  const PlainTensors plain = plain_tensors(prepared.call.inputs, prepared.call.outputs.front());
  const PlainContest contest(session.plain_kernels(), streams_of(plain), cell.footprint, plain,
                             all);
  const size_t others = all.size();
  if (prepared.untransposed) all.push_back(prepared.untransposed->contender());
  if (loop != nullptr) {
    for (Contender& contender : loop->slope.contenders()) all.push_back(std::move(contender));
  }
  measure_in_turn(all, session.effort(cell.footprint));

  Measured measured;
  measured.ns = all[0].median_ns();
  measured.bytes =
      static_cast<double>(operand_bytes(prepared.call.inputs, prepared.call.outputs.front()));
  measured.gigahertz = CoreClock::gigahertz(all[1]);
  measured.stream_fraction = contest.stream_fraction(all);
  measured.plain_name = contest.fastest_name(all);
  if (prepared.untransposed) measured.untransposed_fraction = median_ratio(all[others], all[0]);
  if (loop != nullptr) {
    measured.cycles_per_element =
        loop->slope.cycles_per_element(all[1], all[all.size() - 2], all.back());
  }
  return measured;
}

Status run_cell(benchmark::State& state, Session& session, const ElementwiseCell& cell) {
  const Result<Prepared> prepared = prepare(session, cell);
  if (!prepared) return prepared.error();
  const Result<MainLoop> loop = cell.in_l1()
                                    ? find_main_loop(session, cell, *prepared)
                                    : Result<MainLoop>(Error{ErrorCode::unsupported, "not in L1"});
  const Measured measured = measure(session, cell, *prepared, loop ? &*loop : nullptr);
  const std::string shapes =
      shapes_text(prepared->call.inputs, prepared->call.outputs.front()) + "; ";
  report_stream(state, shapes, measured, cell.in_l1() ? &loop : nullptr);
  if (prepared->untransposed) {
    state.counters["untransposed_fraction"] = measured.untransposed_fraction;
  }
  return {};
}

}  // namespace

void register_elementwise(Session& session, const Selection& selected) {
  register_cells(session, selected, elementwise_cells(), run_cell);
}

}  // namespace castor::bench
