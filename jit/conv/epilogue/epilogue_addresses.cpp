// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/epilogue/epilogue_addresses.hpp"

#include <array>

#include "jit/emit/frame.hpp"

namespace castor::jit {

namespace {

using Xbyak::Address;
using Xbyak::Operand;
using Xbyak::Reg64;

/// Registers of operands: addresses take the first ones, row steps the last ones.
const std::array<Reg64, max_tile_operands> operand_registers = {
    Reg64(Operand::R9),  Reg64(Operand::RSI), Reg64(Operand::RDX),
    Reg64(Operand::R13), Reg64(Operand::R14), Reg64(Operand::R15)};

}  // namespace

Reg64 EpilogueAddresses::pointer(size_t operand) const {
  return operand_registers[operand < epilogue_.source ? operand : operand - 1];
}

/// Operands that move take what addresses leave, in their order; the last ones may have none.
std::optional<Reg64> EpilogueAddresses::step_register(size_t operand) const {
  if (!in_registers() || !moves(operand)) return std::nullopt;
  size_t left = operand_registers.size() - (epilogue_.in_memory() - 1);
  for (size_t k = 0; k < operand && left > 0; ++k) {
    if (k != epilogue_.source && moves(k)) --left;
  }
  if (left == 0) return std::nullopt;
  return operand_registers[epilogue_.in_memory() - 1 + (left - 1)];
}

Address EpilogueAddresses::slot(size_t operand, size_t field) {
  const size_t at = operands_at + operand * sizeof(EpilogueOperand) + field;
  return code_.qword[gpr::stack + (use_.frame + static_cast<int>(at))];
}

void EpilogueAddresses::emit_point(const Reg64& element) {
  const Section operands = code_.section(CodeSection::epilogue_operands);
  for_each_operand([&](size_t k) {
    code_.mov(pointer(k), data(k));
    if (!epilogue_.operands[k].repeats) {
      code_.lea(pointer(k), code_.ptr[pointer(k) + element * bytes_of(k)]);
    }
    if (const std::optional<Reg64> step = step_register(k)) code_.mov(*step, row_step(k));
  });
}

void EpilogueAddresses::emit_skip_rows(const Reg64& rows) {
  const Section operands = code_.section(CodeSection::epilogue_operands);
  for_each_operand([&](size_t k) {
    if (!moves(k)) return;
    with_row_step(k, [&](const auto& step) { code_.mov(gpr::scratch, step); });
    code_.imul(gpr::scratch, rows);
    code_.add(pointer(k), gpr::scratch);
  });
}

void EpilogueAddresses::emit_next_row() {
  const Section operands = code_.section(CodeSection::epilogue_operands);
  for_each_operand([&](size_t k) {
    if (!moves(k)) return;
    if (in_registers()) {
      return with_row_step(k, [&](const auto& step) { code_.add(pointer(k), step); });
    }
    code_.mov(gpr::scratch, row_step(k));
    code_.add(data(k), gpr::scratch);
  });
}

void EpilogueAddresses::emit_prefetch_of_rows(int rows, int elements, const Address& pixel,
                                              const Reg64& scratch) {
  const Section prefetch = code_.section(CodeSection::prefetch);
  constexpr int line_bytes = 64;
  for_each_operand([&](size_t k) {
    const TileOperand& operand = epilogue_.operands[k];
    if (k >= epilogue_.inputs() || operand.repeats || !moves(k)) return;
    code_.mov(scratch, pixel);
    code_.mov(gpr::scratch, data(k));
    code_.lea(gpr::scratch, code_.ptr[gpr::scratch + scratch * bytes_of(k)]);
    code_.mov(scratch, row_step(k));
    for (int row = 0; row < rows; ++row) {
      if (row > 0) code_.add(gpr::scratch, scratch);
      for (int at = 0; at < elements * bytes_of(k); at += line_bytes) {
        code_.prefetcht0(code_.ptr[gpr::scratch + at]);
      }
    }
  });
}

void EpilogueAddresses::emit_prefetch(const Address& distance, const Reg64& scratch) {
  const Section prefetch = code_.section(CodeSection::prefetch);
  constexpr int min_bytes = 4;  // narrower results come to the same cache lines again and again
  const bool by_pixels = use_.order == EpilogueOrder::pixels;
  const Reg64& ahead = by_pixels ? gpr::scratch : scratch;
  for_each_operand([&](size_t k) {
    if (k < epilogue_.inputs() || bytes_of(k) < min_bytes) return;
    code_.mov(ahead, by_pixels ? use_.position : use_.element);
    code_.add(ahead, distance);
    if (by_pixels) code_.imul(gpr::scratch, row_step(k));
    by_pixels ? code_.add(gpr::scratch, data(k)) : code_.mov(gpr::scratch, data(k));
    const Reg64& index = by_pixels ? use_.element : scratch;
    code_.prefetchw(code_.ptr[gpr::scratch + index * bytes_of(k)]);
  });
}

void EpilogueAddresses::emit_result(size_t operand) {
  if (in_registers()) return code_.mov(gpr::scratch, pointer(operand));
  code_.mov(gpr::scratch, data(operand));
  code_.add(gpr::scratch, use_.element);
}

void EpilogueAddresses::emit_previous_row(size_t operand) {
  const auto emit_back = [&](const auto& step) { code_.sub(gpr::scratch, step); };
  in_registers() ? with_row_step(operand, emit_back) : emit_back(use_.position);
}

ChunkMode EpilogueAddresses::mode(size_t) const {
  return use_.order == EpilogueOrder::rows ? ChunkMode::whole : ChunkMode::masked;
}

ChunkAddress EpilogueAddresses::emit_chunk_address(size_t operand, int) {
  const int bytes = epilogue_.operands[operand].repeats ? 0 : bytes_of(operand);
  if (in_registers()) {
    const int64_t displacement = int64_t{vector_} * lanes * bytes;
    return {.mode = mode(operand), .base = pointer(operand), .displacement = displacement};
  }
  if (use_.order == EpilogueOrder::channels) {
    code_.mov(gpr::scratch, data(operand));
  } else {
    code_.mov(gpr::scratch, use_.position);
    code_.imul(gpr::scratch, row_step(operand));
    code_.add(gpr::scratch, data(operand));
  }
  return {.mode = mode(operand), .base = gpr::scratch, .index = use_.element, .scale = bytes};
}

}  // namespace castor::jit
