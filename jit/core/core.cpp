// SPDX-License-Identifier: Apache-2.0
#include "jit/core/core.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xbyak/xbyak_util.h>

#include <array>
#include <cstring>

#include "ir/support/enumeration.hpp"

namespace castor::jit {

namespace {

using CpuType = Xbyak::util::Cpu;

/// In the order of `Core`.
constexpr std::array<std::string_view, core_count> names = {"generic", "zen4", "zen5",
                                                            "golden_cove", "zen3"};

/// Models from `first` to `last` of a vendor's family.
struct ModelRange {
  std::string_view vendor;
  int family;
  int first;
  int last;
  Core core;
};

// Family 25 is Zen 3 and Zen 4; AMD gives out models by the sixteen.
constexpr ModelRange model_ranges[] = {
    {"AuthenticAMD", 25, 0x00, 0x0f, Core::zen3},  // Milan, Chagall
    {"AuthenticAMD", 25, 0x10, 0x1f, Core::zen4},  // Genoa, Storm Peak
    {"AuthenticAMD", 25, 0x20, 0x5f, Core::zen3},  // Vermeer, Rembrandt, Cezanne
    {"AuthenticAMD", 25, 0x60, 0x7f, Core::zen4},  // Raphael, Phoenix
    {"AuthenticAMD", 25, 0xa0, 0xaf, Core::zen4},  // Bergamo, Siena
    {"AuthenticAMD", 26, 0x00, 0xff, Core::zen5},
};

}  // namespace

std::string_view name_of(Core core) { return name_in(names, core); }

std::optional<Core> core_named(std::string_view name) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Core>(i);
  }
  return std::nullopt;
}

std::string core_names() { return fmt::format("{}", fmt::join(names, ", ")); }

CpuIdentity detect_identity() {
  uint32_t registers[4] = {};  // eax, ebx, ecx, edx
  CpuType::getCpuid(0, registers);
  const uint32_t last_leaf = registers[0];
  const uint32_t vendor[] = {registers[1], registers[3], registers[2]};
  char text[sizeof vendor + 1] = {};
  std::memcpy(text, vendor, sizeof vendor);
  const CpuType cpu;
  CpuIdentity found{.vendor = text, .family = cpu.displayFamily, .model = cpu.displayModel};
  if (last_leaf < 7) return found;
  CpuType::getCpuidEx(7, 0, registers);
  const auto has = [edx = registers[3]](int bit) { return (edx >> bit & 1) != 0; };
  found.avx512_fp16 = has(23);
  found.amx = has(24) || has(25);
  return found;
}

CoreChoice choose_core(const CpuIdentity& identity) {
  if (identity.vendor != "AuthenticAMD") {  // whose later cores may have these features as well
    if (identity.avx512_fp16) return {Core::golden_cove, "AVX512-FP16"};
    if (identity.amx) return {Core::golden_cove, "AMX"};
  }
  for (const ModelRange& range : model_ranges) {
    if (range.vendor != identity.vendor || range.family != identity.family) continue;
    if (identity.model < range.first || identity.model > range.last) continue;
    return {range.core, fmt::format("vendor {}, family {}, model {}", identity.vendor,
                                    identity.family, identity.model)};
  }
  return {Core::generic, "no rule: generic"};
}

Result<CoreChoice> choose_core(std::optional<Core> requested, const CpuIdentity& identity,
                               const char* castor_core) {
  if (requested) {
    if (Status status = check_enumeration("core", *requested, names.size()); !status) {
      return status.error();
    }
    return CoreChoice{*requested, "asked for"};
  }
  const std::string_view named = castor_core == nullptr ? "" : castor_core;
  if (named.empty()) return choose_core(identity);
  if (const std::optional<Core> core = core_named(named)) return CoreChoice{*core, "CASTOR_CORE"};
  return Error{ErrorCode::invalid_argument,
               fmt::format("CASTOR_CORE names '{}', expected one of {}", named, core_names())};
}

}  // namespace castor::jit
