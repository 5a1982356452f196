// SPDX-License-Identifier: Apache-2.0
// Reduce/<function>/<bytes of the tensor> against plain loads of the tensor, and stores of what is
// written; ReduceThreads/ the same by two threads.
#include <algorithm>
#include <cstring>
#include <thread>

#include "bench/benchmarks.hpp"
#include "bench/cases/reduction_case.hpp"
#include "bench/data.hpp"
#include "bench/plain_contest.hpp"
#include "bench/stream_report.hpp"
#include "bench/threaded_stream.hpp"
#include "bench/two_threads.hpp"
#include "ir/interpreter/interpreter.hpp"
#include "ir/text/text.hpp"
#include "ir/verify/infer.hpp"

namespace castor::bench {

namespace {

/// Tensors larger than this are checked against the lowest tier, since the interpreter is slow;
/// tests compare tiers with the interpreter.
constexpr size_t max_interpreted = size_t{1} << 20;

/// A function, its input, and the memory of its results.
struct Tensors {
  FunctionPtr function;
  ConstView x;
  /// Where plain kernels load x's bytes for each time that it must be read: no two of them load
  /// from the same lines.
  std::vector<std::span<const std::byte>> sources;
  std::vector<View> results;
  std::vector<std::vector<std::byte>> small;  ///< what all results but the first are stored in
};

struct Prepared {
  Tensors tensors;
  BoundCall call;
};

/// Dense views of the results: the first in `memory`, the others in vectors of their own.
Result<std::vector<View>> place_results(const Function& function, const Dims& extents,
                                        std::span<std::byte> memory,
                                        std::vector<std::vector<std::byte>>& others) {
  const Dims shapes[] = {extents};
  const Result<BoundShapes> bound = bind_shapes(function, shapes);
  if (!bound) return bound.error();
  std::vector<View> views;
  for (const ValueId result : function.results) {
    const Dims& shape = bound->values[result];
    const ElementType element = function.type_of(result).element;
    const auto bytes =
        static_cast<size_t>(byte_size(element, element_count(shape).value()).value());
    if (!views.empty()) others.emplace_back(bytes);
    views.push_back({views.empty() ? memory.data() : others.back().data(), element, shape, bytes});
  }
  return views;
}

std::vector<std::vector<std::byte>> copies_of(std::span<const View> views) {
  std::vector<std::vector<std::byte>> copies;
  for (const View& view : views) {
    const auto* begin = static_cast<const std::byte*>(view.data);
    copies.emplace_back(begin, begin + view.bytes);
  }
  return copies;
}

/// What the results should be. Runs the lowest tier in the results' own memory.
Result<std::vector<std::vector<std::byte>>> expected_results(const Session& session,
                                                             const Tensors& tensors) {
  const ConstView inputs[] = {tensors.x};
  if (tensors.x.bytes <= max_interpreted) {
    if (Status status = interpret(*tensors.function, inputs, tensors.results); !status) {
      return status.error();
    }
  } else {
    const Result<BoundCall> lowest = bind_call(session.all_tiers().front().runtime,
                                               tensors.function, {tensors.x}, tensors.results);
    if (!lowest) return lowest.error();
    if (Status status = lowest->run(); !status) return status.error();
  }
  return copies_of(tensors.results);
}

Status run_and_check(const BoundCall& call, std::span<const std::vector<std::byte>> expected) {
  for (const View& view : call.outputs) std::memset(view.data, 0xA5, view.bytes);
  if (Status status = call.run(); !status) return status;
  if (std::ranges::equal(copies_of(call.outputs), expected)) return {};
  return Error{ErrorCode::internal,
               "a result differs from the interpreter's, or the lowest tier's"};
}

Result<Tensors> place_tensors(Session& session, const ReductionCell& cell) {
  const Result<FunctionPtr> function = parse_function(cell.text());
  if (!function) return function.error();
  const size_t bytes = cell.footprint.bytes;
  const auto loads = static_cast<size_t>(cell.row.loads);
  Footprint all = cell.footprint;
  all.bytes = bytes * loads + bytes / 2;  // results are of a byte for each element of two or more
  const auto memory = session.memory(all);
  if (!memory) return memory.error();
  Tensors tensors;
  tensors.function = *function;
  for (size_t i = 0; i < loads; ++i) tensors.sources.push_back(memory->subspan(i * bytes, bytes));
  const std::span<std::byte> x = memory->first(bytes);
  fill(memory->first(bytes * loads),
       ordinary_tile(cell.row.element, ElementType::i8, tile_elements));
  tensors.x = {x.data(), cell.row.element, cell.extents(), x.size()};
  auto results =
      place_results(**function, cell.extents(), memory->subspan(bytes * loads), tensors.small);
  if (!results) return results.error();
  tensors.results = std::move(results).value();
  return tensors;
}

/// A call that is right, by one thread or by two.
Result<Prepared> prepare(Session& session, const ReductionCell& cell) {
  Result<Tensors> tensors = place_tensors(session, cell);
  if (!tensors) return tensors.error();
  const auto expected = expected_results(session, *tensors);
  if (!expected) return expected.error();
  Result<BoundCall> call =
      bind_call(session.runtime(), tensors->function, {tensors->x}, tensors->results);
  if (!call) return call.error();
  call->options = session.run_options(cell.footprint);
  if (Status status = run_and_check(*call, *expected); !status) return status.error();
  if (cell.by_two) {
    TwoThreads threads;
    BoundCall by_two = *call;
    by_two.options.executor = &threads;
    if (Status status = run_and_check(by_two, *expected); !status) return status.error();
  }
  return Prepared{std::move(tensors).value(), std::move(call).value()};
}

/// What must be loaded and stored.
PlainTensors plain_tensors(const Tensors& tensors) {
  const View& first = tensors.results.front();
  return {tensors.sources, {static_cast<std::byte*>(first.data), first.bytes}};
}

Status run_cell(benchmark::State& state, Session& session, const ReductionCell& cell) {
  const Result<Prepared> prepared = prepare(session, cell);
  if (!prepared) return prepared.error();
  const PlainTensors plain = plain_tensors(prepared->tensors);
  std::vector<Contender> all = {prepared->call.contender(), session.clock().contender()};
  const PlainContest contest(session.plain_kernels(), streams_of(plain), cell.footprint, plain,
                             all);
  measure_in_turn(all, session.effort(cell.footprint));
  StreamFigures figures;
  figures.ns = all[0].median_ns();
  figures.bytes = static_cast<double>(plain.bytes());
  figures.gigahertz = CoreClock::gigahertz(all[1]);
  figures.stream_fraction = contest.stream_fraction(all);
  figures.plain_name = contest.fastest_name(all);
  report_stream(state, "", figures, nullptr);
  return {};
}

Status run_by_two(benchmark::State& state, Session& session, const ReductionCell& cell) {
  if (std::thread::hardware_concurrency() < 2) {
    session.skip(state, {ErrorCode::unsupported, "there is one core only"});
    return {};
  }
  const Result<Prepared> prepared = prepare(session, cell);
  if (!prepared) return prepared.error();
  const PlainTensors plain = plain_tensors(prepared->tensors);
  report_by_two(state,
                measure_by_two(session, prepared->call, streams_of(plain), cell.footprint, plain));
  return {};
}

}  // namespace

void register_reduction(Session& session, const Selection& selected) {
  register_cells(session, selected, reduction_cells(), run_cell);
  register_cells(session, selected, reduction_cells_by_two(), run_by_two);
}

}  // namespace castor::bench
