// SPDX-License-Identifier: Apache-2.0
// The cases of tests/data/mli, whose README says where they come from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/function.hpp"
#include "ir/types/view.hpp"

namespace castor::test {

/// One side of a conversion.
struct MliSide {
  std::string format;  ///< fx8, fx16, sa8, sa32 or fp32
  int axis = -1;
  std::vector<int32_t> scale;
  std::vector<int32_t> frac;
  std::vector<int32_t> zero_point;
  Dims strides;
};

/// One conversion and its result, elements as raw bits in row-major order.
struct MliCase {
  std::string name;  ///< file, number and formats
  MliSide source;
  MliSide destination;
  Dims shape;
  bool is_exact = false;
  bool is_half_up = true;
  std::vector<uint64_t> input;
  std::vector<uint64_t> output;
};

/// Every case of a file of tests/data/mli.
std::vector<MliCase> mli_cases(const std::string& file);

/// The type of one side; with `at_run_time`, all its parameters are `?`.
TensorType mli_type(const MliSide& side, const Dims& shape, bool at_run_time);

/// A function of x, then of the parameters given at run time, if they are.
FunctionPtr mli_function(const MliCase& each, bool at_run_time);

}  // namespace castor::test
