// SPDX-License-Identifier: Apache-2.0
// Runtimes on systems that refuse: without executable memory functions are interpreted, without
// memory calls fail with a typed error; nothing crashes and no output is touched.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <thread>

#include "runtime/compiled.hpp"
#include "runtime/runtime_state.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/conversions.hpp"
#include "tests/support/counting_allocator.hpp"

namespace castor {
namespace {

constexpr std::string_view text =
    "func @f(%x: f32[?], %z: i16[4]) -> (i8[?], f64[?], bf16[4]) {\n"
    "  %a = convert %x {rounding = half_up} : i8\n  %b = convert %a : f64\n"
    "  %c = convert %z : bf16\n  return %a, %b, %c\n}\n";

jit::SystemCalls without_executable_memory() {
  jit::SystemCalls calls = jit::SystemCalls::real();
  calls.mmap = [](void* at, size_t size, int protection, int flags, int fd, off_t offset) {
    if ((protection & PROT_EXEC) == 0) return ::mmap(at, size, protection, flags, fd, offset);
    errno = EACCES;
    return MAP_FAILED;
  };
  calls.mprotect = [](void* at, size_t size, int protection) {
    if ((protection & PROT_EXEC) == 0) return ::mprotect(at, size, protection);
    errno = EACCES;
    return -1;
  };
  return calls;
}

TEST(Refusal, WithoutExecutableMemoryFunctionsAreInterpreted) {
  auto state = detail::make_runtime({}, without_executable_memory());
  ASSERT_TRUE(state.ok()) << state.error().message;
  const FunctionPtr function = std::move(parse_function(text)).value();
  const auto compiled = detail::compile(function, **state);
  ASSERT_TRUE(compiled.ok()) << compiled.error().message;
  EXPECT_NE((*compiled)->interpreted_because.find("mprotect"), std::string::npos)
      << (*compiled)->interpreted_because;
  EXPECT_TRUE((*compiled)->likely.empty());
}

/// One whole use; what it returns is what the first failing step returned.
Status use(const Runtime& runtime, std::span<int8_t> a, std::span<double> b,
           std::span<uint16_t> c) {
  const Result<Kernel> kernel = runtime.compile(text);
  if (!kernel.ok()) return kernel.error();
  const float x[3] = {0.5F, -7.5F, 1000};
  const int16_t z[4] = {1, 2, 3, -4};
  const ConstView inputs[] = {{x, ElementType::f32, {3}, sizeof x},
                              {z, ElementType::i16, {4}, sizeof z}};
  // A stride makes binding compile another variant.
  const View outputs[] = {{a.data(), ElementType::i8, {3}, {2}, 0, a.size()},
                          {b.data(), ElementType::f64, {3}, b.size_bytes()},
                          {c.data(), ElementType::bf16, {4}, c.size_bytes()}};
  const Result<BoundKernel> bound = kernel->bind(inputs, outputs);
  if (!bound.ok()) return bound.error();
  return bound->run(inputs, outputs);
}

TEST(Refusal, EveryAllocationMayFail) {
  bool succeeded = false;
  for (int count = 0; !succeeded; ++count) {
    ASSERT_LT(count, 5000);
    int8_t a[6] = {99, 99, 99, 99, 99, 99};
    double b[3] = {99, 99, 99};
    uint16_t c[4] = {99, 99, 99, 99};
    Status status;
    ErrorCode code = ErrorCode::internal;
    {
      const test::AllocationsFailAfter failing(count);
      const Result<Runtime> runtime = Runtime::create();
      status = runtime.ok() ? use(*runtime, a, b, c) : Status(runtime.error());
      succeeded = status.ok();
      if (!succeeded) code = status.error().code;
    }
    if (succeeded) {
      EXPECT_TRUE(a[0] == 1 && a[2] == -7 && a[4] == 127 && a[1] == 99);
      EXPECT_TRUE(b[0] == 1 && b[1] == -7 && b[2] == 127);
      EXPECT_EQ(c[3], 0xc080);
      EXPECT_GT(count, 50);
    } else {
      ASSERT_EQ(code, ErrorCode::out_of_memory) << "allocation " << count;
      ASSERT_TRUE(a[0] == 99 && a[2] == 99 && b[0] == 99 && c[3] == 99) << "allocation " << count;
    }
  }
}

/// Three hundred results of one input take several nests, each with a small frame.
TEST(Refusal, ManyResultsNeedLittleStack) {
  FunctionBuilder builder("many");
  const ValueId x = builder.parameter("x", {ElementType::f32, {5}});
  for (int i = 0; i < 300; ++i) builder.result(builder.convert(x, ElementType::u8));
  const FunctionPtr function = std::move(builder.finish()).value();
  for (const auto& [tier, runtime] : test::tier_runtimes()) {
    const jit::Target target{tier};
    const std::vector<jit::Nest> nests = jit::plan_nests(*function, target);
    EXPECT_EQ(nests.size(), 300 / jit::max_outputs + 1);
    const float in[5] = {1, 2, 3, 254.9F, 400};
    std::vector<std::array<uint8_t, 5>> out(300);
    const ConstView input(in, ElementType::f32, {5}, sizeof in);
    std::vector<View> outputs;
    for (auto& bytes : out) outputs.emplace_back(bytes.data(), ElementType::u8, Dims{5}, 5);
    const Result<BoundKernel> bound = runtime.compile(function)->bind({&input, 1}, outputs);
    ASSERT_TRUE(bound.ok()) << bound.error().message;
    ASSERT_TRUE(bound->run({&input, 1}, outputs).ok());
    for (const auto& bytes : out) {
      ASSERT_EQ(bytes, (std::array<uint8_t, 5>{1, 2, 3, 254, 255})) << name_of(tier);
    }
  }
}

/// Whether a conversion of one element succeeds.
bool converts_one(const Runtime& runtime, const test::Conversion& conversion) {
  const uint64_t in = 0;
  uint64_t out = 1;
  return runtime
      .convert(ConstView(&in, conversion.from, {1}, 8), View(&out, conversion.to, {1}, 8),
               conversion.options)
      .ok();
}

// The sanitizers' allocators may stay locked in a child forked amid threads.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/// Threads hold the runtime's locks again and again while others fork.
TEST(Fork, ChildrenOfBusyRuntimesCompile) {
  const Runtime runtime = std::move(Runtime::create()).value();
  const std::vector<test::Conversion> conversions = test::all_conversions();
  std::atomic<bool> stop = false;
  const auto compile_some = [&](size_t first, size_t count) {
    for (size_t i = first; i < first + count; ++i) {
      if (!converts_one(runtime, conversions[i % conversions.size()])) return false;
    }
    return true;
  };
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = t; !stop; i += 3) (void)compile_some(i, 1);
    });
  }
  int failed = 0;
  for (size_t i = 0; i < 30 && failed == 0; ++i) {
    failed = test::in_child([&] { return compile_some(i * 7, 20) ? 0 : 1; });
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
}
#endif

TEST(Fork, TheChildCompilesAndTheParentsCodeStays) {
  const Runtime runtime = std::move(Runtime::create()).value();
  const auto check = [&](float value, int8_t rounded) {
    int8_t a[6] = {};
    double b[3] = {};
    uint16_t c[4] = {};
    const Status status = use(runtime, a, b, c);
    const float x = value;
    int8_t y = 0;
    const Status converted =
        runtime.convert(ConstView(&x, ElementType::f32, {1}, 4), View(&y, ElementType::i8, {1}, 1),
                        {.overflow = Overflow::by_type, .rounding = Rounding::half_up});
    return status.ok() && converted.ok() && a[2] == -7 && b[2] == 127 && y == rounded;
  };
  ASSERT_TRUE(check(2.5F, 3));
  const int failed = test::in_child([&] {
    if (!check(3.5F, 4)) return 1;                                        // the parent's code
    for (const test::Conversion& conversion : test::all_conversions()) {  // code of its own
      if (!converts_one(runtime, conversion)) return 2;
    }
    return check(4.5F, 5) ? 0 : 3;
  });
  EXPECT_EQ(failed, 0);
  EXPECT_TRUE(check(5.5F, 6));
}

}  // namespace
}  // namespace castor
