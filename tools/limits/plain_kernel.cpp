// SPDX-License-Identifier: Apache-2.0
#include "tools/limits/plain_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <numeric>

namespace castor::limits {

namespace {

/// Where the tensors are; the code's first argument.
struct Pointers {
  std::byte* destination = nullptr;
  std::array<const std::byte*, max_sources> sources{};
};
using Code = void (*)(const Pointers* pointers, size_t iterations);

const Xbyak::Reg64& iterations_left = Xbyak::util::rsi;
const Xbyak::Reg64& destination = Xbyak::util::rax;
const std::array<Xbyak::Reg64, max_sources> source_registers = {Xbyak::util::rcx, Xbyak::util::rdx,
                                                                Xbyak::util::r8,  Xbyak::util::r9,
                                                                Xbyak::util::r10, Xbyak::util::r11};

/// Loads and stores of one iteration: a longer loop is no faster.
constexpr int max_vectors = 48;

/// The source that the group's next load reads: the one with the smallest fraction of its loads
/// done.
size_t next_source(const Streams& streams, const std::vector<int>& loaded) {
  const auto done = [&](size_t k) {
    if (streams.loads[k] == 0) return double{INFINITY};
    return static_cast<double>(loaded[k] + 1) / static_cast<double>(streams.loads[k]);
  };
  size_t next = 0;
  for (size_t k = 1; k < streams.loads.size(); ++k) {
    if (done(k) < done(next)) next = k;
  }
  return next;
}

/// Emits the groups of one iteration.
class GroupEmitter {
 public:
  GroupEmitter(Xbyak::CodeGenerator& code, const Streams& streams, const PlainVariant& variant)
      : code_(code), streams_(streams), variant_(variant) {}

  /// A group with its stores spread evenly among its loads.
  void emit(int index) {
    const int loads = streams_.vectors() - streams_.stores;
    std::vector<int> loaded(streams_.loads.size());
    int stored = 0;
    for (int load = 0; load < loads; ++load) {
      const size_t source = next_source(streams_, loaded);
      const int where = index * streams_.loads[source] + loaded[source]++;
      code_.vmovups(vector(index * loads + load),
                    code_.ptr[source_registers[source] + where * bytes()]);
      const int due = (load + 1) * streams_.stores / loads;
      for (; stored < due; ++stored) store(index, stored, vector(index * loads + load));
    }
    for (; stored < streams_.stores; ++stored) store(index, stored, vector(0));
  }

 private:
  int bytes() const { return variant_.vector_bits / 8; }
  Xbyak::Xmm vector(int number) const {
    return {bytes() == 64 ? Xbyak::Operand::ZMM : Xbyak::Operand::YMM, number % 16};
  }
  void store(int group, int number, const Xbyak::Xmm& from) {
    const auto where = code_.ptr[destination + (group * streams_.stores + number) * bytes()];
    variant_.non_temporal ? code_.vmovntps(where, from) : code_.vmovups(where, from);
  }

  Xbyak::CodeGenerator& code_;
  const Streams& streams_;
  const PlainVariant& variant_;
};

/// Whether a tensor is less than a vector of an iteration.
bool is_negligible(size_t bytes, const PlainTensors& tensors) {
  return bytes < tensors.bytes() / max_vectors;
}

/// The bytes of one tensor as a fraction of `scale` vectors, of which the largest one has all.
int vectors_of(size_t bytes, size_t largest, int scale, const PlainTensors& tensors) {
  if (is_negligible(bytes, tensors)) return 0;
  const double fraction = static_cast<double>(bytes) / static_cast<double>(largest);
  return std::max(1, static_cast<int>(std::lround(fraction * scale)));
}

/// How far the streams are from the tensors' bytes: 0 for not at all.
double error_of(const Streams& streams, const PlainTensors& tensors) {
  const auto bytes_a_vector = static_cast<double>(tensors.bytes()) / streams.vectors();
  double error = 0;
  const auto add = [&](size_t bytes, int vectors) {
    if (vectors == 0) return;
    error = std::max(error, std::abs(static_cast<double>(bytes) / bytes_a_vector / vectors - 1));
  };
  for (size_t k = 0; k < tensors.sources.size(); ++k) {
    add(tensors.sources[k].size(), streams.loads[k]);
  }
  add(tensors.destination.size(), streams.stores);
  return error;
}

}  // namespace

size_t PlainTensors::bytes() const {
  size_t sum = destination.size();
  for (const auto& source : sources) sum += source.size();
  return sum;
}

int Streams::vectors() const { return std::accumulate(loads.begin(), loads.end(), stores); }

Streams streams_of(const Ratio& ratio) {
  const int divisor = std::gcd(ratio.source_bits, ratio.destination_bits);
  return {{ratio.source_bits / divisor}, ratio.destination_bits / divisor};
}

Streams streams_of(const PlainTensors& tensors) {
  constexpr double small_error = 0.01;
  size_t largest = tensors.destination.size();
  for (const auto& source : tensors.sources) largest = std::max(largest, source.size());
  Streams best;
  double min_error = INFINITY;
  for (int scale = 1; scale <= max_vectors && min_error > small_error; ++scale) {
    Streams streams;
    for (const auto& source : tensors.sources) {
      streams.loads.push_back(vectors_of(source.size(), largest, scale, tensors));
    }
    streams.stores = vectors_of(tensors.destination.size(), largest, scale, tensors);
    const double error = error_of(streams, tensors);
    if (streams.vectors() > max_vectors || error >= min_error) continue;
    min_error = error;
    best = streams;
  }
  return best;
}

std::string PlainVariant::name() const {
  return fmt::format("{}{} x{}", vector_bits == 512 ? "zmm" : "ymm", non_temporal ? " nt" : "",
                     unroll);
}

std::vector<PlainVariant> all_plain_variants(const Streams& streams) {
  std::vector<PlainVariant> variants;
  for (const int bits : {256, 512}) {
    for (const bool past_caches : {false, true}) {
      if (past_caches && streams.stores == 0) continue;
      for (const int unroll : {1, 2, 4}) {
        if (unroll > 1 && unroll * streams.vectors() > max_vectors) continue;
        variants.push_back({bits, past_caches, unroll});
      }
    }
  }
  return variants;
}

std::vector<PlainVariant> plain_variants(const Streams& streams, const jit::Host& host,
                                         bool non_temporal) {
  std::vector<PlainVariant> variants = all_plain_variants(streams);
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

PlainKernel::PlainKernel(const Streams& streams, const PlainVariant& variant)
    : streams_(streams), variant_(variant) {
  emit();
}

void PlainKernel::emit() {
  using namespace Xbyak::util;
  assert(streams_.loads.size() <= max_sources);
  code_.mov(destination, code_.ptr[rdi + offsetof(Pointers, destination)]);
  for (size_t k = 0; k < streams_.loads.size(); ++k) {
    code_.mov(source_registers[k],
              code_.ptr[rdi + offsetof(Pointers, sources) + k * sizeof(std::byte*)]);
  }
  code_.vpxor(xmm0, xmm0, xmm0);
  Xbyak::Label top;
  code_.align(64);
  code_.L(top);
  GroupEmitter groups(code_, streams_, variant_);
  for (int i = 0; i < variant_.unroll; ++i) groups.emit(i);
  for (size_t k = 0; k < streams_.loads.size(); ++k) {
    code_.add(source_registers[k], static_cast<uint32_t>(bytes_of(streams_.loads[k])));
  }
  code_.add(destination, static_cast<uint32_t>(bytes_of(streams_.stores)));
  code_.dec(iterations_left);
  code_.jnz(top, Xbyak::CodeGenerator::T_NEAR);
  if (variant_.non_temporal) code_.sfence();
  code_.vzeroupper();
  code_.ret();
  code_.setProtectModeRE();
}

size_t PlainKernel::bytes_of(int vectors) const {
  return static_cast<size_t>(vectors * variant_.unroll * variant_.vector_bits / 8);
}

size_t PlainKernel::iterations(const PlainTensors& tensors) const {
  size_t count = SIZE_MAX;
  const auto limit = [&](size_t bytes, int vectors) {
    if (vectors > 0) count = std::min(count, bytes / bytes_of(vectors));
  };
  limit(tensors.destination.size(), streams_.stores);
  for (size_t k = 0; k < tensors.sources.size(); ++k) {
    limit(tensors.sources[k].size(), streams_.loads[k]);
  }
  return count;
}

double PlainKernel::fraction(const PlainTensors& tensors) const {
  const size_t moved = iterations(tensors) * bytes_of(streams_.vectors());
  return static_cast<double>(moved) / static_cast<double>(tensors.bytes());
}

Contender PlainKernel::contender(const PlainTensors& tensors) const {
  const auto code = code_.getCode<Code>();
  const size_t count = iterations(tensors);
  assert(count > 0 && tensors.sources.size() == streams_.loads.size());
  Pointers pointers;
  pointers.destination = tensors.destination.data();
  for (size_t k = 0; k < tensors.sources.size(); ++k) {
    pointers.sources[k] = tensors.sources[k].data();
  }
  return {.run = [=](size_t repetitions) {
    for (size_t i = 0; i < repetitions; ++i) code(&pointers, count);
  }};
}

}  // namespace castor::limits
