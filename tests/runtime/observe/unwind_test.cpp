// SPDX-License-Identifier: Apache-2.0
// Unwinding by libgcc: from every instruction of every kind of kernel that a call reaches, on every
// tier, with frame pointers and without; from a crash; and which code is known when.
#include <gtest/gtest.h>

#include <csetjmp>
#include <csignal>
#include <stdexcept>
#include <thread>

#include "jit/plan/nest.hpp"
#include "tests/support/backtrace.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/function_case.hpp"
#include "tests/support/observed.hpp"
#include "tests/support/traced_call.hpp"

extern "C" {
/// libgcc's (unwind-dw2-fde.h): the record of the code at an address, or null.
struct dwarf_eh_bases {
  void* tbase;
  void* dbase;
  void* func;
};
const void* _Unwind_Find_FDE(void* at, dwarf_eh_bases* bases);
}

namespace castor {
namespace {

using test::ObservedRuntime;

ObserveOptions with_unwinding() {
  ObserveOptions options;
  options.unwind = true;
  return options;
}

// ---- from every instruction

struct Kind {
  std::string_view name;
  test::FunctionCase function;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"main loop and tail",
       {"func @f(%x: f32[?n]) -> (i8[?n]) { %y = convert %x : i8 return %y }", {{{203}}}}},
      {"sub-byte elements in an aligned frame",
       {"func @f(%x: u4[?n]) -> (f32[?n]) { %y = convert %x : f32 return %y }", {{{203}}}}},
      {"sub-byte results in an aligned frame",
       {"func @f(%x: f32[?n]) -> (u4[?n]) { %y = convert %x : u4 return %y }", {{{203}}}}},
      {"sub-byte elements at any bit",
       {"func @f(%x: u3[?a, ?b]) -> (u8[?a, ?b]) { %y = convert %x : u8 return %y }",
        {{.shape = {9, 21}, .strides = {1, 11}}}}},
      {"sub-byte results at any bit",
       {"func @f(%x: u8[?a, ?b]) -> (u4[?a, ?b]) { %y = convert %x : u4 return %y }",
        {{{9, 21}}},
        {{.shape = {9, 21}, .strides = {1, 11}}}}},
      {"copies of transposed tiles",
       {"func @f(%x: f32[?a, ?b]) -> (f16[?a, ?b]) { %y = convert %x : f16 return %y }",
        {{.shape = {40, 40}, .strides = {1, 40}}}}},
      {"copies of strided tiles",
       {"func @f(%x: f32[?a, ?b]) -> (f16[?a, ?b]) { %y = convert %x : f16 return %y }",
        {{.shape = {20, 30}, .strides = {200, 5}}}}},
      {"reductions",
       {"func @f(%x: bf16[?n, ?m]) -> (bf16[?n], bf16[?m]) { %a = reduce_sum %x {axes = [1]} "
        "%b = reduce_max %x {axes = [0]} return %a, %b }",
        {{{17, 33}}}}},
      {"periods and many operands",
       {"func @f(%x: u8[?n, 3], %a: f32[3], %b: f32[3], %c: f32[3], %d: f32[?n, 1], %e: "
        "f32[?n, 3]) -> (f16[?n, 3]) { %f = convert %x : f32 %g = sub %f, %a %h = mul %g, %b "
        "%i = add %h, %c %j = mul %i, %d %k = add %j, %e %l = convert %k : f16 return %l }",
        {{{50, 3}}, {{3}}, {{3}}, {{3}}, {{50, 1}}, {{50, 3}}}}},
      {"divisions by what has no good reciprocal",
       {"func @f(%x: f32[?n, 64], %s: f32[], %z: u8[]) -> (u8[?n, 64]) { %y = quantize_linear "
        "%x, %s, %z : u8 return %y }",
        {{{3, 64}}, {{}}, {{}}}}},
      {"look-ups",
       {"func @f(%x: u8[?n], %t: f16[256]) -> (f16[?n]) { %y = look_up %x, %t return %y }",
        {{{150}}, {{256}}}}},
      {"dense convolution, its packing and epilogue",
       {"func @f(%x: u8[1, 6, 7, 7], %s: f32[20, 1, 1]) -> (u8[1, 20, 5, 5]) { %w = constant "
        "@w : i8[20, 6, 3, 3] %y = conv_integer %x, %w %f = convert %y : f32 %m = mul %f, %s "
        "%q = convert %m {overflow = saturate} : u8 return %q }",
        {{{1, 6, 7, 7}}, {{20, 1, 1}}}}},
      {"dense convolution of NHWC",
       {"func @f(%x: i8[1, 5, 5, 8]) -> (i32[1, 3, 3, 24]) { %w = constant @w : i8[24, 8, 3, "
        "3] %y = conv_integer %x, %w {layout = nhwc} return %y }",
        {{{1, 5, 5, 8}}}}},
      {"depthwise convolution",
       {"func @f(%x: u8[1, 3, 9, 18]) -> (i32[1, 3, 7, 16]) { %w = constant @w : i8[3, 1, 3, "
        "3] %y = conv_integer %x, %w {group = 3} return %y }",
        {{{1, 3, 9, 18}}}}},
      {"depthwise convolution with an epilogue",
       {"func @f(%x: u8[1, 3, 9, 18], %w: i8[3, 1, 3, 3], %s: f32[3, 1, 1]) -> (f32[1, 3, 7, "
        "16]) { %y = conv_integer %x, %w {group = 3} %f = convert %y : f32 %m = mul %f, %s "
        "return %m }",
        {{{1, 3, 9, 18}}, {{3, 1, 3, 3}}, {{3, 1, 1}}}}},
      {"grouped convolution of NHWC",
       {"func @f(%x: u8[1, 5, 6, 32]) -> (i32[1, 3, 4, 32]) { %w = constant @w : i8[32, 1, 3, "
        "3] %y = conv_integer %x, %w {group = 32, layout = nhwc} return %y }",
        {{{1, 5, 6, 32}}}}},
      {"grouped convolution of NHWC with an epilogue",
       {"func @f(%x: u8[1, 5, 6, 32], %s: f32[32]) -> (f32[1, 3, 4, 32]) { %w = constant @w : "
        "i8[32, 1, 3, 3] %y = conv_integer %x, %w {group = 32, layout = nhwc} %f = convert %y "
        ": f32 %m = mul %f, %s return %m }",
        {{{1, 5, 6, 32}}, {{32}}}}},
      {"matrix product",
       {"func @f(%a: u8[?n, 16], %b: i8[16, 24]) -> (i32[?n, 24]) { %y = matmul_integer %a, "
        "%b return %y }",
        {{{6, 16}}, {{16, 24}}}}},
  };
  return all;
}

/// Constant weights, which are packed before a call: packing them within takes very many steps.
ParseOptions with_weights() {
  ParseOptions options;
  options.bind_constant = [](std::string_view,
                             const TensorType& type) -> Result<std::vector<std::byte>> {
    int64_t elements = 1;
    for (const Dim& dim : type.shape) elements *= dim.extent;
    return std::vector<std::byte>(static_cast<size_t>(elements), std::byte{3});
  };
  return options;
}

void trace_kind(const Kind& kind, const Runtime& runtime) {
  const Result<FunctionPtr> function = parse_function(kind.function.text, {}, with_weights());
  ASSERT_TRUE(function.ok()) << function.error().to_string();
  test::CaseTensors tensors(**function, kind.function, 1, true);
  const std::vector<ConstView> inputs = tensors.inputs();
  const std::vector<View> outputs = tensors.outputs();
  const Result<Kernel> kernel = runtime.compile(*function);
  ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
  const Result<BoundKernel> bound = kernel->bind(inputs, outputs);
  ASSERT_TRUE(bound.ok()) << bound.error().to_string();
  ASSERT_EQ(bound->engine(), Engine::jit) << bound->engine_reason();
  const test::TracedCall found = test::trace_call(*bound, inputs, outputs);
  EXPECT_TRUE(found.is_ok);
  EXPECT_GE(found.instructions, 30);
  EXPECT_EQ(found.lost, 0) << "of " << found.instructions << ", first at " << std::hex
                           << found.first_lost;
}

/// Tiers whose instructions the machine has: an emulator's signals come between.
class Unwind : public testing::TestWithParam<Tier> {};

TEST_P(Unwind, SeesCallersFromEveryInstruction) {
  if (!jit::host().features.contains(jit::info(GetParam()).features)) {
    GTEST_SKIP() << "this machine lacks " << name_of(GetParam());
  }
  for (const bool frame_pointers : {false, true}) {
    for (const Kind& kind : kinds()) {
      SCOPED_TRACE(std::string(kind.name) + (frame_pointers ? ", frame pointers" : ""));
      const auto runtime = Runtime::create(
          {.tier = GetParam(), .frame_pointers = frame_pointers, .observe = with_unwinding()});
      ASSERT_TRUE(runtime.ok()) << runtime.error().to_string();
      trace_kind(kind, *runtime);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, Unwind,
                         testing::Values(Tier::avx2, Tier::avx2_vnni, Tier::avx512,
                                         Tier::avx512_vnni, Tier::avx512_vbmi, Tier::amx),
                         [](const auto& row) { return std::string(name_of(row.param)); });

TEST(UnwindRecords, AreWhatFindsTheCallers) {  // without them nothing is found
  const auto runtime = Runtime::create({.tier = Tier::avx2});
  const Kind& kind = kinds().front();
  const FunctionPtr function = *parse_function(kind.function.text);
  test::CaseTensors tensors(*function, kind.function, 1, true);
  const std::vector<ConstView> inputs = tensors.inputs();
  const std::vector<View> outputs = tensors.outputs();
  const Result<BoundKernel> bound = runtime->compile(function)->bind(inputs, outputs);
  const test::TracedCall found = test::trace_call(*bound, inputs, outputs);
  EXPECT_TRUE(found.is_ok);
  EXPECT_GT(found.instructions, 0);
  EXPECT_EQ(found.lost, found.instructions);
}

// ---- from a crash

sigjmp_buf after_crash;
test::Backtrace of_crash;

void on_crash(int) {
  of_crash = test::Backtrace::here();
  ::siglongjmp(after_crash, 1);
}

/// Runs a kernel on a tensor that ends sooner than it says, before a page that nobody may touch.
[[gnu::noinline]] bool crash(const BoundKernel& bound, const View& output) {
  constexpr size_t there = 64;
  test::GuardedPages pages(there);
  const ConstView input(pages.at_end(there), ElementType::f32, {1000}, 4000);
  if (::sigsetjmp(after_crash, 1) != 0) return true;
  static_cast<void>(bound.run({&input, 1}, {&output, 1}));
  return false;
}

TEST(Unwind, SeesCallersFromACrash) {
  const auto runtime = Runtime::create({.tier = Tier::avx2, .observe = with_unwinding()});
  ASSERT_TRUE(runtime.ok());
  const auto bound = runtime->compile(test::to_i8_text)->bind({{1000}});
  std::vector<std::byte> bytes(1000);
  const View output(bytes.data(), ElementType::i8, {1000}, bytes.size());
  struct sigaction action {};
  action.sa_handler = on_crash;
  struct sigaction before {};
  ::sigaction(SIGSEGV, &action, &before);
  const bool crashed = crash(*bound, output);
  ::sigaction(SIGSEGV, &before, nullptr);
  ASSERT_TRUE(crashed);
  const auto callers = of_crash.callers_of(reinterpret_cast<const void*>(&crash));
  EXPECT_FALSE(callers.empty());
}

// ---- which code is known

const void* record_of(const KernelCodePtr<jit::NestSpec>& code) {
  dwarf_eh_bases bases{};
  return _Unwind_Find_FDE(const_cast<std::byte*>(code->block.code()) + 1, &bases);
}

const void* record_at(uintptr_t at) {
  dwarf_eh_bases bases{};
  return _Unwind_Find_FDE(reinterpret_cast<void*>(at), &bases);
}

TEST(UnwindRecords, LiveAsLongAsTheCode) {
  KernelCodePtr<jit::NestSpec> survivor;
  uintptr_t begin = 0;
  uintptr_t other = 0;
  {
    const ObservedRuntime runtime(with_unwinding());
    survivor = runtime.code_of(test::to_i8_text);
    const auto second = runtime.code_of(test::to_u8_text);
    begin = reinterpret_cast<uintptr_t>(survivor->block.code());
    other = reinterpret_cast<uintptr_t>(second->block.code());
    EXPECT_NE(record_of(survivor), nullptr);
    EXPECT_NE(record_of(second), nullptr);
    EXPECT_NE(record_of(survivor), record_of(second));
    EXPECT_EQ(record_at(begin), record_at(begin + survivor->block.code_size() - 1));
    EXPECT_EQ(record_at(begin + survivor->block.code_size()), nullptr);  // the next begins later
  }
  EXPECT_NE(record_of(survivor), nullptr);
  EXPECT_EQ(record_at(other + 1), nullptr);
  survivor.reset();
  EXPECT_EQ(record_at(begin + 1), nullptr);
}

TEST(UnwindRecords, AreNotMadeUnasked) {
  const ObservedRuntime runtime({});
  const auto code = runtime.code_of(test::to_i8_text);
  EXPECT_EQ(record_of(code), nullptr);
  EXPECT_EQ(code->watch, nullptr);
}

TEST(UnwindRecords, ManyThreadsMakeThemWhileOthersThrow) {
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        const ObservedRuntime runtime(with_unwinding());
        wrong += record_of(runtime.code_of(test::to_i8_text)) == nullptr;
      }
    });
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        try {
          throw std::runtime_error("any");
        } catch (const std::runtime_error&) {
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(UnwindRecords, AForkedChildMakesItsOwn) {
  const ObservedRuntime runtime(with_unwinding());
  const auto code = runtime.code_of(test::to_i8_text);
  EXPECT_EQ(test::in_child([&] {
              if (record_of(code) == nullptr) return 1;
              return record_of(runtime.code_of(test::to_u8_text)) == nullptr ? 2 : 0;
            }),
            0);
}

/// Children of a process whose other thread registers code all the time find libgcc's lock free.
TEST(UnwindRecords, ForksComeBetweenRegistrations) {
  std::atomic<bool> goes_on = true;
  std::thread other([&] {
    while (goes_on) {
      const ObservedRuntime runtime(with_unwinding());
      runtime.code_of(test::to_i8_text);
    }
  });
  int failed = 0;
  for (int i = 0; i < 50; ++i) {
    failed += test::in_child([] {
      const ObservedRuntime runtime(with_unwinding());
      return record_of(runtime.code_of(test::to_u8_text)) == nullptr ? 1 : 0;
    });
  }
  goes_on = false;
  other.join();
  EXPECT_EQ(failed, 0);
}

}  // namespace
}  // namespace castor
