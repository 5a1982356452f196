// SPDX-License-Identifier: Apache-2.0
#include "jit/listing/port_balance.hpp"

#include <bit>
#include <set>

namespace castor::jit {

namespace {

/// Every union of sets that have work.
std::set<Ports> unions_of(const PortWork& work) {
  std::set<Ports> closed;
  for (const auto& [ports, cycles] : work) {
    std::vector<Ports> grown = {ports};
    for (const Ports set : closed) grown.push_back(set | ports);
    closed.insert(grown.begin(), grown.end());
  }
  return closed;
}

/// Cycles of what can run within the set only.
double work_within(const PortWork& work, Ports set) {
  double sum = 0;
  for (const auto& [ports, cycles] : work) sum += (ports & ~set) == 0 ? cycles : 0;
  return sum;
}

/// What is not of the set's ports alone, for the other ports to do.
PortWork work_outside(const PortWork& work, Ports set) {
  PortWork outside;
  for (const auto& [ports, cycles] : work) {
    const auto others = static_cast<Ports>(ports & ~set);
    if (others != 0) outside[others] += cycles;
  }
  return outside;
}

}  // namespace

DensestPorts densest_ports(const PortWork& work) {
  DensestPorts densest;
  for (const Ports set : unions_of(work)) {
    const double cycles = work_within(work, set) / std::popcount(set);
    if (cycles > densest.cycles + 1e-9) densest = {set, cycles};
  }
  return densest;
}

std::vector<double> balanced_loads(PortWork work, size_t ports) {
  std::vector<double> loads(ports, 0);
  while (true) {
    const auto [set, cycles] = densest_ports(work);
    if (set == 0) return loads;
    for (size_t port = 0; port < ports; ++port) {
      if ((set >> port & 1) != 0) loads[port] = cycles;
    }
    work = work_outside(work, set);
  }
}

}  // namespace castor::jit
