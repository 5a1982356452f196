// SPDX-License-Identifier: Apache-2.0
// The code of every elementwise op on every type: each instruction belongs to its tier, tiers that
// this machine cannot run included, and the port model knows what each loop costs.
#include <gtest/gtest.h>

#include "ir/text/text.hpp"
#include "jit/dump/dump.hpp"
#include "jit/emit/nest_emitter.hpp"
#include "jit/listing/listing.hpp"
#include "tests/support/conversion_code.hpp"
#include "tests/support/elementwise_cases.hpp"

namespace castor {
namespace {

using test::ElementwiseCase;

/// Remainders of floats are computed in loops of a length that depends on the data.
bool has_a_cost(const ElementwiseCase& row) {
  const bool is_remainder = row.op == OpKind::mod || row.op == OpKind::floor_mod;
  return !is_remainder || !is_float(row.type);
}

/// No core that the port model describes has instructions for f16 lanes.
bool is_modelled(const ElementwiseCase& row, jit::Tier tier) {
  return row.type != ElementType::f16 || !jit::Target{tier}.supports(jit::Feature::avx512_fp16);
}

class ElementwiseCode : public testing::TestWithParam<jit::Tier> {
 protected:
  void check(const ElementwiseCase& row) {
    const jit::Target target{GetParam()};
    const Result<FunctionPtr> function = parse_function(row.text());
    ASSERT_TRUE(function.ok()) << row.name() << ": " << function.error().to_string();
    const std::vector<jit::Nest> nests = jit::plan_nests(**function, target);
    ASSERT_EQ(nests.size(), 1u) << row.name();
    for (const jit::NestForm& form : test::forms_of(nests[0], target)) {
      const Result<jit::MachineCode> code = jit::emit_nest(nests[0], form, target);
      ASSERT_TRUE(code.ok()) << row.name() << ": " << code.error().message;
      const Status status = jit::check_features(*code, target);
      ASSERT_TRUE(status.ok()) << row.name() << ": " << status.error().message;
      const Status hardened = jit::check_hardening(*code);
      ASSERT_TRUE(hardened.ok()) << row.name() << ": " << hardened.error().message;
      EXPECT_LE(code->bytes.size(), 16384u) << row.name();
    }
  }

  void check_costs(const ElementwiseCase& row) {
    const auto codes = jit::emit_annotated(**parse_function(row.text()), jit::Target{GetParam()});
    ASSERT_TRUE(codes.ok()) << row.name() << ": " << codes.error().message;
    for (const jit::MachineCode& code : *codes) {
      for (const jit::CodeLoop& loop : code.loops) {
        const auto cycles = jit::port_cycles(code, loop);
        ASSERT_EQ(cycles.ok(), has_a_cost(row))
            << row.name() << (cycles.ok() ? "" : ": " + cycles.error().message);
        if (!cycles.ok()) continue;
        EXPECT_GT(cycles->bound(), 0) << row.name();
      }
    }
  }
};

TEST_P(ElementwiseCode, HoldsOnlyInstructionsOfItsTier) {
  for (ElementType type : test::all_element_types()) {
    for (const ElementwiseCase& row : test::elementwise_cases(type)) {
      check(row);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(ElementwiseCode, HasACost) {
  for (ElementType type : test::value_types()) {
    for (const ElementwiseCase& row : test::elementwise_cases(type)) {
      if (is_modelled(row, GetParam())) check_costs(row);
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, ElementwiseCode, testing::ValuesIn(test::all_tiers),
                         [](const auto& row) { return std::string(name_of(row.param)); });

}  // namespace
}  // namespace castor
