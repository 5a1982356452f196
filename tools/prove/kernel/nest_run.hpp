// SPDX-License-Identifier: Apache-2.0
// The code of a nest run symbolically: tensors whose elements are inputs, laid out in the memory of
// a machine, and the elements that it stores, compared with the nest's lane program.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jit/code.hpp"
#include "jit/plan/nest.hpp"
#include "jit/target.hpp"
#include "tools/machine/machine.hpp"
#include "tools/prove/kernel/paths.hpp"

namespace castor::prove {

/// The code of one nest in one form for one target; refers to all, which must outlive it.
struct NestSubject {
  const jit::Nest& nest;
  const jit::NestForm& form;
  const jit::Target& target;
  const jit::MachineCode& code;
  /// Elements of a period of the innermost axis, where the form has periods.
  int64_t period = 0;
  /// The innermost stride, in elements, of strided operands and of those that begin inside a byte.
  int64_t stride = 2;
  /// The number of the first element of operands that begin inside a byte.
  int64_t first = 3;
  /// By input, of values in scratch that an earlier nest makes of one source: its program; null, or
  /// left out, where elements may be anything.
  std::vector<const jit::LaneProgram*> makers{};

  const jit::LaneProgram* maker(size_t input) const {
    return input < makers.size() ? makers[input] : nullptr;
  }
};

/// What a nest reads where inputs of the terms are those bits: the bits themselves, or what an
/// earlier nest stores of them.
Result<Term> element_of(const NestSubject& code, size_t input, const Term& bits);
/// Bits of such an input.
int input_bits(const NestSubject& code, size_t input);

/// Every index of a space, innermost first; false when there is no further one.
bool advance(std::vector<int64_t>& index, const std::vector<int64_t>& extents);

/// Whether the layout below knows the form: no short rows that are folded in blocks.
castor::Status check_form(const NestSubject& code);

/// One operand: elements from `address` on, as tensors store them; of a periodic one those of its
/// copy, which has them again and again.
struct NestTensor {
  ElementType type = ElementType::f32;
  bool is_output = false;
  jit::Access access = jit::Access::contiguous;
  int64_t period = 1;              ///< elements after which it begins again, if it does
  int64_t entries = 1;             ///< consecutive elements that belong to one index: a table's
  std::vector<int64_t> strides{};  ///< in elements, by axis of the space, innermost first
  int64_t first = 0;               ///< the number of the element at index 0
  int64_t count = 0;               ///< elements from number 0 to the last one
  uint64_t address = 0;
  std::vector<Term> inputs{};    ///< one for each element; none where it is an output
  std::vector<Term> elements{};  ///< the inputs, or what their maker stores of them

  /// The number of the element at an index, or of its table's first entry.
  int64_t number_of(std::span<const int64_t> index) const;
  /// How far the operand moves along that many steps of the innermost axis.
  int64_t bits_along(int64_t steps) const;
  /// Bits from an element to the next one: copies of periods have sub-byte ones as bytes.
  int bits_each() const;
  int64_t bytes() const;
};

using Symbols = machine::Symbols;
using RepeatedElements = std::map<size_t, std::vector<Term>>;

/// A run of a nest's code on tensors of given extents.
class NestRun {
 public:
  using Machine = machine::Machine<Symbols>;

  /// `extents` are those of the form's loops, innermost first. `repeated`, by operand, are the
  /// elements of those that repeat one along the innermost axis; where it is empty, it is filled,
  /// so that several runs have the same.
  static Result<NestRun> create(const NestSubject& code, std::vector<int64_t> extents,
                                Symbols& symbols, RepeatedElements& repeated);

  Machine& machine() { return machine_; }
  /// Runs all paths to the return, or to the instruction.
  castor::Status run() { return run_all_paths(machine_, nullptr); }
  castor::Status run_to(const Stop& stop) { return run_all_paths(machine_, &stop); }
  const std::vector<NestTensor>& tensors() const { return tensors_; }
  const std::vector<int64_t>& extents() const { return extents_; }
  /// The tensor's region of memory.
  machine::Region<Symbols>& region_of(size_t operand);
  /// The bits of an element that the code has stored; no term where a byte of it was not written.
  Term stored_element(size_t operand, int64_t number);
  /// The bits of an output's element before the code runs; of at least a byte.
  Term element_before(size_t operand, int64_t number) const;
  /// Whether some bit that is none of an output's elements, or is one of an iteration before, has
  /// changed, of outputs whose elements are apart or may begin inside a byte: a truth.
  Term gaps_change();

  /// At a loop's begin in iteration 1: becomes its iteration t of any number. `first` is there in
  /// iteration 0 of a row that is one iteration shorter, `next` in iteration 2 of one that is one
  /// longer, so that the same number of elements is left. Numbers that differ grow by their
  /// difference in each iteration; all else that differs is unknown. Tensors are what is left of
  /// them from the iteration's first element on, and move with it. `elements` are those of one
  /// iteration. Fails where an iteration does not move by whole bytes.
  castor::Status make_any_iteration(NestRun& first, NestRun& next, int64_t elements);
  /// Whether `other` is in the state that this one has one iteration later. Fails (internal) naming
  /// what is not.
  castor::Status check_next_iteration(NestRun& other);
  /// The innermost index at a loop's begin.
  int64_t index() const;

  static constexpr uint64_t arguments = 0x2000'0000;
  static constexpr uint64_t period_numbers = 0x3000'0000;

 private:
  NestRun(Machine machine, std::vector<int64_t> extents)
      : machine_(std::move(machine)), extents_(std::move(extents)) {}
  castor::Status lay_out(const NestSubject& code, RepeatedElements& repeated);
  castor::Status make_elements(const NestSubject& code, size_t operand, RepeatedElements& repeated);
  void fill(size_t operand);
  void fill_output(size_t operand);
  enum class BitUse : uint8_t { gap, element, earlier_element };
  std::vector<BitUse> uses_of_bits(size_t operand);
  void fill_arguments(const NestSubject& code);
  void add_constants(std::string name, uint64_t address, std::span<const uint8_t> bytes);
  void generalise_registers(NestRun& first, NestRun& next);
  void generalise_memory(std::string_view region, NestRun& first, NestRun& next);
  castor::Status move_tensor(size_t operand, int64_t elements);
  castor::Status check_memory(std::string_view region, NestRun& other);

  Machine machine_;
  std::vector<int64_t> extents_;
  std::vector<NestTensor> tensors_;
  std::vector<int64_t> skipped_bytes_;                    ///< each tensor has before its region
  std::vector<std::vector<machine::SymbolByte>> before_;  ///< bytes of each output's region
  int64_t begun_ = 0;  ///< the index at which an iteration of any number begins
  /// The first byte of each output's region then, which an element of the iteration before may end
  /// in.
  std::vector<machine::SymbolByte> kept_;
};

}  // namespace castor::prove
