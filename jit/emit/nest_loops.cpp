// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/nest_loops.hpp"

namespace castor::jit {

void NestLoops::emit_prefetches(int elements) {
  constexpr int line_bytes = 64;
  if (form_.prefetch == Prefetch{}) return;
  const Section lines = code_.section(CodeSection::prefetch);
  for (size_t k = 0; k < nest_.operands(); ++k) {
    const bool is_output = k >= nest_.inputs.size();
    const int ahead = is_output ? form_.prefetch.output_bytes : form_.prefetch.input_bytes;
    const bool has_lines = form_.access[k] == Access::contiguous && !is_sub_byte(nest_.element(k));
    if (ahead == 0 || !has_lines || !frame_.in_register(k)) continue;
    const int element_bytes = bits_of(nest_.element(k)) / 8;
    const Xbyak::RegExp first = frame_.emit_pointer(k) + gpr::index * element_bytes;
    for (int byte = 0; byte < elements * element_bytes; byte += line_bytes) {
      const Xbyak::Address line = code_.ptr[first + (ahead + byte)];
      is_output ? code_.prefetchw(line) : code_.prefetcht0(line);
    }
  }
}

}  // namespace castor::jit
