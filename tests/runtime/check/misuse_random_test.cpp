// SPDX-License-Identifier: Apache-2.0
// Misuse of the C++ API at random: calls with views, shapes and options that cannot be, and
// functions of any numbers. Each gives a typed error or the right result.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>

#include "castor/castor.hpp"
#include "tests/support/misuse.hpp"
#include "tools/fuzz/random.hpp"
#include "tools/testing/guarded_pages.hpp"

namespace castor::test {
namespace {

using fuzz::Random;

constexpr std::string_view texts[] = {
    right_text,
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

  /// Tensors that fit, each before an inaccessible page.
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
  return number<ElementType>(
      static_cast<int>(random.below(random.percent(80) ? element_type_count : 256)));
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
      made = to.convert(value(), any_element(random),
                        {number<Overflow>(byte(overflow_names.size())), number<Rounding>(byte(7)),
                         number<NanMode>(byte(2))});
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
