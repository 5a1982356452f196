// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic in one form: quotients of floats on all operands of a small format, and faults
// that are not taken for right.
#include "tools/prove/query/algebra.hpp"

#include <gtest/gtest.h>

#include <array>

#include "tools/prove/query/quotients.hpp"
#include "tools/prove/query/subjects.hpp"
#include "tools/prove/term/evaluate.hpp"

namespace castor::prove {
namespace {

constexpr int bits = 5;
constexpr Rounding nearest = Rounding::nearest_even;

/// What the form makes of a rounded quotient of floats, on all operands of those signs.
void expect_quotients(FloatFormat format, TermOp op, Rounding rounding, bool is_signed,
                      bool a_is_negative, bool b_is_negative) {
  Terms terms;
  const int free = is_signed ? bits - 1 : bits;
  const auto operand = [&](const char* name, bool is_negative) {
    const Term low = terms.input(name, free);
    return is_signed ? concat(terms.constant(1, is_negative ? 1 : 0), low) : low;
  };
  const Term a = operand("a", a_is_negative);
  const Term b = operand("b", b_is_negative);
  const auto number = [&](const Term& integer) {
    return is_signed ? signed_to_float(format, nearest, integer)
                     : unsigned_to_float(format, nearest, integer);
  };
  const Term quotient = float_div(format, nearest, number(a), number(b));
  Term rounded = quotient;
  if (op == TermOp::float_round) rounded = float_round(format, rounding, quotient);
  const bool to_unsigned = op == TermOp::float_to_unsigned;
  const Term integer = to_unsigned ? float_to_unsigned(format, rounding, 8, rounded)
                                   : float_to_signed(format, rounding, 8, rounded);
  QuotientForm form(std::array{a, b}, is_signed, true);
  const Term copy = form.of(integer);
  for (const uint32_t id : reachable_nodes(std::span(&copy, 1))) {
    EXPECT_NE(terms.node(id).op, TermOp::float_div);
  }
  for (Bits x = 0; x < Bits{1} << free; ++x) {
    for (Bits y = is_signed && b_is_negative ? 0 : 1; y < Bits{1} << free; ++y) {
      const std::array<Bits, 2> v = {x, y};
      ASSERT_EQ(static_cast<uint64_t>(evaluate(copy, v)),
                static_cast<uint64_t>(evaluate(integer, v)))
          << static_cast<int>(x) << " / " << static_cast<int>(y) << ", signs " << a_is_negative
          << b_is_negative;
    }
  }
}

TEST(QuotientForm, IsTheFloatsOnAllOperands) {
  // The least precision for which it holds, and one more.
  for (const FloatFormat format : {FloatFormat{5, bits + 1}, FloatFormat{5, bits + 2}}) {
    for (const Rounding rounding : {Rounding::down, Rounding::toward_zero}) {
      expect_quotients(format, TermOp::float_to_unsigned, rounding, false, false, false);
      expect_quotients(format, TermOp::float_to_signed, rounding, false, false, false);
      for (int signs = 0; signs < 4; ++signs) {
        const bool a = (signs & 1) != 0, b = (signs & 2) != 0;
        expect_quotients(format, TermOp::float_to_signed, rounding, true, a, b);
        if (rounding == Rounding::down) {
          expect_quotients(format, TermOp::float_round, rounding, true, a, b);
        }
      }
    }
  }
}

TEST(QuotientForm, LeavesQuotientsOfFewerBitsThanIntegers) {
  Terms terms;
  const Term a = terms.input("a", bits), b = terms.input("b", bits);
  constexpr FloatFormat format{5, bits};
  const Term quotient = float_div(format, nearest, unsigned_to_float(format, nearest, a),
                                  unsigned_to_float(format, nearest, b));
  QuotientForm form(std::array{a, b}, false, true);
  EXPECT_TRUE(form.of(quotient).same_as(quotient));
}

using jit::LaneInst;
using jit::LaneOp;
using jit::LaneProgram;
using enum ElementType;

LaneInst& first(LaneProgram& program, LaneOp op) {
  for (LaneInst& inst : program.code) {
    if (inst.op == op) return inst;
  }
  ADD_FAILURE() << "no " << name_of(op);
  return program.code.front();
}

struct Row {
  ElementwiseOp op;
  jit::Tier tier;
  void (*plant)(LaneProgram& program);
};

const Row rows[] = {
    {{OpKind::mul, i64},
     jit::Tier::avx2,
     [](LaneProgram& p) { first(p, LaneOp::shift_left).imm -= 1; }},
    {{OpKind::prelu, i64},
     jit::Tier::avx2,
     [](LaneProgram& p) { first(p, LaneOp::add).op = LaneOp::sub; }},
    {{OpKind::squared_difference, u64},
     jit::Tier::avx2,
     [](LaneProgram& p) { first(p, LaneOp::shift_right).imm -= 1; }},
    {{OpKind::div, i32},
     jit::Tier::avx2,
     [](LaneProgram& p) {
       std::swap(first(p, LaneOp::float_div).a, first(p, LaneOp::float_div).b);
     }},
    {{OpKind::div, u32},
     jit::Tier::avx512,
     [](LaneProgram& p) {
       first(p, LaneOp::float_to_unsigned).imm = static_cast<int64_t>(jit::LaneRounding::up);
     }},
    {{OpKind::div, u32},
     jit::Tier::avx2,
     [](LaneProgram& p) {
       first(p, LaneOp::round).imm = static_cast<int64_t>(jit::LaneRounding::nearest_even);
     }},
    {{OpKind::floor_div, i32},
     jit::Tier::avx512,
     [](LaneProgram& p) {
       first(p, LaneOp::float_to_signed).imm = static_cast<int64_t>(jit::LaneRounding::toward_zero);
     }},
    {{OpKind::mod, i32},
     jit::Tier::avx512,
     [](LaneProgram& p) { first(p, LaneOp::sub).op = LaneOp::add; }},
    {{OpKind::floor_div, i64},
     jit::Tier::avx512,
     [](LaneProgram& p) { first(p, LaneOp::sub).op = LaneOp::add; }},
};

TEST(Algebra, ProvesOperationsButNotWithFaultsPlanted) {
  constexpr Steps steps = 4'000'000;
  for (const Row& row : rows) {
    Result<Subject> subject = subject_of(row.op);
    ASSERT_TRUE(subject);
    SCOPED_TRACE(subject->name);
    for (const bool is_tampered : {false, true}) {
      if (is_tampered) subject->tamper = row.plant;
      Terms terms;
      const Result<Query> query = query_of(*subject, row.tier, terms);
      ASSERT_TRUE(query) << query.error().message;
      ASSERT_TRUE(has_algebra(*query));
      double seconds = 0;
      EXPECT_EQ(decided_by_algebra(*query, steps, seconds), !is_tampered);
    }
  }
}

}  // namespace
}  // namespace castor::prove
