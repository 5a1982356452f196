// SPDX-License-Identifier: Apache-2.0
// Callbacks of the caller's that throw: the call that they serve gives a typed error, and nothing
// leaves it, leaks, or is written that should not be.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <stdexcept>

#include "castor/castor.hpp"
#include "tests/support/files.hpp"

namespace castor::test {
namespace {

/// What callbacks throw.
enum class Thrown { standard, no_memory, other };
constexpr Thrown all_thrown[] = {Thrown::standard, Thrown::no_memory, Thrown::other};

[[noreturn]] void throw_it(Thrown thrown) {
  if (thrown == Thrown::standard) throw std::runtime_error("the engine is shutting down");
  if (thrown == Thrown::no_memory) throw std::bad_alloc();
  throw 42;
}

void expect_error(const Error& error, Thrown thrown, const std::string& callback) {
  if (thrown == Thrown::no_memory) {
    EXPECT_EQ(error.code, ErrorCode::out_of_memory);
    EXPECT_EQ(error.message, "no memory left");
    return;
  }
  EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  EXPECT_EQ(error.message,
            callback + " has thrown: " +
                (thrown == Thrown::standard ? "the engine is shutting down"
                                            : "an exception that is no std::exception"));
}

enum class Where { tasks, wake_up, before_tasks, after_tasks };

class Throws final : public Executor {
 public:
  Throws(Where where, Thrown thrown) : where_(where), thrown_(thrown) {}
  int tasks() const override {
    if (where_ == Where::tasks) throw_it(thrown_);
    return 2;
  }
  int64_t wake_up_ns() const override {
    if (where_ == Where::wake_up) throw_it(thrown_);
    return 0;
  }
  void run(int count, void (*task)(void* context, int index), void* context) override {
    if (where_ == Where::before_tasks) throw_it(thrown_);
    for (int i = 0; i < count; ++i) task(context, i);
    throw_it(thrown_);
  }

 private:
  const Where where_;
  const Thrown thrown_;
};

constexpr int64_t elements = 1 << 16;
constexpr std::string_view text =
    "func @f(%x: f32[?n]) -> (u8[?n]) {\n  %y = convert %x : u8\n  return %y\n}\n";

/// A bound kernel with its tensors.
struct Called {
  std::vector<float> x = std::vector<float>(elements, 3.f);
  std::vector<uint8_t> y = std::vector<uint8_t>(elements, 99);
  ConstView input{x.data(), ElementType::f32, {elements}, x.size() * sizeof(float)};
  View output{y.data(), ElementType::u8, {elements}, y.size()};

  Status run(const BoundKernel& bound, const RunOptions& options = {}) const {
    return bound.run({&input, 1}, {&output, 1}, options);
  }
  bool is_untouched() const {
    return std::ranges::all_of(y, [](uint8_t element) { return element == 99; });
  }
};

TEST(CallbackThrows, TasksAndWakeUpOfExecutors) {
  for (Thrown thrown : all_thrown) {
    for (Where where : {Where::tasks, Where::wake_up}) {
      const auto executor = std::make_shared<Throws>(where, thrown);
      for (const bool is_runtimes : {false, true}) {
        const Runtime runtime =
            *Runtime::create({.executor = is_runtimes ? executor : std::shared_ptr<Executor>()});
        const Result<BoundKernel> bound = runtime.compile(text)->bind({{elements}});
        ASSERT_TRUE(bound.ok());
        const Called call;
        RunOptions options;
        if (!is_runtimes) options.executor = executor.get();
        const Status status = call.run(*bound, options);
        ASSERT_FALSE(status.ok());
        expect_error(status.error(), thrown, "tasks() or wake_up_ns() of the executor");
        EXPECT_TRUE(call.is_untouched());
        EXPECT_EQ(bound->scratch_bytes(), is_runtimes ? SIZE_MAX : bound->scratch_bytes(1));
        EXPECT_LT(bound->scratch_bytes(2), SIZE_MAX);
        SerialExecutor serial;
        EXPECT_TRUE(call.run(*bound, {.executor = &serial}).ok());
      }
    }
  }
}

TEST(CallbackThrows, RunOfExecutors) {
  for (Thrown thrown : all_thrown) {
    for (Where where : {Where::before_tasks, Where::after_tasks}) {
      Throws executor(where, thrown);
      const Result<BoundKernel> bound = Runtime::create()->compile(text)->bind({{elements}});
      ASSERT_TRUE(bound.ok());
      if (bound->engine() == Engine::interpreter) GTEST_SKIP() << "nothing is split";
      const Called call;
      const Status status = call.run(*bound, {.executor = &executor});
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
      EXPECT_NE(status.error().message.find("the executor has thrown"), std::string::npos);
      EXPECT_EQ(call.is_untouched(), where == Where::before_tasks);
      EXPECT_TRUE(call.run(*bound).ok());
    }
  }
}

/// An allocator whose callbacks throw from a call on.
struct Memory {
  Thrown thrown = Thrown::standard;
  bool refuses = false;
  bool release_throws = false;
  long held = 0;

  Allocator allocator() {
    return {.allocate = [](void* context, size_t bytes, size_t alignment) -> void* {
              auto& memory = *static_cast<Memory*>(context);
              if (memory.refuses) throw_it(memory.thrown);
              ++memory.held;
              return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
            },
            .release =
                [](void* context, void* pointer, size_t) {
                  auto& memory = *static_cast<Memory*>(context);
                  --memory.held;
                  std::free(pointer);
                  if (memory.release_throws) throw_it(memory.thrown);
                },
            .context = this};
  }
};

constexpr std::string_view convolution =
    "func @conv(%x: u8[1, 4, 6, 6]) -> (i32[1, 8, 4, 4]) {\n"
    "  %w = constant @w : i8[8, 4, 3, 3]\n"
    "  %y = conv_integer %x, %w\n  return %y\n}\n";

FunctionPtr convolution_function() {
  ParseOptions options;
  options.bind_constant = [](std::string_view, const TensorType&) {
    return std::vector<std::byte>(8 * 4 * 3 * 3, std::byte{3});
  };
  return *parse_function(convolution, {}, options);
}

TEST(CallbackThrows, AllocateWhenBindingAndRunning) {
  for (Thrown thrown : all_thrown) {
    Memory memory{.thrown = thrown};
    {
      const Runtime runtime = *Runtime::create({.allocator = memory.allocator()});
      const Result<Kernel> kernel = runtime.compile(convolution_function());
      ASSERT_TRUE(kernel.ok());
      if (kernel->engine() == Engine::interpreter) GTEST_SKIP() << "it needs no scratch";
      memory.refuses = true;
      const Result<BoundKernel> refused = kernel->bind({{1, 4, 6, 6}});
      ASSERT_FALSE(refused.ok());
      expect_error(refused.error(), thrown, "allocate of the allocator");
      memory.refuses = false;
      EXPECT_EQ(memory.held, 0);
      EXPECT_EQ(runtime.memory().scratch_bytes, 0u);
      EXPECT_EQ(runtime.memory().packed_weight_bytes, 0u);
      EXPECT_TRUE(kernel->bind({{1, 4, 6, 6}}).ok());
    }
    EXPECT_EQ(memory.held, 0);
  }
}

/// Blocks of tasks beside the first come with the first call that has several.
TEST(CallbackThrows, AllocateOfTasks) {
  class Two final : public Executor {
   public:
    int tasks() const override { return 2; }
    int64_t wake_up_ns() const override { return 0; }
    void run(int count, void (*task)(void* context, int index), void* context) override {
      for (int i = 0; i < count; ++i) task(context, i);
    }
  };
  for (Thrown thrown : all_thrown) {
    Memory memory{.thrown = thrown};
    const Runtime runtime = *Runtime::create({.allocator = memory.allocator()});
    const Result<BoundKernel> bound = runtime.compile(convolution_function())->bind({{1, 4, 6, 6}});
    ASSERT_TRUE(bound.ok());
    if (bound->engine() == Engine::interpreter) GTEST_SKIP() << "it needs no scratch";
    const std::vector<uint8_t> x(4 * 6 * 6, 1);
    std::vector<int32_t> y(8 * 4 * 4, 99);
    const ConstView input(x.data(), ElementType::u8, {1, 4, 6, 6}, x.size());
    const View output(y.data(), ElementType::i32, {1, 8, 4, 4}, 4 * y.size());
    Two executor;
    memory.refuses = true;
    const Status status = bound->run({&input, 1}, {&output, 1}, {.executor = &executor});
    if (status.ok()) continue;  // this tier's kernel needs no more
    expect_error(status.error(), thrown, "allocate of the allocator");
    EXPECT_EQ(y, std::vector<int32_t>(8 * 4 * 4, 99));
  }
}

TEST(CallbackThrows, ReleaseIsSwallowed) {
  for (Thrown thrown : all_thrown) {
    Memory memory{.thrown = thrown, .release_throws = true};
    {
      const Runtime runtime = *Runtime::create({.allocator = memory.allocator()});
      ASSERT_TRUE(runtime.compile(convolution_function())->bind({{1, 4, 6, 6}}).ok());
    }
    EXPECT_EQ(memory.held, 0);
  }
}

TEST(CallbackThrows, BindConstant) {
  for (Thrown thrown : all_thrown) {
    ParseOptions options;
    options.bind_constant = [thrown](std::string_view,
                                     const TensorType&) -> Result<std::vector<std::byte>> {
      throw_it(thrown);
    };
    const auto functions = parse(convolution, options);
    ASSERT_FALSE(functions.ok());
    expect_error(functions.error(), thrown, "bind_constant");
    EXPECT_EQ(functions.error().where.line, 2u);
    EXPECT_EQ(functions.error().where.column, 17u);
    EXPECT_FALSE(parse_function(convolution, {}, options).ok());
  }
}

void throw_at_message(void* context, LogLevel, std::string_view) {
  throw_it(*static_cast<Thrown*>(context));
}

/// Machine code, text and files come all the same.
TEST(CallbackThrows, LogAndListing) {
  const TemporaryFolder folder;
  for (Thrown thrown : all_thrown) {
    ObserveOptions observe;
    observe.log = throw_at_message;
    observe.log_context = &thrown;
    observe.log_level = LogLevel::debug;
    observe.dump_directory = folder.path(std::to_string(static_cast<int>(thrown)));
    observe.listing = [](const jit::MachineCode&) -> Result<std::string> { throw 42; };
    const Result<Runtime> runtime = Runtime::create({.observe = observe});
    ASSERT_TRUE(runtime.ok()) << runtime.error().message;
    const Result<Kernel> kernel = runtime->compile(text);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    EXPECT_FALSE(runtime->compile("func").ok());
    EXPECT_FALSE(kernel->bind({{-1}}).ok());
    const Called call;
    const Result<BoundKernel> bound = kernel->bind({{elements}});
    ASSERT_TRUE(bound.ok());
    EXPECT_TRUE(call.run(*bound).ok());
    EXPECT_EQ(call.y[0], 3);
    EXPECT_TRUE(runtime->observation().ok());
  }
}

}  // namespace
}  // namespace castor::test
