// SPDX-License-Identifier: Apache-2.0
// Requantizations with drawn parameters, and the elements at which they go wrong.
#pragma once

#include <string>
#include <vector>

#include "tests/support/interpreted.hpp"
#include "tools/fuzz/draw_parameters.hpp"

namespace castor::test {

/// Both sides with entries for all parameters; null: f32.
struct RequantizeCase {
  QuantizationPtr from{};
  QuantizationPtr to{};
  RequantizeOptions options{};

  std::string name() const;
};

/// Formats by name of both sides: every pair but f32 to f32, for every option.
std::vector<fuzz::RequantizeCell> requantize_forms();
/// Those from such sources.
std::vector<fuzz::RequantizeCell> requantize_forms_from(
    const std::vector<std::optional<QuantizedFormat>>& sources);

/// Parameters for the form, of that many slices on the sides that have an axis.
RequantizeCase draw_case(fuzz::Random& random, const fuzz::RequantizeCell& form,
                         int from_axis = Quantization::per_tensor,
                         int to_axis = Quantization::per_tensor, int64_t slices = 1);

/// The function of x and, with `at_run_time`, of every parameter in the order of its operands. The
/// shape is fixed.
FunctionPtr requantize_function(const RequantizeCase& each, const Dims& shape, bool at_run_time);
/// What that function takes after x.
std::vector<Patterns> parameters_of(const RequantizeCase& each);

/// Elements at which the first slice's results change or end: ties and one unit beside them, the
/// container's limits, zero points, powers of two; NaNs, infinities and subnormals of f32.
std::vector<uint64_t> edge_elements(fuzz::Random& random, const RequantizeCase& each);

}  // namespace castor::test
