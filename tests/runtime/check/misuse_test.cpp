// SPDX-License-Identifier: Apache-2.0
// Misuse of the C++ API, one mistake at a time: numbers that are no enumerators, arrays that are
// none, functions made by hand. Each gives a typed error that names what was found.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>

#include "castor/castor.hpp"
#include "castor/dlpack.hpp"
#include "tests/support/misuse.hpp"

namespace castor::test {
namespace {

/// The numbers of element types, as messages give them.
const std::string type_range = "0 to " + std::to_string(element_type_count - 1);

void expect_refused(const Error* error, ErrorCode code, const std::string& message) {
  ASSERT_NE(error, nullptr) << "expected: " << message;
  EXPECT_EQ(name_of(error->code), name_of(code));
  EXPECT_NE(error->message.find(message), std::string::npos)
      << "found: " << error->message << "\nexpected: " << message;
}
template <class Outcome>
const Error* error_of(const Outcome& outcome) {
  return outcome.ok() ? nullptr : &outcome.error();
}

TEST(Misuse, ElementTypesOfViews) {
  const Runtime runtime = *Runtime::create();
  const Result<BoundKernel> bound = runtime.compile(right_text)->bind({{2, 3}});
  ASSERT_TRUE(bound.ok());
  std::array<float, 6> x = {1, 2, 3, 4, 5, 6};
  std::array<uint8_t, 6> y = {};
  const ConstView input(x.data(), ElementType::f32, {2, 3}, sizeof x);
  const View output(y.data(), ElementType::u8, {2, 3}, sizeof y);
  for (int wild : {element_type_count, element_type_count + 1, 77, 128, 255}) {
    SCOPED_TRACE(wild);
    ConstView bad_input = input;
    bad_input.element = number<ElementType>(wild);
    View bad_output = output;
    bad_output.element = number<ElementType>(wild);
    const std::string said =
        "element type number " + std::to_string(wild) + "; expected " + type_range;
    const auto run = [&](const ConstView& from, const View& to) {
      return bound->run({&from, 1}, {&to, 1});
    };
    expect_refused(error_of(run(bad_input, output)), ErrorCode::invalid_argument,
                   "input %x: " + said);
    expect_refused(error_of(run(input, bad_output)), ErrorCode::invalid_argument,
                   "output 0 (%y): " + said);
    expect_refused(error_of(runtime.convert(bad_input, output)), ErrorCode::invalid_argument,
                   "source: " + said);
    expect_refused(error_of(runtime.convert(input, bad_output)), ErrorCode::invalid_argument,
                   "destination: " + said);
    expect_refused(error_of(dlpack_fields_of_view(bad_output)), ErrorCode::invalid_argument,
                   "view of " + said);
    EXPECT_EQ(name_of(number<ElementType>(wild)), "unknown");
  }
  EXPECT_EQ(y, (std::array<uint8_t, 6>{}));
}

TEST(Misuse, OptionsOfRuntimesKernelsAndRuns) {
  for (const bool interpret : {false, true}) {
    expect_refused(error_of(Runtime::create({.tier = number<Tier>(7), .interpret = interpret})),
                   ErrorCode::invalid_argument, "tier 7, expected 0 to 6");
    expect_refused(error_of(Runtime::create({.tier = number<Tier>(255), .interpret = interpret})),
                   ErrorCode::invalid_argument, "tier 255, expected 0 to 6");
  }
  expect_refused(error_of(Runtime::create({.core = number<Core>(5)})), ErrorCode::invalid_argument,
                 "core 5, expected 0 to 4");
  ObserveOptions observe;
  observe.log_level = number<LogLevel>(4);
  expect_refused(error_of(Runtime::create({.observe = observe})), ErrorCode::invalid_argument,
                 "log_level 4, expected 0 to 3");
  expect_refused(error_of(jit::choose_target(number<Tier>(9))), ErrorCode::invalid_argument,
                 "tier 9, expected 0 to 6");
  EXPECT_EQ(jit::name_of(number<Tier>(200)), "unknown");
  EXPECT_EQ(name_of(number<OpKind>(200)), "unknown");

  const Runtime runtime = *Runtime::create();
  const Result<Kernel> kernel = runtime.compile(right_text);
  ASSERT_TRUE(kernel.ok());
  expect_refused(error_of(kernel->bind({{2, 3}}, {.scratch = number<ScratchOwner>(2)})),
                 ErrorCode::invalid_argument, "scratch 2; expected 0 to 1");
  const Result<BoundKernel> bound = kernel->bind({{2, 3}});
  std::array<float, 6> x = {};
  std::array<uint8_t, 6> y = {9, 9, 9, 9, 9, 9};
  const ConstView input(x.data(), ElementType::f32, {2, 3}, sizeof x);
  const View output(y.data(), ElementType::u8, {2, 3}, sizeof y);
  expect_refused(
      error_of(bound->run({&input, 1}, {&output, 1}, {.stores = number<StorePolicy>(3)})),
      ErrorCode::invalid_argument, "stores 3; expected 0 to 2");
  const ConstView* const no_input = nullptr;
  const View* const no_output = nullptr;
  expect_refused(error_of(bound->run({no_input, 1}, {&output, 1})), ErrorCode::invalid_argument,
                 "no inputs (null); the function has 1");
  expect_refused(error_of(bound->run({&input, 1}, {no_output, 1})), ErrorCode::invalid_argument,
                 "no outputs (null); the function has 1");
  expect_refused(error_of(bound->run({no_input, SIZE_MAX / sizeof(ConstView)}, {&output, 1})),
                 ErrorCode::invalid_argument, "inputs given; the function has 1");
  expect_refused(error_of(kernel->bind({no_input, 1000000}, {&output, 1})),
                 ErrorCode::invalid_argument, "1000000 inputs given; the function has 1");
  const Dims* const no_dims = nullptr;
  expect_refused(error_of(kernel->bind(std::span(no_dims, 1))), ErrorCode::invalid_argument,
                 "no input shapes (null); the function has 1");
  const struct {
    ConvertOptions options;
    const char* message;
  } rows[] = {{{.overflow = number<Overflow>(9)}, "overflow 9, expected 0 to 4"},
              {{.rounding = number<Rounding>(200)}, "rounding 200, expected 0 to 6"},
              {{.nan = number<NanMode>(2)}, "nan 2, expected 0 to 1"}};
  for (const auto& row : rows) {
    expect_refused(error_of(runtime.convert(input, output, row.options)),
                   ErrorCode::invalid_argument, row.message);
    expect_refused(error_of(check_convert_options(ElementType::f32, ElementType::u8, row.options)),
                   ErrorCode::invalid_argument, row.message);
    EXPECT_NE(to_string(row.options).find("unknown"), std::string::npos);
  }
  expect_refused(error_of(check_convert_options(number<ElementType>(99), ElementType::u8, {})),
                 ErrorCode::invalid_argument, "element type 99, expected " + type_range);
  EXPECT_EQ(y, (std::array<uint8_t, 6>{9, 9, 9, 9, 9, 9}));
}

TEST(Misuse, NumbersInBuilders) {
  const auto wild_mode = number<BroadcastMode>(6);
  const std::string modes = "broadcast mode 6, expected 0 to 5";
  const struct {
    std::string message;
    ErrorCode code;
    std::function<void(FunctionBuilder&, ValueId)> step;
  } rows[] = {
      {"element type 99 is not in the table of element types, expected " + type_range,
       ErrorCode::invalid_function,
       [](FunctionBuilder& to, ValueId) {
         to.parameter("p", {number<ElementType>(99), {2}});
       }},
      {"element type 99, expected " + type_range, ErrorCode::invalid_argument,
       [](FunctionBuilder& to, ValueId x) { to.convert(x, number<ElementType>(99)); }},
      {"rounding 7, expected 0 to 6", ErrorCode::invalid_argument,
       [](FunctionBuilder& to, ValueId x) {
         to.convert(x, ElementType::u8, {.rounding = number<Rounding>(7)});
       }},
      {"element type 99, expected " + type_range, ErrorCode::invalid_argument,
       [](FunctionBuilder& to, ValueId) {
         to.constant({number<ElementType>(99), {}}, {});
       }},
      {fmt::format("op 99 is not in the op table, expected 0 to {}", op_count - 1),
       ErrorCode::invalid_function,
       [](FunctionBuilder& to, ValueId x) { to.binary(number<OpKind>(99), x, x); }},
      {"op 255 is not in the op table", ErrorCode::invalid_function,
       [](FunctionBuilder& to, ValueId x) { to.unary(number<OpKind>(255), x); }},
      {fmt::format("op {} is not in the op table", op_count), ErrorCode::invalid_function,
       [](FunctionBuilder& to, ValueId x) {
         to.append({.op = number<OpKind>(op_count), .operands = {x}}, {});
       }},
      {modes, ErrorCode::invalid_argument,
       [=](FunctionBuilder& to, ValueId x) { to.binary(OpKind::add, x, x, {.mode = wild_mode}); }},
      {modes, ErrorCode::invalid_argument,
       [=](FunctionBuilder& to, ValueId x) {
         to.broadcast(x, {2, 2}, {.mode = wild_mode});
       }},
      {modes, ErrorCode::invalid_argument,
       [=](FunctionBuilder& to, ValueId x) { to.select(x, x, x, wild_mode); }},
      {"u64_integer_promotion_target 200, expected " + type_range, ErrorCode::invalid_argument,
       [](FunctionBuilder& to, ValueId x) {
         to.promote(x, x, {.u64_integer_promotion_target = number<ElementType>(200)});
       }},
      {"auto_pad 4, expected 0 to 3", ErrorCode::invalid_argument,
       [](FunctionBuilder& to, ValueId x) {
         to.conv_integer(x, x, {.auto_pad = number<AutoPad>(4)});
       }},
      {"layout 2, expected 0 to 1", ErrorCode::invalid_argument,
       [](FunctionBuilder& to, ValueId x) {
         to.conv_integer(x, x, {.layout = number<ConvolutionLayout>(2)});
       }},
      {"arithmetic 2, expected 0 to 1", ErrorCode::invalid_argument,
       [](FunctionBuilder& to, ValueId x) {
         to.requantize(x, {}, {.arithmetic = number<RequantizeArithmetic>(2)});
       }},
      {"rounding 2, expected 0 to 1", ErrorCode::invalid_argument,
       [](FunctionBuilder& to, ValueId x) {
         to.requantize(x, {}, {.rounding = number<RequantizeRounding>(2)});
       }},
      {"quantized format 4, expected 0 to 3", ErrorCode::invalid_argument,
       [](FunctionBuilder& to, ValueId x) {
         to.requantize(x, Quantization{.format = number<QuantizedFormat>(4)});
       }},
      {"quantized format 9 is not in the table of formats, expected 0 to 3",
       ErrorCode::invalid_function,
       [](FunctionBuilder& to, ValueId) {
         to.parameter("p", quantized_type({.format = number<QuantizedFormat>(9)}, {2}));
       }},
      {"element type 99 is not in the table", ErrorCode::invalid_function,
       [](FunctionBuilder& to, ValueId x) {
         to.result(x, TensorType{number<ElementType>(99), {2}});
       }},
      {"result 0 is value 4294967295", ErrorCode::invalid_function,
       [](FunctionBuilder& to, ValueId) { to.result(no_value); }},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.message);
    FunctionBuilder builder("f");
    const ValueId x = builder.parameter("x", {ElementType::f32, {2}});
    row.step(builder, x);
    const Error* mistake = builder.error();
    expect_refused(mistake, row.code, row.message);
    expect_refused(error_of(builder.finish()), row.code, row.message);
  }
  expect_refused(error_of(promoted_type({number<ElementType>(99)}, {ElementType::u8}, {})),
                 ErrorCode::invalid_argument, "element type 99, expected " + type_range);
}

/// Functions that nobody built: the cache compares them with a known one of the same hash.
TEST(Misuse, FunctionsMadeByHand) {
  const Runtime runtime = *Runtime::create();
  const FunctionPtr good = *parse_function(right_text);
  ASSERT_TRUE(runtime.compile(good).ok());
  const std::function<void(Function&)> spoils[] = {
      [](Function& f) { f.parameters[0] = 1u << 30; },
      [](Function& f) { f.results[0] = no_value; },
      [](Function& f) { f.operations[0].operands[0] = 77; },
      [](Function& f) { f.operations[0].results[0] = 1u << 31; },
      [](Function& f) { f.operations[0].results.clear(); },
      [](Function& f) { f.operations[0].op = number<OpKind>(200); },
      [](Function& f) { f.values.clear(); },
      [](Function& f) { f.values[1].type.element = number<ElementType>(123); },
      [](Function& f) { f.result_types[0].element = number<ElementType>(123); },
      [](Function& f) { f.operations[0].data = nullptr, f.operations[0].target = Shape{1}; },
  };
  for (const auto& spoil : spoils) {
    auto bad = std::make_shared<Function>(*good);
    spoil(*bad);
    const Result<Kernel> kernel = runtime.compile(bad);
    ASSERT_FALSE(kernel.ok());
    EXPECT_EQ(kernel.error().code, ErrorCode::invalid_function) << kernel.error().message;
  }
}

}  // namespace
}  // namespace castor::test
