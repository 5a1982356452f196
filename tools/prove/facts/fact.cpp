// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/facts/fact.hpp"

#include <fmt/format.h>

#include <iterator>
#include <optional>
#include <random>

#include "tools/prove/term/canonical.hpp"
#include "tools/prove/term/evaluate.hpp"

namespace castor::prove {

namespace {

std::string text_of(const Term& wrong, const std::vector<Bits>& inputs) {
  std::string text;
  for (size_t i = 0; i < inputs.size(); ++i) {
    text += fmt::format("{}{} = {:#x}", i == 0 ? "" : ", ", wrong.terms().input_name(i),
                        static_cast<uint64_t>(inputs[i]));
  }
  return text;
}

/// Inputs among some that are drawn for which the term is 1.
std::optional<std::vector<Bits>> drawn_counterexample(const Term& wrong, uint64_t seed) {
  if (wrong.is_constant()) return std::nullopt;
  constexpr int count = 100;
  std::mt19937_64 random(seed);
  Evaluator run(std::span(&wrong, 1));
  std::vector<Bits> inputs(wrong.terms().input_count());
  for (int i = 0; i < count; ++i) {
    // Floats whose exponents are near to each other's, and any integers.
    for (Bits& input : inputs) {
      const uint64_t bits = random();
      input = i % 2 == 0 ? bits : (bits & 0x000fffff007fffff) | 0x3ff0000040000000;
    }
    for (const uint32_t id : reachable_nodes(std::span(&wrong, 1))) {
      const Node& node = wrong.terms().node(id);
      if (node.op == TermOp::input) inputs[node.detail] &= low_mask(node.width);
    }
    if (run(inputs)[0] != 0) return inputs;
  }
  return std::nullopt;
}

}  // namespace

bool FactCheck::settle(const Answer& answer, const Term& wrong, std::string_view subject) {
  ++count_;
  verdict_.seconds += answer.seconds;
  if (answer.kind == Answer::Kind::never) return true;
  if (answer.kind == Answer::Kind::possible) {
    verdict_.status = Status::wrong;
    verdict_.detail =
        fmt::format("{}: {}", subject, wrong ? text_of(wrong, answer.inputs) : answer.reason);
  } else if (goes_on()) {
    verdict_.status = Status::open;
    verdict_.detail +=
        fmt::format("{}{}: {}", verdict_.detail.empty() ? "" : "; ", subject, answer.reason);
  }
  return false;
}

bool FactCheck::never(const Term& wrong, std::string_view subject) {
  if (!goes_on()) return false;
  const uint64_t hash = canonical_hash(wrong);
  if (proved_.contains(hash)) return true;
  const bool is_proved = settle(can_hold(wrong, effort_.steps), wrong, subject);
  if (is_proved) proved_.insert(hash);
  return is_proved;
}

bool FactCheck::never_for_any_arithmetic(const Term& wrong, std::string_view subject) {
  if (!goes_on()) return false;
  if (const auto inputs = drawn_counterexample(wrong, effort_.seed)) {
    return settle({.kind = Answer::Kind::possible, .inputs = *inputs}, wrong, subject);
  }
  const Answer answer = can_hold(wrong, effort_.steps, Arithmetic::any_function);
  if (answer.kind == Answer::Kind::never) return settle(answer, wrong, subject);
  return never(wrong, subject);
}

bool FactCheck::contradictory(const std::string& smt_lib, std::string_view subject) {
  return goes_on() && settle(can_hold_text(smt_lib, effort_.steps), {}, subject);
}

bool FactCheck::holds(bool value, std::string_view subject) {
  if (!goes_on()) return false;
  ++count_;
  if (!value) {
    verdict_.status = Status::wrong;
    verdict_.detail = subject;
  }
  return value;
}

FactVerdict FactCheck::verdict(std::string_view what, Status if_all) const {
  FactVerdict result = verdict_;
  if (result.status != Status::proved) return result;
  result.status = if_all;
  result.detail = fmt::format("{} {}", count_, what);
  return result;
}

std::vector<Fact> all_facts() {
  std::vector<Fact> all;
  for (auto* topic : {requantize_facts, requantize_samples, correction_facts, table_facts,
                      magnitude_facts, quotient_facts}) {
    std::vector<Fact> facts = topic();
    std::ranges::move(facts, std::back_inserter(all));
  }
  return all;
}

}  // namespace castor::prove
