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
#include "tools/machine/machine.hpp"

namespace castor::prove {

/// The code of one nest in one form; refers to all, which must outlive it.
struct NestSubject {
  const jit::Nest& nest;
  const jit::NestForm& form;
  const jit::MachineCode& code;
};

/// Whether the layout below knows the form: no periods, tables, or accumulators.
castor::Status check_form(const NestSubject& code);

/// One operand: elements from `address` on, as tensors store them.
struct NestTensor {
  ElementType type = ElementType::f32;
  bool is_output = false;
  std::vector<int64_t> strides{};  ///< in elements, by axis of the space, innermost first
  int64_t first = 0;               ///< the number of the element at index 0
  int64_t count = 0;               ///< elements from number 0 to the last one
  uint64_t address = 0;
  std::vector<Term> elements{};  ///< inputs of the terms; empty of outputs

  int64_t number_of(std::span<const int64_t> index) const;
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
  const std::vector<NestTensor>& tensors() const { return tensors_; }
  const std::vector<int64_t>& extents() const { return extents_; }
  /// The tensor's region of memory.
  machine::Region<Symbols>& region_of(size_t operand);
  /// The bits of an element that the code has stored; no term where a byte of it was not written.
  Term stored_element(size_t operand, int64_t number);

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

 private:
  NestRun(Machine machine, std::vector<int64_t> extents)
      : machine_(std::move(machine)), extents_(std::move(extents)) {}
  void lay_out(const NestSubject& code, RepeatedElements& repeated);
  void make_elements(size_t operand, RepeatedElements& repeated);
  void fill(size_t operand);
  void fill_arguments(const NestSubject& code);
  void generalise_registers(NestRun& first, NestRun& next);
  void generalise_memory(std::string_view region, NestRun& first, NestRun& next);
  castor::Status move_tensor(size_t operand, int64_t elements);
  castor::Status check_memory(std::string_view region, NestRun& other);

  Machine machine_;
  std::vector<int64_t> extents_;
  std::vector<NestTensor> tensors_;
  std::vector<int64_t> skipped_bytes_;  ///< each tensor has before its region
};

}  // namespace castor::prove
