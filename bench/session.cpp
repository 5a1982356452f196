// SPDX-License-Identifier: Apache-2.0
#include "bench/session.hpp"

#include <fmt/format.h>

#include "bench/check.hpp"
#include "bench/data.hpp"

namespace castor::bench {

Result<BoundCall> bind_conversion(const Runtime& runtime, const TypePair& pair,
                                  const Workspace& workspace) {
  const Result<FunctionPtr> function = conversion(pair.from, pair.to);
  if (!function) return function.error();
  const Dims shape = {workspace.elements};
  return bind_call(
      runtime, *function,
      {ConstView(workspace.source.data(), pair.from, shape, workspace.source.size())},
      {View(workspace.destination.data(), pair.to, shape, workspace.destination.size())});
}

Result<std::unique_ptr<Session>> Session::open(const Options& options) {
  const Result<Runtime> runtime = Runtime::create({.tier = options.tier});
  if (!runtime) return runtime.error();
  if (!runtime->tier()) {
    return Error{ErrorCode::unsupported, "this machine cannot run generated code"};
  }
  std::unique_ptr<Session> session(new Session(options, *runtime->tier(), *runtime));
  for (const jit::TierInfo& row : jit::tier_table()) {
    if (!jit::host().runs(row.tier)) continue;
    Result<Runtime> of_tier = Runtime::create({.tier = row.tier});
    if (!of_tier) return of_tier.error();
    session->all_tiers_.push_back({row.tier, *of_tier});
  }
  return session;
}

Effort Session::effort(const Footprint& footprint) const {
  const double budget = cell_seconds_ * 1e9 * (footprint.in_memory ? 6 : 1);
  return {.budget_ns = budget, .rounds_a_group = footprint.in_memory ? 3 : 4};
}

RunOptions Session::run_options(const Footprint& footprint) const {
  return {.stores = footprint.in_memory ? stores_ : StorePolicy::automatic};
}

Result<std::span<std::byte>> Session::memory(const Footprint& footprint) {
  auto at = memory_.find(footprint.bytes);
  if (at == memory_.end()) {
    Result<HugeBuffer> buffer = HugeBuffer::allocate(footprint.bytes + placement_slack);
    if (!buffer) return buffer.error();
    at = memory_.emplace(footprint.bytes, std::move(buffer).value()).first;
  }
  return at->second.bytes();
}

Result<Workspace> Session::workspace(const TypePair& pair, const Footprint& footprint) {
  const Result<std::span<std::byte>> bytes = memory(footprint);
  if (!bytes) return bytes.error();
  return place_tensors(pair, footprint.bytes, *bytes);
}

Status Session::check_all_tiers(const TypePair& pair) {
  if (!checked_.insert({pair.from, pair.to}).second) return {};
  const Result<Workspace> tensors = workspace(pair, l2_footprint);
  if (!tensors) return tensors.error();
  fill(tensors->source, ordinary_tile(pair.from, pair.to, tile_elements));
  return same_on_all_tiers(all_tiers_, pair, *tensors);
}

void Session::fail(benchmark::State& state, const Error& error) {
  failed_ = true;
  skip(state, error);
}

void Session::skip(benchmark::State& state, const Error& error) {
  state.SkipWithError(error.to_string().c_str());
}

}  // namespace castor::bench
