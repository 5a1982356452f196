// SPDX-License-Identifier: Apache-2.0
// Terms as z3's expressions.
#pragma once

#include <z3++.h>

#include <unordered_map>

#include "tools/prove/solver/solver.hpp"
#include "tools/prove/term/term.hpp"

namespace castor::prove {

/// The expressions of terms of one Terms, in one context.
class Translation {
 public:
  Translation(z3::context& context, const Terms& terms, Arithmetic arithmetic)
      : context_(context), terms_(terms), arithmetic_(arithmetic) {}

  /// A bit-vector of the term's width.
  z3::expr operator()(const Term& term);
  /// The constant that stands for an input; made when a term first uses it.
  z3::expr input(uint64_t number, int width);

 private:
  z3::expr of_node(const Node& node);
  z3::expr operand(const Node& node, size_t index) const;
  z3::expr bits(int width, Bits value);
  z3::expr truth(const z3::expr& condition);
  z3::expr table(const Node& node);
  z3::expr of_float_node(const Node& node);
  z3::expr any_function(const Node& node);
  bool is_abstract(const Node& node) const;
  z3::expr float_operand(const Node& node, size_t index, FloatFormat format);
  z3::expr float_bits(const z3::expr& number, FloatFormat format);
  z3::expr to_integer(const Node& node, bool is_signed);
  z3::expr from_integer(const Node& node, bool is_signed);
  z3::expr mode(Rounding rounding);
  z3::expr number(Z3_ast ast);

  z3::context& context_;
  const Terms& terms_;
  const Arithmetic arithmetic_;
  std::unordered_map<uint32_t, z3::expr> expressions_;
};

}  // namespace castor::prove
