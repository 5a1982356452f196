// SPDX-License-Identifier: Apache-2.0
// Code that the CPU does not see: functions carried out from entry to return, as on a machine whose
// best tier is avx2.
#include <gtest/gtest.h>

#include <cstring>

#include "jit/memory/code_memory.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/code_returning.hpp"
#include "tools/emulator/emulator.hpp"
#include "tools/emulator/function.hpp"

namespace castor {
namespace {

using emulator::function_count;

// ---- Functions of a few bytes

/// Memory whose code cannot be executed.
class EmulatedCalls : public testing::Test {
 protected:
  EmulatedCalls() { emulator::install_calls(); }

  jit::CodeBlock published(const jit::MachineCode& code) {
    Result<jit::CodeBlock> block = memory_.publish(code);
    EXPECT_TRUE(block.ok()) << block.error().message;
    return *block;
  }
  jit::CodeBlock published(std::initializer_list<int> bytes) {
    std::vector<std::byte> code;
    for (const int byte : bytes) code.push_back(static_cast<std::byte>(byte));
    return published(test::machine_code(std::move(code)));
  }
  /// Whether the call ends its process.
  bool crashes(const jit::CodeBlock& block) {
    return test::in_child([&] {
             test::call(block.code());
             return 0;
           }) == -1;
  }

 private:
  jit::CodeMemory memory_{emulator::without_execution(jit::SystemCalls::real())};
};

TEST_F(EmulatedCalls, ReturnWhatTheFunctionLeavesInRax) {
  const uint64_t before = function_count();
  const jit::CodeBlock constant = published(test::code_returning(7));
  const jit::CodeBlock reading = published(test::code_reading(0x12345678, 64));
  EXPECT_EQ(test::call(constant.code()), 7u);
  EXPECT_EQ(test::call(reading.code()), 0x12345678u);
  EXPECT_EQ(test::call(constant.code()), 7u);
  EXPECT_EQ(function_count(), before + 3);
}

TEST_F(EmulatedCalls, GoByTheBytesThatAreThereNow) {
  const std::byte* where = nullptr;
  for (const uint32_t value : {1u, 2u, 3u}) {
    jit::CodeMemory memory(emulator::without_execution(jit::SystemCalls::real()));
    const Result<jit::CodeBlock> block = memory.publish(test::code_returning(value));
    ASSERT_TRUE(block.ok());
    EXPECT_EQ(test::call(block->code()), value) << (where == block->code());
    where = block->code();
  }
}

TEST_F(EmulatedCalls, FollowJumpsAndCallsWithinTheFunction) {
  // call 6; inc eax; ret; 6+: mov eax, 40; jmp to inc, inc, ret
  const jit::CodeBlock block = published({0xe8, 0x03, 0, 0, 0,         // call +3
                                          0xff, 0xc0, 0xc3,            // inc eax; ret
                                          0xb8, 40, 0, 0, 0, 0xeb, 1,  // mov eax, 40; jmp +1
                                          0xcc, 0xff, 0xc0, 0xc3});    // int3; inc eax; ret
  EXPECT_EQ(test::call(block.code()), 42u);
}

TEST_F(EmulatedCalls, EndTheProcessAtWhatHasNoMeaning) {
  EXPECT_TRUE(crashes(published({0x0f, 0xa2, 0xc3}))) << "cpuid";
  EXPECT_TRUE(crashes(published({0x06, 0xc3}))) << "no instruction";
}

TEST_F(EmulatedCalls, EndTheProcessWhereTheCallersRegistersAreLost) {
  EXPECT_TRUE(crashes(published({0xbb, 0x45, 0x23, 0x01, 0x6f, 0xc3}))) << "mov ebx, number";
  EXPECT_FALSE(crashes(published({0x53, 0xbb, 0x45, 0x23, 0x01, 0x6f, 0x5b, 0xc3})))
      << "with push and pop";
}

TEST_F(EmulatedCalls, LeaveFaultsWhatTheyAre) {
  EXPECT_TRUE(crashes(published({0x31, 0xc0, 0x8b, 0x00, 0xc3}))) << "mov eax, [0]";
  EXPECT_EQ(test::in_child([] {
              *reinterpret_cast<volatile int*>(uintptr_t{64}) = 1;
              return 0;
            }),
            -1);
}

// ---- Whole functions by the command

class EmulatedFunctions : public test::Cli {
 protected:
  void expect_identical(const std::string& name, const std::string& text) {
    const test::CommandResult result =
        castor({"check", write(name, text), "--isa", "all", "--emulate-above", "avx2"});
    ASSERT_EQ(result.status, 0) << name << ": " << result.err << result.out;
    for (const jit::TierInfo& row : jit::tier_table()) {
      test::expect_contains(result.out, std::string(row.name) + ": identical to the interpreter");
    }
    test::expect_contains(result.out, "calls of functions, 0 instructions one by one");
    EXPECT_EQ(result.out.find("emulated: 0 calls"), std::string::npos) << result.out;
  }
};

TEST_F(EmulatedFunctions, AreThoseOfEveryTierAboveTheOneThatIsNamed) {
  expect_identical("floats", R"(
func @floats(%x: f32[?n, 33], %y: f16[33]) -> (f8e4m3[?n, 33]) {
  %a = convert %y : f32
  %b = mul %x, %a
  %c = convert %b {overflow = saturate} : f8e4m3
  return %c
})");
  expect_identical("remainders", R"(
func @remainders(%x: f64[?n], %y: f64[?n]) -> (f64[?n]) {
  %z = mod %x, %y
  return %z
})");
  expect_identical("bits", R"(
func @bits(%x: u2.msb_first[?n, 3]) -> (u2.msb_first[?n, 3]) {
  return %x
})");
  expect_identical("sums", R"(
func @sums(%x: f32[?n, ?m]) -> (f32[?n]) {
  %z = reduce_sum %x {axes = [1]}
  return %z
})");
}

TEST_F(EmulatedFunctions, AreConvolutionsAndProducts) {
  expect_identical("dense", R"(
func @dense(%x: u8[1, 19, 9, 7], %w: i8[18, 19, 3, 3], %z: u8[]) -> (i32[1, 18, 9, 7]) {
  %y = conv_integer %x, %w, %z {pads = [1, 1, 1, 1]}
  return %y
})");
  expect_identical("product", R"(
func @product(%a: u8[17, 130], %b: i8[130, 33]) -> (i32[17, 33]) {
  %y = matmul_integer %a, %b
  return %y
})");
}

TEST_F(EmulatedFunctions, AreAboveATierThatThereIs) {
  const test::CommandResult result =
      castor({"check", write("f", test::to_f16_text), "--emulate-above", "sse9"});
  test::expect_one_line(result, 2, "--emulate-above: found 'sse9', expected one of avx2, ");
}

}  // namespace
}  // namespace castor
