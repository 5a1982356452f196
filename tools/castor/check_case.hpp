// SPDX-License-Identifier: Apache-2.0
// One case of `castor check`: interpreted once, then computed and compared for each tier.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "castor/castor.hpp"
#include "tools/castor/check_cases.hpp"

namespace castor::tools {

/// A case with its inputs and the interpreter's results, dense.
struct PreparedCase {
  const Function* function = nullptr;
  CheckCase test;
  std::vector<std::vector<std::byte>> inputs;
  std::vector<Dims> output_shapes;
  std::vector<std::vector<std::byte>> expected;

  ElementType input_type(size_t input) const;
  ElementType output_type(size_t output) const;
};

/// What was found wrong first.
struct Finding {
  enum class Kind : uint8_t {
    element,      ///< an output's element differs
    unused_bits,  ///< bits beside an output's elements, in its bytes, are not what they must be
    canary,       ///< a byte beside an output was written
    input,        ///< an input was written
    failure,      ///< the run was refused
  };
  Kind kind = Kind::element;
  size_t tensor = 0;      ///< index of the output or input
  int64_t element = 0;    ///< element: index in the flattened tensor
  size_t differing = 0;   ///< element: how many differ
  uint64_t expected = 0;  ///< the element, or the byte with the unused bits
  uint64_t actual = 0;
  ptrdiff_t byte = 0;   ///< unused_bits, canary: relative to the view's beginning
  std::string message;  ///< failure: why
};

/// Generates the inputs and interprets the function.
Result<PreparedCase> prepare_case(const Function& function, const InputSource& source,
                                  const CheckCase& test);

/// Computes the case with the kernel and compares. `corrupt` flips one bit of the first result
/// that has any, to show what a mismatch looks like.
std::optional<Finding> compare_case(const PreparedCase& prepared, const Kernel& kernel,
                                    bool corrupt);

}  // namespace castor::tools
