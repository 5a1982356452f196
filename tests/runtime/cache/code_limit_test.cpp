// SPDX-License-Identifier: Apache-2.0
// How much executable memory a runtime maps: it goes when kernels die, stays below a limit, and
// where it is refused or used up the interpreter takes over and says why.
#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cmath>

#include "runtime/bind/bind.hpp"
#include "runtime/bind/bound_state.hpp"
#include "runtime/compiled.hpp"
#include "runtime/runtime_state.hpp"
#include "tests/support/function_case.hpp"
#include "tests/support/process_maps.hpp"

namespace castor {
namespace {

constexpr size_t page = 4096;

/// A function with code of its own for each number.
std::string function_of(int number) {
  return fmt::format(
      "func @f(%x: f32[?]) -> f32[?] {{\n  %c = constant {}.0 : f32[]\n  %a = add %x, %c\n"
      "  %y = sqrt %a\n  return %y\n}}\n",
      number + 3);
}

bool computes(const BoundKernel& bound, int number) {
  const float x[3] = {1, 6, 13};
  float y[3] = {};
  const ConstView input(x, ElementType::f32, {3}, sizeof x);
  const View output(y, ElementType::f32, {3}, sizeof y);
  const float expected = std::sqrt(13.0F + static_cast<float>(number + 3));
  return bound.run({&input, 1}, {&output, 1}).ok() && y[2] == expected;
}

Runtime runtime_with(size_t limit, size_t cache_bytes) {
  RuntimeOptions options;
  options.code_bytes_limit = limit;
  options.cache_bytes = cache_bytes;
  return *Runtime::create(options);
}

/// The kernel of each number, until one of them has no code.
std::vector<BoundKernel> fill(const Runtime& runtime, Engine last) {
  std::vector<BoundKernel> held;
  for (int i = 0; i < 3000; ++i) {
    const Kernel kernel = *runtime.compile(function_of(i));
    held.push_back(*kernel.bind({{3}}));
    if (held.back().engine() == last) break;
  }
  return held;
}

TEST(CodeMemoryOfRuntimes, GoesWithTheKernels) {
  const size_t before = test::code_arena_bytes();
  {
    std::optional<Runtime> runtime = runtime_with(no_limit, 0);  // caches next to nothing
    std::vector<BoundKernel> held;
    for (int i = 0; i < 300; ++i) held.push_back(*runtime->compile(function_of(i))->bind({{3}}));
    const size_t max = runtime->memory().code_bytes;
    EXPECT_EQ(test::code_arena_bytes() - before, max);
    EXPECT_GT(max, size_t{64} << 10);
    held.erase(held.begin(), held.end() - 1);
    EXPECT_TRUE(computes(held[0], 299));
    // What is left: arenas of one kernel, of one code in the cache, and the one that is filled.
    EXPECT_LT(runtime->memory().code_bytes, max / 2 + jit::CodeMemory::largest_arena_bytes);
    runtime.reset();
    EXPECT_TRUE(computes(held[0], 299));
    EXPECT_GT(test::code_arena_bytes(), before);
  }
  EXPECT_EQ(test::code_arena_bytes(), before);
}

/// However many kernels come and go, what is mapped does not grow.
TEST(CodeMemoryOfRuntimes, IsUsedAgain) {
  const Runtime runtime = runtime_with(no_limit, 0);
  size_t max = 0;
  for (int i = 0; i < 1500; ++i) {
    const BoundKernel bound = *runtime.compile(function_of(i))->bind({{3}});
    EXPECT_TRUE(computes(bound, i));
    max = std::max(max, runtime.memory().code_bytes);
  }
  EXPECT_LE(max, 2 * jit::CodeMemory::largest_arena_bytes);
}

TEST(CodeLimit, IsHardAndDeadCodeMakesRoom) {
  for (const size_t limit : {4 * page, 10 * page + 100, size_t{96} << 10}) {
    SCOPED_TRACE(limit);
    const Runtime runtime = runtime_with(limit, 0);
    std::vector<BoundKernel> held = fill(runtime, Engine::interpreter);
    ASSERT_GT(held.size(), 1u);
    ASSERT_LT(held.size(), 3000u);
    const BoundKernel& last = held.back();
    const size_t mapped = runtime.memory().code_bytes;
    EXPECT_LE(mapped, limit);
    EXPECT_EQ(mapped, limit / page * page);
    // A page of code or one of constants is lacking, or both.
    const auto reason = [&](int lacking) {
      return fmt::format("machine code: {} bytes are mapped, {} more are needed; the limit is {}",
                         mapped, lacking, limit);
    };
    EXPECT_TRUE(last.engine_reason() == reason(4096) || last.engine_reason() == reason(8192))
        << last.engine_reason();
    for (size_t i = 0; i < held.size(); ++i) EXPECT_TRUE(computes(held[i], static_cast<int>(i)));
    held.clear();
    const BoundKernel again = *runtime.compile(function_of(1000))->bind({{3}});
    EXPECT_EQ(again.engine(), Engine::jit) << again.engine_reason();
    EXPECT_TRUE(computes(again, 1000));
    EXPECT_LE(runtime.memory().code_bytes, limit);
  }
}

TEST(CodeLimit, OfNothingInterpretsAll) {
  const Runtime runtime = runtime_with(0, size_t{1} << 20);
  const Kernel kernel = *runtime.compile(function_of(1));
  EXPECT_EQ(kernel.engine(), Engine::interpreter);
  EXPECT_EQ(kernel.engine_reason(),
            "machine code: 0 bytes are mapped, 8192 more are needed; the limit is 0");
  const BoundKernel bound = *kernel.bind({{3}});
  EXPECT_EQ(bound.engine_reason(), kernel.engine_reason());
  EXPECT_TRUE(computes(bound, 1));
  const float x = 2.5;
  int8_t y = 0;
  EXPECT_TRUE(
      runtime
          .convert(ConstView(&x, ElementType::f32, {1}, 4), View(&y, ElementType::i8, {1}, 1), {})
          .ok());
  EXPECT_EQ(y, 2);
}

/// The caches alone never take all, so that kernels that nobody holds do not keep others out.
TEST(CodeLimit, TheCacheLeavesRoom) {
  for (const size_t limit : {size_t{64} << 10, size_t{1} << 20}) {
    const Runtime runtime = runtime_with(limit, size_t{1} << 30);
    for (int i = 0; i < 3000; ++i) {
      const BoundKernel bound = *runtime.compile(function_of(i))->bind({{3}});
      ASSERT_EQ(bound.engine(), Engine::jit) << i << ": " << bound.engine_reason();
    }
    EXPECT_LE(runtime.memory().code_bytes, limit);
  }
}

/// Code that only the caches hold makes room for a kernel that needs more than they leave: one of a
/// depthwise layer is straight-line code.
TEST(CodeLimit, CachesAreEmptiedForCodeThatFindsNoRoom) {
  const char* layer =
      "func @f(%x: u8[1, 4, 40, 40], %w: i8[4, 1, 7, 7]) -> i32[1, 4, 34, 34] {\n"
      "  %y = conv_integer %x, %w {group = 4}\n  return %y\n}\n";
  const std::vector<Dims> shapes = {{1, 4, 40, 40}, {4, 1, 7, 7}};
  size_t enough = page;  // of a runtime that caches next to nothing
  while (runtime_with(enough, 0).compile(layer)->bind(shapes)->engine() != Engine::jit) {
    enough += page;
    ASSERT_LT(enough, size_t{1} << 20);
  }
  const Runtime runtime = runtime_with(enough, size_t{1} << 30);
  for (int i = 0; i < 400; ++i) ASSERT_TRUE(runtime.compile(function_of(i))->bind({{3}}).ok());
  const BoundKernel bound = *runtime.compile(layer)->bind(shapes);
  EXPECT_EQ(bound.engine(), Engine::jit) << bound.engine_reason();
}

/// Each kind of function: elementwise ones find their code refused when they are compiled, others
/// when they are bound.
const test::FunctionCase kinds[] = {
    {"func @f(%x: f32[?]) -> u8[?] {\n  %y = convert %x : u8\n  return %y\n}\n", {{{70}}}},
    {"func @f(%x: u8[?, ?, ?, ?], %w: i8[?, ?, ?, ?]) -> i32[?, ?, ?, ?] {\n"
     "  %y = conv_integer %x, %w\n  return %y\n}\n",
     {{{1, 8, 9, 9}}, {{6, 8, 3, 3}}}},
    {"func @f(%x: u8[?, ?, ?, ?], %w: i8[?, ?, ?, ?]) -> i32[?, ?, ?, ?] {\n"
     "  %y = conv_integer %x, %w {group = 8}\n  return %y\n}\n",
     {{{1, 8, 9, 9}}, {{8, 1, 3, 3}}}},
    {"func @f(%x: fx16<frac = 4>[?, ?]) -> fx8<frac = 2>[?, ?] {\n"
     "  %y = requantize %x : fx8<frac = 2>\n  return %y\n}\n",
     {{{5, 40}}}},
};

jit::SystemCalls without_executable_memory() {
  jit::SystemCalls calls = jit::SystemCalls::real();
  calls.memfd_create = [](const char*, unsigned) {
    errno = EPERM;
    return -1;
  };
  calls.mprotect = [](void*, size_t, int) {
    errno = EACCES;
    return -1;
  };
  return calls;
}

TEST(RefusedExecutableMemory, EveryKindOfFunctionIsInterpreted) {
  const auto state = detail::make_runtime({}, without_executable_memory());
  ASSERT_TRUE(state.ok());
  for (const test::FunctionCase& row : kinds) {
    SCOPED_TRACE(row.text);
    const FunctionPtr function = *parse_function(row.text);
    const auto compiled = detail::compile(function, **state);
    ASSERT_TRUE(compiled.ok()) << compiled.error().message;
    test::CaseTensors tensors(*function, row, 3, true);
    std::vector<Dims> shapes;
    for (const ConstView& view : tensors.inputs()) shapes.push_back(view.shape);
    const auto kernel =
        std::make_shared<const detail::KernelState>(detail::KernelState{function, *compiled});
    const auto bound = detail::bind_kernel(kernel, shapes, {});
    ASSERT_TRUE(bound.ok()) << bound.error().message;
    EXPECT_NE((*bound)->interpreted_because.find("mprotect"), std::string::npos);
    EXPECT_NE((*bound)->interpreted_because.find("memfd_create"), std::string::npos);
    EXPECT_TRUE((*bound)->steps.empty());
    EXPECT_EQ((*bound)->scratch_bytes, 0u);
  }
}

TEST(RefusedExecutableMemory, KernelsBoundToTheInterpreterComputeAndSayWhy) {
  for (const test::FunctionCase& row : kinds) {
    SCOPED_TRACE(row.text);
    const Runtime runtime = runtime_with(0, 0);
    const FunctionPtr function = *parse_function(row.text);
    test::CaseTensors expected(*function, row, 3, true);
    test::CaseTensors actual(*function, row, 3, true);
    ASSERT_TRUE(interpret(*function, expected.inputs(), expected.outputs()).ok());
    const Result<BoundKernel> bound =
        runtime.compile(function)->bind(actual.inputs(), actual.outputs());
    ASSERT_TRUE(bound.ok()) << bound.error().message;
    EXPECT_EQ(bound->engine(), Engine::interpreter);
    EXPECT_NE(bound->engine_reason().find("the limit is 0"), std::string::npos);
    ASSERT_TRUE(bound->run(actual.inputs(), actual.outputs()).ok());
    EXPECT_TRUE(std::ranges::equal(actual.output_tensors()[0].bytes(),
                                   expected.output_tensors()[0].bytes()));
  }
}

}  // namespace
}  // namespace castor
