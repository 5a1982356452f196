// SPDX-License-Identifier: Apache-2.0
// ConvertThreads/<source>/<destination>/256MiB: conversions by two threads.
#include <fmt/format.h>

#include <thread>

#include "bench/benchmarks.hpp"
#include "bench/check.hpp"
#include "bench/data.hpp"
#include "bench/threaded_stream.hpp"
#include "bench/two_threads.hpp"

namespace castor::bench {

namespace {

using enum ElementType;

constexpr TypePair pairs[] = {
    {f32, i8},   {f32, u8}, {u8, f32},  {i8, f16},     {f32, f16},    {f16, f32},
    {f32, bf16}, {u8, i8},  {i32, f32}, {f64, f32},    {u4, f32},     {u4, f16},
    {f32, u4},   {f16, i4}, {u2, f16},  {u1, f32},     {f32, u1},     {u6, u8},
    {u8, u6},    {u3, f16}, {nf4, f16}, {f32, f8e4m3}, {f8e5m2, f16},
};

struct Cell {
  TypePair pair;
  std::string name() const {
    return fmt::format("ConvertThreads/{}/{}/{}", name_of(pair.from), name_of(pair.to),
                       memory_footprint.name);
  }
};

/// Checks both ways of running it.
Status run_cell(benchmark::State& state, Session& session, const Cell& cell) {
  if (std::thread::hardware_concurrency() < 2) {
    session.skip(state, {ErrorCode::unsupported, "there is one core only"});
    return {};
  }
  const Result<Workspace> tensors = session.workspace(cell.pair, memory_footprint);
  if (!tensors) return tensors.error();
  fill(tensors->source, ordinary_tile(cell.pair.from, cell.pair.to, tile_elements));
  Result<BoundCall> call = bind_conversion(session.runtime(), cell.pair, *tensors);
  if (!call) return call.error();
  call->options = session.run_options(memory_footprint);
  {
    TwoThreads threads;
    BoundCall by_two = *call;
    by_two.options.executor = &threads;
    if (Status status = run_and_check(by_two, cell.pair, *tensors); !status) return status;
  }
  const Streams streams = streams_of(Ratio{bits_of(cell.pair.from), bits_of(cell.pair.to)});
  report_by_two(state, measure_by_two(session, *call, streams, memory_footprint,
                                      {{tensors->source}, tensors->destination}));
  return {};
}

}  // namespace

void register_convert_threads(Session& session, const Selection& selected) {
  std::vector<Cell> cells;
  for (const TypePair& pair : pairs) cells.push_back({pair});
  register_cells(session, selected, cells, run_cell);
}

}  // namespace castor::bench
