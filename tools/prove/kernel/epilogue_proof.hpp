// SPDX-License-Identifier: Apache-2.0
// What kernels of convolutions store: sums of products as they are, or the epilogue's lane program
// applied to them.
#pragma once

#include <optional>

#include "tools/prove/kernel/conv_proof.hpp"
#include "tools/prove/kernel/kernel_call.hpp"
#include "tools/prove/kernel/own_element.hpp"
#include "tools/prove/kernel/sink_decisions.hpp"
#include "tools/prove/lane/execute.hpp"
#include "tools/prove/term/polynomial.hpp"

namespace castor::prove {

/// The results of a call: `rows` of consecutive elements, which are channels of pixels or pixels of
/// channels.
struct ResultShape {
  int64_t rows = 1;
  int64_t row = 1;
  /// Elements of what all rows share, where that may be read as whole vectors; 0: as many as a row.
  int64_t shared_row = 0;
};

/// The operands of an epilogue in a call, and what its sinks must hold.
class EpilogueCall {
 public:
  /// Adds the operands to the call, which `shape` is of.
  EpilogueCall(KernelCall& call, const jit::TileEpilogue& epilogue, const ResultShape& shape);

  /// The table of operands, for the arguments.
  uint64_t table() const { return table_; }
  /// What the lane program takes beside the accumulators.
  Term input_at(size_t operand, int64_t row, int64_t element) const;
  /// Where a sink's element is.
  uint64_t address_of(size_t operand, int64_t row, int64_t element) const;

 private:
  struct Layout {
    CallOperand inputs{};
    int64_t row_elements = 0;  ///< from one row to the next
    int64_t element_step = 1;
    int bytes = 4;
  };
  int64_t number_of(const Layout& layout, int64_t row, int64_t element) const {
    return row * layout.row_elements + element * layout.element_step;
  }

  std::vector<Layout> layouts_;  ///< by operand
  uint64_t table_ = 0;
};

/// Compares what kernels store with sums, and with the epilogue of sums, whose terms are decided
/// once each.
class ResultProver {
 public:
  ResultProver(const jit::TileEpilogue* epilogue, Decide decide)
      : epilogue_(epilogue), decisions_(std::move(decide)) {}

  /// Fails (unsupported) where kernels fold results: what they leave of these is not compared.
  Status check_provable() const;
  const jit::TileEpilogue* epilogue() const { return epilogue_; }
  ConvProof& proof() { return proof_; }

  /// That the 32 bits stored at an address are the sum.
  Status compare_sum(KernelCall& call, uint64_t address, const Term& sum, std::string_view where);
  /// That all sinks hold the epilogue of a row's element's sum.
  Status compare_results(KernelCall& call, const EpilogueCall& operands, int64_t row,
                         int64_t element, const Term& sum);

 private:
  Status compute_expected();
  Term accumulator_in(const Term& stored, const Term& sum) const;
  Term renamed(const Term& stored, const Term& accumulator, const EpilogueCall& operands,
               int64_t row, int64_t element);

  const jit::TileEpilogue* epilogue_;
  SinkDecisions decisions_;
  Terms terms_;               ///< for one element, the same for all
  std::vector<Term> inputs_;  ///< by operand of the program
  OtherInputs others_;
  std::optional<LaneResult> expected_;
  ConvProof proof_;
};

}  // namespace castor::prove
