// SPDX-License-Identifier: Apache-2.0
// A program made ready to run: its function, the memory of its tensors, and what it must leave
// there. Prepared once for all tiers.
#pragma once

#include <vector>

#include "tools/fuzz/image.hpp"

namespace castor::fuzz {

struct Prepared {
  Program program;
  FunctionPtr function;
  /// Of the inputs. One that is computed in place has `after` of the output.
  std::vector<Image> inputs;
  /// Of the results; those in place have a type and no memory.
  std::vector<Image> outputs;

  bool is_in_place(size_t result) const {
    return program.results[result].in_place_of != ResultSpec::nowhere;
  }
  /// The image that a result is written to.
  const Image& image_of(size_t result) const {
    if (!is_in_place(result)) return outputs[result];
    return inputs[static_cast<size_t>(program.results[result].in_place_of)];
  }
};

/// Builds the function, fills the inputs and asks the interpreter.
Result<Prepared> prepare(Program program);

}  // namespace castor::fuzz
