// SPDX-License-Identifier: Apache-2.0
// A program of the fuzzer: a function with one set of shapes, layouts and data, as plain values
// that the generator draws and the minimiser takes apart.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/function.hpp"
#include "ir/types/storage.hpp"

#include "tools/fuzz/random.hpp"

namespace castor::fuzz {

/// One dimension of an input as its type writes it.
struct AxisSpec {
  enum class Kind : uint8_t { fixed, any, named };
  Kind kind = Kind::fixed;
  int64_t extent = 1;  ///< unless named
  size_t name = 0;     ///< index into Program::named_sizes
};

/// Where a tensor is stored in its guarded pages.
struct Placement {
  Dims strides;
  int64_t offset = 0;  ///< the view's offset, in elements
  bool at_end = true;  ///< against the inaccessible page after it, else the one before it
  int64_t shift = 0;   ///< bytes between the tensor and that page
  bool spare = false;  ///< the view's `bytes` include those, where they follow it
  /// Set for a tensor close to the page before it: that page holds everything before the first
  /// element's first byte, the view's beginning included.
  bool hides_front = false;
};

/// Where the patterns of a tensor's elements (and of what is between them) come from.
struct DataSpec {
  enum class Kind : uint8_t {
    boundary,  ///< drawn from samples::boundary_patterns
    random,    ///< samples::random_patterns
    special,   ///< zeros, ones, limits, infinities, NaNs and small numbers
    same,      ///< `pattern` everywhere
    range,     ///< integers from `min` to `max`, these two more often than others
    halves,    ///< f32 only: multiples of half a step, scale / 2^frac, and numbers beside them
  };
  Kind kind = Kind::random;
  uint64_t seed = 0;
  uint64_t pattern = 0;
  int32_t min = 0;  ///< smallest number of a range
  int32_t max = 0;
  int32_t scale = 1;  ///< scale of halves
  int32_t frac = 0;

  /// Whether it goes with what the tensor is for: not to be drawn again.
  bool is_made_to_fit() const { return kind == Kind::range || kind == Kind::halves; }
};

struct InputSpec {
  ElementType element = ElementType::f32;
  std::vector<AxisSpec> axes;
  Placement place;
  DataSpec data;
  QuantizationPtr quantization{};  ///< then `element` is its container
};

/// Stands for an optional operand that is absent.
inline constexpr size_t no_operand = SIZE_MAX;

/// One operation of the table.
struct OperationSpec {
  OpKind op = OpKind::convert;
  std::vector<size_t> operands{};          ///< values, or no_operand
  Attributes attributes{};                 ///< as the function has them
  ElementType element = ElementType::f32;  ///< `convert`, `constant`, `requantize`: the result's
  std::vector<AxisSpec> target{};    ///< `broadcast`, `reshape`, `constant`: the result's shape
  std::vector<uint64_t> patterns{};  ///< `constant`: its elements
  QuantizationPtr quantization{};    ///< `requantize`, `constant`: the result's
};

struct ResultSpec {
  static constexpr int nowhere = -1;

  size_t value = 0;
  bool declares_unknowns = false;  ///< the signature writes `?` for every dimension
  int in_place_of = nowhere;       ///< the input whose memory it takes, and whose placement
  /// The result before it with whose elements its own alternate, in that result's memory. Both then
  /// have strides of their own, and `place` without strides (see Program::placement_of).
  int interleaved_with = nowhere;
  Placement place;
};

/// A call that must be refused, before the one that must not.
struct BadCall {
  enum class Kind : uint8_t {
    none,
    shape,    ///< the view's shape is not as bound
    bytes,    ///< one too few
    overlap,  ///< a result that begins where another tensor does
    null,     ///< no data
    extents,  ///< one more in an axis of an input when the function is bound
    scale,    ///< 0 or less among the elements of an input that is a scale
  };
  Kind kind = Kind::none;
  size_t tensor = 0;  ///< the wrong one: an input, or after the inputs a result
  size_t other =
      0;  ///< overlap: the tensor that it overlaps; extents: the axis; scale: the element
};

/// What a value is.
struct ValueInfo {
  TensorType type;  ///< as the function has it, with unknown extents
  Dims shape;       ///< as the program binds it
};

/// Values are numbered: inputs, then `max_results` numbers for each operation, one for each of its
/// results; where there are fewer, numbers are nobody's.
struct Program {
  static constexpr size_t max_results = 3;  ///< that an operation has

  uint64_t seed = 0;  ///< that it was drawn from
  std::vector<InputSpec> inputs;
  std::vector<OperationSpec> operations;
  std::vector<ResultSpec> results;
  std::array<int64_t, 3> named_sizes = {};  ///< sizes of ?a, ?b, ?c
  bool excess_precision = false;            ///< allowed
  bool streams = false;                     ///< asks for stores past the caches
  int tasks = 1;                            ///< that the call is split into, if it can be
  bool runs_threads = false;                ///< a thread for each task, else the last task first
  BadCall bad_call;
  uint64_t neighbour =
      0;  ///< seed of a program to be bound before this one (neighbour_of); 0: none
  std::vector<ValueInfo> values;  ///< what follows for each value: see infer_values

  /// Whether it runs as code that keeps the frame pointer: half of all do, whatever else they are.
  bool keeps_frame_pointer() const { return (mix(~seed) & 1) != 0; }
  size_t first_operation() const { return inputs.size(); }
  size_t value_count() const { return first_operation() + max_results * operations.size(); }
  size_t value_of(size_t operation, size_t result = 0) const {
    return first_operation() + max_results * operation + result;
  }
  /// The operation that gives a value after the inputs.
  size_t operation_of(size_t value) const { return (value - first_operation()) / max_results; }
  bool is_value(size_t value) const;
  ElementType element_of(size_t value) const { return values[value].type.element; }
  bool is_quantized(size_t value) const { return values[value].type.quantization != nullptr; }
  const Dims& shape_of(size_t value) const { return values[value].shape; }
  int64_t extent_of(const AxisSpec& axis) const {
    return axis.kind == AxisSpec::Kind::named ? named_sizes[axis.name] : axis.extent;
  }
  Dims extents_of(const std::vector<AxisSpec>& axes) const;
  /// Where a result is stored: where it says, in the memory of the input that it takes, or
  /// alternating with another result.
  Placement placement_of(size_t result) const;
  /// The later result that alternates with this one, or nothing.
  std::optional<size_t> interleaved_behind(size_t result) const;
};

/// Finds what all values are. Fails where types or shapes do not fit, which the generator's do.
Status infer_values(Program& program);

/// Adds an input after the others, and its value: those of operations have numbers one higher
/// then.
void add_input(Program& program, InputSpec input);

/// Adds an operation and its values; false, and nothing is changed, where the operands do not fit
/// or a result had more elements than that.
bool add_operation(Program& program, OperationSpec operation, int64_t max_elements);

/// The inputs that operations take as scales, each once.
std::vector<size_t> scale_inputs(const Program& program);

/// Whether results of `a` may take the memory of `b`: elements are as wide, and layouts are equal.
constexpr bool are_stored_alike(ElementType a, ElementType b) {
  return bits_of(a) == bits_of(b) && info(a).order == info(b).order;
}

/// The function of a program; fails where the program makes no sense, which the generator's never
/// do.
Result<FunctionPtr> build_function(const Program& program);

}  // namespace castor::fuzz
