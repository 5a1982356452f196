// SPDX-License-Identifier: Apache-2.0
// No exception leaves the C++ API where memory is refused: every allocation of a call is refused in
// turn, alone and with all that follow it, and each time the call succeeds or gives a typed error,
// leaks nothing and writes no output.
#include <gtest/gtest.h>

#include <castor/dlpack.hpp>
#include <castor/listing.hpp>
#include <castor/thread_pool.hpp>

#include <array>
#include <functional>

#include "castor/castor.hpp"
#include "ir/interpreter/interpreter.hpp"
#include "tests/support/counting_allocator.hpp"

namespace castor::test {
namespace {

/// What a call came to: nothing for success.
using Outcome = std::optional<ErrorCode>;

Outcome outcome_of(const Error& error) {
  EXPECT_FALSE(error.message.empty());
  return error.code;
}
Outcome outcome_of(const Status& status) {
  return status.ok() ? Outcome() : outcome_of(status.error());
}
template <class T>
Outcome outcome_of(const Result<T>& result) {
  return result.ok() ? Outcome() : outcome_of(result.error());
}

using Call = std::function<Outcome()>;

/// `prepare` makes a call with all that it is given; the call comes to `expected` where memory is
/// plenty.
struct Case {
  const char* name;
  Outcome expected;
  std::function<Call()> prepare;
};

/// Runs a call whose allocations fail as `Fails` says. Null: an exception left it.
template <class Fails>
std::optional<Outcome> run_failing(const Case& each, long count, bool& failed) {
  const Call call = each.prepare();
  try {
    const Fails failing(count);
    const Outcome outcome = call();
    failed = allocation_failed;
    return outcome;
  } catch (...) {
    return std::nullopt;
  }
}

/// Refuses each allocation in turn until none is refused any more.
template <class Fails>
void refuse_each(const Case& each) {
  (void)jit::host();  // made once, and kept by the process
  for (long count = 0;; ++count) {
    const long held = blocks_held;
    bool failed = false;
    const std::optional<Outcome> outcome = run_failing<Fails>(each, count, failed);
    ASSERT_TRUE(outcome.has_value()) << "an exception left the call, at allocation " << count;
    ASSERT_EQ(blocks_held, held) << "a leak, at allocation " << count;
    if (!failed) {
      ASSERT_EQ(*outcome, each.expected);
      ASSERT_GT(count, 0);
      return;
    }
    const bool is_typed = *outcome == each.expected || *outcome == ErrorCode::out_of_memory;
    ASSERT_TRUE(is_typed) << "code " << static_cast<int>(outcome->value_or(ErrorCode::internal))
                          << " at allocation " << count;
    ASSERT_LT(count, 200000);
  }
}

class RefusedMemory : public testing::TestWithParam<Case> {};

TEST_P(RefusedMemory, OneAllocation) { refuse_each<AllocationFails>(GetParam()); }
TEST_P(RefusedMemory, AllFromOneOn) { refuse_each<AllocationsFailAfter>(GetParam()); }

// ---- Texts and functions.

constexpr std::string_view good_text = R"(
func @other(%x: u8[?n]) -> (u8[?n]) {
  return %x
}
func @a_name_that_is_longer_than_short_strings(%x: f32[?rows, 3], %mean: f32[3]) -> (f16[?rows, 3]) {
  %d = sub %x, %mean
  %scale = constant [0.25, 0.5, 0.75] : f32[3]
  %a_value_with_a_name_that_is_long = mul %d, %scale
  %h = convert %a_value_with_a_name_that_is_long {overflow = saturate} : f16
  return %h
}
)";
constexpr std::string_view long_name = "a_name_that_is_longer_than_short_strings";
constexpr std::string_view bound_text =
    "func @f(%x: i32[4]) -> (i32[4]) {\n  %c = constant @a_constant_with_a_long_name : i32[4]\n"
    "  %y = add %x, %c\n  return %y\n}\n";

FunctionPtr function_of(std::string_view text, std::string_view name = {}) {
  const Result<FunctionPtr> function = parse_function(text, name);
  EXPECT_TRUE(function.ok()) << function.error().to_string();
  return *function;
}

Call parse_call(std::string_view text) {
  return [text] { return outcome_of(parse(text)); };
}
Call parse_function_call(std::string_view text, std::string_view name) {
  return [=] { return outcome_of(parse_function(text, name)); };
}

/// The callback itself takes memory, which may be refused: what it throws is an error.
Call parse_bound_call() {
  auto options = std::make_shared<ParseOptions>();
  options->bind_constant = [](std::string_view,
                              const TensorType&) -> Result<std::vector<std::byte>> {
    return std::vector<std::byte>(16);
  };
  return [options] { return outcome_of(parse(bound_text, *options)); };
}

/// A builder with all that its methods take by value, which callers make themselves.
struct Building {
  FunctionBuilder builder{"a_function_with_a_name_that_is_long"};
  std::string names[3] = {"the_first_of_three_parameters", "the_second_of_three_parameters", ""};
  TensorType types[4] = {{ElementType::f32, {Dim::named("a_dimension_with_a_long_name"), 3}},
                         {ElementType::u8, {1, 4, 5, 5}},
                         {ElementType::i8, {8, 4, 3, 3}},
                         {ElementType::boolean, {1}}};
  TensorType constant_type{ElementType::f32, {1, 3}};
  std::array<float, 3> values = {1, 2, 3};
  Shape target = {6, 3};
  Shape reshaped = {18};
  std::optional<Quantization> quantization =
      Quantization{.format = QuantizedFormat::fx8, .frac = std::vector<int32_t>{4}};
  std::optional<TensorType> declared = TensorType{ElementType::f16, {Dim::any(), 3}};
  Attribute attribute{"excess_precision", {Identifier{"allow"}}};
  ConvolutionOptions convolution{.pads = {1, 1, 1, 1}};
};

Call build_call(bool is_wrong) {
  auto all = std::make_shared<Building>();
  return [all, is_wrong] {
    FunctionBuilder& to = all->builder;
    const ValueId x = to.parameter(std::move(all->names[0]), std::move(all->types[0]));
    const ValueId image = to.parameter(std::move(all->names[1]), std::move(all->types[1]));
    const ValueId weights = to.parameter(std::move(all->names[2]), std::move(all->types[2]));
    const ValueId flag = to.parameter({}, std::move(all->types[3]));
    const ValueId c = to.constant(all->constant_type, std::as_bytes(std::span(all->values)));
    const ValueId sum = to.binary(OpKind::add, x, c);
    const ValueId root = to.unary(OpKind::sqrt, sum);
    const ValueId bounded = to.clamp(root, 0.0, 6.0);
    const ValueId chosen = to.select(flag, bounded, sum);
    const ValueId half = to.convert(chosen, ElementType::f16, {.overflow = Overflow::saturate});
    const auto [first, second] = to.promote(half, c);
    const ValueId wide = to.broadcast(c, std::move(all->target));
    const ValueId flat = to.reshape(wide, std::move(all->reshaped));
    const ValueId sums = to.conv_integer(image, weights, all->convolution);
    const ValueId fixed = to.requantize(flat, std::move(all->quantization));
    to.attribute(std::move(all->attribute));
    to.result(half, std::move(all->declared));
    for (ValueId value : {first, second, flat, sums, fixed}) to.result(value);
    if (is_wrong) to.binary(OpKind::add, x, image);
    return outcome_of(to.finish());
  };
}

// ---- Runtimes and kernels.

Runtime runtime_of(const RuntimeOptions& options = {}) {
  const Result<Runtime> runtime = Runtime::create(options);
  EXPECT_TRUE(runtime.ok()) << runtime.error().message;
  return *runtime;
}

void ignore_message(void*, LogLevel, std::string_view) {}

Call create_call(bool logs) {
  auto options = std::make_shared<RuntimeOptions>();
  if (logs) options->observe.log = ignore_message;
  options->observe.log_level = LogLevel::debug;
  return [options] {
    const Result<Runtime> runtime = Runtime::create(*options);
    if (!runtime.ok()) return outcome_of(runtime.error());
    (void)runtime->statistics();
    (void)runtime->memory();
    return outcome_of(runtime->observation());
  };
}

Call compile_call(std::string_view text, std::string_view name, bool as_text, bool logs = false) {
  RuntimeOptions options;
  if (logs) options.observe.log = ignore_message;
  options.observe.log_level = LogLevel::debug;
  const Runtime runtime = runtime_of(options);
  const FunctionPtr function = as_text ? nullptr : function_of(text, name);
  return
      [=] { return outcome_of(as_text ? runtime.compile(text, name) : runtime.compile(function)); };
}

/// One call of a kernel: its function, shapes, and memory for the tensors.
struct Tensors {
  std::vector<Dims> shapes;
  std::vector<std::vector<std::byte>> memory;
  std::vector<ConstView> inputs;
  std::vector<View> outputs;
};

constexpr std::byte untouched{0x5A};
constexpr size_t tensor_bytes = 4096;

std::shared_ptr<Tensors> tensors_of(const Function& function, std::vector<Dims> shapes,
                                    const std::vector<Dims>& output_shapes) {
  auto tensors = std::make_shared<Tensors>();
  tensors->shapes = std::move(shapes);
  const size_t inputs = function.parameters.size();
  for (size_t i = 0; i < inputs + function.results.size(); ++i) {
    auto& memory = tensors->memory.emplace_back(tensor_bytes, untouched);
    const ValueId id = i < inputs ? function.parameters[i] : function.results[i - inputs];
    const ElementType element = function.type_of(id).element;
    if (i < inputs) {
      tensors->inputs.push_back({memory.data(), element, tensors->shapes[i], memory.size()});
    } else {
      tensors->outputs.push_back(
          {memory.data(), element, output_shapes[i - inputs], memory.size()});
    }
  }
  return tensors;
}

/// No byte of an output was written.
bool is_untouched(const Tensors& tensors) {
  for (size_t i = tensors.inputs.size(); i < tensors.memory.size(); ++i) {
    if (std::ranges::any_of(tensors.memory[i], [](std::byte b) { return b != untouched; })) {
      return false;
    }
  }
  return true;
}

enum class Bound { by_shapes, by_views, by_wrong_shapes };

Call bind_call(std::string_view text, const std::vector<Dims>& shapes,
               const std::vector<Dims>& outputs, Bound how) {
  const FunctionPtr function = function_of(text);
  const Result<Kernel> kernel = runtime_of().compile(function);
  EXPECT_TRUE(kernel.ok());
  const auto tensors = tensors_of(*function, shapes, outputs);
  if (how == Bound::by_wrong_shapes) tensors->shapes[0].push_back(7);
  return [=] {
    return outcome_of(how == Bound::by_views ? kernel->bind(tensors->inputs, tensors->outputs)
                                             : kernel->bind(tensors->shapes));
  };
}

struct Run {
  bool interpret = false;
  bool spoil = false;  ///< give a view that does not fit
  ScratchOwner scratch = ScratchOwner::kernel;
  bool threads = false;
};

/// Three tasks, one after the other; asks for them with memory of its own.
class TakesMemory final : public Executor {
 public:
  int tasks() const override {
    const std::vector<int> three(3);
    return static_cast<int>(three.size());
  }
  int64_t wake_up_ns() const override { return 0; }
  void run(int count, void (*task)(void* context, int index), void* context) override {
    const std::vector<int> threads(static_cast<size_t>(count));
    for (int i = 0; i < static_cast<int>(threads.size()); ++i) task(context, i);
  }
};

Call run_call(std::string_view text, const std::vector<Dims>& shapes,
              const std::vector<Dims>& outputs, const Run& how) {
  const FunctionPtr function = function_of(text);
  RuntimeOptions options;
  options.interpret = how.interpret;
  const auto tensors = tensors_of(*function, shapes, outputs);
  const Result<Kernel> kernel = runtime_of(options).compile(function);
  EXPECT_TRUE(kernel.ok());
  const Result<BoundKernel> bound =
      kernel->bind(tensors->inputs, tensors->outputs, {.scratch = how.scratch});
  EXPECT_TRUE(bound.ok()) << bound.error().message;
  if (how.spoil) tensors->outputs[0].bytes = 0;
  const auto executor = std::make_shared<TakesMemory>();
  return [=] {
    RunOptions with;
    if (how.threads) with.executor = executor.get();
    (void)bound->scratch_bytes();
    const Status status = bound->run(tensors->inputs, tensors->outputs, with);
    // What the executor throws while it runs tasks leaves outputs incomplete, as documented.
    const bool is_incomplete =
        how.threads && !status.ok() && status.error().code == ErrorCode::invalid_argument;
    EXPECT_TRUE(status.ok() || is_incomplete || is_untouched(*tensors));
    return is_incomplete ? Outcome(ErrorCode::out_of_memory) : outcome_of(status);
  };
}

Call convert_call(ElementType from, ElementType to, ConvertOptions options) {
  const Runtime runtime = runtime_of();
  auto memory = std::make_shared<std::array<std::array<std::byte, 64>, 2>>();
  const ConstView source((*memory)[0].data(), from, {2, 2}, 64);
  const View destination((*memory)[1].data(), to, {2, 2}, 64);
  return [=, keep = memory] { return outcome_of(runtime.convert(source, destination, options)); };
}

Call interpret_call(std::string_view text, const std::vector<Dims>& shapes,
                    const std::vector<Dims>& outputs) {
  const FunctionPtr function = function_of(text);
  const auto tensors = tensors_of(*function, shapes, outputs);
  return [=] {
    const Outcome outcome = outcome_of(interpret(*function, tensors->inputs, tensors->outputs));
    EXPECT_TRUE(!outcome || is_untouched(*tensors));
    return outcome;
  };
}

Call listing_call(std::string_view text, const std::vector<Dims>& shapes, bool interpret) {
  RuntimeOptions options;
  options.interpret = interpret;
  const Result<Kernel> kernel = runtime_of(options).compile(text);
  EXPECT_TRUE(kernel.ok());
  const Result<BoundKernel> bound = kernel->bind(shapes);
  EXPECT_TRUE(bound.ok());
  return [=] { return outcome_of(listing(*bound)); };
}

// ---- DLPack.

Call from_dlpack_call(int32_t device, uint64_t flags) {
  return [=] {
    static constexpr int64_t shape[] = {2, 3};
    DlpackFields fields;
    std::array<float, 6> data = {};
    fields.data = data.data();
    fields.device_type = device;
    fields.rank = 2;
    fields.code = 2;
    fields.bits = 32;
    fields.shape = shape;
    if ((flags & dlpack_read_only) != 0) return outcome_of(detail::dlpack_is_read_only());
    return outcome_of(view_of_dlpack_fields(fields, flags));
  };
}

/// As dlpack/dlpack.h has it.
struct DLTensor {
  void* data;
  struct {
    int device_type;
    int32_t device_id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
  } dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

Call dlpack_template_call() {
  return [] {
    DLTensor tensor = {};
    tensor.device.device_type = 77;
    const Outcome read = outcome_of(const_view_from_dlpack(tensor));
    DlpackDims dims;
    const Outcome written =
        outcome_of(to_dlpack(View(nullptr, ElementType::nf4, {1}, 0), dims, tensor));
    return read == ErrorCode::out_of_memory ? read : written;
  };
}

constexpr std::string_view small_text =
    "func @small(%x: f32[?n]) -> (u8[?n]) {\n  %y = convert %x : u8\n  return %y\n}\n";
constexpr std::string_view wide_text =
    "func @wide(%x: f32[?a, ?b], %y: f32[?b]) -> (f32[?a, ?b], u8[?a, ?b]) {\n"
    "  %s = add %x, %y\n  %b = convert %s : u8\n  return %s, %b\n}\n";
constexpr std::string_view conv_text =
    "func @conv(%x: u8[1, 4, 6, 6], %w: i8[8, 4, 3, 3]) -> (i32[1, 8, 4, 4]) {\n"
    "  %y = conv_integer %x, %w\n  return %y\n}\n";
constexpr std::string_view nibble_text =
    "func @nibbles(%x: u4[?n]) -> (i4[?n]) {\n  %y = convert %x : i4\n  return %y\n}\n";
const std::vector<Dims> wide_shapes = {{20, 30}, {30}};
const std::vector<Dims> wide_outputs = {{20, 30}, {20, 30}};
const std::vector<Dims> conv_shapes = {{1, 4, 6, 6}, {8, 4, 3, 3}};
const std::vector<Dims> conv_outputs = {{1, 8, 4, 4}};

const Case cases[] = {
    {"parse", {}, [] { return parse_call(good_text); }},
    {"parse_wrong_text", ErrorCode::invalid_text,
     [] { return parse_call("func @f(%x: f32[2]) -> (f32[2]) { %y = an_op_that_is_none %x }"); }},
    {"parse_wrong_function", ErrorCode::invalid_function,
     [] { return parse_call("func @f(%x: f32[2]) -> (f32[3]) { return %x }"); }},
    {"parse_function", {}, [] { return parse_function_call(good_text, long_name); }},
    {"parse_no_function", ErrorCode::invalid_argument,
     [] { return parse_function_call(good_text, "a_function_that_is_not_there"); }},
    {"parse_bound", {}, [] { return parse_bound_call(); }},
    {"build", {}, [] { return build_call(false); }},
    {"build_wrong", ErrorCode::invalid_function, [] { return build_call(true); }},
    {"create", {}, [] { return create_call(false); }},
    {"create_logging", {}, [] { return create_call(true); }},
    {"create_for_no_tier", ErrorCode::invalid_argument,
     [] { return [] { return outcome_of(Runtime::create({.tier = static_cast<Tier>(99)})); }; }},
    {"packed_weights", {}, [] { return [] { return outcome_of(PackedWeights::create()); }; }},
    {"compile", {}, [] { return compile_call(good_text, long_name, false); }},
    {"compile_text", {}, [] { return compile_call(good_text, long_name, true); }},
    {"compile_logging", {}, [] { return compile_call(wide_text, {}, false, true); }},
    {"compile_convolution", {}, [] { return compile_call(conv_text, {}, false); }},
    {"compile_null", ErrorCode::invalid_argument,
     [] {
       return [runtime = runtime_of()] { return outcome_of(runtime.compile(FunctionPtr())); };
     }},
    {"compile_wrong_text", ErrorCode::invalid_text,
     [] { return compile_call("func @f(%x: what) {}", {}, true, true); }},
    {"bind", {}, [] { return bind_call(wide_text, wide_shapes, wide_outputs, Bound::by_shapes); }},
    {"bind_views",
     {},
     [] { return bind_call(wide_text, wide_shapes, wide_outputs, Bound::by_views); }},
    {"bind_wrong_shapes", ErrorCode::invalid_argument,
     [] { return bind_call(wide_text, wide_shapes, wide_outputs, Bound::by_wrong_shapes); }},
    {"bind_convolution",
     {},
     [] { return bind_call(conv_text, conv_shapes, conv_outputs, Bound::by_shapes); }},
    {"run_convolution",
     {},
     [] { return run_call(conv_text, conv_shapes, conv_outputs, {.threads = true}); }},
    {"run_threads",
     {},
     [] { return run_call(wide_text, wide_shapes, wide_outputs, {.threads = true}); }},
    {"run_wrong", ErrorCode::invalid_argument,
     [] { return run_call(wide_text, wide_shapes, wide_outputs, {.spoil = true}); }},
    {"run_without_scratch", ErrorCode::invalid_argument,
     [] {
       return run_call(wide_text, wide_shapes, wide_outputs, {.scratch = ScratchOwner::caller});
     }},
    {"run_interpreted",
     {},
     [] { return run_call(wide_text, wide_shapes, wide_outputs, {.interpret = true}); }},
    {"interpret", {}, [] { return interpret_call(conv_text, conv_shapes, conv_outputs); }},
    {"interpret_nibbles", {}, [] { return interpret_call(nibble_text, {{7}}, {{7}}); }},
    {"convert", {}, [] { return convert_call(ElementType::f32, ElementType::i16, {}); }},
    {"convert_wrong", ErrorCode::invalid_function,
     [] { return convert_call(ElementType::f32, ElementType::u8, {.overflow = Overflow::nan}); }},
    {"from_dlpack_other_device", ErrorCode::unsupported, [] { return from_dlpack_call(2, 0); }},
    {"from_dlpack_read_only", ErrorCode::invalid_argument,
     [] { return from_dlpack_call(1, dlpack_read_only); }},
    {"dlpack_version", ErrorCode::unsupported,
     [] { return [] { return outcome_of(detail::check_dlpack_version(7, 1)); }; }},
    {"dlpack_templates", ErrorCode::unsupported, [] { return dlpack_template_call(); }},
    {"listing", {}, [] { return listing_call(small_text, {{100}}, false); }},
    {"listing_interpreted", {}, [] { return listing_call(small_text, {{100}}, true); }},
    {"thread_pool_wrong", ErrorCode::invalid_argument,
     [] { return [] { return outcome_of(make_thread_pool(-1)); }; }},
    {"target_wrong", ErrorCode::invalid_argument,
     [] {
       return [] {
         return outcome_of(jit::choose_target({.castor_isa = "no such tier"}, jit::host()));
       };
     }},
};

INSTANTIATE_TEST_SUITE_P(Calls, RefusedMemory, testing::ValuesIn(cases),
                         [](const auto& each) { return std::string(each.param.name); });

/// The message of a call without memory is made before.
TEST(RefusedMemoryErrors, AreCopiedWithoutMemory) {
  const Error error{ErrorCode::unsupported, "a message that is longer than short strings are", {}};
  const Result<int> result = error;
  const AllocationsFailAfter failing(0);
  const Error copy = error;
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): the test is of the copy.
  const Result<int> other = result;
  Error assigned{ErrorCode::internal, "short", {1, 2}};
  assigned = error;
  const Status status = error;
  const std::array<const Error*, 4> all = {&copy, &other.error(), &assigned, &status.error()};
  for (const Error* each : all) {
    EXPECT_EQ(each->code, ErrorCode::out_of_memory);
    EXPECT_EQ(each->message, "no memory left");
    EXPECT_FALSE(each->where.known());
  }
}

/// A bound kernel that keeps its scratch runs without any memory.
TEST(RefusedMemoryErrors, KeptScratchNeedsNone) {
  const Call run = run_call(wide_text, wide_shapes, wide_outputs, {});
  const AllocationsFailAfter failing(0);
  EXPECT_EQ(run(), Outcome());
}

TEST(RefusedMemoryErrors, AnEmptyBuilderRemains) {
  FunctionBuilder builder("f");
  {
    const AllocationsFailAfter failing(0);
    builder.parameter("x", {});
    ASSERT_NE(builder.error(), nullptr);
    EXPECT_EQ(builder.error()->code, ErrorCode::out_of_memory);
    EXPECT_EQ(outcome_of(builder.finish()), ErrorCode::out_of_memory);
  }
  EXPECT_EQ(builder.error(), nullptr);
}

}  // namespace
}  // namespace castor::test
