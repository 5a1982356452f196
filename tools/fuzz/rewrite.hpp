// SPDX-License-Identifier: Apache-2.0
// Changes to programs that keep them sensible: what refers to the changed part changes with it.
#pragma once

#include "tools/fuzz/program.hpp"

namespace castor::fuzz {

/// Removes conversions, inputs and constants that no result needs; false where there are none.
bool remove_dead(Program& program);

/// Removes one of several results.
void remove_result(Program& program, size_t result);

/// Gives both of two results that alternate memory of their own.
void separate(Program& program, size_t result);

/// Lets everything read the conversion's operand in place of its result. Options that the types no
/// longer admit become the defaults.
void bypass(Program& program, size_t conversion_value);

/// Gives the input of a conversion the conversion's type and the converted data. False where that
/// is not what the program would compute: the operand must be an input that nothing else reads,
/// with the same pattern everywhere.
bool fold_into_input(Program& program, size_t conversion_value);

/// Gives an input or constant a shape that is smaller, or of rank 0. All axes become numbers.
void reshape(Program& program, size_t root, const Dims& shape);
void remove_axis(Program& program, size_t root, int axis);

// Tensors: the inputs, then the results.
inline size_t tensor_count(const Program& program) {
  return program.inputs.size() + program.results.size();
}
const Placement& placement(const Program& program, size_t tensor);
Placement& placement(Program& program, size_t tensor);
Dims shape_of_tensor(const Program& program, size_t tensor);

/// Dense, against the end of its pages, without an offset; false where the tensor lies so.
bool make_plain(Program& program, size_t tensor);

}  // namespace castor::fuzz
