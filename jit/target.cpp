// SPDX-License-Identifier: Apache-2.0
#include "jit/target.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xbyak/xbyak_util.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "ir/support/enumeration.hpp"
#include "ir/support/guarded.hpp"
#include "jit/emulated_features.hpp"
#include "jit/memory/published.hpp"
#include "jit/tile_detection.hpp"

namespace castor::jit {
namespace {

using CpuType = Xbyak::util::Cpu;

template <auto type>
bool detects(const CpuType& cpu) {
  return cpu.has(type);
}

/// Xbyak reads tiles from cpuid alone.
template <auto type>
bool detects_tiles(const CpuType& cpu) {
  if (!cpu.has(CpuType::tAVX512F) || !cpu.has(CpuType::tAMX_TILE) || !cpu.has(type)) return false;
  return tiles_unusable_because(detect_tiles()).empty();
}

/// A feature, its name in messages, and how Xbyak sees it.
struct FeatureInfo {
  Feature feature;
  std::string_view name;
  bool (*detected)(const CpuType& cpu);
};

constexpr std::array<FeatureInfo, feature_count> feature_table = {{
    {Feature::avx2, "avx2", detects<CpuType::tAVX2>},
    {Feature::fma, "fma", detects<CpuType::tFMA>},
    {Feature::f16c, "f16c", detects<CpuType::tF16C>},
    {Feature::bmi2, "bmi2", detects<CpuType::tBMI2>},
    {Feature::avx_vnni, "avx_vnni", detects<CpuType::tAVX_VNNI>},
    {Feature::avx512f, "avx512f", detects<CpuType::tAVX512F>},
    {Feature::avx512bw, "avx512bw", detects<CpuType::tAVX512BW>},
    {Feature::avx512cd, "avx512cd", detects<CpuType::tAVX512CD>},
    {Feature::avx512dq, "avx512dq", detects<CpuType::tAVX512DQ>},
    {Feature::avx512vl, "avx512vl", detects<CpuType::tAVX512VL>},
    {Feature::avx512_vnni, "avx512_vnni", detects<CpuType::tAVX512_VNNI>},
    {Feature::avx512_vbmi, "avx512_vbmi", detects<CpuType::tAVX512_VBMI>},
    {Feature::avx512_vbmi2, "avx512_vbmi2", detects<CpuType::tAVX512_VBMI2>},
    {Feature::gfni, "gfni", detects<CpuType::tGFNI>},
    {Feature::avx512_bitalg, "avx512_bitalg", detects<CpuType::tAVX512_BITALG>},
    {Feature::avx512_fp16, "avx512_fp16", detects<CpuType::tAVX512_FP16>},
    {Feature::amx_tile, "amx_tile", detects_tiles<CpuType::tAMX_TILE>},
    {Feature::amx_int8, "amx_int8", detects_tiles<CpuType::tAMX_INT8>},
}};

constexpr FeatureSet avx2_set = {Feature::avx2, Feature::fma, Feature::f16c, Feature::bmi2};
constexpr FeatureSet avx2_vnni_set = avx2_set | FeatureSet{Feature::avx_vnni};
constexpr FeatureSet avx512_set =
    avx2_set | FeatureSet{Feature::avx512f, Feature::avx512bw, Feature::avx512cd, Feature::avx512dq,
                          Feature::avx512vl};
constexpr FeatureSet avx512_vnni_set = avx512_set | FeatureSet{Feature::avx512_vnni};
constexpr FeatureSet avx512_vbmi_set =
    avx512_vnni_set |
    FeatureSet{Feature::avx512_vbmi, Feature::avx512_vbmi2, Feature::gfni, Feature::avx512_bitalg};
constexpr FeatureSet avx512_fp16_set = avx512_vbmi_set | FeatureSet{Feature::avx512_fp16};
constexpr FeatureSet amx_set = avx512_fp16_set | FeatureSet{Feature::amx_tile, Feature::amx_int8};

constexpr std::array<TierInfo, tier_count> tiers = {{
    {Tier::avx2, "avx2", avx2_set, 256, 16},
    {Tier::avx2_vnni, "avx2_vnni", avx2_vnni_set, 256, 16},
    {Tier::avx512, "avx512", avx512_set, 512, 32},
    {Tier::avx512_vnni, "avx512_vnni", avx512_vnni_set, 512, 32},
    {Tier::avx512_vbmi, "avx512_vbmi", avx512_vbmi_set, 512, 32},
    {Tier::avx512_fp16, "avx512_fp16", avx512_fp16_set, 512, 32},
    {Tier::amx, "amx", amx_set, 512, 32},
}};

/// The features that CPU and operating system give. Xbyak reads f16c, bmi2, gfni and avx_vnni from
/// cpuid alone; they work on AVX registers, so they count only with AVX, for which Xbyak asks XCR0.
FeatureSet detect_features(const CpuType& cpu) {
  FeatureSet found;
  if (!cpu.has(CpuType::tAVX)) return found;
  for (const FeatureInfo& row : feature_table) {
    if (row.detected(cpu)) found = found | FeatureSet{row.feature};
  }
  return found;
}

/// The CPU's name from cpuid leaves 0x80000002 to 0x80000004, without blanks at either end.
std::string brand_string() {
  uint32_t registers[4] = {};
  CpuType::getCpuid(0x80000000, registers);
  if (registers[0] < 0x80000004) return "unknown";
  char text[3 * sizeof registers + 1] = {};
  for (uint32_t part = 0; part < 3; ++part) {
    CpuType::getCpuid(0x80000002 + part, registers);
    std::memcpy(text + part * sizeof registers, registers, sizeof registers);
  }
  const std::string_view name = text;
  const size_t begin = name.find_first_not_of(' ');
  if (begin == std::string_view::npos) return "unknown";
  return std::string(name.substr(begin, name.find_last_not_of(' ') + 1 - begin));
}

/// Bytes of the last-level cache; where the CPU does not tell, the smallest of server cores.
size_t llc_bytes(const DetectedCaches& caches) {
  constexpr size_t unknown = size_t{16} << 20;
  const auto bytes = static_cast<size_t>(caches.llc);
  return bytes < (size_t{1} << 20) ? unknown : bytes;
}

/// What `emulate` was told first; null: nothing.
constinit std::atomic<const Emulation*> emulation_of_program = nullptr;

Host detect_host() {
  Host found;
  found.cpu = brand_string();
  found.identity = detect_identity();
  const CpuType cpu;
  const Emulation* emulation = emulation_of_program.load();
  found.features = detect_features(cpu);
  if (emulation != nullptr) found.features = found.features - emulation->not_of_host;
  const DetectedCaches caches = detect_caches();
  found.caches = caches.near;
  found.llc_bytes = llc_bytes(caches);
  for (const TierInfo& row : tiers) {
    if (found.runs(row.tier)) found.best = row.tier;
  }
  if (emulation != nullptr) found.emulated = emulation->features - found.features;
  return found;
}

std::string tier_names() {
  std::vector<std::string_view> names;
  for (const TierInfo& row : tiers) names.push_back(row.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// `tier`, if the machine runs it; `asked_by` begins the error.
Result<Tier> runnable(Tier tier, const Host& machine, std::string_view asked_by) {
  if (Status status = check_enumeration("tier", tier, tiers.size()); !status) return status.error();
  if (machine.runs(tier)) return tier;
  return Error{
      ErrorCode::unsupported,
      fmt::format("{} {}, which this machine ({}) cannot run: it lacks {}; {}", asked_by,
                  name_of(tier), machine.cpu, names_of(info(tier).features - machine.features),
                  machine.best ? fmt::format("its best tier is {}", name_of(*machine.best))
                               : std::string("it runs no tier"))};
}

Result<Tier> choose_tier(const TargetRequest& request, const Host& machine) {
  if (request.tier) return runnable(*request.tier, machine, "the tier asked for is");
  const std::string_view named = request.castor_isa == nullptr ? "" : request.castor_isa;
  if (!named.empty()) {
    if (const std::optional<Tier> tier = tier_named(named)) {
      return runnable(*tier, machine, "CASTOR_ISA names");
    }
    return Error{ErrorCode::invalid_argument,
                 fmt::format("CASTOR_ISA names '{}', expected one of {}", named, tier_names())};
  }
  return machine.best ? *machine.best : runnable(Tier::avx2, machine, "the lowest tier is");
}

}  // namespace

const std::array<TierInfo, tier_count>& tier_table() { return tiers; }

const TierInfo& info(Tier tier) { return tiers[static_cast<size_t>(tier)]; }

std::string_view name_of(Tier tier) {
  return static_cast<size_t>(tier) < tiers.size() ? info(tier).name : "unknown";
}

std::string_view name_of(Feature feature) {
  return feature_table[static_cast<size_t>(feature)].name;
}

std::optional<Tier> tier_named(std::string_view name) {
  for (const TierInfo& row : tiers) {
    if (row.name == name) return row.tier;
  }
  return std::nullopt;
}

std::string names_of(FeatureSet features) {
  std::vector<std::string_view> names;
  for (const FeatureInfo& row : feature_table) {
    if (features.has(row.feature)) names.push_back(row.name);
  }
  return fmt::format("{}", fmt::join(names, " "));
}

std::string print(const Target& target) {
  return fmt::format("{}, {} with caches of {}", name_of(target.tier), name_of(target.core),
                     print(target.caches));
}

const Host& host() {
  static constinit Published<const Host> found;
  return found.get([] { return std::make_unique<const Host>(detect_host()); });
}

bool emulate(const Emulation& emulation) {
  const Emulation* none = nullptr;
  emulation_of_program.compare_exchange_strong(none, &emulation);
  const Host& answered = host();
  return answered.emulated == emulation.features - answered.features &&
         answered.features - emulation.not_of_host == answered.features;
}

ArchPrctl emulated_arch_prctl() {
  const Emulation* emulation = emulation_of_program.load();
  const bool is_emulated = emulation != nullptr && host().emulated.has(Feature::amx_tile);
  return is_emulated ? emulation->arch_prctl : nullptr;
}

SystemCalls system_calls_for(Tier tier, const SystemCalls& system) {
  const Emulation* emulation = emulation_of_program.load();
  if (emulation == nullptr || emulation->calls_for_functions == nullptr) return system;
  const FeatureSet missing = info(tier).features - host().features;
  return emulation->one_by_one.contains(missing) ? system : emulation->calls_for_functions(system);
}

Result<Target> choose_target(const TargetRequest& request, const Host& machine) {
  return guarded([&]() -> Result<Target> {
    const Result<Tier> tier = choose_tier(request, machine);
    if (!tier) return tier.error();
    const Result<CoreChoice> choice =
        choose_core(request.core, machine.identity, request.castor_core);
    if (!choice) return choice.error();
    return Target{*tier, machine.caches, choice->core};
  });
}

Result<Target> choose_target(std::optional<Tier> tier, std::optional<Core> core) {
  return guarded([&] {
    return choose_target({tier, core, std::getenv("CASTOR_ISA"), std::getenv("CASTOR_CORE")},
                         host());
  });
}

}  // namespace castor::jit
