// SPDX-License-Identifier: Apache-2.0
// conv_integer among other operations, on every tier against the interpreter; and what binding
// `?` refuses.
#include <algorithm>

#include "ir/interpreter.hpp"
#include "ir/text.hpp"
#include "tests/support/convolution_cases.hpp"
#include "tests/support/convolution_rows.hpp"
#include "tests/support/on_every_engine.hpp"
#include "tests/support/placed_tensors.hpp"

namespace castor::test {
namespace {

using enum ElementType;

/// A function, and extents of its parameters.
struct FunctionRow {
  const char* name;
  std::string text;
  std::vector<Dims> shapes;
};

const std::vector<FunctionRow>& functions() {
  static const std::vector<FunctionRow> rows = {
      {"dequantized",
       "func @f(%x: u8[?, 5, ?, ?], %w: i8[6, 5, 3, 3], %z: u8[], %s: f32[6, 1, 1]) -> (f32[?, 6, "
       "?, ?]) {\n  %y = conv_integer %x, %w, %z {pads = [1, 1, 1, 1]}\n"
       "  %f = convert %y : f32\n  %r = mul %f, %s\n  %c = clamp %r {lo = 0}\n  return %c\n}\n",
       {{2, 5, 6, 7}, {6, 5, 3, 3}, {}, {6, 1, 1}}},
      {"returned_twice",
       "func @f(%x: u8[1, 3, 9], %w: u8[4, 3, 2]) -> (i32[1, 4, 8], i32[1, 4, 8]) {\n"
       "  %y = conv_integer %x, %w\n  return %y, %y\n}\n",
       {{1, 3, 9}, {4, 3, 2}}},
      {"returned_and_read",
       "func @f(%x: i8[1, 3, 9], %w: u8[4, 3, 2], %b: i32[4, 1]) -> (i32[1, 4, 8], i32[1, 4, 8], "
       "f64[1, 4, 8]) {\n  %y = conv_integer %x, %w\n  %z = add %y, %b\n"
       "  %d = convert %y : f64\n  return %z, %y, %d\n}\n",
       {{1, 3, 9}, {4, 3, 2}, {4, 1}}},
      {"chain",
       "func @f(%x: u8[?, ?, ?, ?], %a: i8[?, ?, ?, ?], %b: u8[?, ?, ?, ?], %bz: u8[?]) -> (i32[?, "
       "?, ?, ?]) {\n  %y = conv_integer %x, %a {pads = [1, 1, 1, 1]}\n"
       "  %q = convert %y {overflow = saturate} : i8\n"
       "  %z = conv_integer %q, %b, none, %bz {strides = [2, 1]}\n  return %z\n}\n",
       {{2, 3, 8, 9}, {7, 3, 3, 3}, {5, 7, 2, 3}, {5}}},
      {"residual",
       "func @f(%x: u8[1, 4, 7, 7], %a: i8[4, 4, 3, 3], %b: i8[4, 4, 1, 1]) -> (i32[1, 4, 7, 7]) "
       "{\n"
       "  %y = conv_integer %x, %a {auto_pad = same_upper}\n  %z = conv_integer %x, %b\n"
       "  %s = add %y, %z\n  %t = sub %s, %y\n  %u = max %t, %s\n  return %u\n}\n",
       {{1, 4, 7, 7}, {4, 4, 3, 3}, {4, 4, 1, 1}}},
      {"quantized_first",
       "func @f(%x: f32[1, ?, 6], %w: f16[3, ?, 3], %z: i64[]) -> (i32[1, 3, ?]) {\n"
       "  %q = convert %x {overflow = saturate, rounding = nearest_even} : u8\n"
       "  %v = convert %w {overflow = saturate} : i8\n  %u = convert %z : u8\n"
       "  %y = conv_integer %q, %v, %u {pads = [2, 0]}\n  return %y\n}\n",
       {{1, 5, 6}, {3, 5, 3}, {}}},
      {"one_value_in_all_places",
       "func @f(%x: u8[2, 3, 4], %z: u8[1]) -> (i32[2, 2, 1]) {\n"
       "  %y = conv_integer %x, %x, %z, %z\n  return %y\n}\n",
       {{2, 3, 4}, {1}}},
      {"reshaped",
       "func @f(%x: u8[6, 20], %w: i8[8, 9]) -> (i32[8, 16]) {\n"
       "  %a = reshape %x : [2, 3, 4, 5]\n  %b = reshape %w : [4, 3, 2, 3]\n"
       "  %y = conv_integer %a, %b {pads = [0, 1, 1, 0]}\n  %r = reshape %y : [8, 16]\n"
       "  %t = add %r, %r\n  %s = reshape %t : [8, 16]\n  return %s\n}\n",
       {{6, 20}, {8, 9}}},
      {"broadcast_first",
       "func @f(%x: u8[1, 3, 1], %w: i8[2, 1, 2]) -> (i32[2, 2, 4]) {\n"
       "  %a = broadcast %x : [2, 3, 5]\n  %b = broadcast %w : [2, 3, 2]\n"
       "  %y = conv_integer %a, %b\n  return %y\n}\n",
       {{1, 3, 1}, {2, 1, 2}}},
      {"all_constant",
       "func @f(%b: i32[1, 2, 2]) -> (i32[1, 2, 2], i32[1, 2, 2]) {\n"
       "  %x = constant [1, 2, 3, 4, 5, 255] : u8[1, 2, 3]\n"
       "  %w = constant [1, -2, 3, -4, 5, -6, 7, -128] : i8[2, 2, 2]\n"
       "  %z = constant 7 : u8[]\n  %v = constant [1, -128] : i8[2]\n"
       "  %y = conv_integer %x, %w, %z, %v\n  %s = add %y, %b\n  return %s, %y\n}\n",
       {{1, 2, 2}}},
      {"nobody_reads_it",
       "func @f(%x: u8[1, 2, 3], %w: u8[1, 2, 3]) -> (u8[1, 2, 3]) {\n"
       "  %y = conv_integer %x, %w\n  %r = add %x, %w\n  return %r\n}\n",
       {{1, 2, 3}, {1, 2, 3}}},
      {"channels_last",
       "func @f(%x: u8[?, ?, ?, ?], %w: i8[?, ?, ?, ?], %s: f32[?]) -> (u8[?, ?, ?, ?], i32[?, ?, "
       "?, ?]) {\n  %y = conv_integer %x, %w {layout = nhwc, group = 2, pads = [1, 0, 1, 2]}\n"
       "  %f = convert %y : f32\n  %r = mul %f, %s\n"
       "  %q = convert %r {overflow = saturate, rounding = nearest_even} : u8\n"
       "  return %q, %y\n}\n",
       {{2, 5, 6, 8}, {6, 4, 3, 3}, {6}}},
      {"same_weights_twice",
       "func @f(%x: u8[1, 2, 6], %y: u8[1, 2, 9]) -> (i32[1, 3, 4], i32[1, 3, 7]) {\n"
       "  %w = constant [1, -2, 3, -4, 5, -6, 7, -8, 9, -1, 2, -3, 4, -5, 6, -7, 8, -9] : i8[3, 2, "
       "3]\n  %a = conv_integer %x, %w\n  %b = conv_integer %y, %w\n  return %a, %b\n}\n",
       {{1, 2, 6}, {1, 2, 9}}},
  };
  return rows;
}

/// All results, by the interpreter.
std::vector<Patterns> interpreted_results(const Function& function,
                                          const std::vector<Patterns>& operands) {
  std::vector<std::vector<std::byte>> memory;
  std::vector<ConstView> inputs;
  std::vector<Dims> shapes;
  for (const Patterns& operand : operands) {
    memory.push_back(samples::pack(operand.type, operand.elements));
    inputs.emplace_back(memory.back().data(), operand.type, operand.shape, memory.back().size());
    shapes.push_back(operand.shape);
  }
  const Result<BoundShapes> bound = bind_shapes(function, shapes);
  EXPECT_TRUE(bound) << bound.error().to_string();
  if (!bound) return {};
  std::vector<Patterns> results;
  std::vector<View> outputs;
  for (ValueId value : function.results) {
    results.push_back({function.type_of(value).element, bound->values[value], {}});
    const Patterns& result = results.back();
    const auto count = static_cast<size_t>(element_count(result.shape).value());
    memory.emplace_back(samples::storage_bytes(result.type, count));
    outputs.emplace_back(memory.back().data(), result.type, result.shape, memory.back().size());
  }
  const Status status = interpret(function, inputs, outputs);
  EXPECT_TRUE(status) << status.error().to_string();
  for (size_t i = 0; i < results.size(); ++i) {
    const std::vector<std::byte>& bytes = memory[operands.size() + i];
    const auto count = static_cast<size_t>(element_count(results[i].shape).value());
    for (size_t k = 0; k < count; ++k) {
      results[i].elements.push_back(samples::load_pattern(bytes, results[i].type, k));
    }
  }
  return results;
}

class ConvFunctions : public testing::TestWithParam<FunctionRow> {
 protected:
  Placing draw_placing() { return static_cast<Placing>(random_() % placings); }

  /// Floats are those that bytes are made of, now and then any.
  Patterns draw(ElementType type, const Dims& shape) {
    const auto count = static_cast<size_t>(element_count(shape).value());
    if (random_() % 4 == 0) return {type, shape, samples::random_patterns(type, count, random_())};
    Patterns tensor{type, shape, {}};
    for (size_t i = 0; i < count; ++i) {
      const uint64_t byte = random_() & 0xff;
      tensor.elements.push_back(numerics::convert(byte, u8, type, {}));
    }
    return tensor;
  }

  std::mt19937_64 random_{5};
};

TEST_P(ConvFunctions, AgreesWithTheInterpreter) {
  const auto function = parse_function(GetParam().text);
  ASSERT_TRUE(function) << function.error().to_string();
  for (int round = 0; round < 20; ++round) {
    std::vector<Placed> operands;
    std::vector<Patterns> tensors;
    for (size_t i = 0; i < GetParam().shapes.size(); ++i) {
      const ElementType type = (*function)->type_of((*function)->parameters[i]).element;
      tensors.push_back(draw(type, GetParam().shapes[i]));
      operands.push_back({tensors.back(), draw_placing()});
    }
    std::vector<Placed> expected;
    for (Patterns& result : interpreted_results(**function, tensors)) {
      expected.push_back({std::move(result), draw_placing()});
    }
    ASSERT_EQ(mistake_on_tiers(*function, operands, expected), "") << round;
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, ConvFunctions, testing::ValuesIn(functions()),
                         [](const auto& row) { return std::string(row.param.name); });

/// Empty extents behind `?`: nothing, or zeros.
TEST(ConvIntegerBound, ExtentsOfZero) {
  const std::string text =
      "func @f(%x: u8[?, ?, ?], %w: i8[?, ?, ?], %z: u8[]) -> (i32[?, ?, ?]) {\n"
      "  %y = conv_integer %x, %w, %z {pads = [1, 2]}\n  return %y\n}\n";
  const auto function = parse_function(text);
  ASSERT_TRUE(function) << function.error().to_string();
  struct Row {
    Dims x, w;
  };
  for (const Row& row : {Row{{0, 2, 5}, {3, 2, 2}},
                         {{2, 0, 5}, {3, 0, 2}},
                         {{2, 2, 5}, {0, 2, 2}},
                         {{2, 2, 0}, {3, 2, 3}},
                         {{0, 0, 0}, {0, 0, 1}}}) {
    const auto filled = [](ElementType type, const Dims& shape) {
      return Patterns{type, shape,
                      std::vector<uint64_t>(static_cast<size_t>(element_count(shape).value()), 9)};
    };
    const std::vector<Placed> operands = {
        {filled(u8, row.x)}, {filled(i8, row.w)}, {filled(u8, {})}};
    std::vector<Patterns> tensors;
    for (const Placed& operand : operands) tensors.push_back(operand.tensor);
    std::vector<Placed> expected = {{interpreted_results(**function, tensors)[0]}};
    for (int placing = 0; placing < placings; ++placing) {
      expected[0].placing = static_cast<Placing>(placing);
      EXPECT_EQ(mistake_on_tiers(*function, operands, expected), "") << to_string(row.x);
    }
  }
}

/// y, or what is computed from it, in the memory of an input that is read before.
TEST(ConvIntegerBound, InPlaceOfAnInput) {
  const std::string texts[] = {
      "func @f(%b: i32[1, 4, 8], %x: u8[1, 3, 9], %w: u8[4, 3, 2]) -> (i32[1, 4, 8]) {\n"
      "  %y = conv_integer %x, %w\n  %z = sub %y, %b\n  return %z\n}\n",
      "func @f(%b: i32[1, 4, 8], %x: u8[1, 3, 9], %w: u8[4, 3, 2]) -> (i32[1, 4, 8]) {\n"
      "  %y = conv_integer %x, %w\n  return %y\n}\n",
      "func @f(%b: f32[1, 4, 8], %w: u8[4, 4, 3]) -> (i32[1, 4, 8]) {\n"
      "  %x = convert %b {overflow = saturate} : u8\n"
      "  %y = conv_integer %x, %w {pads = [1, 1]}\n  return %y\n}\n"};
  for (const std::string& text : texts) {
    const auto function = parse_function(text);
    ASSERT_TRUE(function) << function.error().to_string();
    std::vector<Patterns> tensors;
    std::mt19937_64 random(3);
    for (ValueId value : (*function)->parameters) {
      const TensorType& type = (*function)->type_of(value);
      Dims shape;
      for (const Dim& dim : type.shape) shape.push_back(dim.extent);
      Patterns tensor = random_bytes(random, u8, shape);
      tensor.type = type.element;
      if (type.element == f32) {
        for (uint64_t& bits : tensor.elements) bits = numerics::convert(bits, u8, f32, {});
      }
      tensors.push_back(std::move(tensor));
    }
    const Patterns expected = interpreted_results(**function, tensors)[0];
    for (const auto& [tier, runtime] : tier_runtimes()) {
      std::vector<PlacedTensor> sources;
      std::vector<ConstView> inputs;
      for (const Patterns& tensor : tensors) {
        inputs.emplace_back(sources.emplace_back(Placed{tensor}).view());
      }
      View y = sources[0].view();
      y.element = i32;
      const std::vector<View> outputs = {y};
      const auto kernel = runtime.compile(*function);
      ASSERT_TRUE(kernel) << kernel.error().to_string();
      const auto bound = kernel->bind(inputs, outputs);
      ASSERT_TRUE(bound) << bound.error().to_string();
      const Status status = bound->run(inputs, outputs);
      ASSERT_TRUE(status) << status.error().to_string() << "\n" << text;
      Patterns found = sources[0].take();
      found.type = i32;
      EXPECT_EQ(first_difference(expected, found), "") << name_of(tier) << "\n" << text;
    }
  }
}

/// y in the memory of an input that is read after it: refused, or what the inputs were gives.
TEST(ConvIntegerBound, InPlaceOfWhatIsReadLater) {
  const std::string head =
      "func @f(%b: i32[1, 4, 8], %x: u8[1, 3, 9], %w: u8[4, 3, 2]) -> (i32[1, 4, 8], i32[1, 4, 8]) "
      "{\n  %y = conv_integer %x, %w\n";
  const std::string texts[] = {
      head + "  %z = sub %y, %b\n  return %y, %z\n}\n",
      head +
          "  %q = convert %b : u8\n  %v = constant [1, 2, 3, 4] : u8[1, 4, 1]\n"
          "  %c = conv_integer %q, %v\n  %z = add %c, %b\n  return %y, %z\n}\n"};
  for (const std::string& text : texts) {
    const auto function = parse_function(text);
    ASSERT_TRUE(function) << function.error().to_string();
    std::mt19937_64 random(9);
    Patterns b = random_bytes(random, u8, {1, 4, 8});
    b.type = i32;
    const std::vector<Patterns> tensors = {b, random_bytes(random, u8, {1, 3, 9}),
                                           random_bytes(random, u8, {4, 3, 2})};
    const std::vector<Patterns> expected = interpreted_results(**function, tensors);
    for (const auto& [tier, runtime] : tier_runtimes()) {
      PlacedTensor first(Placed{tensors[0]}), x(Placed{tensors[1]}), w(Placed{tensors[2]});
      PlacedTensor z(i32, {1, 4, 8}, Placing::at_end);
      const std::vector<ConstView> inputs = {first.view(), x.view(), w.view()};
      const std::vector<View> outputs = {first.view(), z.view()};
      const auto bound = runtime.compile(*function)->bind(inputs, outputs);
      ASSERT_TRUE(bound) << bound.error().to_string();
      const Status status = bound->run(inputs, outputs);
      if (status) {
        EXPECT_EQ(first_difference(expected[0], first.take()), "") << name_of(tier) << "\n" << text;
        EXPECT_EQ(first_difference(expected[1], z.take()), "") << name_of(tier) << "\n" << text;
      } else {
        EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
        EXPECT_EQ(first_difference(b, first.take()), "") << name_of(tier) << "\n" << text;
      }
    }
  }
}

/// Every engine refuses in the words of the verifier what only bound extents show.
TEST(ConvIntegerBound, RefusalsOfBoundExtents) {
  const std::vector<ConvolutionRow> rows = {
      {{1, 5, 5}, {3, 2, 3}, "", ""},
      {{1, 6, 5}, {4, 2, 3}, "group = 4", ""},
      {{1, 6, 5}, {4, 2, 3}, "group = 3", ""},
      {{1, 2, 5, 6}, {3, 2, 2, 3}, "kernel_shape = [2, 2]", ""},
      {{1, 1, 2}, {1, 1, 3}, "", ""},
      {{1, 1, 9, 4}, {1, 1, 3, 3}, "dilations = [1, 2]", ""},
      {{1, 1, 5}, {1, 1, 0}, "", ""},
      {{1, 1, 5}, {1, 1, 3}, fmt::format("pads = [{}, 0]", INT64_MAX), ""},
      {{1, 1, 5}, {1, 1, 3}, fmt::format("dilations = [{}]", huge_extent), ""},
      {{1, 2, 5}, {3, 2, 3}, "", "", Dims{2}},
      {{1, 2, 5}, {3, 2, 3}, "", "", {}, Dims{2}},
  };
  RuntimeOptions options;
  options.interpret = true;
  const Runtime interpreting = *Runtime::create(options);
  for (const ConvolutionRow& row : rows) {
    std::vector<Dims> extents = {row.x, row.w};
    if (row.x_zero_point) extents.push_back(*row.x_zero_point);
    if (row.w_zero_point) extents.push_back(*row.w_zero_point);
    const std::string expected = inferred(text_of(row, false));
    ASSERT_TRUE(expected.starts_with("conv_integer: ")) << expected;
    std::string open = text_of(row, true);
    const auto parsed = parse_function(open);
    ASSERT_TRUE(parsed) << parsed.error().to_string();
    const auto check = [&](const Runtime& runtime) {
      const auto kernel = runtime.compile(*parsed);
      ASSERT_TRUE(kernel) << kernel.error().to_string();
      const auto bound = kernel->bind(extents);
      ASSERT_FALSE(bound) << open;
      EXPECT_EQ(bound.error().code, ErrorCode::invalid_argument);
      EXPECT_EQ(bound.error().message, expected);
    };
    check(interpreting);
    for (const auto& [tier, runtime] : tier_runtimes()) check(runtime);
  }
}

/// Taps far apart, and positions close to 2^63.
TEST(ConvIntegerBound, HugeDilationsStridesAndPads) {
  struct Row {
    Dims x, w;
    ConvolutionOptions options;
  };
  constexpr int64_t huge = int64_t{1} << 61;
  const Row rows[] = {
      {{1, 1, 2}, {1, 1, 2}, {.dilations = {huge}, .pads = {huge, 0}}},
      {{1, 1, 2}, {1, 1, 2}, {.dilations = {huge}, .pads = {huge, 0}, .strides = {huge}}},
      {{1, 4, 3}, {2, 4, 1}, {.pads = {huge, huge}, .strides = {huge}}},
      {{1, 1, 2}, {1, 1, 2}, {.dilations = {1 << 20}, .pads = {1 << 20, 0}}},
      {{1, 1, 2}, {1, 1, 2}, {.dilations = {int64_t{1} << 30}, .pads = {int64_t{1} << 30, 0}}},
      {{1, 9, 2, 3}, {2, 9, 2, 3}, {.dilations = {4000, 1}, .pads = {4000, 0, 0, 0}}},
      {{1, 1, 2, 2}, {1, 1, 3, 2}, {.dilations = {huge / 2, 1}, .pads = {huge, 1, 0, 0}}},
      {{1, 1, 2, 1, 2},
       {1, 1, 2, 1, 2},
       {.dilations = {huge, 1, 1}, .pads = {huge, 0, 0, 0, 0, 0}}},
      {{1, 1, 3}, {1, 1, 3}, {.strides = {INT64_MAX}}},
      {{1, 64, 9000}, {2, 64, 3}, {.dilations = {4000}}},
      {{1, 256, 33, 33}, {2, 256, 3, 3}, {.dilations = {12, 12}, .pads = {12, 12, 12, 12}}},
  };
  for (const Row& row : rows) {
    std::mt19937_64 random(1);
    const ConvolutionCase made{.options = row.options,
                               .x = random_bytes(random, u8, row.x),
                               .w = random_bytes(random, i8, row.w),
                               .x_zero_point = Patterns{u8, {}, {3}}};
    const FunctionPtr function = function_of(made);
    ASSERT_TRUE(function);
    std::vector<Placed> operands;
    for (const Patterns& operand : made.operands()) operands.push_back({operand});
    const std::vector<Placed> expected = {{interpreted(*function, made.operands())}};
    EXPECT_EQ(mistake_on_tiers(function, operands, expected), "") << print(*function);
  }
}

}  // namespace
}  // namespace castor::test
