// SPDX-License-Identifier: Apache-2.0
// Random numbers that depend on their seed alone, on any machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace castor::fuzz {

/// One step of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
/// 2014): a bijection that mixes well.
constexpr uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// SplitMix64 as a stream. Cheap to seed: every program has its own.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(mix(seed)) {}

  uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15); }
  /// Uniform in [0, bound); bound is at least 1.
  size_t below(size_t bound) { return next() % bound; }
  /// Uniform in [low, high].
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(below(static_cast<size_t>(high - low) + 1));
  }
  bool percent(size_t chance) { return below(100) < chance; }
  template <class Container>
  const auto& pick(const Container& from) {
    return from[below(std::size(from))];
  }

 private:
  uint64_t state_;
};

}  // namespace castor::fuzz
