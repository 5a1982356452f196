// SPDX-License-Identifier: Apache-2.0
// ConvertSpecial/<source>/<destination>: time must not depend on data.
#include <fmt/format.h>

#include <limits>
#include <vector>

#include "bench/benchmarks.hpp"
#include "bench/check.hpp"
#include "bench/data.hpp"
#include "bench/special_data.hpp"

namespace castor::bench {

namespace {

/// Every pair whose source has special values.
std::vector<TypePair> special_pairs() {
  std::vector<TypePair> pairs;
  for (const ElementType from : all_element_types()) {
    for (const ElementType to : all_element_types()) {
      if (special_tile(Special::mixed, {from, to}, 0)) pairs.push_back({from, to});
    }
  }
  return pairs;
}

/// The same conversion in memory of its own, filled with `tile` and checked.
struct Tensors {
  HugeBuffer memory;
  Workspace workspace;
  BoundCall call;
};

Result<Tensors> prepare(const Session& session, const TypePair& pair,
                        std::span<const std::byte> tile) {
  Result<HugeBuffer> memory = HugeBuffer::allocate(l1_footprint.bytes + placement_slack);
  if (!memory) return memory.error();
  const Workspace workspace = place_tensors(pair, l1_footprint.bytes, memory->bytes());
  fill(workspace.source, tile);
  const Result<BoundCall> call = bind_conversion(session.runtime(), pair, workspace);
  if (!call) return call.error();
  if (Status status = run_and_check(*call, pair, workspace); !status) return status.error();
  return Tensors{std::move(memory).value(), workspace, *call};
}

/// The conversion of ordinary data, then of each kind of special data that there is.
struct Contest {
  std::vector<Tensors> tensors;
  std::vector<Special> kinds;
};

Result<Contest> prepare_all(const Session& session, const TypePair& pair) {
  Contest contest;
  auto ordinary = prepare(session, pair, ordinary_tile(pair.from, pair.to, tile_elements));
  if (!ordinary) return ordinary.error();
  contest.tensors.push_back(std::move(ordinary).value());
  for (const Special special : all_specials) {
    const auto tile = special_tile(special, pair, tile_elements);
    if (!tile) continue;
    auto tensors = prepare(session, pair, *tile);
    if (!tensors) return tensors.error();
    contest.tensors.push_back(std::move(tensors).value());
    contest.kinds.push_back(special);
  }
  return contest;
}

/// The time is that of the slowest kind, which the label names.
void report(benchmark::State& state, const Contest& contest,
            std::span<const Contender> contenders) {
  double slowest_ns = 0;
  double min = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < contest.kinds.size(); ++i) {
    const Contender& special = contenders[i + 1];
    const double fraction = median_ratio(contenders.front(), special);
    state.counters[fmt::format("{}_fraction", name_of(contest.kinds[i]))] = fraction;
    if (fraction >= min) continue;
    min = fraction;
    slowest_ns = special.median_ns();
    state.SetLabel(std::string(name_of(contest.kinds[i])));
  }
  const Workspace& tensors = contest.tensors.front().workspace;
  const auto bytes = static_cast<double>(tensors.source.size() + tensors.destination.size());
  report_time(state, slowest_ns);
  state.counters["GBps"] = bytes / slowest_ns;
  state.counters["ordinary_fraction"] = min;
}

Status run_pair(benchmark::State& state, Session& session, const TypePair& pair) {
  const Result<Contest> contest = prepare_all(session, pair);
  if (!contest) return contest.error();
  std::vector<Contender> contenders;
  for (const Tensors& tensors : contest->tensors) contenders.push_back(tensors.call.contender());
  measure_in_turn(contenders, session.effort(l1_footprint));
  report(state, *contest, contenders);
  return {};
}

}  // namespace

void register_convert_special(Session& session, const Selection& selected) {
  for (const TypePair& pair : special_pairs()) {
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
