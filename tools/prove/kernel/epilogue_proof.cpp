// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/kernel/epilogue_proof.hpp"

#include <set>

#include <fmt/format.h>

#include <algorithm>

#include "tools/prove/term/evaluate.hpp"

namespace castor::prove {

using jit::TileEpilogue;
using jit::TileOperand;

EpilogueCall::EpilogueCall(KernelCall& call, const TileEpilogue& epilogue,
                           const ResultShape& shape) {
  std::vector<jit::EpilogueOperand> table;
  for (size_t k = 0; k < epilogue.operands.size(); ++k) {
    const TileOperand& of = epilogue.operands[k];
    Layout layout{.bytes = bits_of(epilogue.element(k)) / 8};
    layout.element_step = of.repeats ? 0 : 1;
    const int64_t elements = of.repeats ? 1 : shape.row;
    layout.row_elements = of.same_in_rows ? 0 : elements;
    const bool is_shared = of.same_in_rows && !of.repeats && shape.shared_row != 0;
    const int64_t count = is_shared         ? shape.shared_row
                          : of.same_in_rows ? elements
                                            : shape.rows * elements;
    const std::string name = fmt::format("operand {}", k);
    if (k == epilogue.source) {  // the accumulators, which no memory has
      table.emplace_back();
    } else if (k < epilogue.inputs()) {
      layout.inputs = call.add_inputs(name, count, 8 * layout.bytes);
    } else {
      layout.inputs.address = call.add_output(name, count * layout.bytes);
    }
    if (k != epilogue.source) {
      table.push_back(
          {static_cast<int64_t>(layout.inputs.address), layout.row_elements * layout.bytes});
    }
    layouts_.push_back(std::move(layout));
  }
  table_ = call.add_numbers<jit::EpilogueOperand>("the operands", table);
}

Term EpilogueCall::input_at(size_t operand, int64_t row, int64_t element) const {
  const Layout& layout = layouts_[operand];
  return layout.inputs.elements[static_cast<size_t>(number_of(layout, row, element))];
}

uint64_t EpilogueCall::address_of(size_t operand, int64_t row, int64_t element) const {
  const Layout& layout = layouts_[operand];
  return layout.inputs.address +
         static_cast<uint64_t>(number_of(layout, row, element) * layout.bytes);
}

// ---- comparing

Status ResultProver::check_provable() const {
  if (epilogue_ == nullptr || epilogue_->folds() == 0) return {};
  return Error(ErrorCode::unsupported, "kernels that fold their results are not proved");
}

Status ResultProver::compare_sum(KernelCall& call, uint64_t address, const Term& sum,
                                 std::string_view where) {
  const Term found = call.stored(address, 32);
  if (!found) return Error(ErrorCode::internal, fmt::format("{} is not stored", where));
  ++proof_.elements;
  if (found.same_as(sum) || polynomial_of(found) == polynomial_of(sum)) return {};
  return Error(ErrorCode::internal, fmt::format("{} is not the sum of products", where));
}

Status ResultProver::compute_expected() {
  for (size_t k = 0; k < epilogue_->inputs(); ++k) {
    const bool is_source = k == epilogue_->source;
    inputs_.push_back(terms_.input(is_source ? "sum" : fmt::format("operand {}", k),
                                   is_source ? 32 : bits_of(epilogue_->element(k))));
  }
  auto expected = execute(epilogue_->program, inputs_, terms_);
  if (!expected) return expected.error();
  expected_ = std::move(*expected);
  return {};
}

namespace {

bool may_be_sum(const Term& term) {
  return term.width() == 32 && (term.op() == TermOp::add || term.op() == TermOp::mul);
}

}  // namespace

/// The node of a stored element that is the sum; no term where none is.
Term ResultProver::accumulator_in(const Term& stored, const Term& sum) const {
  const Polynomial polynomial = polynomial_of(sum);
  std::set<uint32_t> seen;
  std::vector<Term> left = {stored};
  while (!left.empty()) {
    const Term term = left.back();
    left.pop_back();
    if (!seen.insert(term.id()).second) continue;
    if (term.same_as(sum) || (may_be_sum(term) && polynomial_of(term) == polynomial)) return term;
    for (int i = 0; i < term.node().operand_count; ++i) left.push_back(term.operand(i));
  }
  return {};
}

/// A stored element as a term of the sum and of the operands' elements that go with it; what else
/// it depends on becomes other inputs.
Term ResultProver::renamed(const Term& stored, const Term& accumulator,
                           const EpilogueCall& operands, int64_t row, int64_t element) {
  Terms& from = stored.terms();
  const Term sum = from.input("sum", 32);
  const Term of_sum = with_nodes_replaced(stored, {{accumulator.id(), sum.id()}});
  std::vector<Term> replacements(from.input_count());
  replacements[sum.node().detail] = inputs_[epilogue_->source];
  for (size_t k = 0; k < inputs_.size(); ++k) {
    if (k == epilogue_->source) continue;
    replacements[operands.input_at(k, row, element).node().detail] = inputs_[k];
  }
  return of_own_elements(of_sum, replacements, terms_, others_, Neighbours::kept);
}

Status ResultProver::compare_results(KernelCall& call, const EpilogueCall& operands, int64_t row,
                                     int64_t element, const Term& sum) {
  if (!expected_) {
    if (Status status = compute_expected(); !status) return status;
  }
  for (size_t sink = 0; sink < epilogue_->program.sinks.size(); ++sink) {
    const size_t k = epilogue_->inputs() + sink;
    const std::string where = fmt::format("element {} of row {} of operand {}", element, row, k);
    const Term stored = call.stored(operands.address_of(k, row, element),
                                    bits_of(epilogue_->program.sinks[sink].element));
    if (!stored) return Error(ErrorCode::internal, where + " is not stored");
    ++proof_.elements;
    const Term accumulator = accumulator_in(stored, sum);
    if (!accumulator) return Error(ErrorCode::internal, where + " does not depend on its sum");
    const Term found = renamed(stored, accumulator, operands, row, element);
    if (found.same_as(expected_->elements[sink])) continue;
    const Decision decision = decisions_(*expected_, sink, found);
    proof_.queries = decisions_.queries();
    if (decision == Decision::unknown) ++proof_.undecided;
    if (decision == Decision::possible) {
      return Error(ErrorCode::internal, fmt::format("{} is not the epilogue of its sum", where));
    }
  }
  return {};
}

}  // namespace castor::prove
