// SPDX-License-Identifier: Apache-2.0
// Which microarchitecture a core has: the row of the tuning table that planners read.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ir/support/export.hpp"
#include "ir/support/result.hpp"

namespace castor::jit {

/// A row of the tuning table (jit/core/core_tuning.hpp). It decides which code is chosen, never
/// what code is made of: no key of a kernel holds it.
enum class Core : uint8_t {
  generic,      ///< any other; what golden files are planned for
  zen4,         ///< AMD Zen 4
  zen5,         ///< AMD Zen 5
  golden_cove,  ///< Intel Golden Cove and its successors in servers
  zen3,         ///< AMD Zen 3
};
inline constexpr int core_count = 5;

/// "zen4"; "unknown" of a number that is none.
CASTOR_API std::string_view name_of(Core core);
/// The core of that name (exact, lower case); nothing for any other text.
CASTOR_API std::optional<Core> core_named(std::string_view name);
/// "generic, zen4, ...".
CASTOR_API std::string core_names();

/// What cpuid says about the kind of a core. Features count here even where the operating system
/// does not save their registers.
struct CpuIdentity {
  std::string vendor;  ///< e.g. "AuthenticAMD"; empty where it is not known
  int family = 0;      ///< with the extended family added, as manuals name it
  int model = 0;       ///< with the extended model
  bool amx = false;    ///< AMX-TILE or AMX-INT8
  bool avx512_fp16 = false;
};
CpuIdentity detect_identity();

/// A core and the rule that chose it.
struct CoreChoice {
  Core core = Core::generic;
  std::string reason;  ///< e.g. "AVX512-FP16" or "CASTOR_CORE"
};

/// By features first, then by vendor, family and model, since virtual machines report odd models;
/// else generic.
CASTOR_API CoreChoice choose_core(const CpuIdentity& identity);
/// `requested`, else what `castor_core` names (null and empty: unset), else by the identity. Any
/// machine takes any core. Fails (invalid_argument) for a number that is no core, and for an
/// unknown name, with those known.
CASTOR_API Result<CoreChoice> choose_core(std::optional<Core> requested,
                                          const CpuIdentity& identity, const char* castor_core);

}  // namespace castor::jit
