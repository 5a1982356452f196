// SPDX-License-Identifier: Apache-2.0
#include "bench/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ir/function.hpp"
#include "ir/numerics/scalar.hpp"
#include "tools/testing/samples.hpp"

namespace castor::bench {

namespace {

constexpr int64_t end_elements = 256;  // checked one by one at either end
constexpr int64_t middle_samples = 2048;

Status check_element(const TypePair& pair, const Workspace& workspace, int64_t index) {
  const auto at = static_cast<size_t>(index);
  const uint64_t source = samples::load_pattern(workspace.source, pair.from, at);
  const uint64_t found = samples::load_pattern(workspace.destination, pair.to, at);
  const uint64_t expected = numerics::convert(source, pair.from, pair.to, {});
  if (found == expected) return {};
  return Error{
      ErrorCode::internal,
      fmt::format("{} of {} elements, element {}: input {:#x}, expected {:#x}, found {:#x}",
                  pair.name(), workspace.elements, index, source, expected, found)};
}

Status check_range(const TypePair& pair, const Workspace& workspace, int64_t begin, int64_t end,
                   int64_t step) {
  for (int64_t i = begin; i < end; i += step) {
    if (Status status = check_element(pair, workspace, i); !status) return status;
  }
  return {};
}

}  // namespace

Status run_and_check(const BoundCall& call, const TypePair& pair, const Workspace& workspace) {
  std::memset(workspace.destination.data(), 0xA5, workspace.destination.size());
  if (Status status = call.run(); !status) return status;
  const int64_t count = workspace.elements;
  const int64_t step = std::max<int64_t>(count / middle_samples, 1) | 1;  // every residue of lanes
  const int64_t tail = std::max<int64_t>(count - end_elements, 0);
  if (Status status = check_range(pair, workspace, 0, std::min(end_elements, count), 1); !status) {
    return status;
  }
  if (Status status = check_range(pair, workspace, tail, count, 1); !status) return status;
  return check_range(pair, workspace, 0, count, step);
}

Status same_on_all_tiers(std::span<const TierRuntime> tiers, const TypePair& pair,
                         const Workspace& workspace) {
  uint64_t first_hash = 0;
  for (const TierRuntime& each : tiers) {
    const Result<BoundCall> call = bind_conversion(each.runtime, pair, workspace);
    if (!call) return call.error();
    if (Status status = run_and_check(*call, pair, workspace); !status) {
      const Error& error = status.error();
      return Error{error.code, fmt::format("tier {}: {}", name_of(each.tier), error.message)};
    }
    const uint64_t hash = content_hash(workspace.destination);
    if (&each == &tiers.front()) first_hash = hash;
    if (hash != first_hash) {
      return Error{ErrorCode::internal,
                   fmt::format("{}: tiers {} and {} give different bits", pair.name(),
                               name_of(tiers.front().tier), name_of(each.tier))};
    }
  }
  return {};
}

}  // namespace castor::bench
