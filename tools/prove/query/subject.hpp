// SPDX-License-Identifier: Apache-2.0
// What is proved: one elementwise operation of the IR on operands of given types, for one tier.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/function.hpp"
#include "ir/types/convert_options.hpp"
#include "jit/plan/nest.hpp"
#include "tools/prove/spec/elementwise.hpp"
#include "tools/prove/term/term.hpp"

namespace castor::prove {

/// A conversion with canonical options.
struct Conversion {
  ElementType from;
  ElementType to;
  ConvertOptions options;
};

/// A function of one operation, and what it must compute.
struct Subject {
  std::string name;      ///< "f32 -> u8 {overflow = wrap}", "add i8"
  FunctionPtr function;  ///< has one result; its parameters are the operands
  /// The result's bits by the specification, of the operands' bits.
  std::function<Term(std::span<const Term>)> specification;
  /// What a test does to the lane program before it is executed: plants a fault.
  std::function<void(jit::LaneProgram&)> tamper{};
};

Result<Subject> subject_of(const Conversion& conversion);
Result<Subject> subject_of(const ElementwiseOp& op);

/// A subject's lane program for a tier, and the question whether it is wrong.
struct Query {
  jit::Nest nest;
  /// Width 1: for these inputs, the operands by parameter, a precondition of the lane program does
  /// not hold, or the element that it stores is not the specification's.
  Term is_wrong;
  std::vector<ElementType> operands;  ///< types of the inputs
  ElementType result;
  Term computed;  ///< the element that is stored
  Term specified;
};

/// Fails (unsupported) where the function becomes several nests, or its program has no meaning.
Result<Query> query_of(const Subject& subject, jit::Tier tier, Terms& terms);

}  // namespace castor::prove
