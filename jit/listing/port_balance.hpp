// SPDX-License-Identifier: Apache-2.0
// How work is divided best among the ports of a core.
#pragma once

#include <map>
#include <vector>

#include "jit/listing/port_core.hpp"

namespace castor::jit {

/// Cycles of work, at least 0, by the set of ports any one of which can do it. No set is empty.
using PortWork = std::map<Ports, double>;

/// The ports that limit how soon the work is done.
struct DensestPorts {
  Ports ports = 0;    ///< none where there is no work
  double cycles = 0;  ///< that each of them works, however the work is divided
};

/// Work that any port of a set can do may be divided among them in fractions (instructions of
/// many iterations are in flight). The least time in which everything gets done is then, by the
/// max-flow min-cut theorem, the maximum over all sets S of ports of
///     (work that can run only within S) / |S| ,
/// which a union of sets that have work attains. Example: 6 cycles of shuffles (FP1 FP2) and 10 of
/// additions (any) take max(6/2, 16/4) = 4. Pure.
DensestPorts densest_ports(const PortWork& work);

/// Cycles that each of `ports` ports, by its bit, works if the work is divided so that the busiest
/// port works least, among such divisions the second busiest works least, and so on: the loads of
/// a division that no scheduler can better, the largest of which is `densest_ports(work).cycles`.
/// They are unique: the densest ports do nothing but what only they can do, evenly, and the same
/// holds of the work and the ports that are left (Fujishige, Lexicographically optimal base of a
/// polymatroid, 1980). Pure.
std::vector<double> balanced_loads(PortWork work, size_t ports);

}  // namespace castor::jit
