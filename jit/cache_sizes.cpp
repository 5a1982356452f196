// SPDX-License-Identifier: Apache-2.0
#include "jit/cache_sizes.hpp"

#include <fmt/format.h>
#include <xbyak/xbyak_util.h>

#include <algorithm>
#include <array>

namespace castor::jit {

namespace {

using CpuType = Xbyak::util::Cpu;

constexpr uint32_t intel_leaf = 4;
constexpr uint32_t amd_leaf = 0x8000001D;

/// Registers that cpuid fills: eax, ebx, ecx, edx.
using Registers = std::array<uint32_t, 4>;

Registers cpuid(uint32_t leaf, uint32_t index) {
  Registers registers = {};
  CpuType::getCpuidEx(leaf, index, registers.data());
  return registers;
}

/// The leaf that describes caches one by one, or 0.
uint32_t leaf_of_caches() {
  if (cpuid(0, 0)[0] >= intel_leaf && (cpuid(intel_leaf, 0)[0] & 31) != 0) return intel_leaf;
  constexpr uint32_t topology_extensions = 1u << 22;
  const bool has_amd_leaf =
      cpuid(0x80000000, 0)[0] >= amd_leaf && (cpuid(0x80000001, 0)[2] & topology_extensions) != 0;
  return has_amd_leaf ? amd_leaf : 0;
}

/// Ways, partitions, bytes of a line and sets, each less one.
int64_t bytes_of(const Registers& cache) {
  const auto field = [&](int shift, uint32_t mask) {
    return int64_t{cache[1] >> shift & mask} + 1;
  };
  return field(22, 0x3ff) * field(12, 0x3ff) * field(0, 0xfff) * (int64_t{cache[2]} + 1);
}

}  // namespace

DetectedCaches detect_caches() {
  constexpr uint32_t max_caches = 16;
  constexpr uint32_t instructions = 2;
  constexpr int64_t min = int64_t{8} << 10;
  DetectedCaches found;
  const uint32_t leaf = leaf_of_caches();
  for (uint32_t index = 0; leaf != 0 && index < max_caches; ++index) {
    const Registers cache = cpuid(leaf, index);
    const uint32_t kind = cache[0] & 31;
    if (kind == 0) break;
    if (kind == instructions) continue;
    const int64_t bytes = bytes_of(cache);
    const uint32_t level = cache[0] >> 5 & 7;
    if (level == 1 && bytes >= min) found.near.l1 = bytes;
    if (level == 2 && bytes >= min) found.near.l2 = bytes;
    found.llc = std::max(found.llc, bytes);
  }
  return found;
}

std::string print(const CacheSizes& caches) {
  return fmt::format("{} KiB L1, {} KiB L2", caches.l1 >> 10, caches.l2 >> 10);
}

}  // namespace castor::jit
