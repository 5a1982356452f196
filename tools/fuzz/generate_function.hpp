// SPDX-License-Identifier: Apache-2.0
// Drawing the parts of a program: function, shapes, layouts in memory, data.
#pragma once

#include "tools/fuzz/layout.hpp"
#include "tools/fuzz/program.hpp"
#include "tools/fuzz/random.hpp"

namespace castor::fuzz {

/// Most elements of a value that an operation gives, and of all values of a program.
inline constexpr int64_t max_elements = 3200;
inline constexpr int64_t max_work = 16000;

ElementType draw_element(Random& random);

/// A type of that class.
ElementType draw_element(Random& random, OperandClass types);

/// Options of a conversion, any spelling that is admitted.
ConvertOptions draw_options(Random& random, ElementType from, ElementType to);

/// One conversion as an operation.
OperationSpec conversion(size_t operand, ElementType to, const ConvertOptions& options = {});

/// Inputs and a graph of conversions.
void draw_conversions(Random& random, Program& program);

/// Which values a function results in: most often its last.
void draw_results(Random& random, Program& program);

/// A shape of that rank with about that many elements (none where `elements` is 0).
Dims draw_shape(Random& random, int rank, int64_t elements);

/// None, one, a few, around the vectors' sizes, and now and then enough for several rounds of the
/// longest main loop.
int64_t draw_count(Random& random);

/// The extents that an elementwise function works on: pixels, matrices, batches of rows.
Dims draw_space(Random& random);

/// Extents that broadcast to the space: some of its axes, others 1.
Dims draw_operand_shape(Random& random, const Dims& space);

/// Writes the axes of tensors as numbers, as `?` or by names.
class AxisWriter {
 public:
  explicit AxisWriter(Random& random);

  /// The extents of an input; a name that is taken keeps its size.
  std::vector<AxisSpec> write(Program& program, const Dims& shape);
  /// The extents of a target: numbers, and names that inputs have.
  std::vector<AxisSpec> write_target(const Program& program, const Dims& shape);

 private:
  AxisSpec write_axis(Program& program, int64_t extent);

  Random& random_;
  size_t unknown_percent_;
  size_t names_taken_ = 0;
};

/// Outputs that take inputs' memory, where layouts are equal.
void draw_in_place(Random& random, Program& program);

/// Pairs of results whose elements alternate in one memory. Wants what is in place.
void draw_interleaving(Random& random, Program& program, size_t chance);

/// Lets two results alternate where they can: neither has memory of its own to lose, elements are
/// stored alike, shapes are equal and reach not too far.
bool interleave(Program& program, size_t first, size_t second);

/// A call to be refused, where the tensor can be spoilt like this. Wants everything else.
void draw_bad_call(Random& random, Program& program, BadCall::Kind kind);

/// Strides, offsets and memory of all tensors. Wants shapes.
void draw_placements(Random& random, Program& program, StrideKind strides);

/// Data of the inputs; `special_percent` of them have zeros, ones and limits.
void draw_data(Random& random, Program& program, size_t special_percent);

}  // namespace castor::fuzz
