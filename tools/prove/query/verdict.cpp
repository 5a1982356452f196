// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/query/verdict.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>

#include "tools/prove/query/algebra.hpp"
#include "tools/prove/query/cases.hpp"
#include "tools/prove/solver/solver.hpp"
#include "tools/prove/term/evaluate.hpp"
#include "tools/prove/term/exhaust.hpp"
#include "tools/prove/term/sweep.hpp"

namespace castor::prove {
namespace {

constexpr std::array<std::string_view, 5> names = {"proved", "exhausted", "identity", "open",
                                                   "wrong"};

/// Inputs of so few bits are run rather than proved: all of them take less than a second.
constexpr int few_bits = 16;
constexpr int max_exhausted_bits = 32;
constexpr uint64_t many_steps = 2'000'000;

bool has_arithmetic(const Term& term) {
  const Terms& terms = term.terms();
  return std::ranges::any_of(reachable_nodes(std::span(&term, 1)), [&](uint32_t id) {
    return may_be_any_function(terms, terms.node(id));
  });
}

/// A term whose low bits the given one is, where it is such a cut of a wider one, or a choice of
/// them.
Term widened(const Term& term, int width) {
  if (term.is_constant()) return extend_zero(term, width);
  if (term.op() == TermOp::extract && term.node().detail == 0 && term.operand(0).width() >= width) {
    return truncate(term.operand(0), width);
  }
  if (term.op() != TermOp::if_then_else) return {};
  const Term a = widened(term.operand(1), width);
  const Term b = widened(term.operand(2), width);
  return a && b ? if_then_else(term.operand(0), a, b) : Term();
}

/// Whether a float far beyond an integer type's range becomes its largest: which cases are worth
/// while depends on it, and nothing else.
bool saturates(const Query& query) {
  if (!is_integer(query.result) || !is_float(query.operands[0])) return false;
  const castor::FloatFormat& format = info(query.operands[0]).format;
  const int exponent = std::min(bits_of(query.result) + 3, format.bias);
  const Bits number = static_cast<Bits>(exponent + format.bias) << format.mantissa_bits;
  return evaluate(query.specified, std::span(&number, 1)) == integer_max(query.result);
}

using Seconds = std::chrono::duration<double>;

/// What the thread has had of a processor: how busy others are does not matter.
Seconds time_of_thread() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

/// Calls the steps in order until one decides.
class Decision {
 public:
  Decision(const Query& query, const Effort& effort, const IsProved& is_proved)
      : query_(query), effort_(effort), is_proved_(is_proved) {}

  Verdict run() {
    const int bits = input_bits(query_.is_wrong);
    const bool computes = has_arithmetic(query_.specified);
    if (query_.is_wrong.is_constant(0)) {
      settle(computes ? Status::identity : Status::proved);
    } else if (bits > few_bits || !exhaust()) {
      prove(bits, computes);
    }
    return std::move(verdict_);
  }

 private:
  void prove(int bits, bool computes) {
    merged_ = with_equal_nodes_merged(query_.is_wrong);
    if (merged_.is_constant(0)) return settle(computes ? Status::identity : Status::proved);
    if (computes && holds_for_any_arithmetic()) return settle(Status::identity);
    if (computes && holds_by_algebra()) return settle(Status::identity);
    if (follows_from_more_bits()) return settle(Status::proved);
    if (ask_solver() || ask_by_cases()) return;
    if (bits > few_bits && bits <= max_exhausted_bits) exhaust();
    verdict_.is_costly = true;
  }

  /// What wraps to few bits is mostly the low bits of what wraps to 32.
  bool follows_from_more_bits() {
    constexpr int width = 32;
    const bool wraps = is_integer(query_.result) && is_float(query_.operands[0]) &&
                       query_.operands.size() == 1 && !saturates(query_);
    if (!is_proved_ || !wraps || query_.computed.width() >= width) return false;
    const Term computed = widened(query_.computed, width);
    const Term specified = widened(query_.specified, width);
    const Term is_wrong = not_equal(query_.computed, query_.specified);
    // No precondition is left out.
    if (!computed || !specified || !is_wrong.same_as(query_.is_wrong)) return false;
    Query wider = query_;
    wider.computed = computed;
    wider.specified = specified;
    wider.is_wrong = not_equal(computed, specified);
    return is_proved_(wider);
  }

  /// One operand's exponents or leading bits one by one, each as a question of its own.
  bool ask_by_cases() {
    if (query_.operands.size() != 1 || !has_cases(query_.operands[0])) return false;
    size_t cases = 0;
    bool is_refuted = false;
    const auto decide_case = [&](const Case& one) {
      ++cases;
      const Term is_wrong = substitute(query_.is_wrong, std::span(&one.bits, 1), one.bits.terms(),
                                       FloatNodes::written_out);
      const Answer answer = can_hold(one.condition & is_wrong, effort_.case_steps);
      verdict_.seconds += answer.seconds;
      verdict_.steps += answer.steps;
      is_refuted = answer.kind == Answer::Kind::possible;
      if (is_refuted) refute({evaluate(one.bits, answer.inputs)});
      return answer.kind == Answer::Kind::never;
    };
    const bool all =
        for_each_case(query_.operands[0], query_.result, saturates(query_), decide_case);
    verdict_.is_costly = true;
    if (all) settle(Status::proved);
    if (!all && !is_refuted) verdict_.reason += fmt::format("; case {} not decided", cases);
    return all || is_refuted;
  }

  bool holds_for_any_arithmetic() {
    const Answer answer = can_hold(merged_, effort_.solver_steps, Arithmetic::any_function);
    note("any arithmetic", answer);
    return answer.kind == Answer::Kind::never;
  }

  bool holds_by_algebra() {
    return has_algebra(query_) &&
           decided_by_algebra(query_, effort_.solver_steps, verdict_.seconds);
  }

  bool ask_solver() {
    const Answer answer = can_hold(merged_, effort_.solver_steps);
    note("solver", answer);
    if (answer.kind == Answer::Kind::never) settle(Status::proved);
    if (answer.kind == Answer::Kind::possible) refute(answer.inputs);
    return answer.kind != Answer::Kind::unknown;
  }

  /// Whether running all inputs decided. It ends as soon as it is seen to take too long.
  bool exhaust() {
    constexpr Seconds measured(2);
    const Seconds start = time_of_thread();
    Seconds passed{}, expected{};
    const auto goes_on = [&](double fraction) {
      passed = time_of_thread() - start;
      if (passed < measured || fraction == 0) return true;
      expected = passed / fraction;
      return expected < effort_.exhaustion;
    };
    const Exhaustion all = run_on_all_inputs(query_.is_wrong, goes_on);
    passed = time_of_thread() - start;
    verdict_.seconds += passed.count();
    if (all.inputs) {
      refute(*all.inputs);
    } else if (all.complete) {
      settle(Status::exhausted);
    } else {
      if (!verdict_.reason.empty()) verdict_.reason += "; ";
      verdict_.reason +=
          expected == Seconds{}
              ? "too wide to be run on all inputs"
              : fmt::format("all inputs would take {:.0f} s to run", expected.count());
    }
    return all.complete;
  }

  void settle(Status status) {
    verdict_.status = status;
    verdict_.reason.clear();
  }

  void refute(const std::vector<Bits>& inputs) {
    settle(Status::wrong);
    verdict_.inputs = inputs;
  }

  void note(std::string_view what, const Answer& answer) {
    verdict_.seconds += answer.seconds;
    verdict_.steps += answer.steps;
    verdict_.is_costly = verdict_.is_costly || answer.steps > many_steps;
    verdict_.reason += fmt::format("{}{}: {}, {:.0f} s", verdict_.reason.empty() ? "" : "; ", what,
                                   answer.reason, answer.seconds);
  }

  const Query& query_;
  Term merged_;
  const Effort& effort_;
  const IsProved& is_proved_;
  Verdict verdict_;
};

}  // namespace

std::string_view name_of(Status status) { return names[static_cast<size_t>(status)]; }

std::optional<Status> status_named(std::string_view name) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Status>(i);
  }
  return std::nullopt;
}

Verdict decide(const Query& query, const Effort& effort, const IsProved& is_proved) {
  return Decision(query, effort, is_proved).run();
}

}  // namespace castor::prove
