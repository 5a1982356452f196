// SPDX-License-Identifier: Apache-2.0
// Requantize/<arithmetic>/<source>/<destination>/<granularity>: parameters in the types, 256 KiB;
// RequantizeThreads/ the same of 256 MiB, by two threads.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <thread>

#include "bench/benchmarks.hpp"
#include "bench/cases/requantize_case.hpp"
#include "bench/plain_contest.hpp"
#include "bench/stream_report.hpp"
#include "bench/threaded_stream.hpp"
#include "bench/two_threads.hpp"
#include "ir/interpreter/interpreter.hpp"

namespace castor::bench {

namespace {

/// Integers of all bits (32: those around 0 that values of -4 to 4 have); floats of -4 to 4.
void fill_source(const RequantizeCell& cell, std::span<std::byte> bytes) {
  std::mt19937 random(7);
  const size_t size = static_cast<size_t>(bits_of(cell.pair().from) / 8);
  for (size_t at = 0; at + size <= bytes.size(); at += size) {
    uint32_t bits = static_cast<uint32_t>(random());
    if (!cell.from) {
      const float value = std::ldexp(static_cast<float>(static_cast<int32_t>(bits)), -29);
      std::memcpy(&bits, &value, sizeof(bits));
    }
    std::memcpy(bytes.data() + at, &bits, size);
  }
}

/// Compares all bytes with the interpreter's.
Status check_result(const FunctionPtr& function, const BoundCall& call) {
  if (Status status = call.run(); !status) return status;
  const View& found = call.outputs.front();
  std::vector<std::byte> bytes(found.bytes);
  const View expected(bytes.data(), found.element, found.shape, bytes.size());
  if (Status status = interpret(*function, call.inputs, {&expected, 1}); !status) return status;
  if (std::memcmp(bytes.data(), found.data, bytes.size()) == 0) return {};
  return Error{ErrorCode::internal, "the result differs from the interpreter's"};
}

/// The cell's tensors and a call of them.
struct Prepared {
  Workspace tensors;
  FunctionPtr function;
  BoundCall call;
};

Result<Prepared> prepare(Session& session, const RequantizeCell& cell, const Footprint& footprint) {
  const TypePair pair = cell.pair();
  const Result<Workspace> tensors = session.workspace(pair, footprint);
  if (!tensors) return tensors.error();
  fill_source(cell, tensors->source);
  const Dims extents = cell.extents(tensors->elements);
  const Result<FunctionPtr> function = cell.function(extents);
  if (!function) return function.error();
  Result<BoundCall> call =
      bind_call(session.runtime(), *function,
                {{tensors->source.data(), pair.from, extents, tensors->source.size()}},
                {{tensors->destination.data(), pair.to, extents, tensors->destination.size()}});
  if (!call) return call.error();
  call->options = session.run_options(footprint);
  return Prepared{*tensors, *function, *call};
}

Status run_cell(benchmark::State& state, Session& session, const RequantizeCell& cell) {
  const TypePair pair = cell.pair();
  const Result<Prepared> prepared = prepare(session, cell, l2_footprint);
  if (!prepared) return prepared.error();
  if (Status status = check_result(prepared->function, prepared->call); !status) return status;

  const auto& [tensors, function, call] = *prepared;
  std::vector<Contender> all = {call.contender(), session.clock().contender()};
  const PlainTensors plain = {{tensors.source}, tensors.destination};
  const PlainContest contest(session.plain_kernels(),
                             streams_of(Ratio{bits_of(pair.from), bits_of(pair.to)}), l2_footprint,
                             plain, all);
  measure_in_turn(all, session.effort(l2_footprint));
  StreamFigures figures;
  figures.ns = all[0].median_ns();
  figures.bytes = static_cast<double>(tensors.source.size() + tensors.destination.size());
  figures.gigahertz = CoreClock::gigahertz(all[1]);
  figures.stream_fraction = contest.stream_fraction(all);
  figures.plain_name = contest.fastest_name(all);
  report_stream(state, "", figures, nullptr);
  return {};
}

/// Compares all bytes by two threads with those by one.
Status check_by_two(const Prepared& prepared) {
  if (Status status = prepared.call.run(); !status) return status;
  const std::span<const std::byte> found = prepared.tensors.destination;
  const std::vector<std::byte> by_one(found.begin(), found.end());
  std::memset(prepared.tensors.destination.data(), 0x5a, found.size());
  TwoThreads threads;
  BoundCall by_two = prepared.call;
  by_two.options.executor = &threads;
  if (Status status = by_two.run(); !status) return status;
  if (std::ranges::equal(by_one, found)) return {};
  return Error{ErrorCode::internal, "the result of two threads differs from that of one"};
}

Status run_by_two(benchmark::State& state, Session& session, const RequantizeCell& cell) {
  if (std::thread::hardware_concurrency() < 2) {
    session.skip(state, {ErrorCode::unsupported, "there is one core only"});
    return {};
  }
  const Result<Prepared> prepared = prepare(session, cell, memory_footprint);
  if (!prepared) return prepared.error();
  if (Status status = check_by_two(*prepared); !status) return status;
  const auto& [tensors, function, call] = *prepared;
  const Streams streams = streams_of(Ratio{bits_of(cell.pair().from), bits_of(cell.pair().to)});
  report_by_two(state, measure_by_two(session, call, streams, memory_footprint,
                                      {{tensors.source}, tensors.destination}));
  return {};
}

}  // namespace

void register_requantize(Session& session, const Selection& selected) {
  register_cells(session, selected, requantize_cells(), run_cell);
}

void register_requantize_threads(Session& session, const Selection& selected) {
  std::vector<RequantizeCell> cells = requantize_cells();
  for (RequantizeCell& cell : cells) cell.by_two = true;
  register_cells(session, selected, cells, run_by_two);
}

}  // namespace castor::bench
