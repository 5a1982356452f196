// SPDX-License-Identifier: Apache-2.0
// The table of tiers, what the host has, and how a tier is chosen.
#include "jit/target.hpp"

#include <cpuid.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

namespace castor::jit {
namespace {

constexpr FeatureSet every_feature = {
    Feature::avx2,         Feature::fma,      Feature::f16c,          Feature::bmi2,
    Feature::avx_vnni,     Feature::avx512f,  Feature::avx512bw,      Feature::avx512cd,
    Feature::avx512dq,     Feature::avx512vl, Feature::avx512_vnni,   Feature::avx512_vbmi,
    Feature::avx512_vbmi2, Feature::gfni,     Feature::avx512_bitalg, Feature::avx512_fp16,
    Feature::amx_tile,     Feature::amx_int8};

TEST(TierTable, RowsAreAsDocumented) {
  struct Row {
    Tier tier;
    const char* name;
    const char* features;
    int bits;
    int registers;
  };
  const std::string avx512 = "avx2 fma f16c bmi2 avx512f avx512bw avx512cd avx512dq avx512vl";
  const std::string vnni = avx512 + " avx512_vnni";
  const std::string vbmi = vnni + " avx512_vbmi avx512_vbmi2 gfni avx512_bitalg";
  const std::string fp16 = vbmi + " avx512_fp16";
  const std::string amx = fp16 + " amx_tile amx_int8";
  const Row rows[] = {
      {Tier::avx2, "avx2", "avx2 fma f16c bmi2", 256, 16},
      {Tier::avx2_vnni, "avx2_vnni", "avx2 fma f16c bmi2 avx_vnni", 256, 16},
      {Tier::avx512, "avx512", avx512.c_str(), 512, 32},
      {Tier::avx512_vnni, "avx512_vnni", vnni.c_str(), 512, 32},
      {Tier::avx512_vbmi, "avx512_vbmi", vbmi.c_str(), 512, 32},
      {Tier::avx512_fp16, "avx512_fp16", fp16.c_str(), 512, 32},
      {Tier::amx, "amx", amx.c_str(), 512, 32},
  };
  ASSERT_EQ(std::size(rows), size_t{tier_count});
  for (size_t i = 0; i < std::size(rows); ++i) {
    SCOPED_TRACE(rows[i].name);
    EXPECT_EQ(tier_table()[i].tier, rows[i].tier);
    EXPECT_EQ(name_of(rows[i].tier), rows[i].name);
    EXPECT_EQ(tier_named(rows[i].name), rows[i].tier);
    const Target target{rows[i].tier};
    EXPECT_EQ(names_of(info(target.tier).features), rows[i].features);
    EXPECT_EQ(target.vector_bits(), rows[i].bits);
    EXPECT_EQ(target.vector_registers(), rows[i].registers);
    EXPECT_EQ(target.has_avx512(), rows[i].bits == 512);
  }
}

TEST(TierTable, OtherNamesAreUnknown) {
  for (const char* name : {"", "AVX2", "avx2 ", "avx", "avx512_", "amx_", "best"}) {
    EXPECT_FALSE(tier_named(name).has_value()) << name;
  }
}

TEST(FeatureNames, AreDistinct) {
  std::set<std::string_view> names;
  for (int i = 0; i < feature_count; ++i) names.insert(name_of(static_cast<Feature>(i)));
  EXPECT_EQ(names.size(), size_t{feature_count});
  EXPECT_FALSE(names.contains(""));
  EXPECT_EQ(names_of(FeatureSet{}), "");
  EXPECT_EQ(names_of(FeatureSet{Feature::gfni, Feature::avx2}), "avx2 gfni");
}

TEST(FeatureSet, Difference) {
  const FeatureSet a = {Feature::avx2, Feature::fma};
  const FeatureSet b = {Feature::fma, Feature::bmi2};
  EXPECT_EQ(a - b, FeatureSet{Feature::avx2});
  EXPECT_EQ(a - a, FeatureSet{});
  EXPECT_TRUE((a | b).contains(b));
  EXPECT_FALSE(a.contains(b));
}

/// libgcc 12 does not know them: a bit of edx in cpuid leaf 7.
bool has_bit_of_leaf_7(int bit) {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  const bool is_told = __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0;
  return is_told && (edx >> bit & 1) != 0 && __builtin_cpu_supports("avx512bw") != 0;
}

/// Whether the operating system saves tiles: bits 17 and 18 of XCR0.
bool saves_tiles() {
  unsigned low = 0;
  unsigned high = 0;
  if (__builtin_cpu_supports("avx512bw") == 0) return false;  // nor xgetbv, perhaps
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low >> 17 & 3) == 3;
}

TEST(Host, HasTheFeaturesThatTheCompilerDetects) {
  struct Row {
    Feature feature;
    bool expected;
  };
  // libgcc asks cpuid and XCR0 on its own.
  const Row rows[] = {
      {Feature::avx2, __builtin_cpu_supports("avx2") != 0},
      {Feature::fma, __builtin_cpu_supports("fma") != 0},
      {Feature::f16c, __builtin_cpu_supports("f16c") != 0},
      {Feature::bmi2, __builtin_cpu_supports("bmi2") != 0},
      {Feature::avx_vnni, __builtin_cpu_supports("avxvnni") != 0},
      {Feature::avx512f, __builtin_cpu_supports("avx512f") != 0},
      {Feature::avx512bw, __builtin_cpu_supports("avx512bw") != 0},
      {Feature::avx512cd, __builtin_cpu_supports("avx512cd") != 0},
      {Feature::avx512dq, __builtin_cpu_supports("avx512dq") != 0},
      {Feature::avx512vl, __builtin_cpu_supports("avx512vl") != 0},
      {Feature::avx512_vnni, __builtin_cpu_supports("avx512vnni") != 0},
      {Feature::avx512_vbmi, __builtin_cpu_supports("avx512vbmi") != 0},
      {Feature::avx512_vbmi2, __builtin_cpu_supports("avx512vbmi2") != 0},
      {Feature::gfni, __builtin_cpu_supports("gfni") != 0},
      {Feature::avx512_bitalg, __builtin_cpu_supports("avx512bitalg") != 0},
      {Feature::avx512_fp16, has_bit_of_leaf_7(23)},
      {Feature::amx_tile, has_bit_of_leaf_7(24) && saves_tiles()},
      {Feature::amx_int8, has_bit_of_leaf_7(25) && saves_tiles()},
  };
  ASSERT_EQ(std::size(rows), size_t{feature_count});
  const bool avx = __builtin_cpu_supports("avx") != 0;  // without it, no feature counts
  for (const Row& row : rows) {
    EXPECT_EQ(host().features.has(row.feature), avx && row.expected) << name_of(row.feature);
  }
}

TEST(Host, IsAskedOnceAndNamed) {
  EXPECT_EQ(&host(), &host());
  ASSERT_FALSE(host().cpu.empty());
  EXPECT_NE(host().cpu.front(), ' ');
  EXPECT_NE(host().cpu.back(), ' ');
  EXPECT_EQ(host().cpu.find('\0'), std::string::npos);
}

TEST(Host, BestIsTheLastTierThatRuns) {
  std::optional<Tier> expected;
  for (const TierInfo& row : tier_table()) {
    if ((row.features - host().features) == FeatureSet{}) expected = row.tier;
  }
  EXPECT_EQ(host().best, expected);
}

Host machine_of(FeatureSet features, std::optional<Tier> best) {
  return Host{.cpu = "Test CPU", .features = features, .best = best};
}

TEST(ChooseTarget, HasTheCoreAndCachesOfTheMachine) {
  Host machine = machine_of(every_feature, Tier::avx512_fp16);
  machine.caches = {.l1 = 48 << 10, .l2 = 2 << 20};
  machine.identity = {.vendor = "AuthenticAMD", .family = 26, .model = 2};
  for (const std::optional<Tier> tier : {std::optional<Tier>(), std::optional(Tier::avx2)}) {
    const Result<Target> target = choose_target({.tier = tier}, machine);
    ASSERT_TRUE(target.ok());
    EXPECT_EQ(target->caches, machine.caches);
    EXPECT_EQ(target->core, Core::zen5);
    EXPECT_NE(*target, Target{target->tier});
    EXPECT_EQ(print(*target),
              std::string(name_of(target->tier)) + ", zen5 with caches of 48 KiB L1, 2048 KiB L2");
  }
}

TEST(Host, CachesAreNearAndFar) {
  const Host& machine = host();
  EXPECT_GE(machine.caches.l1, 8 << 10);
  EXPECT_GT(machine.caches.l2, machine.caches.l1);
  EXPECT_GE(static_cast<int64_t>(machine.llc_bytes), machine.caches.l2);
}

struct Choice {
  const char* label;
  Host machine;
  std::optional<Tier> requested;
  const char* castor_isa;
  std::optional<Tier> expected;  ///< nothing: an error
  ErrorCode code = ErrorCode::internal;
  std::vector<const char*> fragments{};  ///< what the message says
};

std::vector<Choice> choices() {
  const Host all = machine_of(every_feature, Tier::amx);
  const Host haswell = machine_of(info(Tier::avx2).features, Tier::avx2);
  const Host no_gfni =
      machine_of(every_feature - FeatureSet{Feature::gfni, Feature::avx_vnni}, Tier::avx512_vnni);
  const Host old = machine_of(FeatureSet{Feature::f16c}, std::nullopt);
  const ErrorCode unsupported = ErrorCode::unsupported;
  const ErrorCode invalid = ErrorCode::invalid_argument;
  return {
      {"best", all, {}, nullptr, Tier::amx},
      {"best of avx2", haswell, {}, nullptr, Tier::avx2},
      {"empty is unset", all, {}, "", Tier::amx},
      {"environment lowers", all, {}, "avx2_vnni", Tier::avx2_vnni},
      {"request lowers", all, Tier::avx512, nullptr, Tier::avx512},
      {"request before environment", all, Tier::avx2, "avx512", Tier::avx2},
      {"request hides a bad name", all, Tier::avx2, "nonsense", Tier::avx2},
      {"unknown name",
       all,
       {},
       "avx513",
       {},
       invalid,
       {"CASTOR_ISA names 'avx513'",
        "avx2, avx2_vnni, avx512, avx512_vnni, avx512_vbmi, avx512_fp16, amx"}},
      {"case counts", all, {}, "AVX2", {}, invalid, {"'AVX2'"}},
      {"environment above",
       no_gfni,
       {},
       "avx512_vbmi",
       {},
       unsupported,
       {"CASTOR_ISA names avx512_vbmi", "Test CPU", "lacks gfni;", "best tier is avx512_vnni"}},
      {"request above",
       haswell,
       Tier::avx512,
       nullptr,
       {},
       unsupported,
       {"asked for is avx512,", "avx512f avx512bw avx512cd avx512dq avx512vl;", "tier is avx2"}},
      {"sideways", no_gfni, Tier::avx2_vnni, nullptr, {}, unsupported, {"lacks avx_vnni;"}},
      {"below avx2",
       old,
       {},
       nullptr,
       {},
       unsupported,
       {"lowest tier is avx2", "lacks avx2 fma bmi2;", "it runs no tier"}},
      {"below avx2, requested", old, Tier::avx2, nullptr, {}, unsupported, {"lacks avx2 fma bmi2"}},
  };
}

TEST(ChooseTarget, FollowsRequestThenEnvironmentThenHost) {
  for (const Choice& choice : choices()) {
    SCOPED_TRACE(choice.label);
    const Result<Target> target =
        choose_target({.tier = choice.requested, .castor_isa = choice.castor_isa}, choice.machine);
    ASSERT_EQ(target.ok(), choice.expected.has_value());
    if (target.ok()) {
      EXPECT_EQ(target->tier, *choice.expected);
      continue;
    }
    EXPECT_EQ(target.error().code, choice.code);
    for (const char* fragment : choice.fragments) {
      EXPECT_NE(target.error().message.find(fragment), std::string::npos)
          << '"' << fragment << "\" is missing from \"" << target.error().message << '"';
    }
  }
}

/// What is chosen while an environment variable has that value (null: unset).
Result<Target> chosen_with(const char* variable, const char* value) {
  const char* before = std::getenv(variable);
  const std::optional<std::string> kept =
      before ? std::optional<std::string>(before) : std::nullopt;
  value != nullptr ? ::setenv(variable, value, 1) : ::unsetenv(variable);
  const Result<Target> chosen = choose_target(std::nullopt);
  kept ? ::setenv(variable, kept->c_str(), 1) : ::unsetenv(variable);
  return chosen;
}

TEST(ChooseTarget, ReadsTheEnvironmentOfTheProcess) {
  if (!host().best) GTEST_SKIP() << "this machine runs no tier";
  const Result<Target> lowered = chosen_with("CASTOR_ISA", "avx2");
  ASSERT_TRUE(lowered.ok());
  EXPECT_EQ(lowered->tier, Tier::avx2);
  const Result<Target> best = chosen_with("CASTOR_ISA", nullptr);
  ASSERT_TRUE(best.ok());
  EXPECT_EQ(best->tier, *host().best);
  EXPECT_EQ(chosen_with("CASTOR_CORE", "zen5")->core, Core::zen5);
  EXPECT_EQ(chosen_with("CASTOR_CORE", nullptr)->core, choose_core(host().identity).core);
  for (const char* variable : {"CASTOR_ISA", "CASTOR_CORE"}) {
    const Result<Target> unknown = chosen_with(variable, "sse2");
    ASSERT_FALSE(unknown.ok());
    EXPECT_EQ(unknown.error().code, ErrorCode::invalid_argument);
  }
}

TEST(ChooseTarget, FollowsRequestThenEnvironmentThenIdentityForTheCore) {
  Host machine = machine_of(every_feature, Tier::avx512_fp16);
  machine.identity = {.vendor = "AuthenticAMD", .family = 25, .model = 0x11};
  const auto core_of = [&](std::optional<Core> core, const char* castor_core) {
    return choose_target({.core = core, .castor_core = castor_core}, machine);
  };
  EXPECT_EQ(core_of({}, nullptr)->core, Core::zen4);
  EXPECT_EQ(core_of({}, "")->core, Core::zen4);
  EXPECT_EQ(core_of({}, "golden_cove")->core, Core::golden_cove);
  EXPECT_EQ(core_of(Core::generic, "golden_cove")->core, Core::generic);
  EXPECT_EQ(core_of(Core::zen5, "nonsense")->core, Core::zen5);
  for (const auto& refused : {core_of({}, "zen6"), core_of(static_cast<Core>(5), nullptr)}) {
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  }
  EXPECT_EQ(core_of({}, "Zen4").error().message,
            "CASTOR_CORE names 'Zen4', expected one of generic, zen4, zen5, golden_cove, zen3");
}

}  // namespace
}  // namespace castor::jit
