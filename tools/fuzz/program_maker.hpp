// SPDX-License-Identifier: Apache-2.0
// What programs made for one cell have in common.
#pragma once

#include <stdexcept>

#include "tools/fuzz/cells.hpp"
#include "tools/fuzz/generate_function.hpp"

namespace castor::fuzz {

/// `bytes` is 0 for elements narrower than a byte.
inline ElementType draw_element_of(Random& random, int bytes) {
  while (true) {
    const ElementType type = draw_element(random);
    if (bits_of(type) / 8 == bytes) return type;
  }
}

inline ElementType draw_stored_alike(Random& random, ElementType like) {
  while (true) {
    const ElementType type = draw_element(random);
    if (are_stored_alike(type, like)) return type;
  }
}

/// A program in the making.
class ProgramMaker {
 protected:
  explicit ProgramMaker(Random& random) : random_(random) {}

  /// One input of that shape, converted once.
  void convert_once(ElementType from, ElementType to, const ConvertOptions& options,
                    const Dims& shape) {
    InputSpec input;
    input.element = from;
    for (int64_t extent : shape) input.axes.push_back({AxisSpec::Kind::any, extent, 0});
    add_input(program_, std::move(input));
    convert(to, options);
  }
  void convert_once(const Dims& shape) {
    const ElementType from = draw_element(random_);
    const ElementType to = draw_element(random_);
    convert_once(from, to, draw_options(random_, from, to), shape);
  }
  /// An operation that fits, and the value that it gives.
  size_t operate(OperationSpec operation) {
    if (!add_operation(program_, std::move(operation), max_streamed_bytes)) {
      throw std::logic_error("an operation of a directed program does not fit");
    }
    return program_.value_of(program_.operations.size() - 1);
  }
  void add_result(size_t value) { program_.results.emplace_back().value = value; }
  /// The first input to one more result.
  void convert(ElementType to, const ConvertOptions& options = {}) {
    add_result(operate(conversion(0, to, options)));
  }

  void place(StrideKind strides) { draw_placements(random_, program_, strides); }

  Random& random_;
  Program program_;
};

/// A program for a cell that says how it is called.
Program generate_call(Random& random, CallCell call);

}  // namespace castor::fuzz
