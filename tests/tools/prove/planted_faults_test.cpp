// SPDX-License-Identifier: Apache-2.0
// Faults planted in lane programs and their tables: the prover finds each, and its counterexample
// repeats it.
#include <gtest/gtest.h>

#include "tools/prove/query/counterexample.hpp"
#include "tools/prove/term/evaluate.hpp"

namespace castor::prove {
namespace {

using jit::LaneInst;
using jit::LaneOp;
using jit::LaneProgram;
using enum ElementType;

/// The first instruction of that operation.
LaneInst& first(LaneProgram& program, LaneOp op) {
  for (LaneInst& inst : program.code) {
    if (inst.op == op) return inst;
  }
  ADD_FAILURE() << "no " << name_of(op);
  return program.code.front();
}

LaneInst& store(LaneProgram& program) { return first(program, LaneOp::store); }

/// The constant that is an operand of an instruction.
LaneInst& constant_of(LaneProgram& program, LaneInst& inst) {
  for (const jit::LaneId id : {inst.b, inst.a, inst.c}) {
    if (id == jit::no_lane) continue;
    LaneInst& operand = program.code[static_cast<size_t>(id)];
    if (operand.op == LaneOp::constant) return operand;
  }
  ADD_FAILURE() << "no constant operand";
  return inst;
}

jit::ThresholdTable& thresholds(LaneProgram& program) {
  return program.threshold_tables.at(static_cast<size_t>(store(program).table));
}

jit::ClassTable& classes(LaneProgram& program) {
  return program.class_tables.at(static_cast<size_t>(store(program).table));
}

struct Fault {
  const char* name;
  std::variant<Conversion, ElementwiseOp> what;
  jit::Tier tier;
  void (*plant)(LaneProgram& program);
};

constexpr ConvertOptions saturate = {.overflow = Overflow::saturate};

const Fault faults[] = {
    {"a code in a threshold table", Conversion{bf16, f8e4m3, {}}, jit::Tier::avx512_vbmi,
     [](LaneProgram& p) { thresholds(p).buckets.entries[40] ^= 0x0001; }},
    {"a threshold", Conversion{bf16, f8e4m3, {}}, jit::Tier::avx512_vbmi,
     [](LaneProgram& p) { thresholds(p).buckets.entries[40] ^= 0x0100; }},
    {"the base of the buckets", Conversion{bf16, f8e5m2, {}}, jit::Tier::avx512_vbmi,
     [](LaneProgram& p) { thresholds(p).base += 16; }},
    {"the last bucket", Conversion{bf16, f8e4m3, saturate}, jit::Tier::avx512_vbmi,
     [](LaneProgram& p) { thresholds(p).max -= 16; }},
    {"the sign of zero", Conversion{bf16, f8e4m3fnuz, saturate}, jit::Tier::avx512_vbmi,
     [](LaneProgram& p) { thresholds(p).sign = jit::ThresholdTable::copied; }},
    {"the weight of an exponent", Conversion{i16, f8e4m3, {}}, jit::Tier::avx512_fp16,
     [](LaneProgram& p) { constant_of(p, first(p, LaneOp::dot_u8_pair)).imm ^= 0x0100; }},
    {"the distance of two biases", Conversion{bf16, f8e4m3, {}}, jit::Tier::avx512_fp16,
     [](LaneProgram& p) { constant_of(p, first(p, LaneOp::sub_down_to_zero)).imm += 0x80; }},
    {"the class of an upper byte", Conversion{bf16, i4, {}}, jit::Tier::avx512_vbmi,
     [](LaneProgram& p) { classes(p).classes.entries[0x40] ^= 0x08; }},
    {"a code in a class table", Conversion{f16, u4, {}}, jit::Tier::avx512_vbmi,
     [](LaneProgram& p) { classes(p).codes.entries[2] ^= 1; }},
    {"a NaN that is a number", Conversion{bf16, u2, {}}, jit::Tier::avx512_vbmi,
     [](LaneProgram& p) { classes(p).infinity += 1; }},
    {"a negative number that is kept", Conversion{f16, i2, {}}, jit::Tier::avx512_vbmi,
     [](LaneProgram& p) { classes(p).sign_bit = 0; }},
    {"an entry that is extended", Conversion{f8e4m3, i64, {}}, jit::Tier::avx512_vbmi,
     [](LaneProgram& p) { p.tables.at(0).entries[0x55] ^= 0x8000; }},
    {"a byte of a byte table", Conversion{f8e4m3, f8e5m2, {}}, jit::Tier::avx512_vbmi,
     [](LaneProgram& p) { p.tables.at(0).entries[0x55] ^= 1; }},
    {"an entry of an i32 table", Conversion{nf4, f32, {}}, jit::Tier::avx2,
     [](LaneProgram& p) { p.i32_tables.at(0).entries[3] ^= 1; }},
    {"a constant that rounds", Conversion{f32, bf16, {}}, jit::Tier::avx2,
     [](LaneProgram& p) { constant_of(p, first(p, LaneOp::add)).imm += 1; }},
    {"a sticky bit", Conversion{f64, bf16, {}}, jit::Tier::avx2,
     [](LaneProgram& p) { constant_of(p, first(p, LaneOp::add)).imm = 0; }},
    {"a mask", Conversion{u32, f32, {}}, jit::Tier::avx2,
     [](LaneProgram& p) { constant_of(p, first(p, LaneOp::bit_and)).imm ^= 0x10000; }},
    {"a shift by one too many", Conversion{u64, f64, {}}, jit::Tier::avx2,
     [](LaneProgram& p) { first(p, LaneOp::shift_right).imm += 1; }},
    {"operands of a difference", Conversion{u64, f64, {}}, jit::Tier::avx2,
     [](LaneProgram& p) {
       std::swap(first(p, LaneOp::float_sub).a, first(p, LaneOp::float_sub).b);
     }},
    {"halves of two lanes", Conversion{u64, f64, {}}, jit::Tier::avx2,
     [](LaneProgram& p) {
       std::swap(first(p, LaneOp::combine_halves).a, first(p, LaneOp::combine_halves).b);
     }},
    {"the direction of rounding", Conversion{f64, f32, {}}, jit::Tier::avx512,
     [](LaneProgram& p) {
       first(p, LaneOp::f64_to_f32).imm = static_cast<int64_t>(jit::LaneRounding::toward_zero);
     }},
    {"a store that cuts and does not clamp", Conversion{i32, i8, saturate}, jit::Tier::avx2,
     [](LaneProgram& p) { store(p).narrowing = jit::Narrowing::truncate; }},
    {"a bound of floats", Conversion{f32, u8, {}}, jit::Tier::avx2,
     [](LaneProgram& p) { constant_of(p, first(p, LaneOp::float_min)).imm -= 0x8000; }},
    {"operands of a minimum, for NaN", Conversion{f32, u8, {}}, jit::Tier::avx2,
     [](LaneProgram& p) {
       std::swap(first(p, LaneOp::float_min).a, first(p, LaneOp::float_min).b);
     }},
    {"a sign that is not extended", ElementwiseOp{OpKind::abs, i4}, jit::Tier::avx2,
     [](LaneProgram& p) { first(p, LaneOp::bit_xor).op = LaneOp::bit_or; }},
    {"an unsigned comparison", ElementwiseOp{OpKind::less, i32}, jit::Tier::avx512,
     [](LaneProgram& p) {
       std::swap(first(p, LaneOp::greater_signed).a, first(p, LaneOp::greater_signed).b);
     }},
    {"a predicate", ElementwiseOp{OpKind::less_equal, f32}, jit::Tier::avx512,
     [](LaneProgram& p) {
       first(p, LaneOp::float_compare).imm = static_cast<int64_t>(jit::FloatPredicate::less);
     }},
    {"the other operand's NaN", ElementwiseOp{OpKind::add, f32}, jit::Tier::avx2,
     [](LaneProgram& p) {
       std::swap(first(p, LaneOp::float_add).a, first(p, LaneOp::float_add).b);
     }},
    {"a product that is a quotient", ElementwiseOp{OpKind::mul, bf16}, jit::Tier::avx2,
     [](LaneProgram& p) { first(p, LaneOp::float_mul).op = LaneOp::float_add; }},
    {"a digit of vfixupimm", ElementwiseOp{OpKind::relu, f32}, jit::Tier::avx512,
     [](LaneProgram& p) { constant_of(p, first(p, LaneOp::fix_up)).imm ^= 0x800; }},
    {"a factor of a division by multiplication", ElementwiseOp{OpKind::mod, u8}, jit::Tier::avx2,
     [](LaneProgram& p) { first(p, LaneOp::sub).op = LaneOp::add; }},
};

Result<Subject> subject_of(const Fault& fault) {
  return std::visit([](const auto& what) { return prove::subject_of(what); }, fault.what);
}

TEST(PlantedFaults, AreAllFound) {
  ASSERT_GE(std::size(faults), 20u);
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fault.name);
    Result<Subject> subject = subject_of(fault);
    ASSERT_TRUE(subject);
    subject->tamper = fault.plant;
    Terms terms;
    const Result<Query> query = query_of(*subject, fault.tier, terms);
    ASSERT_TRUE(query) << query.error().message;
    const Verdict verdict = decide(*query, {});
    ASSERT_EQ(verdict.status, Status::wrong) << verdict.reason;
    EXPECT_EQ(evaluate(query->is_wrong, verdict.inputs), Bits{1});
  }
}

TEST(PlantedFaults, BecomeATextThatRepeatsThem) {
  const Fault& fault = faults[0];  // bf16 to f8e4m3
  Result<Subject> subject = subject_of(fault);
  ASSERT_TRUE(subject);
  subject->tamper = fault.plant;
  Terms terms;
  const Result<Query> query = query_of(*subject, fault.tier, terms);
  ASSERT_TRUE(query);
  const Finding finding{*subject, fault.tier, decide(*query, {}), &*query};
  const std::string text = counterexample_text(finding, "castor prove --name 'bf16 -> f8e4m3'");
  const auto has = [&](const std::string& part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has("func @f(%x: bf16[?]) -> (f8e4m3[?]) {")) << text;
  EXPECT_TRUE(has("to repeat: castor prove --name 'bf16 -> f8e4m3' --inputs 0x")) << text;
  const Result<uint64_t> reference = interpreted(*subject->function, finding.verdict.inputs);
  ASSERT_TRUE(reference);
  EXPECT_EQ(*reference, evaluate(query->specified, finding.verdict.inputs));
}

}  // namespace
}  // namespace castor::prove
