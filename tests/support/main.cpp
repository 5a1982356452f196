// SPDX-License-Identifier: Apache-2.0
// The main function of test programs. A program `<folder>_tests` holds the topics of a folder; its
// build makes a link for each topic, and under such a name it runs the tests of that topic's source
// alone: `build/release/tests/cache_test` runs what tests/runtime/cache/cache_test.cpp has.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "jit/tile_detection.hpp"
#include "tools/emulator/emulator.hpp"

namespace {

std::string file_stem(const char* path) { return std::filesystem::path(path).stem().string(); }

/// Filters of GoogleTest by topic: the tests of each source.
std::map<std::string, std::string> topic_filters() {
  const testing::UnitTest& program = *testing::UnitTest::GetInstance();
  std::map<std::string, std::string> filters;
  for (int i = 0; i < program.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *program.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      std::string& filter = filters[file_stem(test.file())];
      filter += filter.empty() ? "" : ":";
      filter += std::string(suite.name()) + "." + test.name();
    }
  }
  return filters;
}

bool is_long(std::string_view argument) { return argument == "--long"; }

/// An environment variable that names a tier: all code of a Runtime for tiers above it is emulated,
/// as if the CPU had no other.
constexpr const char* emulate_above = "CASTOR_EMULATE_ABOVE";

/// An environment variable: tiles are emulated although the CPU has them.
constexpr const char* emulate_tiles = "CASTOR_EMULATE_TILES";
constexpr int skipped = 77;  // as tests/CMakeLists.txt has it

bool leaves_tiles_of_cpu_alone() { return std::getenv(emulate_tiles) != nullptr; }

/// The tiers that this machine lacks are tested too.
void install_emulator() {
  using castor::jit::Feature;
  using castor::jit::FeatureSet;
  const char* const named = std::getenv(emulate_above);
  const auto tier = castor::jit::tier_named(named == nullptr ? "" : named);
  if (named != nullptr && !tier) {
    std::fprintf(stderr, "%s: found '%s', expected the name of a tier\n", emulate_above, named);
    std::exit(2);
  }
  if (tier) {
    castor::emulator::install_with_functions(castor::emulator::features_above(*tier));
    return;
  }
  const FeatureSet tiles = {Feature::amx_tile, Feature::amx_int8};
  castor::emulator::install(leaves_tiles_of_cpu_alone() ? tiles : FeatureSet{});
}

bool has_tiles_of_cpu() {
  const castor::jit::TileMachine machine = castor::jit::detect_tiles();
  return machine.has_tiles && castor::jit::tiles_unusable_because(machine).empty();
}

}  // namespace

int main(int argc, char** argv) {
  if (leaves_tiles_of_cpu_alone() && !has_tiles_of_cpu()) {
    std::fprintf(stderr,
                 "skipped: this CPU has no tiles, so that without %s they are emulated too\n",
                 emulate_tiles);
    return skipped;
  }
  install_emulator();
  // Before GoogleTest draws parameters of tests: some are fewer in the short form.
  if (std::any_of(argv + 1, argv + argc, is_long)) setenv("CASTOR_LONG", "1", 1);
  testing::InitGoogleTest(&argc, argv);
  const std::string name = file_stem(argv[0]);
  char** const unknown = std::find_if_not(argv + 1, argv + argc, is_long);
  if (unknown != argv + argc) {
    std::fprintf(stderr, "%s: found %s, expected --long or options of GoogleTest\n", name.c_str(),
                 *unknown);
    return 2;
  }
  if (name.ends_with("_tests")) return RUN_ALL_TESTS();
  const std::map<std::string, std::string> filters = topic_filters();
  for (const auto& [topic, filter] : filters) {
    if (topic.ends_with("_test")) continue;
    std::fprintf(stderr, "%s: found tests in %s.cpp, expected them in sources *_test.cpp only\n",
                 name.c_str(), topic.c_str());
    return 2;
  }
  if (!filters.contains(name)) {
    std::fprintf(stderr, "%s: found no test of a source %s.cpp in this program\n", name.c_str(),
                 name.c_str());
    return 2;
  }
  const std::string& topic = filters.at(name);
  // A filter of the caller that only excludes leaves the topic's other tests; any other replaces
  // them.
  const std::string given = testing::GTEST_FLAG(filter);
  if (given == "*") testing::GTEST_FLAG(filter) = topic;
  if (given.starts_with('-')) testing::GTEST_FLAG(filter) = topic + given;
  return RUN_ALL_TESTS();
}
