// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/kernel/nest_proof.hpp"

#include <fmt/format.h>

#include <chrono>

#include "tools/prove/term/evaluate.hpp"

namespace castor::prove {

const jit::CodeLoop* loop_over_rows(const jit::MachineCode& code) {
  const jit::CodeLoop* found = nullptr;
  for (const jit::CodeLoop& loop : code.loops) {
    if (found == nullptr || loop.elements > found->elements) found = &loop;
  }
  return found;
}

namespace {

/// Every index of a space, innermost first; false when there is no further one.
bool advance(std::vector<int64_t>& index, const std::vector<int64_t>& extents) {
  for (size_t axis = 0; axis < index.size(); ++axis) {
    if (++index[axis] < extents[axis]) return true;
    index[axis] = 0;
  }
  return false;
}

std::string text_of(std::span<const int64_t> index) {
  return fmt::format("[{}]", fmt::join(index, ", "));
}

}  // namespace

castor::Status NestProver::compute_expected() {
  for (const jit::MemoryOperand& source : code_.nest.program.sources) {
    inputs_.push_back(terms_.input("x", bits_of(source.element)));
  }
  auto expected = execute(code_.nest.program, inputs_, terms_);
  if (!expected) return expected.error();
  expected_ = std::move(*expected);
  return {};
}

castor::Status NestProver::decide(const Term& found, size_t sink, std::string_view where) {
  ++proof_.queries;
  const Term wrong = ~expected_->broken & not_equal(found, expected_->elements[sink]);
  switch (decide_(wrong)) {
    case Decision::never: return {};
    case Decision::unknown: ++proof_.undecided; return {};
    case Decision::possible: break;
  }
  return Error(ErrorCode::internal, fmt::format("{} is not what the lane program computes", where));
}

/// A stored element as a term of the element at its index; what else it depends on becomes other
/// inputs.
Term NestProver::renamed(const Term& found, NestRun& run, std::span<const int64_t> index) {
  Terms& from = run.machine().domain().terms();
  std::vector<Term> replacements(from.input_count());
  for (size_t k = 0; k < inputs_.size(); ++k) {
    const NestTensor& tensor = run.tensors()[k];
    const Term& input = tensor.elements[static_cast<size_t>(tensor.number_of(index))];
    replacements[input.node().detail] = inputs_[k];
  }
  for (const uint32_t id : reachable_nodes(std::span(&found, 1))) {
    const Node& node = from.node(id);
    if (node.op != TermOp::input || replacements[node.detail]) continue;
    replacements[node.detail] = terms_.input("another element", node.width);
  }
  return substitute(found, replacements, terms_);
}

castor::Status NestProver::compare_element(NestRun& run, std::span<const int64_t> index) {
  for (size_t sink = 0; sink < code_.nest.outputs.size(); ++sink) {
    const size_t k = code_.nest.inputs.size() + sink;
    const Term stored = run.stored_element(k, run.tensors()[k].number_of(index));
    const std::string where =
        fmt::format("element {} of operand {} of {}", text_of(index), k, text_of(run.extents()));
    if (!stored) return Error(ErrorCode::internal, where + " is not stored");
    ++proof_.elements;
    const Term found = renamed(stored, run, index);
    if (found.same_as(expected_->elements[sink])) {
      ++proof_.same;
    } else if (decided_.emplace(sink, found.id()).second) {
      if (castor::Status status = decide(found, sink, where); !status) return status;
    }
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
  return {};
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
  if (castor::Status status = run->machine().run(); !status) return status;
  return compare(*run, 0, extents[0]);
}

/// A run that is at the loop's begin for that time: 1 is the first.
Result<NestRun> NestProver::run_to_arrival(Symbols& symbols, RepeatedElements& repeated,
                                           const jit::CodeLoop& loop, int64_t length, int arrival) {
  auto run = NestRun::create(code_, extents_of(length), symbols, repeated);
  if (!run) return run.error();
  int arrivals = 0;
  const auto stops = [&](uint32_t offset) { return offset == loop.begin && ++arrivals == arrival; };
  if (castor::Status status = run->machine().run(stops); !status) return status.error();
  if (arrivals < arrival) {
    return Error(ErrorCode::unsupported, fmt::format("{} elements do not come to the {} {} times",
                                                     length, loop.name, arrival));
  }
  return std::move(*run);
}

/// The loop's begin in an iteration of any number, with `left` elements left.
Result<NestRun> NestProver::any_iteration(Symbols& symbols, RepeatedElements& repeated,
                                          const jit::CodeLoop& loop, int64_t left) {
  auto first = run_to_arrival(symbols, repeated, loop, left, 1);
  if (!first) return first.error();
  auto any = run_to_arrival(symbols, repeated, loop, left + loop.elements, 2);
  if (!any) return any.error();
  auto next = run_to_arrival(symbols, repeated, loop, left + 2 * loop.elements, 3);
  if (!next) return next.error();
  castor::Status status = any->make_any_iteration(*first, *next, loop.elements);
  if (!status) return status.error();
  return any;
}

/// An iteration of any number with `left` elements left runs to the return; or, where these are two
/// whole iterations, to the next one.
castor::Status NestProver::prove_iterations(const jit::CodeLoop& loop, int64_t left) {
  Terms terms;
  Symbols symbols(terms);
  RepeatedElements repeated;
  auto any = any_iteration(symbols, repeated, loop, left);
  if (!any) return any.error();
  const int64_t index = any->index();
  if (left < 2 * loop.elements) {
    if (castor::Status status = any->machine().run(); !status) return status;
    // The iteration's own elements are the same whatever is left after it.
    const bool is_last = left + 1 == 2 * loop.elements;
    return compare(*any, is_last ? index : index + loop.elements, index + left);
  }
  const auto stops = [&](uint32_t offset) { return offset == loop.begin; };
  if (castor::Status status = any->machine().run(stops); !status) return status;
  if (any->machine().is_done()) return Error(ErrorCode::internal, "the loop ends too early");
  auto fewer = any_iteration(symbols, repeated, loop, left - loop.elements);
  if (!fewer) return fewer.error();
  if (castor::Status status = fewer->check_next_iteration(*any); !status) return status;
  return compare(*any, index, index + loop.elements);
}

/// Lengths from 1 on below one iteration are run: no nest is called for none. All others are an
/// iteration of some number, with less than two left.
castor::Status NestProver::prove_lengths(const jit::CodeLoop* loop) {
  const int64_t elements = loop == nullptr ? 64 : loop->elements;
  for (int64_t length = 1; length < elements; ++length) {
    if (!takes_(length)) continue;
    if (castor::Status status = prove_extents(extents_of(length)); !status) return status;
  }
  if (loop == nullptr) return {};
  if (code_.form.has(jit::Access::bitwise)) {
    proof_.not_every_length_because = "its loops are within tiles";
    return prove_extents(extents_of(2 * elements + 1));
  }
  for (int64_t left = elements; left <= 2 * elements; ++left) {
    if (left + 1 < 2 * elements && !takes_(left - elements)) continue;
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
  if (castor::Status status = prove_lengths(loop_over_rows(code_.code)); !status) {
    return status.error();
  }
  if (code_.form.rank > 1) {
    std::vector<int64_t> extents(static_cast<size_t>(code_.form.rank), 2);
    extents[0] = 37;
    if (castor::Status status = prove_extents(extents); !status) return status.error();
  }
  proof_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return proof_;
}

}  // namespace castor::prove
