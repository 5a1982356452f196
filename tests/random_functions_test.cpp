// SPDX-License-Identifier: Apache-2.0
// Whole functions: random graphs of conversions with several inputs and results, against the
// interpreter on every tier. Many live values force spills; repeated results, results that are
// parameters, and unconnected parts are all drawn.
#include <gtest/gtest.h>

#include <random>

#include "ir/interpreter.hpp"
#include "tests/support/conversions.hpp"

namespace castor {
namespace {

class RandomFunction {
 public:
  explicit RandomFunction(uint64_t seed) : random_(seed) {}

  FunctionPtr make() {
    FunctionBuilder builder("f");
    std::vector<ValueId> values;
    std::vector<ElementType> types;
    const size_t parameters = 1 + below(3);
    const Shape shape = {"?n"};
    for (size_t i = 0; i < parameters; ++i) {
      types.push_back(any_type());
      values.push_back(builder.parameter("", {types.back(), shape}));
    }
    const size_t operations = 1 + below(40);
    for (size_t i = 0; i < operations; ++i) {
      const size_t operand = below(4) == 0 ? below(values.size()) : values.size() - 1;
      const ElementType to = any_type();
      const auto choices = test::conversions_of(types[operand], to);
      const ConvertOptions options = choices[below(choices.size())].options;
      values.push_back(builder.convert(values[operand], to, options));
      types.push_back(to);
    }
    const size_t results = 1 + below(6);
    for (size_t i = 0; i < results; ++i) builder.result(values[below(values.size())]);
    return std::move(builder.finish()).value();
  }

  size_t below(size_t bound) { return random_() % bound; }
  uint64_t seed() { return random_(); }

 private:
  ElementType any_type() {
    static const std::vector<ElementType> types = test::implemented_types();
    return types[below(types.size())];
  }

  std::mt19937_64 random_;
};

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

TEST(RandomFunctions, AgreeWithTheInterpreterOnEveryTier) {
  constexpr uint64_t functions = 400;
  for (uint64_t seed = 1; seed <= functions; ++seed) {
    RandomFunction random(seed);
    const FunctionPtr function = random.make();
    const auto count = static_cast<int64_t>(random.below(300));
    Call call(*function, count, random.seed());
    ASSERT_TRUE(interpret(*function, call.input_views, call.output_views).ok());
    const auto expected = call.outputs;
    for (const auto& [tier, runtime] : test::tier_runtimes()) {
      for (auto& output : call.outputs) std::fill(output.begin(), output.end(), std::byte{0x5a});
      const Result<Kernel> kernel = runtime.compile(function);
      ASSERT_TRUE(kernel.ok()) << print(*function) << kernel.error().message;
      ASSERT_EQ(kernel->engine(), Engine::jit);
      const Result<BoundKernel> bound = kernel->bind(call.input_views, call.output_views);
      ASSERT_TRUE(bound.ok()) << print(*function) << bound.error().message;
      const Status status = bound->run(call.input_views, call.output_views);
      ASSERT_TRUE(status.ok()) << print(*function) << status.error().message;
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(call.outputs[i], expected[i]) << name_of(tier) << ", seed " << seed << ", "
                                                << count << " elements, result " << i << "\n"
                                                << print(*function);
      }
    }
  }
}

/// Thirty results alive at once: more than there are registers, on every tier.
TEST(RandomFunctions, ManyLiveValues) {
  FunctionBuilder builder("wide");
  const ValueId x = builder.parameter("x", {ElementType::f64, {"?n"}});
  std::vector<ValueId> firsts;
  const std::vector<ElementType> types = test::implemented_types();
  for (size_t i = 0; i < 5; ++i) {
    for (ElementType type : types) firsts.push_back(builder.convert(x, type));
  }
  for (size_t i = 0; i < firsts.size(); ++i) builder.result(firsts[i]);
  for (size_t i = firsts.size(); i-- > 0;) {
    builder.result(builder.convert(firsts[i], types[i * 7 % types.size()]));
  }
  const FunctionPtr function = std::move(builder.finish()).value();
  Call call(*function, 77, 5);
  ASSERT_TRUE(interpret(*function, call.input_views, call.output_views).ok());
  const auto expected = call.outputs;
  for (const auto& [tier, runtime] : test::tier_runtimes()) {
    const Result<Kernel> kernel = runtime.compile(function);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    const Result<BoundKernel> bound = kernel->bind(call.input_views, call.output_views);
    ASSERT_TRUE(bound.ok()) << bound.error().message;
    ASSERT_TRUE(bound->run(call.input_views, call.output_views).ok());
    EXPECT_EQ(call.outputs, expected) << name_of(tier);
  }
}

}  // namespace
}  // namespace castor
