// SPDX-License-Identifier: Apache-2.0
// Every elementwise op on every type and every tier against the interpreter: unary ops on all
// values of 8- and 16-bit types, binary ops on all pairs of values of up to 8 bits, boundaries and
// random patterns of wider types. Tensors end at pages that nobody may touch. Expected values
// are computed once and compared with every tier.
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/interpreter/interpreter.hpp"
#include "ir/text/text.hpp"
#include "tests/support/conversions.hpp"
#include "tests/support/elementwise_cases.hpp"
#include "tools/testing/guarded_pages.hpp"

namespace castor {
namespace {

using test::ElementwiseCase;
using test::GuardedPages;

constexpr size_t max_bytes = size_t{1} << 20;
constexpr size_t max_operands = 4;

/// Tensors of one function's inputs and output, each at the end of its own pages.
class GuardedTensors {
 public:
  /// Inputs are every `stride`-th element of their memory.
  GuardedTensors(const Function& function, const std::vector<std::vector<uint64_t>>& operands,
                 size_t stride) {
    const auto count = static_cast<int64_t>(operands[0].size());
    for (size_t i = 0; i < operands.size(); ++i) {
      const ElementType type = function.type_of(function.parameters[i]).element;
      const std::vector<std::byte> packed = samples::pack(type, spread(operands[i], stride));
      std::byte* at = pages(i).at_end(packed.size());
      std::copy(packed.begin(), packed.end(), at);
      inputs_.emplace_back(at, type, Dims{count}, packed.size());
      if (stride > 1) inputs_.back().strides = Dims{static_cast<int64_t>(stride)};
    }
    const ElementType type = function.type_of(function.results[0]).element;
    const size_t bytes = samples::storage_bytes(type, operands[0].size());
    std::byte* at = pages(max_operands).at_end(bytes);
    output_.emplace_back(at, type, Dims{count}, bytes);
    result_ = {at, bytes};
  }

  std::span<const ConstView> inputs() const { return inputs_; }
  std::span<const View> output() const { return output_; }
  std::span<std::byte> result() const { return result_; }
  std::vector<std::byte> copy_of_result() const { return {result_.begin(), result_.end()}; }
  void spoil_result() const { std::fill(result_.begin(), result_.end(), std::byte{0xa5}); }

 private:
  static std::vector<uint64_t> spread(const std::vector<uint64_t>& patterns, size_t stride) {
    std::vector<uint64_t> all;
    for (size_t i = 0; i + 1 < patterns.size(); ++i) {
      all.push_back(patterns[i]);
      all.resize(all.size() + stride - 1, patterns[i + 1]);
    }
    all.push_back(patterns.back());
    return all;
  }

  static GuardedPages& pages(size_t i) {
    static GuardedPages all[max_operands + 1] = {GuardedPages(max_bytes), GuardedPages(max_bytes),
                                                 GuardedPages(max_bytes), GuardedPages(max_bytes),
                                                 GuardedPages(max_bytes)};
    return all[i];
  }

  std::vector<ConstView> inputs_;
  std::vector<View> output_;
  std::span<std::byte> result_;
};

/// The first element that differs, with its operands; empty where none does.
std::string first_difference(const Function& function,
                             const std::vector<std::vector<uint64_t>>& operands,
                             std::span<const std::byte> expected,
                             std::span<const std::byte> actual) {
  const ElementType type = function.type_of(function.results[0]).element;
  for (size_t i = 0; i < operands[0].size(); ++i) {
    const uint64_t wanted = samples::load_pattern(expected, type, i);
    const uint64_t found = samples::load_pattern(actual, type, i);
    if (wanted == found) continue;
    std::string text = "element " + std::to_string(i) + ":";
    char number[40];
    for (const std::vector<uint64_t>& operand : operands) {
      std::snprintf(number, sizeof number, " 0x%llx", static_cast<unsigned long long>(operand[i]));
      text += number;
    }
    std::snprintf(number, sizeof number, ", expected 0x%llx",
                  static_cast<unsigned long long>(wanted));
    text += number;
    std::snprintf(number, sizeof number, ", found 0x%llx", static_cast<unsigned long long>(found));
    return text + number;
  }
  return "bits outside the elements";
}

void check_on_every_tier(const std::string& text,
                         const std::vector<std::vector<uint64_t>>& operands, size_t stride = 1) {
  const Result<FunctionPtr> function = parse_function(text);
  ASSERT_TRUE(function.ok()) << text << function.error().to_string();
  const GuardedTensors tensors(**function, operands, stride);
  const Status defined = interpret(**function, tensors.inputs(), tensors.output());
  ASSERT_TRUE(defined.ok()) << defined.error().message;
  const std::vector<std::byte> expected = tensors.copy_of_result();
  for (const auto& [tier, runtime] : test::elementwise_tier_runtimes()) {
    tensors.spoil_result();
    const Result<Kernel> kernel = runtime.compile(*function);
    ASSERT_TRUE(kernel.ok()) << text << kernel.error().to_string();
    ASSERT_EQ(kernel->engine(), Engine::jit) << kernel->engine_reason();
    const Result<BoundKernel> bound = kernel->bind(tensors.inputs(), tensors.output());
    ASSERT_TRUE(bound.ok()) << text << bound.error().to_string();
    const Status status = bound->run(tensors.inputs(), tensors.output());
    ASSERT_TRUE(status.ok()) << text << status.error().message;
    ASSERT_TRUE(std::ranges::equal(tensors.result(), expected))
        << name_of(tier) << "\n"
        << text << first_difference(**function, operands, expected, tensors.result());
  }
}

class ElementwiseValues : public testing::TestWithParam<ElementType> {};

TEST_P(ElementwiseValues, AgreeWithTheInterpreterOnEveryTier) {
  for (const ElementwiseCase& row : test::elementwise_cases(GetParam())) {
    check_on_every_tier(row.text(), test::operands_of(row));
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, ElementwiseValues, testing::ValuesIn(test::all_element_types()),
                         [](const auto& row) { return test::test_name(row.param); });

/// Several ops in one kernel: what one of them hands on is what the next of the same function alone
/// would read.
std::vector<std::string> chains_of(ElementType type) {
  const std::string t(name_of(type));
  std::vector<std::string> chains;
  const auto chain = [&](const std::string& result, const std::string& body) {
    chains.push_back("func @f(%a: " + t + "[?n], %b: " + t + "[?n]) -> (" + result + "[?n]) {\n" +
                     body + "  return %y\n}\n");
  };
  if (admits(OperandClass::numeric, type)) {
    chain(t,
          "  %c = mul %a, %b\n  %d = add %c, %a\n  %e = neg %d\n  %f = max %e, %b\n"
          "  %m = less %f, %a\n  %g = select %m, %f, %b\n  %y = sub %g, %c\n");
    chain(t,
          "  %c = div %a, %b\n  %d = floor_mod %a, %c\n  %e = abs %d\n  %f = sign %e\n"
          "  %g = relu %c\n  %y = squared_difference %f, %g\n");
    chain(t,
          "  %c = sub %a, %b\n  %d = neg %a\n  %m = less %a, %b\n  %e = select %m, %c, %d\n"
          "  %f = prelu %e, %b\n  %g = min %f, %e\n  %y = clamp %g {lo = -1, hi = 3}\n");
    chain("boolean",
          "  %c = add %a, %b\n  %m = less_equal %a, %c\n  %n = greater %b, %c\n"
          "  %o = not_equal %a, %b\n  %p = logical_xor %m, %n\n"
          "  %q = not %p\n  %r = select %o, %q, %m\n  %y = logical_or %r, %n\n");
  }
  if (is_integer(type)) {
    chain(t,
          "  %c = bitwise_not %a\n  %d = shift_right %c, %b\n  %e = shift_left %d, %b\n"
          "  %f = bitwise_xor %e, %a\n  %g = shift_right %f, %c\n  %y = mul %g, %f\n");
  }
  chain(t,
        "  %m = equal %a, %b\n  %n = less %b, %a\n  %o = logical_or %m, %n\n"
        "  %p = bitwise_not %o\n  %y = select %p, %a, %b\n");
  if (is_boolean(type)) {
    chain("i16", "  %c = select %b, %a, %b\n  %d = select %c, %b, %a\n  %y = convert %d : i16\n");
  }
  return chains;
}

class ElementwiseChains : public testing::TestWithParam<ElementType> {};

TEST_P(ElementwiseChains, AgreeWithTheInterpreterOnEveryTier) {
  const auto operands = test::operands_of({OpKind::equal, GetParam(), ""});
  for (const std::string& text : chains_of(GetParam())) {
    check_on_every_tier(text, operands);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, ElementwiseChains, testing::ValuesIn(test::all_element_types()),
                         [](const auto& row) { return test::test_name(row.param); });

/// Truth values of lanes of one width that meet lanes of another.
class ElementwiseMasks : public testing::TestWithParam<ElementType> {};

TEST_P(ElementwiseMasks, ChangeWidthOnEveryTier) {
  using enum ElementType;
  const std::string t(name_of(GetParam()));
  for (ElementType other : {boolean, u4, i8, f8e5m2, f16, bf16, i32, f32, u64, f64}) {
    const std::string u(name_of(other));
    auto operands = test::operands_of({OpKind::equal, GetParam(), ""});
    for (auto& more : test::operands_of({OpKind::less, other, ""})) operands.push_back(more);
    const size_t count = std::min({operands[0].size(), operands[2].size(), size_t{5001}});
    for (auto& operand : operands) operand.resize(count);
    const std::string inputs =
        "func @f(%a: " + t + "[?n], %b: " + t + "[?n], %c: " + u + "[?n], %d: " + u + "[?n])";
    const std::string masks =
        "  %m = less %a, %b\n  %n = not_equal %c, %d\n  %o = logical_xor %m, %n\n";
    const std::string end = "  return %y\n}\n";
    for (const std::string& text :
         {inputs + " -> (" + u + "[?n]) {\n" + masks + "  %y = select %o, %c, %d\n" + end,
          inputs + " -> (" + t + "[?n]) {\n" + masks + "  %y = select %n, %b, %a\n" + end,
          inputs + " -> (boolean[?n]) {\n" + masks + "  %y = select %m, %n, %o\n" + end,
          inputs + " -> (" + u + "[?n]) {\n" + masks + "  %y = convert %o : " + u + "\n" + end}) {
      check_on_every_tier(text, operands);
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, ElementwiseMasks,
                         testing::Values(ElementType::boolean, ElementType::u1, ElementType::i4,
                                         ElementType::u8, ElementType::f16, ElementType::bf16,
                                         ElementType::u32, ElementType::f32, ElementType::i64,
                                         ElementType::f64),
                         [](const auto& row) { return test::test_name(row.param); });

/// What a small float hands on to the next op of a kernel is its own value, whatever it came from.
class ElementwiseRounding : public testing::TestWithParam<ElementType> {};

TEST_P(ElementwiseRounding, HandsOnWhatWasRounded) {
  const std::string small(name_of(GetParam()));
  for (ElementType from : {ElementType::f64, ElementType::f32, ElementType::f16, ElementType::bf16,
                           ElementType::i32}) {
    const std::string wide(name_of(from));
    std::vector<uint64_t> patterns = samples::boundary_patterns(from);
    for (uint64_t more : samples::random_patterns(from, 50'000, 21)) patterns.push_back(more);
    for (const char* to : {"f32", "f64"}) {
      check_on_every_tier("func @f(%x: " + wide + "[?n]) -> (" + to +
                              "[?n]) {\n  %s = convert %x : " + small +
                              "\n  %y = convert %s : " + to + "\n  return %y\n}\n",
                          {patterns});
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(By, ElementwiseRounding, testing::ValuesIn(test::reals_of_at_most(16)),
                         [](const auto& row) { return test::test_name(row.param); });

/// Every third element of longer tensors, before bytes that nobody may read.
class ElementwiseStrided : public testing::TestWithParam<ElementType> {};

TEST_P(ElementwiseStrided, AgreeWithTheInterpreterOnEveryTier) {
  for (const ElementwiseCase& row : test::elementwise_cases(GetParam())) {
    auto operands = test::operands_of(row);
    for (auto& operand : operands) operand.resize(std::min(operand.size(), size_t{999}));
    check_on_every_tier(row.text(), operands, 3);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, ElementwiseStrided,
                         testing::Values(ElementType::boolean, ElementType::u1, ElementType::i4,
                                         ElementType::u6, ElementType::i8, ElementType::u16,
                                         ElementType::i64, ElementType::f4e2m1, ElementType::f6e2m3,
                                         ElementType::f8e5m2, ElementType::bf16, ElementType::f32,
                                         ElementType::f64),
                         [](const auto& row) { return test::test_name(row.param); });

}  // namespace
}  // namespace castor
