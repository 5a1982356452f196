// SPDX-License-Identifier: Apache-2.0
#include "jit/tile_permission.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "jit/emulated_features.hpp"
#include "jit/tile_detection.hpp"

namespace castor::jit {

namespace {

constexpr Tier tier_without_tiles = Tier::avx512_fp16;

/// The error number of the first refusal; 0: there was none.
constinit std::atomic<int> refused_with = 0;

int64_t arch_prctl(int request, uint64_t argument) {
  if (const ArchPrctl emulated = emulated_arch_prctl()) return emulated(request, argument);
  return ::syscall(SYS_arch_prctl, request, argument);
}

/// 0, or the error number of the refusal.
int request() {
  if (may_use_tiles()) return 0;
  return arch_prctl(xstate::request_permission, xstate::tile_data) == 0 ? 0 : errno;
}

std::string_view meaning_of(int error) {
  switch (error) {
    case ENOSPC: return "a thread has an alternate signal stack that is too small for tile data";
    case EINVAL: return "this kernel does not know tile data";
    case EPERM:
    case ENOSYS: return "the system call is filtered";
    default: return "the request is refused";
  }
}

std::string lower_because(std::string_view reason) {
  return fmt::format("code is of tier {}: {}", name_of(tier_without_tiles), reason);
}

}  // namespace

bool may_use_tiles() {
  uint64_t states = 0;
  if (arch_prctl(xstate::get_permitted, reinterpret_cast<uint64_t>(&states)) != 0) return false;
  return (states >> xstate::tile_data & 1) != 0;
}

Status permit_tiles() {
  int error = refused_with.load();
  if (error == 0) error = request();
  if (error == 0) return {};
  refused_with.store(error);
  return Error{ErrorCode::unsupported, fmt::format("no permission for tile registers: {} ({})",
                                                   meaning_of(error), std::strerror(error))};
}

PermittedTier permitted_tier(Tier tier) {
  if (!info(tier).features.has(Feature::amx_tile) || !host().runs(tier)) return {tier, ""};
  const Status permitted = permit_tiles();
  if (permitted.ok()) return {tier, ""};
  return {tier_without_tiles, lower_because(permitted.error().message)};
}

std::string best_tier_lower_because() {
  if (host().best != tier_without_tiles) return "";
  const std::string_view reason = tiles_unusable_because(detect_tiles());
  return reason.empty() ? "" : lower_because(reason);
}

}  // namespace castor::jit
