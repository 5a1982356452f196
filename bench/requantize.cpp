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
#include "bench/plain_contest.hpp"
#include "bench/stream_report.hpp"
#include "bench/threaded_stream.hpp"
#include "bench/two_threads.hpp"
#include "ir/builder.hpp"
#include "ir/interpreter.hpp"

namespace castor::bench {

namespace {

/// Slices of the axis of quantization.
constexpr int64_t slices = 64;

/// Of containers of 32 bits.
constexpr int free_bits = 4;

/// What shares parameters; the other axis of the tensor has all other elements.
enum class Granularity : uint8_t { tensor, outer_axis, inner_axis };
constexpr std::array<std::string_view, 3> granularity_names = {"tensor", "outer_axis",
                                                               "inner_axis"};
constexpr std::array<std::string_view, 2> arithmetic_names = {"exact", "embarc"};

/// A quantized format, or f32.
using Side = std::optional<QuantizedFormat>;
constexpr std::array<Side, 5> sides = {QuantizedFormat::fx8, QuantizedFormat::fx16,
                                       QuantizedFormat::sa8, QuantizedFormat::sa32, Side()};
std::string_view name_of(const Side& side) { return side ? info(*side).name : "f32"; }
ElementType element_of(const Side& side) { return side ? info(*side).container : ElementType::f32; }
bool has_axis(const Side& side) { return side && info(*side).is_asymmetric; }

struct Cell {
  RequantizeArithmetic arithmetic;
  Side from;
  Side to;
  Granularity granularity;
  bool by_two = false;  ///< threads, in memory

  std::string name() const {
    return fmt::format("{}/{}/{}/{}/{}", by_two ? "RequantizeThreads" : "Requantize",
                       arithmetic_names[static_cast<size_t>(arithmetic)], name_of(from),
                       name_of(to), granularity_names[static_cast<size_t>(granularity)]);
  }
  TypePair pair() const { return {element_of(from), element_of(to)}; }
  int axis() const { return granularity == Granularity::outer_axis ? 0 : 1; }
};

/// Parameters as models have them: values of about -4 to 4 fill most of a container, or, of 32
/// bits, which are accumulators, leave a few bits free.
Quantization parameters_of(const Cell& cell, QuantizedFormat format, uint32_t seed) {
  std::mt19937 random(seed);
  const auto between = [&](int32_t least, int32_t most) {
    return least + static_cast<int32_t>(random() % static_cast<uint32_t>(most - least + 1));
  };
  const bool per_axis = cell.granularity != Granularity::tensor && info(format).is_asymmetric;
  Quantization result{.format = format,
                      .axis = per_axis ? cell.axis() : Quantization::per_tensor,
                      .scale = {},
                      .frac = std::vector<int32_t>{},
                      .zero_point = {}};
  const int value_bits = bits_of(info(format).container) - 1;
  if (!info(format).is_asymmetric) {
    result.frac = {value_bits - 2};
    return result;
  }
  result.scale = std::vector<int32_t>();
  result.zero_point = std::vector<int32_t>();
  for (int64_t i = 0; i < (per_axis ? slices : 1); ++i) {
    result.scale->push_back(between(1 << 14, (1 << 15) - 1));
    result.frac->push_back(value_bits - 2 + 14 - (value_bits == 31 ? free_bits : 0));
    result.zero_point->push_back(between(-20, 20));
  }
  return result;
}

Dims extents_of(const Cell& cell, int64_t elements) {
  switch (cell.granularity) {
    case Granularity::tensor: return {elements};
    case Granularity::outer_axis: return {slices, elements / slices};
    case Granularity::inner_axis: break;
  }
  return {elements / slices, slices};
}

TensorType type_of(const Cell& cell, const Side& side, const Dims& extents, uint32_t seed) {
  if (!side) return {ElementType::f32, to_shape(extents)};
  return quantized_type(parameters_of(cell, *side, seed), to_shape(extents));
}

Result<FunctionPtr> function_of(const Cell& cell, const Dims& extents) {
  FunctionBuilder builder("requantize");
  const ValueId x = builder.parameter("x", type_of(cell, cell.from, extents, 1));
  std::optional<Quantization> to;
  if (cell.to) to = parameters_of(cell, *cell.to, 2);
  builder.result(builder.requantize(x, to, {.arithmetic = cell.arithmetic}));
  return builder.finish();
}

/// Integers of all bits (32: those around 0 that values of -4 to 4 have); floats of -4 to 4.
void fill_source(const Cell& cell, std::span<std::byte> bytes) {
  std::mt19937 random(7);
  const size_t size = static_cast<size_t>(bits_of(element_of(cell.from)) / 8);
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

Result<Prepared> prepare(Session& session, const Cell& cell, const Footprint& footprint) {
  const TypePair pair = cell.pair();
  const Result<Workspace> tensors = session.workspace(pair, footprint);
  if (!tensors) return tensors.error();
  fill_source(cell, tensors->source);
  const Dims extents = extents_of(cell, tensors->elements);
  const Result<FunctionPtr> function = function_of(cell, extents);
  if (!function) return function.error();
  Result<BoundCall> call =
      bind_call(session.runtime(), *function,
                {{tensors->source.data(), pair.from, extents, tensors->source.size()}},
                {{tensors->destination.data(), pair.to, extents, tensors->destination.size()}});
  if (!call) return call.error();
  call->options = session.run_options(footprint);
  return Prepared{*tensors, *function, *call};
}

Status run_cell(benchmark::State& state, Session& session, const Cell& cell) {
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

Status run_by_two(benchmark::State& state, Session& session, const Cell& cell) {
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

std::vector<Cell> all_cells() {
  std::vector<Cell> cells;
  for (RequantizeArithmetic arithmetic :
       {RequantizeArithmetic::exact, RequantizeArithmetic::embarc}) {
    for (Granularity granularity :
         {Granularity::tensor, Granularity::outer_axis, Granularity::inner_axis}) {
      for (const Side& from : sides) {
        for (const Side& to : sides) {
          if (!from && !to) continue;
          const bool needs_axis = granularity != Granularity::tensor;
          if (needs_axis && !has_axis(from) && !has_axis(to)) continue;
          cells.push_back({arithmetic, from, to, granularity});
        }
      }
    }
  }
  return cells;
}

}  // namespace

void register_requantize(Session& session, const Selection& selected) {
  register_cells(session, selected, all_cells(), run_cell);
}

void register_requantize_threads(Session& session, const Selection& selected) {
  std::vector<Cell> cells = all_cells();
  for (Cell& cell : cells) cell.by_two = true;
  register_cells(session, selected, cells, run_by_two);
}

}  // namespace castor::bench
