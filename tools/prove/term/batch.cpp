// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/term/batch.hpp"

#include <bit>
#include <cmath>

#include "tools/prove/term/evaluate.hpp"

namespace castor::prove {
namespace {

using Lanes = Batch::Lanes;
constexpr size_t batch = Batch::lanes;

constexpr uint64_t mask_of(int width) { return ~uint64_t{0} >> (64 - width); }

/// Calls `compute(i)` for each lane; the loop is vectorised where `compute` can be.
template <class Compute>
void for_lanes(Lanes& to, int width, const Compute& compute) {
  const uint64_t mask = mask_of(width);
  for (size_t i = 0; i < batch; ++i) to[i] = compute(i) & mask;
}

uint64_t bits_of_float(float value) {
  return value != value ? static_cast<uint64_t>(f32_format.nan()) : std::bit_cast<uint32_t>(value);
}
uint64_t bits_of_float(double value) {
  return value != value ? static_cast<uint64_t>(f64_format.nan()) : std::bit_cast<uint64_t>(value);
}

/// f32 and f64 arithmetic to nearest even, which this process's own is.
template <class Float>
bool computed_natively(const Node& node, Lanes& to, const std::array<const Lanes*, 3>& v) {
  const auto value = [&](size_t k, size_t i) {
    if constexpr (sizeof(Float) == 4) {
      return std::bit_cast<float>(static_cast<uint32_t>((*v[k])[i]));
    } else {
      return std::bit_cast<double>((*v[k])[i]);
    }
  };
  switch (node.op) {
    case TermOp::float_add:
      for_lanes(to, 64, [&](size_t i) { return bits_of_float(value(0, i) + value(1, i)); });
      return true;
    case TermOp::float_mul:
      for_lanes(to, 64, [&](size_t i) { return bits_of_float(value(0, i) * value(1, i)); });
      return true;
    case TermOp::float_div:
      for_lanes(to, 64, [&](size_t i) { return bits_of_float(value(0, i) / value(1, i)); });
      return true;
    case TermOp::float_sqrt:
      for_lanes(to, 64, [&](size_t i) { return bits_of_float(std::sqrt(value(0, i))); });
      return true;
    default: return false;
  }
}

}  // namespace

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
  const FloatDetail detail = FloatDetail::unpacked(node.detail);
  if (node.op >= TermOp::float_add && detail.rounding == Rounding::nearest_even) {
    if (detail.format == f32_format && computed_natively<float>(node, to, v)) return;
    if (detail.format == f64_format && computed_natively<double>(node, to, v)) return;
  }
  for (size_t i = 0; i < batch; ++i) {
    const std::array<Bits, 3> values = {(*v[0])[i], (*v[1])[i], (*v[2])[i]};
    to[i] = static_cast<uint64_t>(
        prove::compute(terms_, node, std::span(values).first(node.operand_count)));
  }
}

}  // namespace castor::prove
