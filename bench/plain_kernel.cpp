// SPDX-License-Identifier: Apache-2.0
#include "bench/plain_kernel.hpp"

#include <fmt/format.h>

#include <cassert>
#include <numeric>

namespace castor::bench {

namespace {

using Code = void (*)(const std::byte* source, std::byte* destination, size_t iterations);

/// Vector loads and stores of one group.
struct Group {
  int loads;
  int stores;
};

/// Loads and stores of one iteration: a longer loop is no faster.
constexpr int most_vectors = 48;

Group group_of(const Ratio& ratio) {
  const int divisor = std::gcd(ratio.source_bits, ratio.destination_bits);
  return {ratio.source_bits / divisor, ratio.destination_bits / divisor};
}

/// Emits a group with its stores spread evenly among its loads.
void emit_group(Xbyak::CodeGenerator& code, const PlainVariant& variant, const Group& group,
                int index) {
  using namespace Xbyak::util;
  const int bytes = variant.vector_bits / 8;
  const auto kind = bytes == 64 ? Xbyak::Operand::ZMM : Xbyak::Operand::YMM;
  int stored = 0;
  for (int load = 0; load < group.loads; ++load) {
    const Xbyak::Xmm vector(kind, (index * group.loads + load) % 16);
    code.vmovups(vector, code.ptr[rdi + (index * group.loads + load) * bytes]);
    const int due = (load + 1) * group.stores / group.loads;
    for (; stored < due; ++stored) {
      const Xbyak::Address place = code.ptr[rsi + (index * group.stores + stored) * bytes];
      variant.non_temporal ? code.vmovntps(place, vector) : code.vmovups(place, vector);
    }
  }
}

}  // namespace

std::string PlainVariant::name() const {
  return fmt::format("{}{} x{}", vector_bits == 512 ? "zmm" : "ymm", non_temporal ? " nt" : "",
                     unroll);
}

std::vector<PlainVariant> all_plain_variants(const Ratio& ratio) {
  const Group group = group_of(ratio);
  std::vector<PlainVariant> variants;
  for (const int bits : {256, 512}) {
    for (const bool past_caches : {false, true}) {
      for (const int unroll : {1, 2, 4}) {
        if (unroll > 1 && unroll * (group.loads + group.stores) > most_vectors) continue;
        variants.push_back({bits, past_caches, unroll});
      }
    }
  }
  return variants;
}

std::vector<PlainVariant> plain_variants(const Ratio& ratio, const jit::Host& host,
                                         bool non_temporal) {
  std::vector<PlainVariant> variants = all_plain_variants(ratio);
  std::erase_if(variants, [&](const PlainVariant& variant) {
    return (variant.vector_bits == 512 && !host.runs(jit::Tier::avx512)) ||
           (variant.non_temporal && !non_temporal);
  });
  return variants;
}

int64_t whole_iterations(const Ratio& ratio, const PlainVariant& variant) {
  // An iteration moves vectors / divisor elements: loads * vectors = elements * source_bits.
  const int vectors = variant.vector_bits * variant.unroll;
  const int divisor = std::gcd(ratio.source_bits, ratio.destination_bits);
  return vectors / std::gcd(vectors, divisor);
}

PlainKernel::PlainKernel(const Ratio& ratio, const PlainVariant& variant) : variant_(variant) {
  using namespace Xbyak::util;
  const Group group = group_of(ratio);
  const int group_bytes = variant.unroll * variant.vector_bits / 8;
  iteration_bytes_ = static_cast<size_t>(group_bytes * group.loads);
  Xbyak::Label top;
  code_.align(64);
  code_.L(top);
  for (int i = 0; i < variant.unroll; ++i) emit_group(code_, variant, group, i);
  code_.add(rdi, group_bytes * group.loads);
  code_.add(rsi, group_bytes * group.stores);
  code_.dec(rdx);
  code_.jnz(top, Xbyak::CodeGenerator::T_NEAR);
  if (variant.non_temporal) code_.sfence();
  code_.vzeroupper();
  code_.ret();
  code_.setProtectModeRE();
}

Contender PlainKernel::contender(const std::byte* source, std::byte* destination,
                                 size_t source_bytes) const {
  const auto code = code_.getCode<Code>();
  const size_t iterations = source_bytes / iteration_bytes_;
  assert(iterations > 0 && source_bytes % iteration_bytes_ == 0);
  return {.run = [=](size_t repetitions) {
    for (size_t i = 0; i < repetitions; ++i) code(source, destination, iterations);
  }};
}

}  // namespace castor::bench
