// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/kernel/nest_proof.hpp"

#include <fmt/format.h>

#include <chrono>
#include <numeric>

#include "jit/emit/chunk_plan.hpp"
#include "tools/prove/kernel/own_element.hpp"

namespace castor::prove {

namespace {

/// The innermost loop around another one, whose iterations are tiles; `inner` where there is none.
jit::CodeLoop loop_over_tiles(std::span<const jit::DecodedInstruction> program,
                              const jit::CodeLoop& inner) {
  jit::CodeLoop around = inner;
  for (const jit::DecodedInstruction& decoded : program) {
    const auto target = jit::branch_target(decoded);
    const bool is_around = target && *target < inner.begin && decoded.offset >= inner.end;
    const bool is_first = around.elements == inner.elements;
    if (!is_around || (!is_first && *target < around.begin)) continue;
    around.begin = *target;
    around.elements = jit::tile_elements;
    around.name = "loop over tiles";
  }
  return around;
}

}  // namespace

Result<std::optional<jit::CodeLoop>> loop_over_rows(const NestSubject& code) {
  std::optional<jit::CodeLoop> found;
  for (const jit::CodeLoop& loop : code.code.loops) {
    if (!found || loop.elements > found->elements) found = loop;
  }
  if (!found || !code.form.has(jit::Access::bitwise)) return found;
  const auto program = jit::decode(code.code);
  if (!program) return program.error();
  return std::optional(loop_over_tiles(*program, *found));
}

namespace {

std::string text_of(std::span<const int64_t> index) {
  return fmt::format("[{}]", fmt::join(index, ", "));
}

}  // namespace

castor::Status NestProver::compute_expected() {
  SourceElements elements;
  for (size_t k = 0; k < code_.nest.inputs.size(); ++k) {
    std::vector<Term>& own = inputs_.emplace_back();
    std::vector<Term>& read = elements.emplace_back();
    for (int i = 0; i < 1 << code_.nest.program.sources[k].index_bits; ++i) {
      own.push_back(terms_.input("x", input_bits(code_, k)));
      const auto element = element_of(code_, k, own.back());
      if (!element) return element.error();
      read.push_back(*element);
    }
  }
  auto expected = execute(code_.nest.program, elements, terms_);
  if (!expected) return expected.error();
  expected_ = std::move(*expected);
  return {};
}

/// A stored element as a term of the elements at its index; what else it depends on becomes other
/// inputs.
Term NestProver::renamed(const Term& found, NestRun& run, std::span<const int64_t> index,
                         Neighbours neighbours) {
  Terms& from = run.machine().domain().terms();
  std::vector<Term> replacements(from.input_count());
  for (size_t k = 0; k < inputs_.size(); ++k) {
    const NestTensor& tensor = run.tensors()[k];
    const auto first = static_cast<size_t>(tensor.number_of(index));
    for (size_t i = 0; i < inputs_[k].size(); ++i) {
      replacements[tensor.inputs[first + i].node().detail] = inputs_[k][i];
    }
  }
  return of_own_elements(found, replacements, terms_, others_, neighbours);
}

castor::Status NestProver::compare_element(NestRun& run, std::span<const int64_t> index) {
  if (code_.nest.program.folds()) return compare_column(run, index);
  for (size_t sink = 0; sink < code_.nest.outputs.size(); ++sink) {
    const size_t k = code_.nest.inputs.size() + sink;
    const Term stored = run.stored_element(k, run.tensors()[k].number_of(index));
    const std::string where =
        fmt::format("element {} of operand {} of {}", text_of(index), k, text_of(run.extents()));
    if (!stored) return Error(ErrorCode::internal, where + " is not stored");
    ++proof_.elements;
    const Term alone = renamed(stored, run, index, Neighbours::left_out);
    if (alone.same_as(expected_->elements[sink])) {
      ++proof_.same;
      continue;
    }
    if (decisions_(*expected_, sink, alone) == Decision::never) continue;
    const Term found = renamed(stored, run, index, Neighbours::kept);
    const Decision decision = decisions_(*expected_, sink, found);
    if (decision == Decision::possible) {
      return Error(ErrorCode::internal, where + " is not what the lane program computes");
    }
    if (decision == Decision::unknown) ++proof_.undecided;
  }
  return {};
}

/// Elements whose innermost index is from `first` on, before `end`.
castor::Status NestProver::compare(NestRun& run, int64_t first, int64_t end) {
  ++proof_.runs;
  for (const int64_t extent : run.extents()) {
    if (extent == 0) return {};
  }
  std::vector<int64_t> index(run.extents().size(), 0);
  do {
    if (index[0] < first || index[0] >= end) continue;
    if (castor::Status status = compare_element(run, index); !status) return status;
  } while (advance(index, run.extents()));
  return check_gaps(run);
}

castor::Status NestProver::check_gaps(NestRun& run) {
  const Term changes = run.gaps_change();
  const bool never = changes.is_constant(0) || decisions_.solver()(changes) == Decision::never;
  if (never) return {};
  return Error(ErrorCode::internal,
               fmt::format("bits between elements of {} are changed", text_of(run.extents())));
}

std::vector<int64_t> NestProver::extents_of(int64_t length) const {
  std::vector<int64_t> extents(static_cast<size_t>(code_.form.rank), 1);
  extents[0] = length;
  return extents;
}

castor::Status NestProver::prove_extents(const std::vector<int64_t>& extents) {
  Terms terms;
  Symbols symbols(terms);
  RepeatedElements repeated;
  auto run = NestRun::create(code_, extents, symbols, repeated);
  if (!run) return run.error();
  if (castor::Status status = run->run(); !status) return status;
  return folds_rows() ? compare_rows(*run, neutral_partials(*run), 0)
                      : compare(*run, 0, extents[0]);
}

/// A run that is at the loop's begin for that time: 1 is the first.
Result<NestRun> NestProver::run_to_arrival(Symbols& symbols, RepeatedElements& repeated,
                                           const jit::CodeLoop& loop, int64_t length, int arrival) {
  auto run = NestRun::create(code_, extents_of(length), symbols, repeated);
  if (!run) return run.error();
  if (castor::Status status = run->run_to({loop.begin, arrival}); !status) return status.error();
  if (run->machine().is_done()) {
    return Error(ErrorCode::unsupported, fmt::format("{} elements do not come to the {} {} times",
                                                     length, loop.name, arrival));
  }
  return std::move(*run);
}

/// Iterations after which one begins where in a period the first one did.
int64_t NestProver::iterations_of_round(const jit::CodeLoop& loop) const {
  if (!code_.form.has_periods()) return 1;
  return std::lcm(loop.elements, code_.period) / loop.elements;
}

/// The loop's begin in a round of any number, with `left` elements left.
Result<NestRun> NestProver::any_iteration(Symbols& symbols, RepeatedElements& repeated,
                                          const jit::CodeLoop& loop, int64_t left) {
  const auto iterations = static_cast<int>(iterations_of_round(loop));
  const int64_t round = iterations * loop.elements;
  auto first = run_to_arrival(symbols, repeated, loop, left, 1);
  if (!first) return first.error();
  auto any = run_to_arrival(symbols, repeated, loop, left + round, 1 + iterations);
  if (!any) return any.error();
  auto next = run_to_arrival(symbols, repeated, loop, left + 2 * round, 1 + 2 * iterations);
  if (!next) return next.error();
  castor::Status status = any->make_any_iteration(*first, *next, round);
  if (!status) return status.error();
  return any;
}

/// A round of any number with `left` elements left runs to the return; or, where these are a round
/// and one more iteration, to the next one.
castor::Status NestProver::prove_iterations(const jit::CodeLoop& loop, int64_t left) {
  Terms terms;
  Symbols symbols(terms);
  RepeatedElements repeated;
  auto any = any_iteration(symbols, repeated, loop, left);
  if (!any) return any.error();
  const int64_t index = any->index();
  const int64_t round = iterations_of_round(loop) * loop.elements;
  const Partials partials = folds_rows() ? partials_in(*any) : Partials();
  if (left < round + loop.elements) {
    if (castor::Status status = any->run(); !status) return status;
    if (folds_rows()) return compare_rows(*any, partials, index);
    // The iteration's own elements are the same whatever is left after it.
    const bool is_last = left + 1 == round + loop.elements;
    return compare(*any, is_last ? index : index + loop.elements, index + left);
  }
  castor::Status status = any->run_to({loop.begin, iterations_of_round(loop)});
  if (!status) return status;
  if (any->machine().is_done()) return Error(ErrorCode::internal, "the loop ends too early");
  auto fewer = any_iteration(symbols, repeated, loop, left - round);
  if (!fewer) return fewer.error();
  status = fewer->check_next_iteration(*any);
  if (!status) return status;
  return folds_rows() ? compare_partials(*any, partials, index, index + round)
                      : compare(*any, index, index + round);
}

/// Lengths from 1 on below one iteration are run: no nest is called for none. All others are rounds
/// of some number, with at least one iteration and less than a round and one more left.
castor::Status NestProver::prove_lengths(const jit::CodeLoop* loop) {
  const int64_t elements = loop == nullptr ? 64 : loop->elements;
  for (int64_t length = 1; length < elements; ++length) {
    if (!takes_(length)) continue;
    if (castor::Status status = prove_extents(extents_of(length)); !status) return status;
  }
  if (loop == nullptr) return {};
  if (folds_rows()) {  // from the row's begin, where partial results must be neutral
    castor::Status status = prove_extents(extents_of(2 * elements + 1));
    if (!status) return status;
  }
  const int64_t last = (iterations_of_round(*loop) + 1) * elements;
  for (int64_t left = elements; left <= last; ++left) {
    if (left + 1 < last && !takes_(left % elements)) continue;
    castor::Status status = prove_iterations(*loop, left);
    if (!status && status.error().code == ErrorCode::unsupported) {
      proof_.not_every_length_because = status.error().message;
      return prove_extents(extents_of(2 * elements));
    }
    if (!status) return status;
  }
  proof_.every_length = true;
  return {};
}

Result<NestProof> NestProver::prove() {
  const auto begin = std::chrono::steady_clock::now();
  if (castor::Status status = compute_expected(); !status) return status.error();
  const auto loop = loop_over_rows(code_);
  if (!loop) return loop.error();
  // Elements that begin inside a byte are copied in other ways where they are dense, and where all
  // begin at the same bit.
  const std::initializer_list<int64_t> strides = {1, 8, 2};
  const size_t left_out = code_.form.has(jit::Access::bitwise) ? 0 : strides.size() - 1;
  bool all_lengths = true;
  for (const int64_t stride : std::span(strides).subspan(left_out)) {
    code_.stride = stride;
    proof_.every_length = false;
    castor::Status status = prove_lengths(*loop ? &**loop : nullptr);
    if (!status) return status.error();
    all_lengths = all_lengths && proof_.every_length;
  }
  proof_.every_length = all_lengths;
  if (code_.form.rank > 1) {
    std::vector<int64_t> extents(static_cast<size_t>(code_.form.rank), 2);
    extents[0] = 37;
    if (castor::Status status = prove_extents(extents); !status) return status.error();
  }
  proof_.queries = decisions_.queries();
  proof_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return proof_;
}

}  // namespace castor::prove
