// SPDX-License-Identifier: Apache-2.0
// The digest of the kernels that cases bind: a line for every kernel, under the first group of
// cases that uses it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tools/recording/recording_runtime.hpp"

namespace castor::test {

/// A function, and the tensors that it is bound for.
struct DigestCase {
  std::string group;  ///< cases of a group follow each other
  FunctionPtr function;
  std::vector<Dims> shapes;
  std::vector<Dims> strides{};  ///< empty: all are dense
};

/// Collects the kernels of cases, on all tiers.
class KernelDigest {
 public:
  /// Binds the case on every tier. Fails where binding does, and at a kernel with an instruction
  /// that the tier lacks or that has no origin, naming the kernel.
  Status add(const DigestCase& each);

  /// Sums by tier, then the groups.
  std::string text() const;

 private:
  /// Two kernels are the same where name and code are.
  using Identity = std::pair<std::string, uint64_t>;
  struct Line {
    size_t bytes = 0;  ///< code, padding and constants
    size_t instructions = 0;
    int spills = 0;
    unsigned tiers = 0;  ///< a bit for each tier that uses it
    size_t group = 0;    ///< the first one that does
  };
  /// What the cases of a group use on one tier.
  struct Usage {
    std::map<uint64_t, int> codes;  ///< by hash, how many cases use it
    std::string sequence;           ///< hashes of each case's code, case by case
  };
  struct Group {
    std::string name;
    std::array<Usage, jit::tier_count> usage;
  };

  Status add_kernel(const tools::RecordedKernel& kernel, uint64_t hash, jit::Tier tier);
  std::string group_text(size_t index) const;

  std::map<Identity, Line> lines_;
  std::vector<Group> groups_;
};

}  // namespace castor::test
