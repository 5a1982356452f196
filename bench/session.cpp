// SPDX-License-Identifier: Apache-2.0
#include "bench/session.hpp"

#include <fmt/format.h>

#include "bench/check.hpp"
#include "bench/data.hpp"

namespace castor::bench {

Contender BoundConversion::contender() const {
  return {.run = [call = *this](size_t repetitions) {
    for (size_t i = 0; i < repetitions; ++i) static_cast<void>(call.run());
  }};
}

Result<BoundConversion> bind_conversion(const Runtime& runtime, const TypePair& pair,
                                        const Workspace& workspace) {
  const Result<FunctionPtr> function = conversion(pair.from, pair.to);
  if (!function) return function.error();
  const Result<Kernel> kernel = runtime.compile(*function);
  if (!kernel) return kernel.error();
  if (kernel->engine() != Engine::jit) {
    return Error{ErrorCode::internal,
                 fmt::format("{} is interpreted: {}", pair.name(), kernel->engine_reason())};
  }
  const Dims shape = {workspace.elements};
  const Result<BoundKernel> bound = kernel->bind({shape});
  if (!bound) return bound.error();
  return BoundConversion{
      *bound,
      ConstView(workspace.source.data(), pair.from, shape, workspace.source.size()),
      View(workspace.destination.data(), pair.to, shape, workspace.destination.size()),
      {}};
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

Result<Workspace> Session::workspace(const TypePair& pair, const Footprint& footprint) {
  auto at = memory_.find(footprint.bytes);
  if (at == memory_.end()) {
    Result<HugeBuffer> buffer = HugeBuffer::allocate(footprint.bytes + placement_slack);
    if (!buffer) return buffer.error();
    at = memory_.emplace(footprint.bytes, std::move(buffer).value()).first;
  }
  return place_tensors(pair, footprint.bytes, at->second.bytes());
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
