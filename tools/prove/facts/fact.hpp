// SPDX-License-Identifier: Apache-2.0
// Facts that planners and methods rely on: what each claims and how it is decided.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "tools/prove/query/verdict.hpp"
#include "tools/prove/solver/solver.hpp"

namespace castor::prove {

/// How much is tried of facts that are checked by samples, and how long the solver may take.
struct FactEffort {
  int samples = 2;           ///< slices, or constants, of each kind
  uint64_t seed = 1;         ///< chooses what is drawn
  Steps steps = 20'000'000;  ///< for each question
  bool is_long = false;      ///< whether all combinations of constants are taken, not some
};

/// What of 0, 1, 2, ... is taken: all, or every `step`-th where the effort is short.
constexpr int step_of(const FactEffort& effort, int step) { return effort.is_long ? 1 : step; }

struct FactVerdict {
  Status status = Status::open;
  std::string detail{};  ///< how much was decided; wrong: the counterexample; open: what was tried
  double seconds = 0;
};

struct Fact {
  std::string name;  ///< "requantize: linear, embarc"
  std::string claim;
  std::function<FactVerdict(const FactEffort&)> decide;
};

/// Decides questions one after another, until one is not as claimed.
class FactCheck {
 public:
  explicit FactCheck(const FactEffort& effort) : effort_(effort) {}

  /// Whether the term, of width 1, is 0 for all inputs; the same question is asked once. `subject`
  /// says what it is about.
  bool never(const Term& wrong, std::string_view subject);
  /// The same, whatever sums and products of floats, and wide ones of integers, compute; some
  /// inputs are run before the solver is asked.
  bool never_for_any_arithmetic(const Term& wrong, std::string_view subject);
  /// Whether the assertions of a text in SMT-LIB 2 contradict each other.
  bool contradictory(const std::string& smt_lib, std::string_view subject);
  /// Whether a thing that was computed is as claimed.
  bool holds(bool value, std::string_view subject);
  const FactEffort& effort() const { return effort_; }
  bool goes_on() const { return verdict_.status != Status::wrong; }

  /// What was found, of `count` questions or things; `what` names them.
  FactVerdict verdict(std::string_view what, Status if_all = Status::proved) const;

 private:
  bool settle(const Answer& answer, const Term& wrong, std::string_view subject);

  const FactEffort& effort_;
  FactVerdict verdict_{.status = Status::proved};
  size_t count_ = 0;
  std::unordered_set<uint64_t> proved_;  ///< questions by their hash
};

// Facts by topic.
std::vector<Fact> requantize_facts();
std::vector<Fact> requantize_samples();
std::vector<Fact> correction_facts();
std::vector<Fact> table_facts();
std::vector<Fact> magnitude_facts();
std::vector<Fact> quotient_facts();

std::vector<Fact> all_facts();

}  // namespace castor::prove
