// SPDX-License-Identifier: Apache-2.0
#include "tools/limits/product_peak.hpp"

#include "jit/tile_permission.hpp"

namespace castor::limits {

namespace {

constexpr int rounds_an_iteration = 4;
constexpr int iterations_a_repetition = 32;
constexpr int pixels = 0;
constexpr int weights = 1;
constexpr int operands = 2;
constexpr int tile_registers = 8;
constexpr int tile_rows = 16;
constexpr int tile_row_bytes = 64;
/// Registers of products on their way to a sum, where that takes an instruction of its own.
constexpr int products_in_flight = 4;

}  // namespace

ProductPeak::ProductPeak(jit::Tier tier) : target_{jit::permitted_tier(tier).tier} { emit(); }

bool ProductPeak::has_vnni() const {
  return target_.supports(jit::Feature::avx512_vnni) || target_.supports(jit::Feature::avx_vnni);
}

int ProductPeak::accumulators() const {
  if (has_tiles()) return tile_registers - operands;
  return target_.vector_registers() - operands - (has_vnni() ? 0 : products_in_flight);
}

Xbyak::Xmm ProductPeak::vector(int index) const {
  return {target_.has_avx512() ? Xbyak::Operand::ZMM : Xbyak::Operand::YMM, index};
}

void ProductPeak::emit_begin() {
  for (int i = 0; i < operands + accumulators(); ++i) {
    const Xbyak::Xmm zero = vector(i);
    target_.has_avx512() ? code_.vpxord(zero, zero, zero) : code_.vpxor(zero, zero, zero);
  }
}

void ProductPeak::emit_tile_begin() {
  using Xbyak::util::rax;
  for (int i = 0; i < tile_registers; ++i) tile_config_.set(i, tile_rows, tile_row_bytes);
  code_.mov(rax, reinterpret_cast<size_t>(tile_config_.bytes().data()));
  code_.ldtilecfg(code_.ptr[rax]);  // which sets all tiles to zero
}

void ProductPeak::emit() {
  using namespace Xbyak::util;
  has_tiles() ? emit_tile_begin() : emit_begin();
  Xbyak::Label top;
  code_.align(64);
  code_.L(top);
  for (int i = 0; i < rounds_an_iteration * accumulators(); ++i) emit_product(i % accumulators());
  code_.dec(rdi);
  code_.jnz(top, Xbyak::CodeGenerator::T_NEAR);
  if (has_tiles()) code_.tilerelease();
  code_.vzeroupper();
  code_.ret();
  code_.setProtectModeRE();
}

void ProductPeak::emit_product(int index) {
  if (!has_tiles()) return emit_vector_product(index);
  code_.tdpbusd(Xbyak::Tmm(operands + index), Xbyak::Tmm(pixels), Xbyak::Tmm(weights));
}

void ProductPeak::emit_vector_product(int index) {
  const Xbyak::Xmm sum = vector(operands + index);
  if (!has_vnni()) {
    const int in_flight = index % products_in_flight;
    const Xbyak::Xmm product = vector(operands + accumulators() + in_flight);
    code_.vpmaddwd(product, vector(pixels), vector(weights));
    code_.vpaddd(sum, sum, product);
  } else if (target_.has_avx512()) {
    code_.vpdpbusd(sum, vector(pixels), vector(weights));
  } else {
    code_.vpdpbusd(sum, vector(pixels), vector(weights), Xbyak::VexEncoding);
  }
}

Contender ProductPeak::contender() const {
  const auto loop = code_.getCode<void (*)(size_t iterations)>();
  return {.run = [loop](size_t repetitions) { loop(repetitions * iterations_a_repetition); }};
}

double ProductPeak::products() const {
  const int of_an_instruction = has_tiles() ? tile_rows * tile_rows * tile_row_bytes
                                            : target_.vector_bits() / (has_vnni() ? 8 : 16);
  return static_cast<double>(of_an_instruction) * accumulators() * rounds_an_iteration *
         iterations_a_repetition;
}

std::string_view ProductPeak::name() const {
  if (has_tiles()) return "tdpbusd";
  if (has_vnni()) return target_.has_avx512() ? "vpdpbusd zmm" : "vpdpbusd ymm";
  return target_.has_avx512() ? "vpmaddwd, vpaddd zmm" : "vpmaddwd, vpaddd ymm";
}

}  // namespace castor::limits
