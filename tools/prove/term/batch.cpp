// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/term/batch.hpp"

#include "tools/prove/term/evaluate.hpp"
#include "tools/prove/term/native_floats.hpp"

/// The loops of a function for the vectors that the CPU has. Not with sanitizers, whose start comes
/// after the choice.
#if defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define CASTOR_FOR_EACH_VECTOR_WIDTH [[gnu::target_clones("avx512f", "avx2", "default")]]
#else
#define CASTOR_FOR_EACH_VECTOR_WIDTH
#endif

namespace castor::prove {

Batch::Batch(std::span<const Term> roots) : terms_(roots.front().terms()) {
  for (const uint32_t id : reachable_nodes(roots)) {
    Step step{.node = terms_.node(id)};
    fits_ = fits_ && step.node.width <= max_width;
    for (size_t i = 0; i < step.node.operand_count; ++i) {
      step.slots[i] = slots_.at(step.node.operands[i]);
      step.operand_width = terms_.node(step.node.operands[0]).width;
    }
    slots_.emplace(id, static_cast<uint32_t>(steps_.size()));
    if (step.node.op == TermOp::input) inputs_.push_back(static_cast<uint32_t>(steps_.size()));
    steps_.push_back(step);
  }
  lanes_.resize(steps_.size());
  for (size_t i = 0; i < steps_.size(); ++i) {
    if (steps_[i].node.op == TermOp::constant) {
      lanes_[i].fill(static_cast<uint64_t>(steps_[i].node.value));
    }
  }
}

void Batch::run(uint64_t first) {
  int low = 0;
  for (const uint32_t slot : inputs_) {
    const int shift = low;
    for_lanes(lanes_[slot], steps_[slot].node.width,
              [&](size_t i) { return (first + i) >> shift; });
    low += steps_[slot].node.width;
  }
  for (size_t i = 0; i < steps_.size(); ++i) compute(steps_[i], lanes_[i]);
}

std::vector<Bits> Batch::inputs_at(size_t lane) const {
  std::vector<Bits> inputs(terms_.input_count());
  for (const uint32_t slot : inputs_) inputs[steps_[slot].node.detail] = lanes_[slot][lane];
  return inputs;
}

CASTOR_FOR_EACH_VECTOR_WIDTH
void Batch::compute(const Step& step, Lanes& to) {
  const Node& node = step.node;
  const std::array<const Lanes*, 3> v = {&lanes_[step.slots[0]], &lanes_[step.slots[1]],
                                         &lanes_[step.slots[2]]};
  const auto binary = [&](auto operation) {
    for_lanes(to, node.width, [&](size_t i) { return operation((*v[0])[i], (*v[1])[i]); });
  };
  const uint64_t width = node.width;
  switch (node.op) {
    case TermOp::constant:
    case TermOp::input: return;
    case TermOp::add: return binary([](uint64_t a, uint64_t b) { return a + b; });
    case TermOp::mul: return binary([](uint64_t a, uint64_t b) { return a * b; });
    case TermOp::bit_and: return binary([](uint64_t a, uint64_t b) { return a & b; });
    case TermOp::bit_or: return binary([](uint64_t a, uint64_t b) { return a | b; });
    case TermOp::bit_xor: return binary([](uint64_t a, uint64_t b) { return a ^ b; });
    case TermOp::shift_left:
      return binary([&](uint64_t a, uint64_t b) { return b < width ? a << b : 0; });
    case TermOp::shift_right:
      return binary([&](uint64_t a, uint64_t b) { return b < width ? a >> b : 0; });
    case TermOp::extract:
      return for_lanes(to, node.width, [&](size_t i) { return (*v[0])[i] >> node.detail; });
    case TermOp::concat: {
      const int low = terms_.node(node.operands[1]).width;
      return binary([&](uint64_t a, uint64_t b) { return a << low | b; });
    }
    case TermOp::extend_sign: {
      const int shift = 64 - step.operand_width;
      return for_lanes(to, node.width, [&](size_t i) {
        return static_cast<uint64_t>(static_cast<int64_t>((*v[0])[i] << shift) >> shift);
      });
    }
    case TermOp::if_then_else:
      return for_lanes(to, node.width,
                       [&](size_t i) { return (*v[0])[i] != 0 ? (*v[1])[i] : (*v[2])[i]; });
    case TermOp::equal: return binary([](uint64_t a, uint64_t b) { return a == b; });
    case TermOp::less_unsigned: return binary([](uint64_t a, uint64_t b) { return a < b; });
    case TermOp::less_signed: {
      const int shift = 64 - step.operand_width;
      return binary([&](uint64_t a, uint64_t b) {
        return static_cast<int64_t>(a << shift) < static_cast<int64_t>(b << shift);
      });
    }
    case TermOp::table: {
      const uint64_t* entries = terms_.table_entries(node.detail).data();
      return for_lanes(to, node.width, [&](size_t i) { return entries[(*v[0])[i]]; });
    }
    default: return compute_other(step, to, v);
  }
}

void Batch::compute_other(const Step& step, Lanes& to, const std::array<const Lanes*, 3>& v) {
  const Node& node = step.node;
  if (node.op >= TermOp::float_add && compute_natively(node, step.operand_width, to, v)) return;
  if (node.op == TermOp::udiv || node.op == TermOp::urem) {
    const bool divides = node.op == TermOp::udiv;
    return for_lanes(to, node.width, [&](size_t i) {
      const uint64_t a = (*v[0])[i];
      const uint64_t b = (*v[1])[i];
      if (b == 0) return divides ? ~uint64_t{0} : a;
      return divides ? a / b : a % b;
    });
  }
  for (size_t i = 0; i < lanes; ++i) {
    const std::array<Bits, 3> values = {(*v[0])[i], (*v[1])[i], (*v[2])[i]};
    to[i] = static_cast<uint64_t>(
        prove::compute(terms_, node, std::span(values).first(node.operand_count)));
  }
}

}  // namespace castor::prove
