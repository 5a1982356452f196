// SPDX-License-Identifier: Apache-2.0
// The best division of work among ports: by hand, and by what makes a division the best.
#include "jit/listing/port_balance.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "jit/listing/listing.hpp"
#include "tests/support/snippet.hpp"

namespace castor::jit {
namespace {

struct Division {
  const char* name;
  PortWork work;
  std::vector<double> loads;  ///< port 0 first
};

TEST(PortBalance, DividesAsByHand) {
  const Division rows[] = {
      {"nothing", {}, {0, 0, 0, 0}},
      {"one port", {{0b0010, 3}}, {0, 3, 0, 0}},
      {"any port", {{0b1111, 10}}, {2.5, 2.5, 2.5, 2.5}},
      // Shuffles on two ports, and additions for which all four are good: all work 4 cycles.
      {"overlap, evenly", {{0b0110, 6}, {0b1111, 10}}, {4, 4, 4, 4}},
      // Too many shuffles for that: the additions go where there are none.
      {"overlap, unevenly", {{0b0110, 14}, {0b1111, 10}}, {5, 7, 7, 5}},
      {"a chain", {{0b0011, 4}, {0b0110, 4}, {0b1100, 1}}, {8. / 3, 8. / 3, 8. / 3, 1}},
      {"by levels", {{0b0001, 9}, {0b0011, 4}, {0b0111, 1}, {0b1111, 1}}, {9, 4, 1, 1}},
      {"work of no length", {{0b0001, 0}, {0b0010, 1}}, {0, 1, 0, 0}},
  };
  for (const Division& row : rows) {
    const std::vector<double> loads = balanced_loads(row.work, 4);
    ASSERT_EQ(loads.size(), row.loads.size()) << row.name;
    for (size_t i = 0; i < loads.size(); ++i) {
      EXPECT_NEAR(loads[i], row.loads[i], 1e-9) << row.name << ", port " << i;
    }
    const double busiest = *std::ranges::max_element(row.loads);
    EXPECT_NEAR(densest_ports(row.work).cycles, busiest, 1e-9) << row.name;
  }
}

double work_within(const PortWork& work, Ports set) {
  double sum = 0;
  for (const auto& [ports, cycles] : work) sum += (ports & ~set) == 0 ? cycles : 0;
  return sum;
}

double loads_of(const std::vector<double>& loads, Ports set) {
  double sum = 0;
  for (size_t i = 0; i < loads.size(); ++i) sum += (set >> i & 1) != 0 ? loads[i] : 0;
  return sum;
}

/// A division has these loads if the ports of each set work as long as what only they can do takes,
/// or longer, and all ports as long as everything takes. None is better if those that work more
/// than any given port do nothing that it could do.
void expect_best(const PortWork& work, const std::vector<double>& loads) {
  const auto all = static_cast<Ports>((1u << loads.size()) - 1);
  EXPECT_NEAR(loads_of(loads, all), work_within(work, all), 1e-6);
  for (unsigned set = 0; set <= all; ++set) {
    const auto ports = static_cast<Ports>(set);
    EXPECT_GE(loads_of(loads, ports), work_within(work, ports) - 1e-6) << set;
  }
  for (const double level : loads) {
    Ports busier = 0;
    for (size_t i = 0; i < loads.size(); ++i) {
      if (loads[i] > level + 1e-6) busier |= static_cast<Ports>(1u << i);
    }
    EXPECT_NEAR(loads_of(loads, busier), work_within(work, busier), 1e-6) << "level " << level;
  }
}

TEST(PortBalance, NoDivisionIsBetter) {
  constexpr size_t ports = 7;
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    PortWork work;
    for (unsigned n = random() % 9; n > 0; --n) {
      work[static_cast<Ports>(1 + random() % ((1u << ports) - 1))] += random() % 40 / 4.0;
    }
    SCOPED_TRACE(round);
    const std::vector<double> loads = balanced_loads(work, ports);
    expect_best(work, loads);
    EXPECT_NEAR(*std::ranges::max_element(loads), densest_ports(work).cycles, 1e-9);
  }
}

/// The loads of a loop: five shuffles (FP1 FP2) and four additions (any) of 256 bits on Zen 4.
TEST(PortBalance, LoopsHaveALoadForEachPortOfTheCore) {
  using namespace test;
  using namespace Xbyak::util;
  const MachineCode code = assemble([](auto& s) {
    for (int i = 0; i < 5; ++i) s.vpshufb(ymm0, ymm1, ymm2);
    for (int i = 0; i < 4; ++i) s.vpaddd(ymm3, ymm4, ymm5);
  });
  const auto cycles = port_cycles(code, whole(code), PortModel::zen4);
  ASSERT_TRUE(cycles.ok()) << cycles.error().message;
  const std::pair<std::string_view, double> expected[] = {
      {"FP0", 2}, {"FP1", 2.5}, {"FP2", 2.5}, {"FP3", 2}};
  ASSERT_EQ(cycles->ports.size(), port_core(PortModel::zen4).ports.size());
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(cycles->ports[i].port, expected[i].first);
    EXPECT_DOUBLE_EQ(cycles->ports[i].cycles, expected[i].second);
  }
  EXPECT_DOUBLE_EQ(cycles->pipes, 2.5);
  EXPECT_EQ(cycles->busiest, "FP1 FP2");
}

}  // namespace
}  // namespace castor::jit
