// SPDX-License-Identifier: Apache-2.0
// Drawing the parts of a program: function, shapes, places in memory, data.
#pragma once

#include "tools/fuzz/layout.hpp"
#include "tools/fuzz/program.hpp"
#include "tools/fuzz/random.hpp"

namespace castor::fuzz {

ElementType draw_element(Random& random);

/// Options of a conversion, any spelling that is admitted.
ConvertOptions draw_options(Random& random, ElementType from, ElementType to);

/// Inputs without shapes, constants, a graph of conversions, and what it results in.
void draw_function(Random& random, Program& program);

/// Shapes of the inputs: some equal, some with unknown dimensions.
void draw_shapes(Random& random, Program& program);

/// A shape of that rank with about that many elements (none where `elements` is 0).
Dims draw_shape(Random& random, int rank, int64_t elements);

/// Outputs that take inputs' memory, where that is allowed. Wants function and shapes.
void draw_in_place(Random& random, Program& program);

/// Pairs of results whose elements alternate in one memory. Wants what is in place.
void draw_interleaving(Random& random, Program& program, size_t chance);

/// Lets two results alternate where they can: neither has memory of its own to lose, elements are
/// stored alike, shapes are equal and reach not too far.
bool interleave(Program& program, size_t first, size_t second);

/// A call to be refused, where the tensor can be spoilt like this. Wants everything else.
void draw_bad_call(Random& random, Program& program, BadCall::Kind kind);

/// Strides, offsets and places of all tensors. Wants shapes.
void draw_placements(Random& random, Program& program, Walk walk);

void draw_data(Random& random, Program& program);

}  // namespace castor::fuzz
