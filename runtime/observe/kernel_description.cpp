// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/kernel_description.hpp"

#include <fmt/format.h>

#include "runtime/observe/code_name.hpp"

namespace castor {

std::string kernel_name(const jit::SpecWords& words, const jit::Target& target,
                        const jit::TileEpilogue* epilogue, std::string_view key) {
  const std::string front = short_name(words) + (epilogue == nullptr ? "" : "_epilogue");
  const bool says_all = words.has_full_short_name() && epilogue == nullptr;
  return bounded_name(front, jit::name_of(target.tier), says_all, key);
}

std::string kernel_text(const jit::SpecWords& words, const jit::TileEpilogue* epilogue) {
  std::string text = text_of(words);
  if (epilogue == nullptr) return text;
  text += "  epilogue, on each tile of sums:\n";
  for (size_t id = 0; id < epilogue->program.code.size(); ++id) {
    if (epilogue->program.code[id].op == jit::LaneOp::constant) continue;
    text += fmt::format("    {}\n", print(epilogue->program, static_cast<jit::LaneId>(id)));
  }
  return text;
}

}  // namespace castor
