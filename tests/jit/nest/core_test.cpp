// SPDX-License-Identifier: Apache-2.0
// Which row of the tuning table a machine gets, and by which rule.
#include "jit/core/core.hpp"

#include <gtest/gtest.h>

#include <set>

#include "jit/core/core_tuning.hpp"
#include "jit/target.hpp"

namespace castor::jit {
namespace {

TEST(ChooseCore, ByFeaturesThenByVendorFamilyAndModel) {
  const struct {
    const char* label;
    CpuIdentity identity;
    Core core;
    const char* reason;
  } rows[] = {
      {"Sapphire Rapids", {"GenuineIntel", 6, 0x8f, true, true}, Core::golden_cove, "AVX512-FP16"},
      {"Granite Rapids", {"GenuineIntel", 6, 0xad, true, true}, Core::golden_cove, "AVX512-FP16"},
      {"model of Rocket Lake, with AMX",
       {"GenuineIntel", 6, 167, true, false},
       Core::golden_cove,
       "AMX"},
      {"virtual machine that hides AMX",
       {"GenuineIntel", 6, 6, false, true},
       Core::golden_cove,
       "AVX512-FP16"},
      {"Rocket Lake", {"GenuineIntel", 6, 167}, Core::generic, "no rule: generic"},
      {"Ice Lake", {"GenuineIntel", 6, 0x6a}, Core::generic, "no rule: generic"},
      {"Milan", {"AuthenticAMD", 25, 0x01}, Core::zen3, "vendor AuthenticAMD, family 25, model 1"},
      {"Vermeer",
       {"AuthenticAMD", 25, 0x21},
       Core::zen3,
       "vendor AuthenticAMD, family 25, model 33"},
      {"Cezanne",
       {"AuthenticAMD", 25, 0x50},
       Core::zen3,
       "vendor AuthenticAMD, family 25, model 80"},
      {"Genoa", {"AuthenticAMD", 25, 0x11}, Core::zen4, "vendor AuthenticAMD, family 25, model 17"},
      {"Raphael",
       {"AuthenticAMD", 25, 0x61},
       Core::zen4,
       "vendor AuthenticAMD, family 25, model 97"},
      {"Phoenix",
       {"AuthenticAMD", 25, 0x74},
       Core::zen4,
       "vendor AuthenticAMD, family 25, model 116"},
      {"Bergamo",
       {"AuthenticAMD", 25, 0xa0},
       Core::zen4,
       "vendor AuthenticAMD, family 25, model 160"},
      {"Turin", {"AuthenticAMD", 26, 0x02}, Core::zen5, "vendor AuthenticAMD, family 26, model 2"},
      {"an AMD core with AVX512-FP16",
       {"AuthenticAMD", 26, 0x60, false, true},
       Core::zen5,
       "vendor AuthenticAMD, family 26, model 96"},
      {"Zen 2", {"AuthenticAMD", 23, 0x31}, Core::generic, "no rule: generic"},
      {"numbers of Zen 4 of another vendor",
       {"HygonGenuine", 25, 0x11},
       Core::generic,
       "no rule: generic"},
      {"nothing known", {}, Core::generic, "no rule: generic"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.label);
    const CoreChoice choice = choose_core(row.identity);
    EXPECT_EQ(name_of(choice.core), name_of(row.core));
    EXPECT_EQ(choice.reason, row.reason);
  }
}

TEST(ChooseCore, SaysWhoAsked) {
  const CpuIdentity zen5 = {"AuthenticAMD", 26, 0x02};
  EXPECT_EQ(choose_core(Core::zen4, zen5, "generic")->reason, "asked for");
  EXPECT_EQ(choose_core({}, zen5, "generic")->reason, "CASTOR_CORE");
  EXPECT_EQ(choose_core({}, zen5, "")->reason, "vendor AuthenticAMD, family 26, model 2");
}

TEST(ChooseCore, HostHasAnIdentity) {
  EXPECT_EQ(host().identity.vendor.size(), 12u);
  EXPECT_GT(host().identity.family, 0);
  if (!host().best) return;
  EXPECT_EQ(choose_target({}, host())->core, choose_core(host().identity).core);
}

TEST(CoreTable, NamesAndRowsAreInTheOrderOfTheEnumeration) {
  std::set<std::string_view> names;
  for (int i = 0; i < core_count; ++i) {
    const auto core = static_cast<Core>(i);
    names.insert(name_of(core));
    EXPECT_EQ(core_named(name_of(core)), core);
    EXPECT_EQ(tuning_of(core).core, core);
    EXPECT_EQ(&Target{.core = core}.tuning(), &tuning_of(core));
    const bool has_model = core != Core::generic && core != Core::zen3;  // others' is Zen 4's
    EXPECT_EQ(name_of(tuning_of(core).port_model), has_model ? name_of(core) : "zen4");
  }
  EXPECT_EQ(names.size(), size_t{core_count});
  EXPECT_EQ(Target{}.core, Core::generic);
  EXPECT_EQ(name_of(static_cast<Core>(200)), "unknown");
  for (const char* name : {"", "Zen4", "zen4 ", "zen6", "best"}) EXPECT_FALSE(core_named(name));
}

}  // namespace
}  // namespace castor::jit
