// SPDX-License-Identifier: Apache-2.0
// What makes generated code hard to misuse: the check that says so, and constants of callers, which
// never come to pages that can be executed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "jit/listing/listing.hpp"
#include "jit/requantize/byte_table_kernel.hpp"
#include "tests/support/conversions.hpp"
#include "tests/support/process_maps.hpp"
#include "tests/support/snippet.hpp"

namespace castor {
namespace {

using jit::test::Emit;
using jit::test::Snippet;

/// The message of the check, empty where it finds nothing.
std::string found_in(const Emit& emit, std::vector<uint32_t> pool_references = {}) {
  jit::MachineCode code = jit::test::assemble(emit);
  code.pool_references = std::move(pool_references);
  const Status status = jit::check_hardening(code);
  return status ? "" : status.error().message;
}

TEST(CheckHardening, FindsWhatItIsFor) {
  using namespace Xbyak::util;
  EXPECT_EQ(found_in([](auto& s) { (s.endbr64(), s.ret()); }), "");
  EXPECT_EQ(found_in([](auto& s) { s.ret(); }), "ret at offset 0x0 is the entry, expected endbr64");
  EXPECT_EQ(found_in([](auto& s) { (s.endbr64(), s.endbr64(), s.ret()); }),
            "endbr64 at offset 0x4 is no entry");
  EXPECT_EQ(found_in([](auto& s) { (s.endbr64(), s.jmp(rax)); }),
            "jmp at offset 0x4 branches to an address that is not in the code");
  EXPECT_EQ(found_in([](auto& s) { (s.endbr64(), s.call(qword[rdi]), s.ret()); }),
            "call at offset 0x4 branches to an address that is not in the code");
}

TEST(CheckHardening, KnowsTheReferencesToConstants) {
  using namespace Xbyak::util;
  Snippet snippet;
  snippet.endbr64();
  snippet.vpternlogd(zmm0, zmm1, ptr[rip + snippet.constants], 0x96);  // a number after the field
  snippet.vaddps(zmm0, zmm0, ptr[rip + snippet.constants]);
  snippet.ret();
  snippet.begin_pool();
  for (int i = 0; i < 16; ++i) snippet.dd(1);
  jit::MachineCode code = snippet.code();
  for (const std::vector<uint32_t>& listed :
       std::vector<std::vector<uint32_t>>{{}, {10}, {10, 20}, {10, 21, 30}}) {
    code.pool_references = listed;
    EXPECT_FALSE(jit::check_hardening(code).ok()) << listed.size();
  }
  code.pool_references = {10, 21};
  EXPECT_TRUE(jit::check_hardening(code).ok());
}

TEST(Hardening, OfTheKernelThatLooksUpBytes) {
  const auto code = emit_kernel(jit::ByteTableSpec{}, {jit::Tier::avx512_vbmi});
  ASSERT_TRUE(code.ok());
  const Status status = jit::check_hardening(*code);
  EXPECT_TRUE(status.ok()) << status.error().message;
}

// ---- constants of callers

/// Bytes that no instruction has by chance, of constants in functions: 0x5a17c3e9 as a 32-bit
/// pattern or number, and twice that for 64 bits.
constexpr std::array<uint8_t, 8> chosen = {0xe9, 0xc3, 0x17, 0x5a, 0xf7, 0xd4, 0xb2, 0x61};

struct ConstantCase {
  const char* type;
  const char* body;   ///< from %x to %y, in which @ stands for the constant
  bool has_constant;  ///< whether the constant is in the pool as it is written
};

const ConstantCase cases[] = {
    {"f32", "%y = add %x, %c", true},
    {"f32", "%y = mul %x, %c", true},
    {"f32", "%y = div %c, %x", true},
    {"f32", "%y = max %x, %c", true},
    {"f32", "%y = mod %x, %c", true},
    {"f32", "%m = less %x, %c\n  %y = select %m, %x, %c", true},
    {"i32", "%y = add %x, %c", true},
    {"i32", "%y = mul %x, %c", true},
    {"i32", "%y = div %x, %c", false},
    {"i32", "%y = floor_mod %x, %c", false},
    {"i32", "%y = bitwise_xor %x, %c", true},
    {"i32", "%y = clamp %x {lo = -1511506921, hi = 1511506921}", true},
    {"i32", "%s = shift_left %c, %x\n  %y = bitwise_and %s, %x", true},
    {"u32", "%m = equal %x, %c\n  %y = select %m, %c, %x", true},
    {"i64", "%y = add %x, %c", true},
    {"i64", "%y = mul %x, %c", false},
    {"u64", "%y = floor_div %x, %c", false},
    {"f64", "%y = squared_difference %x, %c", true},
};

bool is_wide(const ConstantCase& row) { return std::string_view(row.type).ends_with("64"); }

std::string text_of(const ConstantCase& row) {
  return fmt::format(
      "func @f(%x: {0}[?]) -> {0}[?] {{\n  %c = constant {1} : {0}[]\n  {2}\n  return %y\n}}\n",
      row.type, is_wide(row) ? "0x61b2d4f75a17c3e9" : "0x5a17c3e9", row.body);
}

/// Whether memory that can be read has the bytes.
bool has(const test::ProcessMapping& mapping, std::span<const uint8_t> bytes) {
  const auto* begin = reinterpret_cast<const uint8_t*>(mapping.begin);
  const auto* end = reinterpret_cast<const uint8_t*>(mapping.end);
  return std::search(begin, end, bytes.begin(), bytes.end()) != end;
}

/// Where code or its constants may be: arenas, or executable memory without a file.
bool is_of_code(const test::ProcessMapping& mapping) {
  return mapping.of_code_memory() || (mapping.executable() && mapping.name.empty());
}

/// Checks memory while a kernel of the function lives.
void check_memory(const ConstantCase& row) {
  const std::span pattern = std::span(chosen).first(is_wide(row) ? 8 : 4);
  bool is_read = false;
  for (const test::ProcessMapping& mapping : test::process_maps()) {
    if (!is_of_code(mapping)) continue;
    ASSERT_FALSE(mapping.writable());
    if (!mapping.executable()) {
      is_read |= has(mapping, pattern);
      continue;
    }
    for (size_t i = 0; i + 3 <= pattern.size(); ++i) {
      EXPECT_FALSE(has(mapping, pattern.subspan(i, 3))) << "bytes from " << i;
    }
  }
  EXPECT_TRUE(is_read || !row.has_constant);
}

TEST(CallersConstants, AreNotExecutable) {
  for (const auto& [tier, shared] : test::tier_runtimes()) {
    for (const ConstantCase& row : cases) {
      SCOPED_TRACE(fmt::format("{}\n{}", name_of(tier), text_of(row)));
      const Runtime runtime = *Runtime::create({.tier = tier});
      const Result<Kernel> kernel = runtime.compile(text_of(row));
      ASSERT_TRUE(kernel.ok()) << kernel.error().to_string();
      const Result<BoundKernel> bound = kernel->bind({{100}});
      ASSERT_TRUE(bound.ok()) << bound.error().to_string();
      ASSERT_EQ(bound->engine(), Engine::jit);
      check_memory(row);
    }
  }
}

}  // namespace
}  // namespace castor
