// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/tile_copy.hpp"

#include <fmt/format.h>

#include <new>

#include "jit/emit/strided_copy_emitter.hpp"
#include "jit/emit/transpose_emitter.hpp"

namespace castor::jit {

namespace {

/// Jumps where the copy is not one of whole blocks between two orders of the axes.
void emit_unless_transposed(Assembler& code, int element_bytes, Xbyak::Label& other) {
  const Xbyak::Reg64 arguments(Xbyak::Operand::RDI);
  const auto argument = [&](size_t offset) { return code.qword[arguments + offset]; };
  const int block = transposed_block_bytes / element_bytes;
  for (size_t step : {offsetof(TileCopy, source_row_step), offsetof(TileCopy, destination_step)}) {
    code.cmp(argument(step), element_bytes);
    code.jne(other, Xbyak::CodeGenerator::T_NEAR);
  }
  for (size_t extent : {offsetof(TileCopy, columns), offsetof(TileCopy, rows)}) {
    code.cmp(argument(extent), block);
    code.jl(other, Xbyak::CodeGenerator::T_NEAR);
  }
}

MachineCode emit(int element_bytes, std::span<uint8_t> buffer) {
  Assembler code(buffer);
  Xbyak::Label other;
  emit_unless_transposed(code, element_bytes, other);
  emit_transpose(code, element_bytes);
  code.L(other);
  emit_strided_copy(code, element_bytes);
  MachineCode machine_code;
  machine_code.instruction_bytes = static_cast<uint32_t>(code.getSize());
  machine_code.pool_begin = static_cast<uint32_t>(code.finish());
  const auto* bytes = reinterpret_cast<const std::byte*>(code.getCode());
  machine_code.bytes.assign(bytes, bytes + code.getSize());
  return machine_code;
}

}  // namespace

Result<MachineCode> emit_tile_copy(int element_bytes) {
  constexpr size_t most_bytes = 8192;
  try {
    uint8_t buffer[most_bytes];
    return emit(element_bytes, buffer);
  } catch (const Xbyak::Error& error) {
    return Error{ErrorCode::internal,
                 fmt::format("the assembler refused a copy of a tile: {}", error.what())};
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "no memory to generate code in"};
  }
}

}  // namespace castor::jit
