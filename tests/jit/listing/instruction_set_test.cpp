// SPDX-License-Identifier: Apache-2.0
// Every instruction of every conversion belongs to its tier: all tiers are checked, those that
// this machine cannot run included.
#include <gtest/gtest.h>

#include <regex>

#include "jit/dump/dump.hpp"
#include "jit/emit/nest_emitter.hpp"
#include "jit/listing/listing.hpp"
#include "tests/support/conversion_code.hpp"

namespace castor {
namespace {

class InstructionSet : public testing::TestWithParam<jit::Tier> {};

TEST_P(InstructionSet, HoldsEveryConversion) {
  const jit::Target target{GetParam()};
  for (const test::Conversion& conversion : test::all_conversions()) {
    for (const jit::Nest& nest : jit::plan_nests(*test::function_of(conversion), target)) {
      for (const jit::NestForm& form : test::forms_of(nest, target)) {
        const Result<jit::MachineCode> code = jit::emit_nest(nest, form, target);
        ASSERT_TRUE(code.ok()) << conversion.name() << ": " << code.error().message;
        const Status status = jit::check_features(*code, target);
        ASSERT_TRUE(status.ok()) << conversion.name() << ": " << status.error().message;
        const Status hardened = jit::check_hardening(*code);
        ASSERT_TRUE(hardened.ok()) << conversion.name() << ": " << hardened.error().message;
        EXPECT_EQ(code->spills, 0) << conversion.name();
        // Each copy from or to any bit is long: of runs, of elements apart, in one pass or several.
        const size_t limit = form.has(jit::Access::bitwise) ? 5120 : 4096;
        EXPECT_LE(code->bytes.size(), limit) << conversion.name();
      }
    }
  }
}

/// No core that the port model describes has instructions for f16 lanes.
bool lacks_f16_lanes(const Error& error, jit::Tier tier) {
  const std::regex f16_instruction("the port model has no cost for v([a-z0-9]*)(ph|ph2[a-z]+) .*");
  return jit::Target{tier}.supports(jit::Feature::avx512_fp16) &&
         std::regex_match(error.message, f16_instruction);
}

TEST_P(InstructionSet, EveryLoopHasACost) {
  const jit::Target target{GetParam()};
  for (const test::Conversion& conversion : test::all_conversions()) {
    const auto codes = jit::emit_annotated(*test::function_of(conversion), target);
    ASSERT_TRUE(codes.ok()) << conversion.name() << ": " << codes.error().message;
    for (const jit::MachineCode& code : *codes) {
      for (const jit::CodeLoop& loop : code.loops) {
        const auto cycles = jit::port_cycles(code, loop);
        if (!cycles.ok() && lacks_f16_lanes(cycles.error(), GetParam())) continue;
        ASSERT_TRUE(cycles.ok()) << conversion.name() << ": " << cycles.error().message;
        EXPECT_GT(cycles->bound(), 0) << conversion.name();
      }
    }
  }
}

TEST_P(InstructionSet, EmissionIsAPureFunction) {
  const jit::Target target{GetParam()};
  const test::Conversion conversion{ElementType::f64, ElementType::u8, {}};
  const auto nests = jit::plan_nests(*test::function_of(conversion), target);
  const jit::NestForm form = jit::NestForm::dense(2);
  const auto first = jit::emit_nest(nests[0], form, target);
  const auto second = jit::emit_nest(nests[0], form, target);
  jit::EmitOptions annotated;
  annotated.annotate = true;
  const auto third = jit::emit_nest(nests[0], form, target, annotated);
  ASSERT_TRUE(first.ok() && second.ok() && third.ok());
  EXPECT_EQ(first->bytes, second->bytes);
  EXPECT_EQ(first->bytes, third->bytes);
}

INSTANTIATE_TEST_SUITE_P(Tiers, InstructionSet, testing::ValuesIn(test::all_tiers),
                         [](const auto& row) { return std::string(name_of(row.param)); });

}  // namespace
}  // namespace castor
