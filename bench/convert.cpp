// SPDX-License-Identifier: Apache-2.0
// Convert/<source>/<destination>/<footprint>.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "bench/benchmarks.hpp"
#include "bench/check.hpp"
#include "bench/data.hpp"
#include "bench/plain_contest.hpp"
#include "bench/stream_report.hpp"

namespace castor::bench {

namespace {

struct Cell {
  TypePair pair;
  Footprint footprint;

  std::string name() const {
    return fmt::format("Convert/{}/{}/{}", name_of(pair.from), name_of(pair.to), footprint.name);
  }
  bool in_l1() const { return footprint.bytes == l1_footprint.bytes; }
};

struct Measured : StreamFigures {
  double memcpy_fraction = 0;  ///< memcpy's time for equally many bytes over ours; in memory only
};

/// Copies half of the bytes that the conversion reads and writes: moves the same number.
Contender memcpy_contender(const Workspace& workspace) {
  const size_t moved = (workspace.source.size() + workspace.destination.size()) / 2;
  std::byte* const base = workspace.source.data();
  const std::byte* const end = workspace.destination.data() + workspace.destination.size();
  std::byte* const to = base + (static_cast<size_t>(end - base) - moved) / 64 * 64;
  return {.run = [base, to, moved](size_t repetitions) {
    for (size_t i = 0; i < repetitions; ++i) {
      std::memcpy(to, base, moved);
      asm volatile("" : : "r"(to) : "memory");  // the copy is used
    }
  }};
}

/// Measures ours, the clock, the plain kernels and what else the footprint asks for, in turn.
Measured measure(Session& session, const Cell& cell, const Workspace& workspace,
                 const BoundCall& call, const MainLoop* loop) {
  std::vector<Contender> all = {call.contender(), session.clock().contender()};
  const PlainTensors plain = {{workspace.source}, workspace.destination};
  const PlainContest contest(session.plain_kernels(),
                             streams_of(Ratio{bits_of(cell.pair.from), bits_of(cell.pair.to)}),
                             cell.footprint, plain, all);
  const size_t others = all.size();
  if (cell.footprint.in_memory) all.push_back(memcpy_contender(workspace));
  if (loop != nullptr) {
    for (Contender& contender : loop->slope.contenders()) all.push_back(std::move(contender));
  }
  measure_in_turn(all, session.effort(cell.footprint));

  Measured measured;
  measured.ns = all[0].median_ns();
  measured.bytes = static_cast<double>(workspace.source.size() + workspace.destination.size());
  measured.gigahertz = CoreClock::gigahertz(all[1]);
  measured.stream_fraction = contest.stream_fraction(all);
  measured.plain_name = contest.fastest_name(all);
  if (cell.footprint.in_memory) measured.memcpy_fraction = median_ratio(all[others], all[0]);
  if (loop != nullptr) {
    measured.cycles_per_element =
        loop->slope.cycles_per_element(all[1], all[others], all[others + 1]);
  }
  return measured;
}

/// Tensors of which the main loop takes enough iterations: those of the cell, or larger ones.
Result<Workspace> loop_workspace(Session& session, const Cell& cell, const Workspace& workspace,
                                 int64_t iteration_elements) {
  constexpr int64_t enough_iterations = 12;
  if (workspace.elements >= enough_iterations * iteration_elements) return workspace;
  const Result<Workspace> larger = session.workspace(cell.pair, large_l1_footprint);
  if (larger) fill(larger->source, ordinary_tile(cell.pair.from, cell.pair.to, tile_elements));
  return larger;
}

Result<MainLoop> find_main_loop(Session& session, const Cell& cell, const Workspace& workspace,
                                const BoundCall& call) {
  Result<PortBound> bound = port_bound(call.kernel);
  if (!bound) return bound.error();
  const Result<Workspace> tensors = loop_workspace(session, cell, workspace, bound->elements);
  if (!tensors) return tensors.error();
  Result<LoopSlope> slope = LoopSlope::prepare(
      tensors->elements / bound->elements, bound->elements, [&](int64_t elements) {
        return bind_conversion(session.runtime(), cell.pair,
                               first_elements(cell.pair, *tensors, elements));
      });
  if (!slope) return slope.error();
  return MainLoop{std::move(bound).value(), std::move(slope).value()};
}

Status run_cell(benchmark::State& state, Session& session, const Cell& cell) {
  if (Status status = session.check_all_tiers(cell.pair); !status) return status;
  const Result<Workspace> tensors = session.workspace(cell.pair, cell.footprint);
  if (!tensors) return tensors.error();
  fill(tensors->source, ordinary_tile(cell.pair.from, cell.pair.to, tile_elements));
  Result<BoundCall> call = bind_conversion(session.runtime(), cell.pair, *tensors);
  if (!call) return call.error();
  call->options = session.run_options(cell.footprint);
  if (Status status = run_and_check(*call, cell.pair, *tensors); !status) return status;
  const Result<MainLoop> loop = cell.in_l1()
                                    ? find_main_loop(session, cell, *tensors, *call)
                                    : Result<MainLoop>(Error{ErrorCode::unsupported, "not in L1"});
  const Measured measured = measure(session, cell, *tensors, *call, loop ? &*loop : nullptr);
  report_stream(state, "", measured, cell.in_l1() ? &loop : nullptr);
  if (cell.footprint.in_memory) state.counters["memcpy_fraction"] = measured.memcpy_fraction;
  return {};
}

}  // namespace

void register_convert(Session& session, const Selection& selected) {
  std::vector<TypePair> pairs;
  for (const ElementType from : all_element_types()) {
    for (const ElementType to : all_element_types()) pairs.push_back({from, to});
  }
  for (const TypePair& pair : layout_pairs()) pairs.push_back(pair);
  std::vector<Cell> cells;
  for (const Footprint& footprint : footprints) {
    for (const TypePair& pair : pairs) cells.push_back({pair, footprint});
  }
  register_cells(session, selected, cells, run_cell);
}

}  // namespace castor::bench
