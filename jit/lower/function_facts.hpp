// SPDX-License-Identifier: Apache-2.0
// What lowering knows of a function: of each value what gives it, where it is stored, and what its
// elements can be.
#pragma once

#include <optional>
#include <vector>

#include "ir/function.hpp"
#include "jit/lower/magnitudes.hpp"
#include "jit/lower/rounded_values.hpp"
#include "jit/lower/significands.hpp"
#include "jit/lower/signs.hpp"
#include "jit/plan/nest.hpp"

namespace castor::jit {

/// What is known of a function's values before any nest is lowered.
struct FunctionFacts {
  explicit FunctionFacts(const Function& function);

  const Function& function;
  std::vector<const Operation*> defining;  ///< by value; null for parameters
  std::vector<ValueId> roots;              ///< by value; see reshape_roots
  std::vector<ValueId> owners;             ///< by value; see accumulator_owners
  std::vector<ElementType> carried;        ///< by value; see ir/types/excess_precision.hpp
  bool excess_precision;                   ///< whether any carried type is not the value's own
  std::vector<bool> in_memory;             ///< by value: nests read it from memory
  /// By value: index of the result in which a nest leaves it for later ones; NestOutput::scratch of
  /// all others.
  std::vector<uint32_t> left_in;
  RoundedValues rounded;
  Significands significands;

  /// Whether the output is a result in which its value is left for later nests, or scratch.
  bool is_left(const NestOutput& output) const { return output.result == left_in[output.value]; }
  /// The type of a value's elements in memory: the one that they are handed on in where elementwise
  /// ops read them there, its own where only a reshape does.
  ElementType stored_element(ValueId value) const;
  /// The operation that gives a value, where it is of that op and the nest computes it; else null.
  const Operation* computed_by(ValueId value, OpKind op) const;
  /// The only element of a constant with one, whose value code may contain.
  std::optional<uint64_t> immediate(ValueId value) const;
  /// What the operation that gives a value says of its elements' sign bits.
  Signs signs(ValueId value) const;
  /// An upper bound of the magnitude of a value's elements; see Magnitudes. Not for several
  /// threads.
  double magnitude(ValueId value) const;

 private:
  mutable std::optional<Magnitudes> magnitudes_;  ///< made when they are asked for
};

}  // namespace castor::jit
