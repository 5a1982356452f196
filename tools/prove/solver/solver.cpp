// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/solver/solver.hpp"

#include <z3++.h>

#include <fmt/format.h>

#include <chrono>

#include "tools/prove/solver/translate.hpp"
#include "tools/prove/term/evaluate.hpp"

namespace castor::prove {
namespace {

bool has_floats(const Term& truth) {
  for (const uint32_t id : reachable_nodes(std::span(&truth, 1))) {
    if (truth.terms().node(id).op >= TermOp::float_add) return true;
  }
  return false;
}

/// The width of each input that the term uses, 0 of others.
std::vector<int> used_inputs(const Term& truth) {
  std::vector<int> widths(truth.terms().input_count());
  for (const uint32_t id : reachable_nodes(std::span(&truth, 1))) {
    const Node& node = truth.terms().node(id);
    if (node.op == TermOp::input) widths[node.detail] = node.width;
  }
  return widths;
}

Bits value_in(const z3::model& model, const z3::expr& input) {
  const z3::expr value = model.eval(input, true);
  Bits bits = 0;
  for (const char digit : value.get_decimal_string(0)) {
    bits = bits * 10 + static_cast<Bits>(digit - '0');
  }
  return bits;
}

std::vector<Bits> inputs_in(const z3::model& model, Translation& translation,
                            const std::vector<int>& widths) {
  std::vector<Bits> inputs(widths.size());
  for (size_t i = 0; i < widths.size(); ++i) {
    if (widths[i] != 0) inputs[i] = value_in(model, translation.input(i, widths[i]));
  }
  return inputs;
}

z3::solver solver_of(z3::context& context, const Term& truth, Arithmetic arithmetic) {
  if (arithmetic == Arithmetic::any_function) return z3::solver(context);
  return z3::solver(context, has_floats(truth) ? "QF_BVFP" : "QF_BV");
}

Steps steps_of(const z3::solver& solver) {
  const z3::stats statistics = solver.statistics();
  for (unsigned i = 0; i < statistics.size(); ++i) {
    if (statistics.key(i) == "rlimit count") return statistics.uint_value(i);
  }
  return 0;
}

void set_limit(z3::solver& solver, Steps limit) {
  z3::params parameters(solver.ctx());
  parameters.set("rlimit", static_cast<unsigned>(std::min<Steps>(limit, ~unsigned{0})));
  solver.set(parameters);
}

Answer checked(const Term& truth, Steps limit, Arithmetic arithmetic) {
  z3::context context;
  z3::solver solver = solver_of(context, truth, arithmetic);
  set_limit(solver, limit);
  Translation translation(context, truth.terms(), arithmetic);
  solver.add((translation(truth) == context.bv_val(1, 1)).simplify());
  const z3::check_result result = solver.check();
  Answer answer{.kind = Answer::Kind::possible, .steps = steps_of(solver)};
  if (result == z3::unsat) answer.kind = Answer::Kind::never;
  if (result == z3::unknown) {
    answer.kind = Answer::Kind::unknown;
    answer.reason = solver.reason_unknown();
  }
  if (result != z3::sat) return answer;
  if (arithmetic == Arithmetic::any_function) {
    answer.kind = Answer::Kind::unknown;
    answer.reason = "it depends on what the arithmetic computes";
    return answer;
  }
  answer.inputs = inputs_in(solver.get_model(), translation, used_inputs(truth));
  if (evaluate(truth, answer.inputs) != 1) {
    answer.kind = Answer::Kind::unknown;
    answer.reason = "a model of the solver's that does not hold when it is run";
  }
  return answer;
}

Answer checked_text(const std::string& smt_lib, Steps limit) {
  z3::context context;
  z3::solver solver(context);
  set_limit(solver, limit);
  solver.from_string(smt_lib.c_str());
  const z3::check_result result = solver.check();
  Answer answer{.kind = Answer::Kind::never, .steps = steps_of(solver)};
  if (result == z3::unknown) {
    answer.kind = Answer::Kind::unknown;
    answer.reason = solver.reason_unknown();
  }
  if (result != z3::sat) return answer;
  answer.kind = Answer::Kind::possible;
  const z3::model model = solver.get_model();
  for (unsigned i = 0; i < model.num_consts(); ++i) {
    const z3::func_decl constant = model.get_const_decl(i);
    const z3::expr value = model.get_const_interp(constant);
    answer.reason +=
        fmt::format("{}{} = {}", i == 0 ? "" : ", ", constant.name().str(),
                    value.is_real() ? value.get_decimal_string(12) : value.to_string());
  }
  return answer;
}

/// The answer of `ask`, with the time that it took; unknown where it throws.
template <class Ask>
Answer timed(Ask ask) {
  const auto start = std::chrono::steady_clock::now();
  Answer answer;
  try {
    answer = ask();
  } catch (const z3::exception& error) {
    answer.reason = error.msg();
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  answer.seconds = time.count();
  return answer;
}

}  // namespace

bool may_be_any_function(const Terms& terms, const Node& node) {
  constexpr int min_width = 16;
  if (node.op >= TermOp::float_add && node.op <= TermOp::float_fma) return true;
  if (node.op != TermOp::mul && node.op != TermOp::udiv && node.op != TermOp::urem) return false;
  const bool by_constant = terms.node(node.operands[0]).op == TermOp::constant ||
                           terms.node(node.operands[1]).op == TermOp::constant;
  return node.width >= min_width && !by_constant;
}

Answer can_hold(const Term& truth, Steps limit, Arithmetic arithmetic) {
  if (!truth.is_constant()) return timed([&] { return checked(truth, limit, arithmetic); });
  Answer answer;
  const bool never = truth.value() == 0;
  answer.kind = never ? Answer::Kind::never : Answer::Kind::possible;
  answer.inputs.resize(truth.terms().input_count());
  return answer;
}

Answer can_hold_text(const std::string& smt_lib, Steps limit) {
  return timed([&] { return checked_text(smt_lib, limit); });
}

std::string smt_lib(const Term& truth) {
  z3::context context;
  z3::solver solver = solver_of(context, truth, Arithmetic::exact);
  Translation translation(context, truth.terms(), Arithmetic::exact);
  solver.add(translation(truth) == context.bv_val(1, 1));
  return solver.to_smt2();
}

std::string solver_version() {
  unsigned major = 0, minor = 0, build = 0, revision = 0;
  Z3_get_version(&major, &minor, &build, &revision);
  return fmt::format("{}.{}.{}.{}", major, minor, build, revision);
}

}  // namespace castor::prove
