// SPDX-License-Identifier: Apache-2.0
// Nests: loops over one iteration space, and the lane program in them.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/shape/convolution.hpp"
#include "jit/kernel/spec.hpp"
#include "jit/lane/program.hpp"
#include "jit/plan/nest_form.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// A kernel position of the windows by which a nest pools a tensor.
struct PoolingTap {
  ValueId result = 0;  ///< what the pooling gives
  /// For each axis of the tensor, with its padding around it: result i takes element
  /// begin + i * step.
  Dims begins;
  Dims steps;
};

/// A tensor that a nest reads.
struct NestInput {
  /// A parameter, a constant, a value that an earlier nest leaves in scratch or in a result, or a
  /// reshape of one of them.
  ValueId value = 0;
  /// For each axis of the value, the axis of the iteration space that it is, or -1.
  Dims axes;
  /// For each axis of the value, how many consecutive elements of the space's axis read one of its
  /// elements: element i of the space reads element i / block. 1 but for blocked broadcasts.
  Dims blocks;
  /// Number of the accumulator that is read, where the value is a reduction that this nest
  /// completes; else -1.
  int accumulator = -1;
  /// Set where the nest pools the value. Axes and blocks are those of the result then.
  std::optional<PoolingTap> tap{};

  NestInput(ValueId id) : value(id) {}
  NestInput(ValueId id, const Dims& along) : NestInput(id, along, Dims::filled(along.rank(), 1)) {}
  NestInput(ValueId id, const Dims& along, const Dims& block_extents, int number = -1)
      : value(id), axes(along), blocks(block_extents), accumulator(number) {}

  bool has_blocks() const {
    return std::ranges::any_of(blocks, [](int64_t b) { return b != 1; });
  }
  /// The value whose extents are seen by the nest.
  ValueId seen() const { return tap ? tap->result : value; }
  /// Whether the value's axis i is the space's axis i, element by element.
  bool is_identity() const {
    if (tap) return false;
    for (int axis = 0; axis < axes.rank(); ++axis) {
      if (axes[axis] != axis) return false;
    }
    return !has_blocks();
  }
};

/// A tensor that a nest writes: a result of the function, or a value in scratch for later nests, or
/// an accumulator that it folds its space into.
struct NestOutput {
  static constexpr uint32_t scratch = ~uint32_t{0};
  uint32_t result = scratch;  ///< index of the function's result
  ValueId value = 0;
  int accumulator = -1;  ///< number among those of the reduction `value`, or -1
  uint64_t initial = 0;  ///< what each of its elements is before the nest

  NestOutput(uint32_t index) : result(index) {}
  NestOutput(uint32_t index, ValueId id) : result(index), value(id) {}
  static NestOutput folded(ValueId reduction, int number, uint64_t initial) {
    NestOutput output(scratch, reduction);
    output.accumulator = number;
    output.initial = initial;
    return output;
  }
  bool is_scratch() const { return result == scratch; }
};

/// Whether the nest after a convolution is its epilogue, which takes its result as it is computed,
/// else why not.
struct Fusion {
  enum class Kind : uint8_t {
    fused,
    is_result,          ///< the function returns the i32 result, and nothing else reads it
    reshaped,           ///< `value` is a reshape of it
    several_nests,      ///< more than one nest reads it
    other_convolution,  ///< the nest that reads it is the epilogue of the one that makes `value`
    other_shape,        ///< it is broadcast to `value`
    partly_repeated,    ///< the nest reads `value` along some of the spatial axes only
    blocked,            ///< the nest reads `value` by blocks
    split_bytes,        ///< rows of `value`, which is of sub-byte elements, end inside bytes
    reduced,            ///< the nest that reads it folds it into the reduction `value`
    tables,             ///< `value` has a table for each element of a row
    pooled,             ///< the nest pools `value`
  } kind;
  ValueId value = no_value;
  bool is_fused() const { return kind == Kind::fused; }
};

/// A nest that is a convolution's epilogue (see jit/conv/epilogue/epilogue.hpp).
struct Epilogue {
  ConvolutionLayout layout = ConvolutionLayout::nchw;
  size_t source = 0;  ///< the operand that is the convolution's result
};

/// An output of an epilogue that a later nest folds as a whole
/// (jit/conv/epilogue/folded_results.hpp).
struct FoldedOutput {
  size_t output = 0;
  size_t nest = 0;  ///< index of the nest that folds it
};

/// One nest of a function: what it reads, what it writes, and its lane program.
struct Nest {
  ValueId space = 0;                ///< the value whose shape is the iteration space
  std::vector<NestInput> inputs;    ///< the program's sources in order
  std::vector<NestOutput> outputs;  ///< the sinks in order
  LaneProgram program;
  /// Index of the operation, where the nest is a convolution: then the program has sources and
  /// sinks but no instructions, and jit/conv says how it is done.
  std::optional<uint32_t> convolution;
  /// Index of the operation, where the nest is a requantization: then the program has no
  /// instructions either, and jit/requantize says how it is done.
  std::optional<uint32_t> requantization;
  std::optional<Fusion> fusion;  ///< of a convolution
  /// Set where the nest is the epilogue of the convolution right before it.
  std::optional<Epilogue> epilogue;
  std::optional<FoldedOutput> folded;  ///< where the nest is an epilogue
  /// For each axis of the space, whether accumulators fold it; empty: there are none. A nest with
  /// accumulators has no other outputs.
  std::vector<bool> reduced{};
  /// Name of the requantization's method, which lives as long as the process; else empty.
  std::string_view method{};

  /// Code depends on the program alone, whose sources and sinks are the nest's operands.
  static constexpr auto fields(const auto& list) {
    return list(not_in_code(&Nest::space), not_in_code(&Nest::inputs), not_in_code(&Nest::outputs),
                field("program", &Nest::program), not_in_code(&Nest::convolution),
                not_in_code(&Nest::requantization), not_in_code(&Nest::fusion),
                not_in_code(&Nest::epilogue), not_in_code(&Nest::folded),
                not_in_code(&Nest::reduced), not_in_code(&Nest::method));
  }

  size_t operands() const { return inputs.size() + outputs.size(); }
  ElementType element(size_t operand) const;
  /// Whether the nest reads the operand, a dense table, at indices.
  bool is_table(size_t operand) const;
  /// The storage of every operand, inputs first.
  std::vector<OperandStorage> storage() const;
  bool has_sub_byte_operand() const;
  /// The form of rows that follow one another, and of one table for all.
  NestForm dense_form() const;
};

/// Bytes of the elements that an operand has in a space, each counted once; at most INT64_MAX.
int64_t operand_bytes(const Nest& nest, const IterationSpace& space, size_t operand);

/// Splits a canonical function into nests, in the order in which they run, and lowers each to
/// lanes. What shares an iteration space shares a nest; a value that others read in another space
/// is rematerialised there where that is cheap, else it is materialised in scratch.
std::vector<Nest> plan_nests(const Function& function, const Target& target);

/// A nest that copies a tensor of that type and rank, `value`, to scratch.
Nest copy_nest(ElementType element, ValueId value, int rank, const Target& target);

/// By value, the one that a chain of reshapes to it begins with; itself where there is none.
std::vector<ValueId> reshape_roots(const Function& function);

/// By value, whether it is a constant of the function, or one in another shape.
std::vector<bool> constant_values(const Function& function);

/// By value, of a reduction the one whose accumulators it is read from: itself, or an earlier
/// minimum or maximum of the same floats along the same axes, which has the same; else no_value.
std::vector<ValueId> accumulator_owners(const Function& function);

/// The nest in words: operands, access, chunk, unrolling.
std::string print(const Function& function, const Nest& nest, const NestForm& form,
                  const Target& target);

/// What its loops do: chunk, main loop, tail.
std::string loops_text(const Nest& nest, const NestForm& form, const Target& target);

/// Results that one nest computes at most; a function with more becomes several nests. This bounds
/// the stack that the code takes.
inline constexpr size_t max_outputs = 16;
/// Tensors that one nest reads at most.
inline constexpr size_t max_inputs = 48;

/// Words of the largest argument block.
inline constexpr size_t max_argument_words =
    2 * (max_inputs + max_outputs) + max_rank * (1 + max_inputs + max_outputs) + 2;

}  // namespace castor::jit
