// SPDX-License-Identifier: Apache-2.0
// MatMulInteger/<rows>x<K>x<columns>/<types of a and b>, with /runtime_b, /transposed_b,
// /row_zero_points or /requantize. Few rows, which are bound by reading b, have stream_fraction
// beside peak_fraction.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "bench/benchmarks.hpp"
#include "bench/cases/convolution_case.hpp"
#include "bench/cases/matmul_case.hpp"
#include "bench/footprint.hpp"
#include "bench/limits.hpp"
#include "bench/plain_contest.hpp"

namespace castor::bench {

namespace {

constexpr uint32_t a_seed = 11;
constexpr uint32_t row_zero_point_seed = 14;

/// The maximum number of rows of products that are compared with reading b.
constexpr int64_t few_rows = 8;

/// The footprint whose memory holds the tensors of every case.
constexpr Footprint memory_of_products = {"32MiB", size_t{32} << 20, false};

struct MatmulTensors {
  std::span<std::byte> a;
  std::span<std::byte> b;  ///< memory of its size where it is a constant, for plain kernels
  std::span<std::byte> row_zero_points;
  std::span<std::byte> y;
  std::span<std::byte> plain_y;  ///< what plain kernels store

  std::vector<ConstView> inputs(const MatmulCase& each) const {
    std::vector<ConstView> views = {ConstView(a.data(), each.a, {each.rows, each.depth}, a.size())};
    const Dims strides =
        each.variant == MatmulVariant::transposed_b ? Dims{1, each.depth} : Dims{each.columns, 1};
    if (!each.has_constant_b()) {
      views.emplace_back(b.data(), each.b, Dims{each.depth, each.columns}, strides, 0, b.size());
    }
    if (each.has_row_zero_points()) {
      views.emplace_back(row_zero_points.data(), each.a, Dims{each.rows}, row_zero_points.size());
    }
    return views;
  }
  View output(const MatmulCase& each) const {
    return View(y.data(), each.y(), {each.rows, each.columns}, y.size());
  }
};

Result<MatmulTensors> place_tensors(const MatmulCase& each, std::span<std::byte> memory) {
  constexpr size_t page = 4096;
  constexpr int64_t loads_of_a_store = 16;  ///< plain kernels store at least something
  size_t end = 0;
  const auto take = [&](int64_t bytes) {
    const size_t begin = end;
    end += (static_cast<size_t>(bytes) + page - 1) / page * page;
    return end <= memory.size() ? memory.subspan(begin, static_cast<size_t>(bytes))
                                : std::span<std::byte>();
  };
  const MatmulTensors tensors = {take(each.rows * each.depth), take(each.depth * each.columns),
                                 take(each.rows),
                                 take(each.rows * each.columns * bits_of(each.y()) / 8),
                                 take(each.depth * each.columns / loads_of_a_store)};
  if (end <= memory.size()) return tensors;
  return Error{ErrorCode::internal, fmt::format("{}: tensors of {} bytes, memory of {}",
                                                each.name(), end, memory.size())};
}

void fill_inputs(const MatmulCase& each, const MatmulWeights& weights,
                 const MatmulTensors& tensors) {
  fill_with_patterns(tensors.a, a_seed);
  fill_with_patterns(tensors.row_zero_points, row_zero_point_seed);
  if (each.has_constant_b()) return;
  const bool is_transposed = each.variant == MatmulVariant::transposed_b;
  for (int64_t k = 0; k < each.depth; ++k) {
    for (int64_t n = 0; n < each.columns; ++n) {
      const int64_t at = is_transposed ? n * each.depth + k : k * each.columns + n;
      tensors.b[static_cast<size_t>(at)] = weights.b[static_cast<size_t>(k * each.columns + n)];
    }
  }
}

int64_t number_of(std::byte byte, ElementType type) {
  return type == ElementType::i8 ? static_cast<int8_t>(byte) : static_cast<uint8_t>(byte);
}

/// The bits of one element of the result, by the formula.
uint32_t expected_bits(const MatmulCase& each, const MatmulWeights& weights,
                       const MatmulTensors& tensors, int64_t m, int64_t n) {
  const auto row = static_cast<size_t>(m);
  const auto column = static_cast<size_t>(n);
  const int64_t a_zero_point = each.has_row_zero_points()
                                   ? number_of(tensors.row_zero_points[row], each.a)
                                   : each.a_zero_point();
  const int64_t zero_point = number_of(weights.zero_points[column], each.b);
  int64_t sum = 0;
  for (int64_t k = 0; k < each.depth; ++k) {
    const std::byte a = tensors.a[static_cast<size_t>(m * each.depth + k)];
    const std::byte b = weights.b[static_cast<size_t>(k * each.columns + n)];
    sum += (number_of(a, each.a) - a_zero_point) * (number_of(b, each.b) - zero_point);
  }
  if (each.variant != MatmulVariant::requantize) return static_cast<uint32_t>(sum);
  const float scaled = static_cast<float>(static_cast<int32_t>(sum)) * weights.row_scales[row];
  const float product = scaled * weights.column_scales[column];
  const float result = product + weights.biases[column];
  return static_cast<uint32_t>(std::lrint(std::clamp(result, 0.0F, 255.0F)));
}

/// Runs the call on a poisoned result, and compares its corners and a thousand other elements.
Status run_and_check(const BoundCall& call, const MatmulCase& each, const MatmulWeights& weights,
                     const MatmulTensors& tensors) {
  constexpr int poison = 0xa5;
  constexpr int elements = 1000;
  std::memset(tensors.y.data(), poison, tensors.y.size());
  if (Status status = call.run(); !status) return status;
  std::mt19937_64 random(1);
  const int64_t count = each.rows * each.columns;
  for (int i = 0; i < elements; ++i) {
    const int64_t corners[] = {0, each.columns - 1, count - each.columns, count - 1};
    const int64_t at =
        i < 4 ? corners[i] : static_cast<int64_t>(random() % static_cast<uint64_t>(count));
    uint32_t found = 0;
    const auto bytes = static_cast<size_t>(bits_of(each.y()) / 8);
    std::memcpy(&found, tensors.y.data() + static_cast<size_t>(at) * bytes, bytes);
    const uint32_t expected =
        expected_bits(each, weights, tensors, at / each.columns, at % each.columns);
    if (found == expected) continue;
    return Error{ErrorCode::internal, fmt::format("{}: element {} is 0x{:x}, expected 0x{:x}",
                                                  each.name(), at, found, expected)};
  }
  return {};
}

Result<BoundCall> checked_call(const Runtime& runtime, const MatmulCase& each,
                               const MatmulWeights& weights, const MatmulTensors& tensors) {
  const Result<FunctionPtr> function = matmul_function(each, weights);
  if (!function) return function.error();
  Result<BoundCall> call =
      bind_call(runtime, *function, tensors.inputs(each), {tensors.output(each)});
  if (!call) return call;
  if (Status status = run_and_check(*call, each, weights, tensors); !status) return status.error();
  return call;
}

struct Prepared {
  BoundCall call;
  MatmulTensors tensors;
};

/// A call whose results are right, on this tier and on every other that the host has.
Result<Prepared> prepare(Session& session, const MatmulCase& each) {
  const Result<std::span<std::byte>> memory = session.memory(memory_of_products);
  if (!memory) return memory.error();
  const Result<MatmulTensors> tensors = place_tensors(each, *memory);
  if (!tensors) return tensors.error();
  const MatmulWeights weights = make_weights(each);
  fill_inputs(each, weights, *tensors);
  for (const TierRuntime& of : session.all_tiers()) {
    const Result<BoundCall> call = checked_call(of.runtime, each, weights, *tensors);
    if (call) continue;
    return Error{call.error().code,
                 fmt::format("tier {}: {}", name_of(of.tier), call.error().message)};
  }
  Result<BoundCall> call = checked_call(session.runtime(), each, weights, *tensors);
  if (!call) return call.error();
  return Prepared{std::move(*call), *tensors};
}

/// Kernels that only read b's bytes, for products of few rows.
std::optional<PlainContest> plain_contest(Session& session, const MatmulCase& each,
                                          const MatmulTensors& tensors,
                                          std::vector<Contender>& all) {
  if (each.rows > few_rows) return std::nullopt;
  const PlainTensors plain = {{tensors.b}, tensors.plain_y};
  return std::optional<PlainContest>(std::in_place, session.plain_kernels(), streams_of(plain),
                                     memory_of_products, plain, all);
}

Status run_case(benchmark::State& state, Session& session, const MatmulCase& each) {
  const Result<Prepared> prepared = prepare(session, each);
  if (!prepared) return prepared.error();
  const ProductPeak peak(session.tier());
  std::vector<Contender> all = {prepared->call.contender(), peak.contender(),
                                session.clock().contender()};
  const std::optional<PlainContest> plain = plain_contest(session, each, prepared->tensors, all);
  measure_in_turn(all, session.effort(memory_of_products));
  report_time(state, all[0].median_ns());
  state.counters["GMACps"] = each.products() / all[0].median_ns();
  state.counters["peak_GMACps"] = peak.products() / all[1].median_ns();
  state.counters["peak_fraction"] =
      median_ratio(all[1], all[0]) * each.products() / peak.products();
  state.counters["GHz"] = CoreClock::gigahertz(all[2]);
  if (plain) state.counters["stream_fraction"] = plain->stream_fraction(all);
  state.SetLabel(fmt::format("peak {}", peak.name()));
  return {};
}

}  // namespace

void register_matmul(Session& session, const Selection& selected) {
  register_cells(session, selected, matmul_cases(), run_case);
}

}  // namespace castor::bench
