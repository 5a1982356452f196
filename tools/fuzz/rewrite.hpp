// SPDX-License-Identifier: Apache-2.0
// Changes to programs: what refers to the changed part changes with it. Afterwards `mend` says
// whether the program still makes sense.
#pragma once

#include "tools/fuzz/program.hpp"

namespace castor::fuzz {

/// Finds what the values of a changed program are, gives tensors whose shapes have changed strides
/// that fit, and takes back options and shared memory that no longer fit. False where types or
/// shapes do not fit together. `before` is the program that it was made from, with equally many
/// inputs and results.
bool mend(Program& program, const Program& before);

/// Makes quantized types and what gives their parameters fit shapes that have changed.
void mend_quantizations(Program& program);

/// Removes operations and inputs that no result needs; false where there are none.
bool remove_dead(Program& program);

/// Removes one of several results.
void remove_result(Program& program, size_t result);

/// Gives both of two results that alternate memory of their own.
void separate(Program& program, size_t result);

/// Lets everything that reads a value read another one, which comes before its readers.
void replace_uses(Program& program, size_t value, size_t by);

/// Replaces an operation's value by a new input.
void cut(Program& program, size_t value, const InputSpec& input);

/// Everything that is written as an extent: of inputs, constants and targets.
template <class Change>
void change_axes(Program& program, Change change) {
  for (InputSpec& input : program.inputs) change(input.axes);
  for (OperationSpec& operation : program.operations) change(operation.target);
}

/// Numbers in place of unknown extents, but for the open one of a reshape.
void write_numbers(Program& program);

/// Constants have as many elements as their shape.
void resize_constants(Program& program);

// Tensors: the inputs, then the results.
inline size_t tensor_count(const Program& program) {
  return program.inputs.size() + program.results.size();
}
const Placement& placement(const Program& program, size_t tensor);
Placement& placement(Program& program, size_t tensor);
const Dims& shape_of_tensor(const Program& program, size_t tensor);

/// Dense, against the end of its pages, without an offset; false where the tensor is stored so.
bool make_plain(Program& program, size_t tensor);

}  // namespace castor::fuzz
