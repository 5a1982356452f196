// SPDX-License-Identifier: Apache-2.0
// A program made ready to run: its function, the memory of its tensors, and what it must leave
// there. Prepared once for all tiers.
#pragma once

#include <vector>

#include "tools/fuzz/image.hpp"

namespace castor::fuzz {

/// What is bound before a program, so that caches hold what is nearly the program's.
struct Neighbour {
  FunctionPtr function;  ///< null: there is none
  std::vector<Dims> shapes;
  std::vector<Dims> strides;  ///< inputs' strides, then results'
};

struct Prepared {
  Program program;
  FunctionPtr function;
  Neighbour neighbour;
  /// Images of the inputs. One that is computed in place has `after` of the output.
  std::vector<Image> inputs;
  /// Images of the results. Those in place, and the second of two that alternate, have no memory.
  std::vector<Image> outputs;

  bool is_in_place(size_t result) const {
    return program.results[result].in_place_of != ResultSpec::nowhere;
  }
  bool is_interleaved_behind(size_t result) const {
    return program.results[result].interleaved_with != ResultSpec::nowhere;
  }
  bool has_memory(size_t result) const {
    return !is_in_place(result) && !is_interleaved_behind(result);
  }
  /// The result in whose memory a result that is not in place is stored.
  size_t owner_of(size_t result) const {
    return is_interleaved_behind(result)
               ? static_cast<size_t>(program.results[result].interleaved_with)
               : result;
  }
  /// The image whose memory a result is written to.
  const Image& memory_of(size_t result) const {
    if (!is_in_place(result)) return outputs[owner_of(result)];
    return inputs[static_cast<size_t>(program.results[result].in_place_of)];
  }
  Image& memory_of(size_t result) {
    return const_cast<Image&>(static_cast<const Prepared*>(this)->memory_of(result));
  }
};

/// Builds the function, fills the inputs and asks the interpreter.
Result<Prepared> prepare(Program program);

}  // namespace castor::fuzz
