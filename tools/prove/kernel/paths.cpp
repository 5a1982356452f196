// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/kernel/paths.hpp"

#include <algorithm>
#include <list>
#include <optional>
#include <tuple>
#include <utility>

namespace castor::prove {

using Machine = machine::Machine<machine::Symbols>;

namespace {

// jit/emit/frame.hpp
constexpr int index_register = 6;   // rsi
constexpr int extent_register = 2;  // rdx
constexpr int64_t max_instructions = 20'000'000;

/// Instructions by offset, each before those that it leads to, loops aside.
class CodeOrder {
 public:
  explicit CodeOrder(const std::vector<jit::DecodedInstruction>& program)
      : program_(program), rank_(program.size(), unvisited) {
    visit(0);
  }

  size_t rank_of(uint32_t offset) const { return rank_[number_of(offset)]; }

 private:
  static constexpr size_t unvisited = ~size_t{0};

  size_t number_of(uint32_t offset) const {
    const auto found =
        std::ranges::lower_bound(program_, offset, {}, &jit::DecodedInstruction::offset);
    return static_cast<size_t>(found - program_.begin());
  }

  std::vector<size_t> next_of(size_t number) const {
    const jit::DecodedInstruction& decoded = program_[number];
    const ZydisMnemonic mnemonic = decoded.instruction.mnemonic;
    std::vector<size_t> next;
    const bool goes_on = mnemonic != ZYDIS_MNEMONIC_JMP && mnemonic != ZYDIS_MNEMONIC_RET;
    if (goes_on && number + 1 < program_.size()) next.push_back(number + 1);
    if (const auto target = jit::branch_target(decoded)) next.push_back(number_of(*target));
    return next;
  }

  /// Depth first; whatever is left last comes first.
  void visit(size_t first) {
    std::vector<bool> is_seen(program_.size(), false);
    std::vector<std::pair<size_t, bool>> stack = {{first, false}};
    size_t rank = program_.size();
    while (!stack.empty()) {
      const auto [number, is_left] = stack.back();
      stack.pop_back();
      if (is_left) {
        rank_[number] = --rank;
      } else if (!is_seen[number]) {
        is_seen[number] = true;
        stack.emplace_back(number, true);
        for (const size_t next : next_of(number)) stack.emplace_back(next, false);
      }
    }
  }

  const std::vector<jit::DecodedInstruction>& program_;
  std::vector<size_t> rank_;
};

Term all_of(std::span<const Term> truths, Terms& terms) {
  Term all = terms.truth(true);
  for (const Term& truth : truths) all = all & truth;
  return all;
}

/// A state, and what data must be for it.
struct Path {
  Machine machine;
  std::vector<Term> conditions;
  int64_t arrivals = 0;
  bool is_stopped = false;

  bool is_over() const { return machine.is_done() || is_stopped; }
  machine::Word index() const { return machine.register_at(index_register).word; }
  machine::Word extent() const { return machine.register_at(extent_register).word; }
};

/// Whether the paths are at one element of one loop: what code goes by does not become data.
bool meet(const Path& a, const Path& b) {
  if (a.is_over() != b.is_over() || a.arrivals != b.arrivals) return false;
  const bool is_same_element = a.index() == b.index() && a.extent() == b.extent();
  return a.machine.is_at_same_point(b.machine) && (a.machine.is_done() || is_same_element);
}

/// Two paths become one. The conditions that they share stay; of the others, those of the path with
/// more of them say which it is: they say most where only part of them is looked at.
void merge(Path& a, const Path& b) {
  Terms& terms = a.machine.domain().terms();
  size_t shared = 0;
  while (shared < a.conditions.size() && shared < b.conditions.size() &&
         a.conditions[shared].same_as(b.conditions[shared])) {
    ++shared;
  }
  const Term in_a = all_of(std::span(a.conditions).subspan(shared), terms);
  const Term in_b = all_of(std::span(b.conditions).subspan(shared), terms);
  const Term is_a = a.conditions.size() < b.conditions.size() ? ~in_b : in_a;
  a.conditions.resize(shared);
  const bool are_opposite = in_a.same_as(~in_b);
  if (!are_opposite) a.conditions.push_back(in_a | in_b);
  a.machine.merge(b.machine, is_a);
}

class Run {
 public:
  Run(Machine& machine, const Stop* stop) : order_(machine.program()), stop_(stop) {
    paths_.push_back({.machine = machine, .conditions = {}});
  }

  Status run() {
    for (int64_t count = 0; Path* path = next_path(); ++count) {
      if (count == max_instructions) return Error{ErrorCode::internal, "the code does not return"};
      if (Status status = step(*path); !status) return status;
    }
    return {};
  }

  Result<Machine> result() {
    if (paths_.size() == 1) return std::move(paths_.front().machine);
    return Error{ErrorCode::unsupported, "paths that data chooses do not meet"};
  }

 private:
  /// The path with the fewest elements done, once others that are there have become one with it.
  Path* next_path() {
    Path* first = nullptr;
    for (Path& path : paths_) {
      if (!path.is_over() && (first == nullptr || position(path) < position(*first))) first = &path;
    }
    if (first != nullptr && paths_.size() > 1) merge_others(*first);
    return first;
  }
  std::tuple<uint64_t, size_t> position(const Path& path) const {
    return {path.index().value, order_.rank_of(path.machine.offset())};
  }

  void merge_others(Path& path) {
    for (auto other = paths_.begin(); other != paths_.end();) {
      if (&*other == &path || !meet(path, *other)) {
        ++other;
        continue;
      }
      merge(path, *other);
      other = paths_.erase(other);
    }
  }

  Status step(Path& path) {
    if (const auto jumps = path.machine.jump_on_data()) {
      fork(path, *jumps);
      return {};
    }
    if (Status status = path.machine.step(); !status) return status;
    if (path.machine.is_done()) {
      if (Status status = path.machine.check_return(); !status) return status;
    } else {
      arrive(path);
    }
    if (path.is_over()) merge_others(path);
    return {};
  }

  void arrive(Path& path) {
    if (stop_ == nullptr || path.machine.offset() != stop_->offset) return;
    path.is_stopped = ++path.arrivals == stop_->arrivals;
  }

  void fork(Path& path, const Term& jumps) {
    Path& other = paths_.emplace_back(path);
    other.machine.decide_jump(true);
    other.conditions.push_back(jumps);
    path.machine.decide_jump(false);
    path.conditions.push_back(~jumps);
    arrive(other);
    arrive(path);
    if (path.is_over()) {
      merge_others(path);
    } else if (other.is_over()) {
      merge_others(other);
    }
  }

  const CodeOrder order_;
  const Stop* stop_;
  std::list<Path> paths_;
};

}  // namespace

Status run_all_paths(Machine& machine, const Stop* stop) {
  Run run(machine, stop);
  if (Status status = run.run(); !status) return status;
  Result<Machine> result = run.result();
  if (!result) return result.error();
  machine = std::move(*result);
  return {};
}

}  // namespace castor::prove
