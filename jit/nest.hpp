// SPDX-License-Identifier: Apache-2.0
// Nests: loops over one iteration space, and how each operand walks it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/function.hpp"
#include "jit/lane/program.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// How an operand walks the innermost axis.
enum class Access : uint8_t {
  contiguous,  ///< elements side by side; sub-byte rows begin at a byte and end at one or at the
               ///< end
  strided,     ///< whole bytes a constant distance apart, given at run time
  bitwise,     ///< sub-byte elements from any bit on, any distance apart; reached one by one
};
std::string_view name_of(Access access);

/// How an operand is stored.
struct OperandStorage {
  ElementType element = ElementType::f32;
  bool is_output = false;
};

/// One nest of a function: what it reads, what it writes, and its lane program.
struct Nest {
  std::vector<ValueId> inputs;    ///< parameters and constants; the program's sources in order
  std::vector<uint32_t> outputs;  ///< indices of the function's results; the sinks in order
  LaneProgram program;

  size_t operands() const { return inputs.size() + outputs.size(); }
  ElementType element(size_t operand) const;
  OperandStorage storage(size_t operand) const {
    return {element(operand), operand >= inputs.size()};
  }
  bool has_sub_byte_operand() const;
};

/// How whole vectors are stored.
enum class Stores : uint8_t {
  cached,
  streaming,  ///< past the caches: for outputs that the caches cannot hold
};

/// Whether streaming code stores elements of that type past the caches: sub-byte ones only where a
/// vector's worth of them fills a vector register again.
bool has_streaming_stores(const Target& target, ElementType element);

/// Streaming code peels elements until its outputs are at a multiple of this many bytes.
inline constexpr int64_t streaming_alignment = 64;

/// The form of an iteration space as far as code depends on it.
struct NestForm {
  int rank = 1;                ///< loops left after merging, at least 1
  std::vector<Access> access;  ///< of each operand, inputs first
  /// Streaming code wants rank 1, contiguous operands, no output in place, and outputs that are a
  /// whole and equal number of elements away from a multiple of `streaming_alignment`.
  Stores stores = Stores::cached;
  friend bool operator==(const NestForm&, const NestForm&) = default;
  static NestForm dense(size_t operands) {
    return {1, std::vector<Access>(operands, Access::contiguous)};
  }
};

/// An iteration space with its extents: axes merged where every operand walks them alike, axes of
/// extent 1 gone, the rest ordered so that the innermost is the one that outputs, then inputs,
/// walk closest.
struct IterationSpace {
  NestForm form;
  Dims extents;                                        ///< innermost first
  std::vector<std::array<int64_t, max_rank>> strides;  ///< by operand, then axis, in elements
};

/// `strides[k]` are operand k's element strides over `extents`, outermost axis first; `storage[k]`
/// what it holds. No extent is zero. Sub-byte operands count as contiguous only if they begin at
/// element 0 of their bytes; see `bitwise_form` for others.
IterationSpace iteration_space(const Dims& extents, std::span<const Dims> strides,
                               std::span<const OperandStorage> storage);

/// The same form for sub-byte operands that begin at any element.
NestForm bitwise_form(const NestForm& form, std::span<const OperandStorage> storage);

/// Splits a canonical function into nests, one for each group of values that share an iteration
/// space, and lowers each to lanes.
std::vector<Nest> plan_nests(const Function& function, const Target& target);

/// The nest in words: operands, access, chunk, unrolling.
std::string print(const Function& function, const Nest& nest, const NestForm& form,
                  const Target& target);

/// Results that one nest computes at the most; a function with more becomes several nests. It
/// bounds the stack that the code takes.
inline constexpr size_t most_outputs = 16;

/// Words of the argument block that a nest's code takes: one pointer for each operand, the extents
/// (innermost first), for each operand and axis the bytes to step (see pack_arguments), and for
/// each operand the address that bitwise access counts from. Where access is bitwise, `pointer`
/// is the number of the first element from there, and steps count elements.
class ArgumentLayout {
 public:
  ArgumentLayout(size_t operands, int rank) : operands_(operands), rank_(rank) {}
  size_t pointer(size_t operand) const { return operand; }
  size_t extent(int axis) const { return operands_ + static_cast<size_t>(axis); }
  size_t step(size_t operand, int axis) const {
    return operands_ + static_cast<size_t>(rank_) * (1 + operand) + static_cast<size_t>(axis);
  }
  size_t base(size_t operand) const {
    return operands_ + static_cast<size_t>(rank_) * (1 + operands_) + operand;
  }
  size_t words() const { return base(operands_); }

 private:
  size_t operands_;
  int rank_;
};

/// Words of the largest argument block: as many inputs as outputs, all axes.
inline constexpr size_t most_argument_words = 4 * most_outputs + max_rank * (1 + 2 * most_outputs);

/// Everything of the argument block but the pointers. Axis 0 steps by its stride; an outer axis
/// steps from the end of the axis below it to its own next element.
std::vector<int64_t> pack_arguments(const Nest& nest, const IterationSpace& space);

}  // namespace castor::jit
