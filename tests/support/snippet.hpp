// SPDX-License-Identifier: Apache-2.0
// Small pieces of machine code for the tests of listings.
#pragma once

#include <xbyak/xbyak.h>

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "jit/code.hpp"

namespace castor::jit::test {

using Assembler = Xbyak::CodeGenerator;
using Emit = std::function<void(Assembler&)>;

/// Assembles; everything after begin_pool() is the constant pool.
class Snippet : public Assembler {
 public:
  Snippet() : Assembler(64 * 1024) {}

  Xbyak::Label constants;
  void begin_pool() {
    instruction_bytes_ = getSize();
    L(constants);
  }
  MachineCode code() const {
    MachineCode code;
    const auto* bytes = reinterpret_cast<const std::byte*>(getCode());
    code.bytes.assign(bytes, bytes + getSize());
    code.instruction_bytes =
        static_cast<uint32_t>(instruction_bytes_ != 0 ? instruction_bytes_ : getSize());
    code.pool_begin = code.instruction_bytes;
    return code;
  }

 private:
  size_t instruction_bytes_ = 0;
};

inline MachineCode assemble(const Emit& emit) {
  Snippet snippet;
  emit(snippet);
  return snippet.code();
}

inline MachineCode raw(std::initializer_list<int> bytes) {
  MachineCode code;
  for (int byte : bytes) code.bytes.push_back(static_cast<std::byte>(byte));
  code.instruction_bytes = static_cast<uint32_t>(bytes.size());
  code.pool_begin = code.instruction_bytes;
  return code;
}

inline CodeLoop whole(const MachineCode& code) {
  return {.begin = 0, .end = code.instruction_bytes, .name = "body"};
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// A copy loop with one constant: f32 scaled by 255.
inline MachineCode scaling_loop() {
  using namespace Xbyak::util;
  Snippet s;
  Xbyak::Label top;
  s.xor_(eax, eax);
  s.L(top);
  s.vmovups(zmm0, ptr[rsi + rax]);
  s.vmulps(zmm0, zmm0, s.ptr_b[rip + s.constants]);
  s.vmovups(s.ptr[rdi + rax], zmm0);
  s.add(rax, 64);
  s.cmp(rax, rdx);
  s.jb(top);
  const auto loop_end = static_cast<uint32_t>(s.getSize());
  s.vzeroupper();
  s.ret();
  s.begin_pool();
  s.dd(0x437f0000);
  MachineCode code = s.code();
  code.loops.push_back({2, loop_end, 16, 64, 64, "main loop"});
  code.notes = {{0, CodeSection::entry, CodeNote::no_number, "", ""},
                {2, CodeSection::chunk, 0, "%0: f32 = load x", "%y = mul %x, 255"},
                {9, CodeSection::chunk, 0, "%1: f32 = mul %0 255", "%y = mul %x, 255"}};
  code.spills = 2;
  return code;
}

}  // namespace castor::jit::test
