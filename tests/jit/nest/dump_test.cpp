// SPDX-License-Identifier: Apache-2.0
// The stages of the lowering as text: nests, and the operations of lane programs.
#include "jit/dump/dump.hpp"

#include <gtest/gtest.h>

#include "ir/text/text.hpp"
#include "jit/lane/builder.hpp"

namespace castor::jit {
namespace {

FunctionPtr function_of(std::string_view text) { return std::move(parse_function(text)).value(); }

constexpr std::string_view two_results =
    "func @f(%x: i32[?n]) -> (u8[?n], i32[?n]) {\n"
    "  %y = convert %x {overflow = saturate} : u8\n"
    "  return %y, %x\n}\n";

TEST(DumpNest, NamesPortsAndSaysWhatTheLoopsDo) {
  EXPECT_EQ(*dump_nest(*function_of(two_results), {Tier::avx2}),
            "nest 0 (avx2):\n"
            "  loops    1\n"
            "  source0  %x: i32, contiguous\n"
            "  sink0    %y: u8, contiguous, result 0\n"
            "  sink1    %x: i32, contiguous, result 1\n"
            "  chunk    8 lanes, the widest of 32 bits, in vectors of 256 bits\n"
            "  main     4 chunks an iteration: 32 elements, 128 B read, 160 B written; narrow "
            "results packed to whole vectors\n"
            "  tail     chunk by chunk, through a stage on the stack\n");
}

TEST(DumpNest, ShowsAFormThatHasNoMainLoop) {
  const FunctionPtr function = function_of(two_results);
  const Target target{Tier::avx512};
  NestForm form = NestForm::dense(3);
  form.rank = 2;
  form.access[0] = Access::strided;
  const std::string text = print(*function, plan_nests(*function, target)[0], form, target);
  for (const char* line : {"  loops    2\n", "  source0  %x: i32, strided\n",
                           "  main     none: a strided operand is copied chunk by chunk\n",
                           "  tail     chunk by chunk, masked\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << text;
  }
}

TEST(DumpLanes, GroupsOperationsByTheIrOperation) {
  const std::string text = *dump_lanes(*function_of(two_results), {Tier::avx2});
  EXPECT_TRUE(text.starts_with("nest 0 (avx2): 8 lanes; ")) << text;
  EXPECT_NE(text.find("\n  // %y = convert %x {overflow = saturate} : u8\n"
                      "  %0: i32 = load source0:i32\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  sink0: u8 = store %0 saturate_to_unsigned\n"), std::string::npos) << text;
}

// ---- the operations of lane programs

TEST(LanePrint, ConstantsStandAsValues) {
  struct Row {
    LaneType type;
    uint64_t bits;
    const char* text;
  };
  const Row rows[] = {
      {LaneType::i32, 9, "9"},
      {LaneType::i32, 255, "0xff"},
      {LaneType::i8, ~uint64_t{0}, "0xff"},
      {LaneType::i64, ~uint64_t{0}, "0xffffffffffffffff"},
      {LaneType::f32, 0x437f0000, "255.0"},
      {LaneType::f32, 0x80000000, "-0.0"},
      {LaneType::f32, 0x5f000000, "0x1p+63"},
      {LaneType::f32, 0x7fc00000, "0x7fc00000"},
      {LaneType::f64, 0x41dfffffffc00000, "2147483647.0"},
      {LaneType::f64, 0x3fe0000000000000, "0.5"},
      {LaneType::f64, 0xfff0000000000000, "0xfff0000000000000"},
  };
  for (const Row& row : rows) {
    LaneProgram program;
    program.code.push_back(
        {.op = LaneOp::constant, .type = row.type, .imm = static_cast<int64_t>(row.bits)});
    EXPECT_EQ(print(program, 0),
              "%0: " + std::string(name_of(row.type)) + " = constant " + row.text);
  }
}

TEST(LanePrint, OperandsMasksAndPorts) {
  LaneProgram program;
  program.sources = {{ElementType::f32}};
  program.sinks = {{ElementType::u8}};
  const Target target{Tier::avx512};
  LaneBuilder builder(target, program);
  const LaneId x = builder.load(0, LaneType::f32);
  const LaneId min = builder.float_min(x, builder.float_constant(LaneType::f32, 2.5));
  const LaneId below = builder.compare(FloatPredicate::less, x, min);
  const LaneId chosen = builder.select(below, min, x);
  const LaneId zeroed = builder.zero_unless(below, chosen);
  const LaneId whole = builder.float_to_signed(zeroed, 32, LaneRounding::down);
  builder.store(0, whole, Narrowing::saturate_to_unsigned);
  EXPECT_EQ(print(program, x), "%0: f32 = load source0:f32");
  EXPECT_EQ(print(program, min), "%2: f32 = float_min %0 2.5");
  EXPECT_EQ(print(program, below), "%3: m32 = float_compare %0 %2 less");
  EXPECT_EQ(print(program, chosen), "%4: f32 = select %2 where %3 else %0");
  EXPECT_EQ(print(program, zeroed), "%5: f32 = select %4 where %3 else 0");
  EXPECT_EQ(print(program, whole), "%6: i32 = float_to_signed %5 down");
  EXPECT_EQ(print(program, whole + 1), "sink0: u8 = store %6 saturate_to_unsigned");
}

}  // namespace
}  // namespace castor::jit
