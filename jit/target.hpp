// SPDX-License-Identifier: Apache-2.0
// What the machine can do: ISA tiers as named feature sets, detected once and passed in.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "ir/support/export.hpp"
#include "ir/support/result.hpp"
#include "jit/cache_sizes.hpp"
#include "jit/core/core.hpp"

namespace castor::jit {

/// Named feature sets, from low to high: a host's best tier is the last one that it runs. Within
/// AVX2 and within AVX-512 each contains the one before it; all contain avx2. See `tier_table`.
enum class Tier : uint8_t { avx2, avx2_vnni, avx512, avx512_vnni, avx512_vbmi, avx512_fp16, amx };
inline constexpr int tier_count = 7;

/// One CPU feature that emitters ask for.
enum class Feature : uint8_t {
  avx2,
  fma,
  f16c,
  bmi2,
  avx_vnni,
  avx512f,
  avx512bw,
  avx512cd,
  avx512dq,
  avx512vl,
  avx512_vnni,
  avx512_vbmi,
  avx512_vbmi2,
  gfni,
  avx512_bitalg,
  avx512_fp16,
  amx_tile,
  amx_int8,
};
inline constexpr int feature_count = 18;

/// A set of features in one word.
class FeatureSet {
 public:
  constexpr FeatureSet() = default;
  constexpr FeatureSet(std::initializer_list<Feature> features) {
    for (Feature f : features) bits_ |= bit(f);
  }
  constexpr bool has(Feature f) const { return (bits_ & bit(f)) != 0; }
  constexpr bool contains(FeatureSet other) const { return (other.bits_ & ~bits_) == 0; }
  constexpr FeatureSet operator|(FeatureSet other) const { return FeatureSet(bits_ | other.bits_); }
  /// The features of this set that `other` does not have.
  constexpr FeatureSet operator-(FeatureSet other) const {
    return FeatureSet(bits_ & ~other.bits_);
  }
  friend constexpr bool operator==(FeatureSet, FeatureSet) = default;

 private:
  constexpr explicit FeatureSet(uint32_t bits) : bits_(bits) {}
  static constexpr uint32_t bit(Feature f) { return uint32_t{1} << static_cast<int>(f); }
  uint32_t bits_ = 0;
};

/// One row of the table of tiers.
struct TierInfo {
  Tier tier;
  std::string_view name;
  FeatureSet features;
  int vector_bits;
  int vector_registers;
};

/// The tiers in the order of `Tier`.
CASTOR_API const std::array<TierInfo, tier_count>& tier_table();
CASTOR_API const TierInfo& info(Tier tier);
/// "avx2"; "unknown" of a number that is none.
CASTOR_API std::string_view name_of(Tier tier);
CASTOR_API std::string_view name_of(Feature feature);
/// The tier of that name (exact, lower case); nothing for any other text.
CASTOR_API std::optional<Tier> tier_named(std::string_view name);
/// The names of the features in the set, in the order of `Feature`, parted by blanks.
CASTOR_API std::string names_of(FeatureSet features);

struct CoreTuning;

/// Everything about the machine that plans and generated code depend on. A value. Code depends on
/// the tier and the use of rbp alone, which are part of every kernel key; the core and the sizes of
/// its caches decide which of it runs.
struct Target {
  Tier tier = Tier::avx2;
  CacheSizes caches = {};
  Core core = Core::generic;
  /// Whether rbp leads to the caller's frame in all code, for profilers that follow it. No choice
  /// of the machine's: see RuntimeOptions.
  bool frame_pointers = false;

  bool supports(Feature feature) const { return info(tier).features.has(feature); }
  bool has_avx512() const { return supports(Feature::avx512f); }
  int vector_bits() const { return info(tier).vector_bits; }
  int vector_registers() const { return info(tier).vector_registers; }
  /// What the core costs (jit/core/core_tuning.hpp).
  const CoreTuning& tuning() const;
  friend bool operator==(const Target&, const Target&) = default;
};

/// What this machine is.
struct Host {
  std::string cpu;            ///< brand string
  CpuIdentity identity = {};  ///< decides the core
  FeatureSet features;        ///< usable: by CPU and operating system
  FeatureSet emulated = {};   ///< by the program, for tests (jit/emulated_features.hpp)
  CacheSizes caches = {};     ///< of a core
  size_t llc_bytes = 0;       ///< capacity of the outermost data cache that a core uses
  /// The last row of the table that runs without emulation; nothing below avx2.
  std::optional<Tier> best;
  /// Whether code for the tier runs here.
  bool runs(Tier tier) const { return (features | emulated).contains(info(tier).features); }
  /// Whether some instructions of the tier are emulated here.
  bool emulates(Tier tier) const { return runs(tier) && !features.contains(info(tier).features); }
};

/// Asks the CPU; the answer is the same for the life of the process, and cached, without a lock
/// that a forked child could wait for. A feature counts only where the operating system saves the
/// registers that it needs (XCR0). The first call throws std::bad_alloc where memory is refused.
CASTOR_API const Host& host();

/// "avx512_vbmi, zen4 with caches of 32 KiB L1, 1024 KiB L2".
CASTOR_API std::string print(const Target& target);

/// What the caller asks a target to be, and the environment variables where it does not (null:
/// unset; empty is the same).
struct TargetRequest {
  std::optional<Tier> tier{};
  std::optional<Core> core{};
  const char* castor_isa = nullptr;
  const char* castor_core = nullptr;
};

/// The target to use, with the host's caches. The tier: `tier`, else the environment variable
/// CASTOR_ISA, else the best that the host runs. The core: `core`, else CASTOR_CORE, else what the
/// host has (`choose_core`). Fails (unsupported) for a tier that the host cannot run, naming the
/// features that it lacks, and when the host is below every tier; fails (invalid_argument) for an
/// unknown name in CASTOR_ISA or CASTOR_CORE, naming those known, and for a number that is no tier
/// or no core. Thread safe unless the environment is being changed.
CASTOR_API Result<Target> choose_target(std::optional<Tier> tier, std::optional<Core> core = {});
/// Applies the same rule to a machine and an environment given by the caller.
CASTOR_API Result<Target> choose_target(const TargetRequest& request, const Host& machine);

}  // namespace castor::jit
