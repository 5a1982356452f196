// SPDX-License-Identifier: Apache-2.0
// Nests that fold: accumulators in memory, and partial results of a row in registers.
#include <fmt/format.h>

#include "ir/shape/reduction.hpp"
#include "jit/emit/chunk_plan.hpp"
#include "jit/emit/fold_ops.hpp"
#include "tools/prove/kernel/folds.hpp"
#include "tools/prove/kernel/nest_proof.hpp"

namespace castor::prove {

namespace {

Error wrong_fold(std::string_view what, const NestRun& run) {
  return {ErrorCode::internal, fmt::format("{} of [{}] is not the fold of its elements", what,
                                           fmt::join(run.extents(), ", "))};
}

}  // namespace

bool NestProver::folds_rows() const {
  return code_.nest.program.folds() && code_.form.access.back() == jit::Access::uniform;
}

/// What the nest's program makes of the elements at an index.
Result<Term> NestProver::lane_at(NestRun& run, std::span<const int64_t> index, size_t sink) {
  SourceElements elements;
  for (size_t k = 0; k < code_.nest.inputs.size(); ++k) {
    const NestTensor& tensor = run.tensors()[k];
    elements.push_back({tensor.elements[static_cast<size_t>(tensor.number_of(index))]});
  }
  auto made = execute(code_.nest.program, elements, run.machine().domain().terms());
  if (!made) return made.error();
  return made->elements[sink];
}

/// The partial results of each sink, lane by lane, as RowAccumulators has them in registers.
NestProver::Partials NestProver::partials_in(NestRun& run) const {
  const jit::ChunkPlan plan = jit::plan_chunks(code_.nest, code_.form, code_.target);
  Partials partials;
  for (size_t sink = 0; sink < code_.nest.outputs.size(); ++sink) {
    const int bytes = bits_of(code_.nest.program.sinks[sink].element) / 8;
    std::vector<Term>& own = partials.emplace_back();
    for (int v = 0; v < plan.fold_vectors; ++v) {
      const int number = static_cast<int>(sink) * plan.fold_vectors + v;
      const auto& vector = run.machine().vector(code_.target.vector_registers() - 1 - number);
      for (int lane = 0; lane < plan.lanes; ++lane) {
        own.push_back(Symbols::join(vector.data() + lane * bytes, bytes));
      }
    }
  }
  return partials;
}

/// Those with which a row begins: lanes that change nothing.
NestProver::Partials NestProver::neutral_partials(NestRun& run) const {
  const jit::ChunkPlan plan = jit::plan_chunks(code_.nest, code_.form, code_.target);
  Partials partials;
  for (size_t sink = 0; sink < code_.nest.outputs.size(); ++sink) {
    const jit::MemoryOperand& accumulator = code_.nest.program.sinks[sink];
    const int bits = bits_of(accumulator.element);
    const Term neutral =
        run.machine().domain().terms().constant(bits, jit::fold_identity(accumulator.fold, bits));
    partials.emplace_back(static_cast<size_t>(plan.fold_vectors * plan.lanes), neutral);
  }
  return partials;
}

/// Folds the elements from `first` on, before `end`, of a row into partial results: element i into
/// number i, modulo their count.
castor::Status NestProver::fold_elements(NestRun& run, std::vector<int64_t> index, int64_t first,
                                         int64_t end, size_t sink, std::vector<Term>& partials) {
  Symbols& symbols = run.machine().domain();
  const jit::Fold fold = code_.nest.program.sinks[sink].fold;
  const auto count = static_cast<int64_t>(partials.size());
  for (int64_t i = first; i < end; ++i) {
    index[0] = i;
    const auto lane = lane_at(run, index, sink);
    if (!lane) return lane.error();
    Term& partial = partials[static_cast<size_t>((i - first) % count)];
    partial = folded(symbols, fold, partial, *lane);
    ++proof_.elements;
  }
  return {};
}

/// One result of the partial ones: the upper half is folded into the lower one, until one is left.
/// AVX2 folds lanes that change nothing where the last chunk has no elements.
Term NestProver::fold_partials(NestRun& run, size_t sink, int64_t end, std::vector<Term> partials) {
  Symbols& symbols = run.machine().domain();
  const jit::MemoryOperand& accumulator = code_.nest.program.sinks[sink];
  const auto fold_into = [&](size_t to, const Term& lane) {
    partials[to] = folded(symbols, accumulator.fold, partials[to], lane);
  };
  const jit::ChunkPlan plan = jit::plan_chunks(code_.nest, code_.form, code_.target);
  if (!code_.target.has_avx512() && accumulator.fold == jit::Fold::float_add) {
    const Term zero = symbols.terms().constant(partials[0].width(), 0);
    for (int64_t i = end; i % plan.lanes != 0; ++i) {
      fold_into(static_cast<size_t>(i) % partials.size(), zero);
    }
  }
  for (size_t half = partials.size() / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) fold_into(i, partials[i + half]);
  }
  return partials[0];
}

/// At the return: that each accumulator is the fold of what it was, of the partial results, and of
/// its row's elements from `first` on.
castor::Status NestProver::compare_rows(NestRun& run, const Partials& partials, int64_t first) {
  ++proof_.runs;
  const int64_t end = run.extents()[0];
  std::vector<int64_t> index(run.extents().size(), 0);
  do {
    for (size_t sink = 0; sink < code_.nest.outputs.size(); ++sink) {
      std::vector<Term> own = partials[sink];
      castor::Status status = fold_elements(run, index, first, end, sink, own);
      if (!status) return status;
      const size_t k = code_.nest.inputs.size() + sink;
      const jit::Fold fold = code_.nest.program.sinks[sink].fold;
      index[0] = 0;
      const int64_t number = run.tensors()[k].number_of(index);
      const Term expected = folded(run.machine().domain(), fold,
                                   fold_partials(run, sink, end - first, std::move(own)),
                                   run.element_before(k, number));
      const Term stored = run.stored_element(k, number);
      if (!stored || fold_key(fold, stored) != fold_key(fold, expected)) {
        return wrong_fold(fmt::format("accumulator {}", sink), run);
      }
      ++proof_.same;
    }
    index[0] = run.extents()[0] - 1;
  } while (advance(index, run.extents()));
  return {};
}

/// At a loop's begin, a round later: that each partial result has its elements of the round.
castor::Status NestProver::compare_partials(NestRun& run, const Partials& partials, int64_t first,
                                            int64_t end) {
  ++proof_.runs;
  const Partials now = partials_in(run);
  for (size_t sink = 0; sink < code_.nest.outputs.size(); ++sink) {
    std::vector<Term> own = partials[sink];
    castor::Status status =
        fold_elements(run, std::vector<int64_t>(run.extents().size(), 0), first, end, sink, own);
    if (!status) return status;
    const jit::Fold fold = code_.nest.program.sinks[sink].fold;
    for (size_t i = 0; i < own.size(); ++i) {
      if (fold_key(fold, now[sink][i]) == fold_key(fold, own[i])) continue;
      return wrong_fold(fmt::format("partial result {} of accumulator {}", i, sink), run);
    }
  }
  return {};
}

/// An accumulator for each element along the innermost axis.
castor::Status NestProver::compare_column(NestRun& run, std::span<const int64_t> index) {
  for (size_t sink = 0; sink < code_.nest.outputs.size(); ++sink) {
    const size_t k = code_.nest.inputs.size() + sink;
    const jit::Fold fold = code_.nest.program.sinks[sink].fold;
    const auto lane = lane_at(run, index, sink);
    if (!lane) return lane.error();
    const int64_t number = run.tensors()[k].number_of(index);
    const Term stored = run.stored_element(k, number);
    const Term expected =
        folded(run.machine().domain(), fold, run.element_before(k, number), *lane);
    ++proof_.elements;
    if (!stored || fold_key(fold, stored) != fold_key(fold, expected)) {
      return wrong_fold(fmt::format("accumulator {} at {}", sink, index[0]), run);
    }
    ++proof_.same;
  }
  return {};
}

}  // namespace castor::prove
