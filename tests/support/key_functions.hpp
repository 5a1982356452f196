// SPDX-License-Identifier: Apache-2.0
// Any number of functions, each with machine code and results of its own.
#pragma once

#include <castor/castor.hpp>

#include <string>

namespace castor::test {

/// The text of function number `key` of i32 tensors: for each of its lower ten bits, from the
/// lowest, y = y + x where it is set and y = y * x where it is clear, beginning with y = x.
inline std::string key_function_text(int key, const std::string& name = "f") {
  std::string text = "func @" + name + "(%x: i32[?n]) -> (i32[?n]) {\n";
  std::string value = "%x";
  for (int bit = 0; bit < 10; ++bit) {
    const std::string next = "%y" + std::to_string(bit);
    text += "  " + next + " = " + ((key >> bit & 1) != 0 ? "add " : "mul ") + value + ", %x\n";
    value = next;
  }
  return text + "  return " + value + "\n}\n";
}

inline FunctionPtr key_function(int key, const std::string& name = "f") {
  return parse_function(key_function_text(key, name)).value();
}

/// What that function makes of `x`.
inline uint32_t key_function_of(int key, uint32_t x) {
  uint32_t y = x;
  for (int bit = 0; bit < 10; ++bit) y = (key >> bit & 1) != 0 ? y + x : y * x;
  return y;
}

/// Whether the kernel computes function number `key`.
inline bool computes_key_function(const Kernel& kernel, int key) {
  const uint32_t in[3] = {3, 0x12345678, 0xffffffff};
  uint32_t out[3] = {};
  const ConstView input(in, ElementType::i32, {3}, sizeof in);
  const View output(out, ElementType::i32, {3}, sizeof out);
  const Result<BoundKernel> bound = kernel.bind({&input, 1}, {&output, 1});
  if (!bound.ok() || !bound->run({&input, 1}, {&output, 1}).ok()) return false;
  for (int i = 0; i < 3; ++i) {
    if (out[i] != key_function_of(key, in[i])) return false;
  }
  return true;
}

}  // namespace castor::test
