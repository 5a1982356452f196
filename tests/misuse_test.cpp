// SPDX-License-Identifier: Apache-2.0
// Misuse of the C++ API: numbers that are no enumerators, arrays that are none, and random calls
// with views, shapes and options that cannot be. Each gives a typed error or the right result.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>

#include "castor/castor.hpp"
#include "castor/dlpack.hpp"
#include "tests/support/guarded_pages.hpp"
#include "tools/fuzz/random.hpp"

namespace castor::test {
namespace {

using fuzz::Random;

template <class Enumeration>
Enumeration number(int value) {
  return static_cast<Enumeration>(value);
}

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

// ---- One number at a time.

constexpr std::string_view text =
    "func @f(%x: f32[2, 3]) -> (u8[2, 3]) {\n  %y = convert %x : u8\n  return %y\n}\n";

TEST(Misuse, ElementTypesOfViews) {
  const Runtime runtime = *Runtime::create();
  const Result<BoundKernel> bound = runtime.compile(text)->bind({{2, 3}});
  ASSERT_TRUE(bound.ok());
  std::array<float, 6> x = {1, 2, 3, 4, 5, 6};
  std::array<uint8_t, 6> y = {};
  const ConstView input(x.data(), ElementType::f32, {2, 3}, sizeof x);
  const View output(y.data(), ElementType::u8, {2, 3}, sizeof y);
  for (int wild : {31, 32, 77, 128, 255}) {
    SCOPED_TRACE(wild);
    ConstView bad_input = input;
    bad_input.element = number<ElementType>(wild);
    View bad_output = output;
    bad_output.element = number<ElementType>(wild);
    const std::string said = "element type number " + std::to_string(wild) + "; expected 0 to 30";
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
    expect_refused(error_of(Runtime::create({.tier = number<Tier>(5), .interpret = interpret})),
                   ErrorCode::invalid_argument, "tier 5, expected 0 to 4");
    expect_refused(error_of(Runtime::create({.tier = number<Tier>(255), .interpret = interpret})),
                   ErrorCode::invalid_argument, "tier 255, expected 0 to 4");
  }
  ObserveOptions observe;
  observe.log_level = number<LogLevel>(4);
  expect_refused(error_of(Runtime::create({.observe = observe})), ErrorCode::invalid_argument,
                 "log_level 4, expected 0 to 3");
  expect_refused(error_of(jit::choose_target(number<Tier>(9))), ErrorCode::invalid_argument,
                 "tier 9, expected 0 to 4");
  EXPECT_EQ(jit::name_of(number<Tier>(200)), "unknown");
  EXPECT_EQ(name_of(number<OpKind>(200)), "unknown");

  const Runtime runtime = *Runtime::create();
  const Result<Kernel> kernel = runtime.compile(text);
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
                 ErrorCode::invalid_argument, "element type 99, expected 0 to 30");
  EXPECT_EQ(y, (std::array<uint8_t, 6>{9, 9, 9, 9, 9, 9}));
}

TEST(Misuse, NumbersInBuilders) {
  const auto wild_mode = number<BroadcastMode>(5);
  const std::string modes = "broadcast mode 5, expected 0 to 4";
  const struct {
    std::string message;
    ErrorCode code;
    std::function<void(FunctionBuilder&, ValueId)> step;
  } rows[] = {
      {"element type 31 is not in the table of element types, expected 0 to 30",
       ErrorCode::invalid_function,
       [](FunctionBuilder& to, ValueId) {
         to.parameter("p", {number<ElementType>(31), {2}});
       }},
      {"element type 99, expected 0 to 30", ErrorCode::invalid_argument,
       [](FunctionBuilder& to, ValueId x) { to.convert(x, number<ElementType>(99)); }},
      {"rounding 7, expected 0 to 6", ErrorCode::invalid_argument,
       [](FunctionBuilder& to, ValueId x) {
         to.convert(x, ElementType::u8, {.rounding = number<Rounding>(7)});
       }},
      {"element type 99, expected 0 to 30", ErrorCode::invalid_argument,
       [](FunctionBuilder& to, ValueId) {
         to.constant({number<ElementType>(99), {}}, {});
       }},
      {"op 99 is not in the op table, expected 0 to 45", ErrorCode::invalid_function,
       [](FunctionBuilder& to, ValueId x) { to.binary(number<OpKind>(99), x, x); }},
      {"op 255 is not in the op table", ErrorCode::invalid_function,
       [](FunctionBuilder& to, ValueId x) { to.unary(number<OpKind>(255), x); }},
      {"op 46 is not in the op table", ErrorCode::invalid_function,
       [](FunctionBuilder& to, ValueId x) {
         to.append({.op = number<OpKind>(46), .operands = {x}}, {});
       }},
      {modes, ErrorCode::invalid_argument,
       [=](FunctionBuilder& to, ValueId x) { to.binary(OpKind::add, x, x, {.mode = wild_mode}); }},
      {modes, ErrorCode::invalid_argument,
       [=](FunctionBuilder& to, ValueId x) {
         to.broadcast(x, {2, 2}, {.mode = wild_mode});
       }},
      {modes, ErrorCode::invalid_argument,
       [=](FunctionBuilder& to, ValueId x) { to.select(x, x, x, wild_mode); }},
      {"u64_integer_promotion_target 200, expected 0 to 30", ErrorCode::invalid_argument,
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
                 ErrorCode::invalid_argument, "element type 99, expected 0 to 30");
}

/// Functions that nobody built: the cache compares them with a known one of the same hash.
TEST(Misuse, FunctionsMadeByHand) {
  const Runtime runtime = *Runtime::create();
  const FunctionPtr good = *parse_function(text);
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

// ---- Random misuse.

constexpr std::string_view texts[] = {
    text,
    "func @f(%x: f32[?a, ?b], %y: f32[?b]) -> (f16[?a, ?b]) {\n"
    "  %s = add %x, %y\n  %h = convert %s : f16\n  return %h\n}\n",
    "func @f(%x: u4[?n]) -> (i8[?n], u4[?n]) {\n  %y = convert %x : i8\n  return %y, %x\n}\n",
    "func @f(%x: u8[1, ?c, ?h, ?w], %w: i8[4, ?c, 2, 2]) -> (i32[1, 4, ?, ?]) {\n"
    "  %y = conv_integer %x, %w {pads = [0, 1, 1, 0]}\n  return %y\n}\n",
    "func @f(%x: fx8<frac = 4>[?n, 3]) -> (sa8<scale = 3, frac = 5, zero_point = 1>[?n, 3]) {\n"
    "  %y = requantize %x : sa8<scale = 3, frac = 5, zero_point = 1>\n  return %y\n}\n",
};
constexpr int64_t hostile_numbers[] = {0,
                                       1,
                                       -1,
                                       2,
                                       3,
                                       7,
                                       INT64_MAX,
                                       INT64_MIN,
                                       1LL << 62,
                                       1LL << 31,
                                       -(1LL << 32),
                                       INT64_MAX - 1,
                                       1LL << 40,
                                       4611686018427387905};
constexpr size_t page_room = 4096;

/// One call that may be wrong in several ways.
class HostileCall {
 public:
  HostileCall(Random& random, const Function& function) : random_(random), function_(function) {
    const std::map<std::string, int64_t> sizes = {{"a", 3}, {"b", 5}, {"n", 9},
                                                  {"c", 4}, {"h", 5}, {"w", 6}};
    for (ValueId id : function.parameters) {
      Dims shape;
      for (const Dim& dim : function.type_of(id).shape) {
        shape.push_back(dim.is_fixed() ? dim.extent : sizes.at(dim.name));
      }
      shapes.push_back(shape);
    }
  }

  /// Tensors that fit, each in front of an inaccessible page.
  void make_views(const BoundKernel& bound) {
    for (size_t i = 0; i < shapes.size(); ++i) {
      const ElementType element = function_.type_of(function_.parameters[i]).element;
      const size_t bytes = bytes_of(element, shapes[i]);
      inputs.emplace_back(memory(0).at_end(bytes), element, shapes[i], bytes);
    }
    for (size_t i = 0; i < function_.results.size(); ++i) {
      const ElementType element = function_.type_of(function_.results[i]).element;
      const Dims& shape = bound.output_shapes()[i];
      const size_t bytes = bytes_of(element, shape);
      outputs.emplace_back(memory(0xA5).at_end(bytes), element, shape, bytes);
    }
  }

  void spoil_shapes() {
    Dims& shape = shapes[random_.below(shapes.size())];
    spoil(shape);
  }

  void spoil_views() {
    switch (random_.below(7)) {
      case 0: inputs.resize(random_.below(4)); break;
      case 1: outputs.resize(random_.below(4)); break;
      case 2: stores = number<StorePolicy>(static_cast<int>(random_.below(256))); break;
      case 3: scratch_bytes = random_.below(200); break;
      default:
        if (random_.percent(50) && !inputs.empty()) {
          spoil(inputs[random_.below(inputs.size())]);
        } else if (!outputs.empty()) {
          spoil(outputs[random_.below(outputs.size())]);
        }
    }
  }

  Status run(const BoundKernel& bound) {
    alignas(scratch_alignment) std::array<std::byte, 256> scratch;
    RunOptions options;
    options.stores = stores;
    if (scratch_bytes) options.scratch = std::span(scratch).subspan(1, *scratch_bytes);
    return bound.run(inputs, outputs, options);
  }

  /// What the outputs' memory still holds after a call that failed.
  bool are_outputs_untouched() const {
    for (size_t i = inputs_made(); i < pages_.size(); ++i) {
      if (!pages_[i]->is_filled_but({}, std::byte{0xA5})) return false;
    }
    return true;
  }

  std::vector<Dims> shapes;
  std::vector<ConstView> inputs;
  std::vector<View> outputs;
  StorePolicy stores = StorePolicy::automatic;
  std::optional<size_t> scratch_bytes;

 private:
  size_t inputs_made() const { return function_.parameters.size(); }
  static size_t bytes_of(ElementType element, const Dims& shape) {
    return static_cast<size_t>(*byte_size(element, *element_count(shape)));
  }
  GuardedPages& memory(uint8_t fill) {
    pages_.push_back(std::make_unique<GuardedPages>(page_room));
    pages_.back()->fill(std::byte{fill});
    return *pages_.back();
  }
  void spoil(Dims& dims) {
    const size_t how = random_.below(3);
    if (how == 0 || dims.empty()) {
      for (size_t i = random_.below(20); i > 0; --i) dims.push_back(random_.pick(hostile_numbers));
    } else if (how == 1) {
      dims = Dims(std::span(dims.begin(), random_.below(static_cast<size_t>(dims.rank()))));
    } else {
      dims[static_cast<int>(random_.below(static_cast<size_t>(dims.rank())))] =
          random_.pick(hostile_numbers);
    }
  }
  /// `bytes` never says more than there is: that a caller may not.
  template <class Pointer>
  void spoil(BasicView<Pointer>& view) {
    switch (random_.below(7)) {
      case 0: view.element = number<ElementType>(static_cast<int>(random_.below(256))); break;
      case 1: spoil(view.shape); break;
      case 2: spoil(view.strides); break;
      case 3: view.offset = random_.pick(hostile_numbers); break;
      case 4: view.bytes = random_.below(view.bytes + 1); break;
      case 5: view.data = nullptr; break;
      default: view.data = outputs.empty() ? view.data : outputs[0].data; break;
    }
  }

  Random& random_;
  const Function& function_;
  std::vector<std::unique_ptr<GuardedPages>> pages_;
};

void expect_typed(const Error& error) {
  EXPECT_TRUE(error.code == ErrorCode::invalid_argument ||
              error.code == ErrorCode::invalid_function || error.code == ErrorCode::unsupported ||
              error.code == ErrorCode::out_of_memory)
      << name_of(error.code) << ": " << error.message;
  EXPECT_FALSE(error.message.empty());
}

TEST(Misuse, RandomCalls) {
  const Runtime runtime = *Runtime::create();
  size_t refused = 0;
  size_t done = 0;
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Result<Kernel> kernel = runtime.compile(random.pick(texts));
    ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
    HostileCall call(random, kernel->function());
    const Result<BoundKernel> bound = kernel->bind(call.shapes);
    ASSERT_TRUE(bound.ok()) << bound.error().message;
    call.make_views(*bound);
    if (random.percent(20)) call.spoil_shapes();
    if (Result<BoundKernel> other = kernel->bind(call.shapes); !other.ok()) {
      expect_typed(other.error());
    }
    for (size_t count = random.below(4); count > 0; --count) call.spoil_views();
    if (random.percent(30)) {
      Result<BoundKernel> other = kernel->bind(call.inputs, call.outputs);
      if (!other.ok()) expect_typed(other.error());
    }
    const Status status = call.run(*bound);
    if (status.ok()) {
      ++done;
    } else {
      ++refused;
      expect_typed(status.error());
      ASSERT_TRUE(call.are_outputs_untouched());
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(refused, 5000u);
  EXPECT_GT(done, 2000u);
}

ElementType any_element(Random& random) {
  return number<ElementType>(static_cast<int>(random.below(random.percent(80) ? 31 : 256)));
}

Shape any_shape(Random& random) {
  Shape shape;
  for (size_t axis = random.below(random.percent(95) ? 4 : 20); axis > 0; --axis) {
    switch (random.below(5)) {
      case 0: shape.push_back(Dim::named(random.percent(90) ? "n" : "no name")); break;
      case 1: shape.push_back(Dim::any()); break;
      case 2: shape.push_back(random.pick(hostile_numbers)); break;
      default: shape.push_back(static_cast<int64_t>(1 + random.below(4)));
    }
  }
  return shape;
}

Attributes any_attributes(Random& random) {
  constexpr const char* names[] = {"overflow", "mode", "axis", "axes", "pads", "group", "lo", ""};
  Attributes attributes;
  for (size_t count = random.below(3); count > 0; --count) {
    AttributeValue value{random.pick(hostile_numbers)};
    if (random.percent(30)) value = {Identifier{"saturate"}};
    if (random.percent(20)) value = {AttributeValue::List(random.below(20), value)};
    attributes.push_back({random.pick(names), value});
  }
  return attributes;
}

/// One step of building, with values that there may not be and numbers that may be anything.
void any_step(Random& random, FunctionBuilder& to, ValueId& last) {
  const auto value = [&]() -> ValueId {
    if (random.percent(3))
      return random.percent(50) ? no_value : static_cast<ValueId>(random.next());
    return static_cast<ValueId>(random.below(size_t{last} + 1));
  };
  const auto byte = [&](size_t count) {
    return static_cast<int>(random.below(random.percent(95) ? count : 256));
  };
  const BroadcastRule rule{.mode = number<BroadcastMode>(byte(5)),
                           .axis = random.percent(80) ? -1 : random.pick(hostile_numbers),
                           .axes = {}};
  ValueId made = no_value;
  switch (random.below(12)) {
    case 0: made = to.parameter("", {any_element(random), any_shape(random)}); break;
    case 1:
      made = to.convert(
          value(), any_element(random),
          {number<Overflow>(byte(4)), number<Rounding>(byte(7)), number<NanMode>(byte(2))});
      break;
    case 2: made = to.binary(number<OpKind>(byte(op_count)), value(), value(), rule); break;
    case 3: made = to.unary(number<OpKind>(byte(op_count)), value()); break;
    case 4: made = to.select(value(), value(), value(), rule.mode); break;
    case 5: made = to.broadcast(value(), any_shape(random), rule); break;
    case 6: made = to.reshape(value(), any_shape(random)); break;
    case 7:
      made =
          to.promote(value(), value(), {.u64_integer_promotion_target = any_element(random)}).first;
      break;
    case 8:
      made = to.conv_integer(value(), value(),
                             {.auto_pad = number<AutoPad>(byte(4)),
                              .group = random.pick(hostile_numbers),
                              .layout = number<ConvolutionLayout>(byte(2)),
                              .strides = {random.pick(hostile_numbers), 1}},
                             value());
      break;
    case 9:
      made = to.requantize(value(), Quantization{.format = number<QuantizedFormat>(byte(4)),
                                                 .axis = byte(3) - 1,
                                                 .frac = std::vector<int32_t>(random.below(3))});
      break;
    case 10: made = to.constant({any_element(random), any_shape(random)}, {}); break;
    default:
      made = to.append({.op = number<OpKind>(byte(op_count)),
                        .operands = std::vector<ValueId>(random.below(4), value()),
                        .attributes = any_attributes(random)},
                       {.element = any_element(random), .shape = any_shape(random)});
  }
  if (made != no_value) last = made;
}

TEST(Misuse, RandomFunctions) {
  const Runtime runtime = *Runtime::create();
  size_t built = 0;
  for (uint64_t seed = 0; seed < 30000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    FunctionBuilder builder("f");
    ValueId last = builder.parameter("x", {any_element(random), any_shape(random)});
    if (last == no_value) last = 0;
    for (size_t count = random.below(4); count > 0; --count) any_step(random, builder, last);
    builder.result(last);
    const Result<FunctionPtr> function = builder.finish();
    if (!function.ok()) {
      expect_typed(function.error());
    } else {
      ++built;
      const Result<Kernel> kernel = runtime.compile(*function);
      if (!kernel.ok()) expect_typed(kernel.error());
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(built, 3000u);
}

}  // namespace
}  // namespace castor::test
