// SPDX-License-Identifier: Apache-2.0
// Small tensors for any function: extents that fit it, data, and memory between inaccessible pages.
#pragma once

#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "castor/castor.hpp"
#include "tools/fuzz/random.hpp"
#include "tools/testing/guarded_pages.hpp"

namespace castor::libfuzzer {

/// Extents of the parameters, small where the function leaves them open. Nothing where none were
/// found that bind, or where the interpreter would take long.
std::optional<std::vector<Dims>> small_shapes(const Function& function, fuzz::Random& random);

/// The tensors of one call, dense, each against an inaccessible page; and what the interpreter
/// makes of them.
class SmallCall {
 public:
  SmallCall(const FunctionPtr& function, std::span<const Dims> inputs,
            std::span<const Dims> outputs, fuzz::Random& random);

  /// Computes what is expected.
  Status interpret();
  Status run(const BoundKernel& kernel);
  /// Which output differs from the interpreter's, or was written beside, and where; empty if none.
  std::string difference() const;

 private:
  struct Output {
    std::vector<std::byte> expected;
    View view;
    test::GuardedPages* pages;
  };

  FunctionPtr function_;
  std::deque<test::GuardedPages> pages_;
  std::vector<ConstView> inputs_;
  std::vector<Output> outputs_;
};

}  // namespace castor::libfuzzer
