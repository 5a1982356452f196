// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/assembler.hpp"

#include <fmt/format.h>

#include <memory>
#include <new>

namespace castor::jit {

Result<MachineCode> assemble(std::string_view what,
                             const std::function<MachineCode(std::span<uint8_t>)>& emit) {
  constexpr size_t first_bytes = size_t{16} << 10;
  constexpr size_t most_bytes = size_t{64} << 20;
  for (size_t bytes = first_bytes;; bytes *= 4) {
    try {
      const std::unique_ptr<uint8_t[]> buffer(new uint8_t[bytes]);
      return emit({buffer.get(), bytes});
    } catch (const Xbyak::Error& error) {
      const bool too_small = static_cast<int>(error) == Xbyak::ERR_CODE_IS_TOO_BIG;
      if (too_small && bytes < most_bytes) continue;
      return Error{
          ErrorCode::internal,
          fmt::format("the assembler refused an instruction of {}: {}", what, error.what())};
    } catch (const std::bad_alloc&) {
      return Error{ErrorCode::out_of_memory, "no memory to generate code in"};
    }
  }
}

}  // namespace castor::jit
