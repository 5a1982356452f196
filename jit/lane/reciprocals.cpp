// SPDX-License-Identifier: Apache-2.0
#include "jit/lane/reciprocals.hpp"

#include <algorithm>
#include <bit>

#include "jit/lane/quotient_facts.hpp"
#include "jit/lane/rounded_quotients.hpp"

namespace castor::jit {

namespace {

/// Copies a program, with more instructions between.
class Reciprocals {
 public:
  Reciprocals(const LaneProgram& program, const std::vector<LoopLevel>& levels)
      : program_(program), levels_(levels), rounded_(rounded_quotients(program, [&](LaneId id) {
          return has_reciprocal(id) && !QuotientFacts::of(at(id).imm).is_bounded;
        })) {}

  std::vector<LaneInst> run() {
    for (size_t i = 0; i < program_.code.size(); ++i) {
      const auto id = static_cast<LaneId>(i);
      copies_.push_back(rounded_.is_absorbed[i] ? no_lane : copy(id, rounded_.quotient[i]));
    }
    return std::move(code_);
  }

 private:
  const LaneInst& at(LaneId id) const { return program_.code[static_cast<size_t>(id)]; }

  /// Whether an instruction is a bounded product by its second factor, over 1.
  bool is_product(LaneId id) const {
    const LaneInst& inst = at(id);
    if (inst.op != LaneOp::float_quotient || !QuotientFacts::of(inst.imm).is_bounded) return false;
    const bool is_over_one =
        at(inst.b).op == LaneOp::constant && at(inst.b).imm == std::bit_cast<uint32_t>(1.0f);
    return is_over_one && at(inst.a).op == LaneOp::float_mul && at(inst.a).mask == no_lane;
  }

  bool has_reciprocal(LaneId id) const {
    return at(id).op == LaneOp::float_quotient && !is_product(id) &&
           levels_[static_cast<size_t>(at(id).b)] != LoopLevel::chunk &&
           levels_[static_cast<size_t>(id)] == LoopLevel::chunk;
  }

  /// Copies an instruction, or one that does what those do that round a quotient.
  LaneId copy(LaneId id, LaneId rounded) {
    LaneInst inst = at(id);
    if (rounded != no_lane) {
      inst = {.op = LaneOp::quotient_to_signed,
              .type = LaneType::i32,
              .a = at(rounded).a,
              .b = at(rounded).b,
              .origin = inst.origin};
    }
    for_each_operand(inst,
                     [&](LaneId& operand) { operand = copies_[static_cast<size_t>(operand)]; });
    if (rounded != no_lane) {
      add_multipliers(inst);
    } else if (is_product(id)) {
      add_product(inst);
    } else if (has_reciprocal(id)) {
      add_reciprocal(inst);
    }
    return append(inst);
  }

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

  LaneId number(float value) { return constant(LaneType::f32, std::bit_cast<uint32_t>(value)); }
  /// c - a * b.
  LaneId sub_product(LaneId c, LaneId a, LaneId b, uint32_t origin) {
    return append({.op = LaneOp::float_sub_product,
                   .type = LaneType::f32,
                   .a = a,
                   .b = b,
                   .c = c,
                   .origin = origin});
  }

  /// a * r + (a * e, rounded), rounded, with r = 1 / b and e = (1 - r * b) / b, rounded: what r
  /// lacks of 1 / b, for 1 - r * b is exact. The sum before it is rounded is within 2^-47 of a / b
  /// for a and b in [1, 2). Where a has 8 significant bits, that is nearer than any point between
  /// two floats but for two quotients, which round to the right integers all the same:
  /// quotient_test enumerates the cases in which it is nearly not.
  LaneId two_steps(const LaneInst& quotient) {
    const uint32_t origin = quotient.origin;
    const LaneId lacks = sub_product(number(1.0f), reciprocal_of(quotient), quotient.b, origin);
    const LaneId correction = binary(LaneOp::float_div, LaneType::f32, lacks, quotient.b, origin);
    const LaneId negative =
        binary(LaneOp::float_div, LaneType::f32, number(-1.0f), quotient.b, origin);
    const LaneId small = binary(LaneOp::float_mul, LaneType::f32, quotient.a, correction, origin);
    return sub_product(small, quotient.a, negative, origin);
  }

  LaneId reciprocal_of(const LaneInst& quotient) {
    return binary(LaneOp::float_div, LaneType::f32, number(1.0f), quotient.b, quotient.origin);
  }

  /// The lanes where a divisor's magnitude is not from the smallest one to the largest.
  LaneId lanes_beyond(LaneId divisor, float largest, uint32_t origin,
                      float smallest = min_reciprocal_divisor) {
    constexpr uint32_t magnitude_bits = 0x7fffffff;
    const auto least = std::bit_cast<uint32_t>(smallest);
    const uint32_t span = std::bit_cast<uint32_t>(largest) - least;
    const LaneId magnitude = binary(LaneOp::bit_and, LaneType::i32, divisor,
                                    constant(LaneType::i32, magnitude_bits), origin);
    const LaneId above_least =
        binary(LaneOp::sub, LaneType::i32, magnitude, constant(LaneType::i32, least), origin);
    return append({.op = LaneOp::compare_unsigned,
                   .type = LaneType::m32,
                   .a = above_least,
                   .b = constant(LaneType::i32, span),
                   .imm = static_cast<int64_t>(IntegerPredicate::greater),
                   .origin = origin});
  }

  void add_reciprocal(LaneInst& quotient) {
    const bool in_two_steps = QuotientFacts::of(quotient.imm).takes_two_steps();
    quotient.c = in_two_steps ? two_steps(quotient) : reciprocal_of(quotient);
    const bool is_encoded = QuotientFacts::of(quotient.imm).is_encoded;
    quotient.mask =
        lanes_beyond(quotient.b, in_two_steps ? max_two_step_divisor : max_reciprocal_divisor,
                     quotient.origin, is_encoded ? min_encoded_divisor : min_reciprocal_divisor);
  }

  /// A quotient by 1 is the product itself, unless its second factor is small or large.
  void add_product(LaneInst& quotient) {
    const LaneId factor = code_[static_cast<size_t>(quotient.a)].b;
    quotient.c = quotient.a;
    quotient.mask = lanes_beyond(factor, max_reciprocal_divisor, quotient.origin);
    quotient.imm = QuotientFacts{.is_bounded = true, .is_short = true}.imm();
  }

  void add_multipliers(LaneInst& quotient) {
    constexpr uint32_t nan = 0x7fc00000;
    const uint32_t origin = quotient.origin;
    const LaneId reciprocal = reciprocal_of(quotient);
    const LaneId slack = constant(LaneType::i32, reciprocal_slack);
    const LaneId less = binary(LaneOp::sub, LaneType::i32, reciprocal, slack, origin);
    quotient.c = append({.op = LaneOp::select,
                         .type = LaneType::i32,
                         .a = constant(LaneType::i32, nan),
                         .c = less,
                         .mask = lanes_beyond(quotient.b, max_reciprocal_divisor, origin),
                         .origin = origin});
    quotient.mask = binary(LaneOp::add, LaneType::i32, reciprocal, slack, origin);
  }

  const LaneProgram& program_;
  const std::vector<LoopLevel>& levels_;
  const RoundedQuotients rounded_;
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
