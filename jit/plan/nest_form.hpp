// SPDX-License-Identifier: Apache-2.0
// The form of an iteration space: loops and access patterns, as far as code depends on them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ir/shape/shape.hpp"
#include "jit/kernel/spec.hpp"
#include "jit/target.hpp"

namespace castor::jit {

/// Access pattern of an operand along the innermost axis.
enum class Access : uint8_t {
  contiguous,  ///< consecutive elements; sub-byte rows begin at a byte and end at one or at the
               ///< end
  strided,     ///< whole bytes a constant distance apart, given at run time
  bitwise,     ///< sub-byte elements from any bit on, any distance apart; unpacked first. Where an
               ///< operand's access is bitwise, no other sub-byte operand's is contiguous
  uniform,     ///< one element for the whole axis
  periodic,    ///< the axis is many periods, and each repeats the same elements; code reads them
               ///< from a copy of at least one period and one iteration (sub-byte: as bytes)
  repeated,    ///< one element for each period; these are consecutive
  table,       ///< one table for the whole axis, whose elements are read in any order
  tables,      ///< a table for each element of the axis; these are dense and consecutive
  column,  ///< consecutive elements, the same along the next axis, whose loop is then within that
           ///< over the innermost one (jit/plan/columns.hpp)
};
std::string_view name_of(Access access);

/// What an operand is: its elements, and whether the nest writes it.
struct OperandStorage {
  ElementType element = ElementType::f32;
  bool is_output = false;
  bool is_table = false;
};

/// How whole vectors are stored.
enum class Stores : uint8_t {
  cached,
  streaming,  ///< past the caches: for outputs that the caches cannot hold
};

/// Whether streaming code stores elements of that type past the caches: sub-byte ones only where a
/// vector's worth of them fills a vector register again.
bool has_streaming_stores(const Target& target, ElementType element);

/// Streaming code peels elements until its outputs are at a multiple of this many bytes; where it
/// does whole blocks, it stores rows that begin elsewhere through the caches.
inline constexpr int64_t streaming_alignment = 64;

/// How far before their use main loops prefetch cache lines of contiguous operands of whole bytes
/// to L1, and those of outputs for writing, in bytes; 0: they do not.
struct Prefetch {
  int input_bytes = 0;
  int output_bytes = 0;

  static constexpr auto fields(const auto& list) {
    return list(field("input_bytes", &Prefetch::input_bytes),
                field("output_bytes", &Prefetch::output_bytes));
  }
  friend bool operator==(const Prefetch&, const Prefetch&) = default;
};

/// The form of an iteration space as far as code depends on it.
struct NestForm {
  int rank = 1;                ///< loops left after merging, at least 1
  std::vector<Access> access;  ///< of each operand, inputs first
  /// Streaming code wants no output in place, a main loop, and outputs that are, in every row, a
  /// whole and equal number of elements (groups, with sub-byte operands) away from a multiple of
  /// `streaming_alignment`.
  Stores stores = Stores::cached;
  /// Elements of a period where the code contains that number, as it does for short periods with
  /// repeated operands; else 0.
  int baked_period = 0;
  /// Elements of a short row that accumulators fold, where the code contains that number: then the
  /// rows, and their elements of the accumulators, follow one another, and inputs are contiguous or
  /// uniform over all of them; else 0.
  int folded_row = 0;
  Prefetch prefetch = {};  ///< where tensors do not fit in L1 (jit/plan/prefetch.hpp)

  static constexpr auto fields(const auto& list) {
    return list(field("rank", &NestForm::rank), field("access", &NestForm::access),
                field("stores", &NestForm::stores), field("baked_period", &NestForm::baked_period),
                field("folded_row", &NestForm::folded_row), field("prefetch", &NestForm::prefetch));
  }
  static NestForm dense(size_t operands) {
    return {1, std::vector<Access>(operands, Access::contiguous)};
  }
  bool has(Access wanted) const;
  /// Chunks of a baked period of whole chunks; else 0.
  int period_chunks(int lanes) const {
    return baked_period % lanes == 0 ? baked_period / lanes : 0;
  }
  /// Whether the innermost axis is made of periods.
  bool has_periods() const { return has(Access::periodic) || has(Access::repeated); }
};

/// An iteration space with its extents. Axes are merged where one continues the other in every
/// operand, unless one was split (jit/plan/columns.hpp), and axes of extent 1 are gone. The others
/// are ordered so that the innermost has the smallest strides, of outputs first, then of inputs.
struct IterationSpace {
  NestForm form;
  Dims extents;                                        ///< innermost first
  std::vector<std::array<int64_t, max_rank>> strides;  ///< by operand, then axis, in elements
  /// Where the innermost axis is made of periods: the elements of a period, and the axes that it
  /// had before they were merged, innermost first; else 0 and empty.
  int64_t period = 0;
  Dims period_extents;
  std::vector<std::array<int64_t, max_rank>> period_strides;
};

/// `strides[k]` are operand k's element strides over `extents`, outermost axis first, 0 where it
/// repeats an element; `storage[k]` what it holds. No extent is zero. Sub-byte operands count as
/// contiguous only if they begin at element 0 of their bytes; see `bitwise_form` for others.
IterationSpace iteration_space(const Dims& extents, std::span<const Dims> strides,
                               std::span<const OperandStorage> storage);

/// The access pattern of operand `k` along the innermost axis of a space that has its strides.
Access access_of(const IterationSpace& space, size_t k, const OperandStorage& storage);

/// The longest period that `merge_periods` makes, in elements.
inline constexpr int64_t max_period = 512;

/// Merges a short innermost axis (or a few) with the next into one of periods, so that vectors
/// span rows: where outputs and some inputs are contiguous over both, and every other input is
/// periodic or repeated. `lanes` of a chunk decide what is short. Does nothing where that is
/// impossible or would not pay.
void merge_periods(IterationSpace& space, std::span<const OperandStorage> storage, int lanes,
                   const Target& target);

/// The form, changed for sub-byte operands that begin at any element, and without a baked period if
/// there are any.
NestForm bitwise_form(const NestForm& form, std::span<const OperandStorage> storage);

/// Words of the argument block that a nest's code takes: one pointer for each operand, the extents
/// (innermost first), for each operand and axis the bytes to step (see pack_arguments), for each
/// operand the address that access by element numbers counts from, and the words on periods. Where
/// access is bitwise, or uniform of sub-byte elements, `pointer` is the number of the first element
/// from there, and steps count elements.
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
  /// Elements of a period.
  size_t period() const { return base(operands_); }
  /// Address of bytes: the number of the period that the n-th element from a period's beginning is
  /// in.
  size_t period_numbers() const { return period() + 1; }
  size_t words() const { return period() + 2; }

 private:
  size_t operands_;
  int rank_;
};

/// Everything of the argument block but the pointers. Axis 0 steps by its stride; an outer axis
/// steps from the end of the axis below it to its own next element.
std::vector<int64_t> pack_arguments(std::span<const OperandStorage> storage,
                                    const IterationSpace& space);

/// Whether `access` of such elements goes by element numbers rather than addresses.
constexpr bool counts_elements(Access access, ElementType element) {
  return access == Access::bitwise || (access == Access::uniform && is_sub_byte(element));
}

}  // namespace castor::jit
