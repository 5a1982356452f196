// SPDX-License-Identifier: Apache-2.0
// More live values than there are registers, on every tier. (Random functions are the fuzzer's.)
#include <gtest/gtest.h>

#include "ir/interpreter/interpreter.hpp"
#include "tests/support/conversions.hpp"

namespace castor {
namespace {

/// Buffers of one call.
struct Call {
  std::vector<std::vector<std::byte>> inputs;
  std::vector<std::vector<std::byte>> outputs;
  std::vector<ConstView> input_views;
  std::vector<View> output_views;

  Call(const Function& function, int64_t count, uint64_t seed) {
    for (ValueId parameter : function.parameters) {
      const ElementType type = function.type_of(parameter).element;
      inputs.push_back(
          samples::pack(type, samples::random_patterns(type, static_cast<size_t>(count), seed)));
      input_views.emplace_back(inputs.back().data(), type, Dims{count}, inputs.back().size());
    }
    for (ValueId result : function.results) {
      const ElementType type = function.type_of(result).element;
      outputs.emplace_back(samples::storage_bytes(type, static_cast<size_t>(count)));
      output_views.emplace_back(outputs.back().data(), type, Dims{count}, outputs.back().size());
    }
  }
};

void expect_equal_on_every_tier(const FunctionPtr& function) {
  Call call(*function, 77, 5);
  ASSERT_TRUE(interpret(*function, call.input_views, call.output_views).ok());
  const auto expected = call.outputs;
  for (const auto& [tier, runtime] : test::elementwise_tier_runtimes()) {
    const Result<Kernel> kernel = runtime.compile(function);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    const Result<BoundKernel> bound = kernel->bind(call.input_views, call.output_views);
    ASSERT_TRUE(bound.ok()) << bound.error().message;
    ASSERT_TRUE(bound->run(call.input_views, call.output_views).ok());
    EXPECT_EQ(call.outputs, expected) << name_of(tier);
  }
}

/// Thirty results alive at once: more than there are registers, on every tier.
TEST(LiveValues, SpillsKeepThem) {
  FunctionBuilder builder("wide");
  const ValueId x = builder.parameter("x", {ElementType::f64, {"?n"}});
  std::vector<ValueId> firsts;
  const std::vector<ElementType> types = test::all_element_types();
  for (size_t i = 0; i < 5; ++i) {
    for (ElementType type : types) firsts.push_back(builder.convert(x, type));
  }
  for (size_t i = 0; i < firsts.size(); ++i) builder.result(firsts[i]);
  for (size_t i = firsts.size(); i-- > 0;) {
    builder.result(builder.convert(firsts[i], types[i * 7 % types.size()]));
  }
  expect_equal_on_every_tier(std::move(builder.finish()).value());
}

/// Vectors that wait for their other half in every sink, while one of them looks up codes.
TEST(LiveValues, SinksThatLookUpHaveRegisters) {
  for (ElementType from : {ElementType::u16, ElementType::i32, ElementType::i64}) {
    for (ElementType to : test::all_element_types()) {
      if (bits_of(to) > 8) continue;
      FunctionBuilder builder("sinks");
      const ValueId x = builder.parameter("x", {from, {"?n"}});
      const ValueId code = builder.convert(x, to);
      const ValueId bit =
          builder.convert(x, ElementType::u1_lsb_first, {.overflow = Overflow::saturate});
      for (ValueId result : {bit, code, code, bit}) builder.result(result);
      SCOPED_TRACE(name_of(from));
      SCOPED_TRACE(name_of(to));
      expect_equal_on_every_tier(std::move(builder.finish()).value());
    }
  }
}

}  // namespace
}  // namespace castor
