// SPDX-License-Identifier: Apache-2.0
#include "jit/tile_permission.hpp"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace castor::jit {

namespace {

// Linux, Documentation/arch/x86/xstate.rst; glibc has no wrapper.
constexpr int get_supported = 0x1021;
constexpr int get_permitted = 0x1022;
constexpr int request_permission = 0x1023;
constexpr int tile_data = 18;

bool is_among(int which) {
  uint64_t features = 0;
  if (::syscall(SYS_arch_prctl, which, &features) != 0) return false;
  return (features >> tile_data & 1) != 0;
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

}  // namespace

Status permit_tiles() {
  if (is_among(get_permitted)) return {};
  if (::syscall(SYS_arch_prctl, request_permission, tile_data) == 0) return {};
  const int error = errno;
  const bool is_supported = is_among(get_supported);
  return Error{
      ErrorCode::unsupported,
      fmt::format("no permission for tile registers: {} ({}{})", meaning_of(error),
                  std::strerror(error), is_supported ? "" : "; Linux offers none to this process")};
}

PermittedTier permitted_tier(Tier tier) {
  if (!info(tier).features.has(Feature::amx_tile) || host().emulates(tier)) return {tier, ""};
  const Status permitted = permit_tiles();
  if (permitted.ok()) return {tier, ""};
  constexpr Tier lower = Tier::avx512_fp16;
  return {lower, fmt::format("code is of tier {}: {}", name_of(lower), permitted.error().message)};
}

}  // namespace castor::jit
