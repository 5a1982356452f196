// SPDX-License-Identifier: Apache-2.0
#include "jit/lane/reciprocals.hpp"

#include <algorithm>
#include <bit>

namespace castor::jit {

namespace {

/// Copies a program, with more instructions between.
class Reciprocals {
 public:
  Reciprocals(const LaneProgram& program, const std::vector<LoopLevel>& levels)
      : program_(program), levels_(levels) {}

  std::vector<LaneInst> run() {
    for (size_t i = 0; i < program_.code.size(); ++i) {
      LaneInst inst = program_.code[i];
      const bool has_reciprocal = inst.op == LaneOp::float_quotient &&
                                  levels_[static_cast<size_t>(inst.b)] != LoopLevel::chunk &&
                                  levels_[i] == LoopLevel::chunk;
      for_each_operand(inst, [&](LaneId& id) { id = copies_[static_cast<size_t>(id)]; });
      if (has_reciprocal) add_reciprocal(inst);
      copies_.push_back(append(inst));
    }
    return std::move(code_);
  }

 private:
  LaneId append(const LaneInst& inst) {
    code_.push_back(inst);
    return static_cast<LaneId>(code_.size()) - 1;
  }
  LaneId constant(LaneType type, uint32_t bits) {
    return append({.op = LaneOp::constant, .type = type, .imm = bits});
  }
  LaneId binary(LaneOp op, LaneType type, LaneId a, LaneId b, uint32_t origin) {
    return append({.op = op, .type = type, .a = a, .b = b, .origin = origin});
  }

  void add_reciprocal(LaneInst& quotient) {
    constexpr uint32_t magnitude_bits = 0x7fffffff;
    constexpr auto least = std::bit_cast<uint32_t>(min_reciprocal_divisor);
    constexpr auto span = std::bit_cast<uint32_t>(max_reciprocal_divisor) - least;
    const uint32_t origin = quotient.origin;
    const LaneId one = constant(LaneType::f32, std::bit_cast<uint32_t>(1.0f));
    quotient.c = binary(LaneOp::float_div, LaneType::f32, one, quotient.b, origin);
    const LaneId magnitude = binary(LaneOp::bit_and, LaneType::i32, quotient.b,
                                    constant(LaneType::i32, magnitude_bits), origin);
    const LaneId above_least =
        binary(LaneOp::sub, LaneType::i32, magnitude, constant(LaneType::i32, least), origin);
    quotient.mask = append({.op = LaneOp::compare_unsigned,
                            .type = LaneType::m32,
                            .a = above_least,
                            .b = constant(LaneType::i32, span),
                            .imm = static_cast<int64_t>(IntegerPredicate::greater),
                            .origin = origin});
  }

  const LaneProgram& program_;
  const std::vector<LoopLevel>& levels_;
  std::vector<LaneId> copies_;  // by instruction of the program
  std::vector<LaneInst> code_;
};

}  // namespace

LaneProgram with_reciprocals(const LaneProgram& program, const std::vector<LoopLevel>& sources) {
  LaneProgram reduced = program;
  const auto divides = [](const LaneInst& inst) { return inst.op == LaneOp::float_quotient; };
  if (std::ranges::none_of(program.code, divides)) return reduced;
  reduced.code = Reciprocals(program, loop_levels(program, sources)).run();
  return reduced;
}

}  // namespace castor::jit
