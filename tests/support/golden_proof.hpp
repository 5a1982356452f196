// SPDX-License-Identifier: Apache-2.0
// Golden kernels as subjects of proofs.
#pragma once

#include "jit/dump/dump_requantization.hpp"
#include "jit/plan/access_pattern.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/golden_kernel.hpp"
#include "tests/support/long_form.hpp"
#include "tools/prove/kernel/nest_proof.hpp"
#include "tools/prove/solver/solver.hpp"
#include "tools/prove/term/evaluate.hpp"

namespace castor::test {

/// A nest of a golden file with its code.
struct GoldenCode {
  GoldenNest made;
  jit::MachineCode code;
  jit::Target target;
  int64_t period = 0;  ///< elements of a period of the innermost axis; 0: there is none
  /// By input, the program of the nest before that makes it, if it does so of one source.
  std::vector<std::optional<jit::LaneProgram>> makers{};

  prove::NestSubject subject() const {
    prove::NestSubject subject{
        .nest = made.nest, .form = made.form, .target = target, .code = code, .period = period};
    for (const auto& maker : makers) subject.makers.push_back(maker ? &*maker : nullptr);
    return subject;
  }
};

/// The program of the nest that makes a value in scratch, element by element, of one source.
inline std::optional<jit::LaneProgram> maker_of(std::span<const GoldenCode> before, ValueId value) {
  for (const GoldenCode& code : before) {
    const jit::Nest& nest = code.made.nest;
    const bool makes =
        nest.outputs.size() == 1 && nest.outputs[0].is_scratch() && nest.outputs[0].value == value;
    if (makes && nest.inputs.size() == 1 && nest.inputs[0].is_identity()) return nest.program;
  }
  return std::nullopt;
}

/// Elements of a period, where likely extents make periods; else 0.
inline int64_t likely_period(const GoldenKernel& kernel, const GoldenNest& made) {
  if (!made.form.has_periods()) return 0;
  if (made.form.baked_period != 0) return made.form.baked_period;
  const auto shapes = jit::likely_shapes(*kernel.function);
  if (!shapes) return 0;
  const std::vector<Dims> strides = jit::likely_strides(made.nest, *shapes);
  return nest_space(made.nest, shapes->values[made.nest.space], strides, kernel.target).period;
}
/// The nest in the form that the listing has of it, or that its method makes of a requantization;
/// nothing where it is no lane program's, or folds short rows in blocks.
inline Result<std::optional<GoldenNest>> elementwise_nest(const GoldenKernel& kernel,
                                                          GoldenNest made) {
  using Nest = std::optional<GoldenNest>;
  if (made.nest.requantization) {
    if (looks_bytes_up(*kernel.function, made.nest, kernel.target)) return Nest();
    auto likely = likely_requantization(*kernel.function, made.nest, kernel.target);
    if (!likely) return likely.error();
    return Nest(GoldenNest{std::move(likely->nest), std::move(likely->form)});
  }
  if (made.nest.convolution) return Nest();
  if (kernel.is_likely) made.form = likely_form(*kernel.function, made.nest, kernel.target);
  if (made.form.folded_row != 0) return Nest();
  return Nest(std::move(made));
}

/// Nests of a golden file with their code; empty where it lists something else: kernels of
/// convolutions, look-ups of bytes.
inline Result<std::vector<GoldenCode>> elementwise_codes(const GoldenKernel& kernel) {
  std::vector<GoldenCode> codes;
  if (kernel.spec) return codes;
  for (GoldenNest& each : nests_of(kernel)) {
    auto nest = elementwise_nest(kernel, std::move(each));
    if (!nest) return nest.error();
    if (!*nest) continue;
    GoldenNest& made = **nest;
    auto code = emit_golden(kernel, made);
    if (!code) return code.error();
    const int64_t period = likely_period(kernel, made);
    std::vector<std::optional<jit::LaneProgram>> makers;
    for (const jit::NestInput& input : made.nest.inputs) {
      makers.push_back(maker_of(codes, input.value));
    }
    codes.push_back({std::move(made), std::move(*code), kernel.target, period, std::move(makers)});
  }
  return codes;
}

/// Asks z3 of each value of an input of few bits, where the term has one.
inline prove::Decision ask_by_values(const prove::Term& truth, prove::Steps limit) {
  constexpr int max_bits = 8;
  const prove::Terms& from = truth.terms();
  std::vector<prove::Term> inputs(from.input_count());
  prove::Terms terms;
  const prove::Node* small = nullptr;
  for (const uint32_t id : prove::reachable_nodes(std::span(&truth, 1))) {
    const prove::Node& node = from.node(id);
    if (node.op != prove::TermOp::input) continue;
    inputs[node.detail] = terms.input("any", node.width);
    if (small == nullptr && node.width > 1 && node.width <= max_bits) small = &node;
  }
  if (small == nullptr) return prove::Decision::unknown;
  for (prove::Bits value = 0; value < prove::Bits{1} << small->width; ++value) {
    inputs[small->detail] = terms.constant(small->width, value);
    const prove::Answer answer = can_hold(substitute(truth, inputs, terms), limit);
    if (answer.kind == prove::Answer::Kind::possible) return prove::Decision::possible;
    if (answer.kind == prove::Answer::Kind::unknown) return prove::Decision::unknown;
  }
  return prove::Decision::never;
}

/// Asks z3: with float arithmetic as any function of its operands, exactly, and value by value.
inline prove::Decision ask_solver(const prove::Term& truth) {
  constexpr prove::Steps limit = 20'000'000;
  using enum prove::Answer::Kind;
  const auto kind_with = [&](prove::Steps steps, prove::Arithmetic arithmetic) {
    return prove::can_hold(truth, steps, arithmetic).kind;
  };
  if (kind_with(limit, prove::Arithmetic::any_function) == never) return prove::Decision::never;
  const auto exactly = kind_with(limit, prove::Arithmetic::exact);
  if (exactly == never) return prove::Decision::never;
  if (exactly == possible) return prove::Decision::possible;
  return ask_by_values(truth, limit);
}

/// In the short form few counts of elements after whole iterations, the least and some others.
inline bool takes_tail(int64_t tail) { return long_form() || tail < 3 || tail % 29 == 5; }

}  // namespace castor::test
