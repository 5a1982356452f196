// SPDX-License-Identifier: Apache-2.0
// ConvertSpecial/<source>/<destination>: time must not depend on data.
#include <fmt/format.h>

#include <array>

#include "bench/benchmarks.hpp"
#include "bench/check.hpp"
#include "bench/data.hpp"

namespace castor::bench {

namespace {

using enum ElementType;

constexpr std::array<TypePair, 8> pairs = {{{f16, f32},
                                            {f32, f16},
                                            {f32, bf16},
                                            {f32, u8},
                                            {f32, i32},
                                            {f64, f32},
                                            {f64, f16},
                                            {f64, i64}}};

/// The same conversion in memory of its own, filled with `tile` and checked.
struct Tensors {
  HugeBuffer memory;
  Workspace workspace;
  BoundConversion call;
};

Result<Tensors> prepare(const Session& session, const TypePair& pair,
                        std::span<const std::byte> tile) {
  Result<HugeBuffer> memory = HugeBuffer::allocate(l1_footprint.bytes + placement_slack);
  if (!memory) return memory.error();
  const Workspace workspace = place_tensors(pair, l1_footprint.bytes, memory->bytes());
  fill(workspace.source, tile);
  const Result<BoundConversion> call = bind_conversion(session.runtime(), pair, workspace);
  if (!call) return call.error();
  if (Status status = run_and_check(*call, pair, workspace); !status) return status.error();
  return Tensors{std::move(memory).value(), workspace, *call};
}

Status run_pair(benchmark::State& state, Session& session, const TypePair& pair) {
  const auto special = prepare(session, pair, special_tile(pair.from, tile_elements));
  if (!special) return special.error();
  const auto ordinary = prepare(session, pair, ordinary_tile(pair.from, pair.to, tile_elements));
  if (!ordinary) return ordinary.error();
  std::array contenders = {special->call.contender(), ordinary->call.contender()};
  measure_in_turn(contenders, session.effort(l1_footprint));
  const Workspace& tensors = special->workspace;
  const auto bytes = static_cast<double>(tensors.source.size() + tensors.destination.size());
  const double special_ns = contenders[0].median_ns();
  report_time(state, special_ns);
  state.counters["GBps"] = bytes / special_ns;
  state.counters["ordinary_fraction"] = median_ratio(contenders[1], contenders[0]);
  return {};
}

}  // namespace

void register_convert_special(Session& session, const Selection& selected) {
  for (const TypePair& pair : pairs) {
    const std::string name =
        fmt::format("ConvertSpecial/{}/{}", name_of(pair.from), name_of(pair.to));
    if (!selected(name)) continue;
    register_measured(name, [&session, pair](benchmark::State& state) {
      if (Status status = run_pair(state, session, pair); !status) {
        session.fail(state, status.error());
      }
    });
  }
}

}  // namespace castor::bench
