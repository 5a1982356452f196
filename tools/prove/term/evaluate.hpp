// SPDX-License-Identifier: Apache-2.0
// Terms run on given inputs: built once, evaluated often.
#pragma once

#include <span>
#include <vector>

#include "tools/prove/term/term.hpp"

namespace castor::prove {

/// Some terms as a list of operations. Holds no more than a reference to their Terms.
class Evaluator {
 public:
  explicit Evaluator(std::span<const Term> roots);

  /// The values of the roots. inputs[i] is the value of input number i of the Terms; inputs that no
  /// root uses may be left out at the end. The span is valid until the next call.
  std::span<const Bits> operator()(std::span<const Bits> inputs);

 private:
  struct Step {
    Node node;
    std::array<uint32_t, max_operands> slots = {};
  };

  const Terms& terms_;
  std::vector<Step> steps_;
  std::vector<uint32_t> root_slots_;
  std::vector<Bits> slots_;
  std::vector<Bits> results_;
};

/// The value of one term, once.
Bits evaluate(const Term& term, std::span<const Bits> inputs);

/// What becomes of float nodes in a copy: they stay, or are written out (float_circuits.hpp).
enum class FloatNodes : uint8_t { stay, written_out };

/// The term with each input replaced by the term of its number; an empty Term keeps the input. The
/// replacements may belong to another Terms, into which the term is then copied whole.
Term substitute(const Term& term, std::span<const Term> inputs, Terms& into,
                FloatNodes floats = FloatNodes::stay);

/// The node's operation on other operands, which belong to `terms`, simplified as its builder does;
/// `from` has the node's table.
Term with_operands(const Node& node, std::span<const Term> operands, Terms& terms,
                   const Terms& from);

/// The term with nodes replaced by others of its Terms, which do not depend on them.
Term with_nodes_replaced(const Term& term,
                         const std::unordered_map<uint32_t, uint32_t>& replacements);

/// Nodes that the roots need, operands before their users.
std::vector<uint32_t> reachable_nodes(std::span<const Term> roots);

}  // namespace castor::prove
