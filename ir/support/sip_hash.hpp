// SPDX-License-Identifier: Apache-2.0
// A keyed hash: nobody who does not know the key can prepare texts of equal hashes.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace castor {

/// SipHash-2-4 with a result of 128 bits (Aumasson and Bernstein, "SipHash: a fast short-input
/// PRF"; the longer result as in its authors' reference). Allocates nothing.
class SipHash {
 public:
  struct Key {
    uint64_t low;
    uint64_t high;
  };
  explicit SipHash(Key key)
      : a_(key.low ^ 0x736f6d6570736575),
        b_(key.high ^ 0x646f72616e646f6d ^ 0xee),
        c_(key.low ^ 0x6c7967656e657261),
        d_(key.high ^ 0x7465646279746573) {}

  /// Two texts of equal length, by two hashes at the same time, each of which mostly waits for its
  /// own sums.
  static void add_both(SipHash& first, std::span<const std::byte> bytes, SipHash& second,
                       std::span<const std::byte> others) {
    constexpr size_t step = sizeof(uint64_t);
    const size_t words = bytes.size() / step;
    for (size_t i = 0; i < words; ++i) {
      first.add(word_of(bytes.subspan(i * step, step)));
      second.add(word_of(others.subspan(i * step, step)));
    }
    first.add_end(bytes.subspan(words * step), bytes.size());
    second.add_end(others.subspan(words * step), others.size());
  }

  void add(std::span<const std::byte> bytes) {
    const auto length = static_cast<uint64_t>(bytes.size());
    for (; bytes.size() >= sizeof(uint64_t); bytes = bytes.subspan(sizeof(uint64_t))) {
      add(word_of(bytes.first(sizeof(uint64_t))));
    }
    add_end(bytes, length);
  }
  uint64_t low() {
    c_ ^= 0xee;
    return finished();
  }
  /// After `low`.
  uint64_t high() {
    b_ ^= 0xdd;
    return finished();
  }

 private:
  static uint64_t word_of(std::span<const std::byte> bytes) {
    uint64_t word = 0;
    if (!bytes.empty()) std::memcpy(&word, bytes.data(), bytes.size());
    return word;
  }
  /// What is left of a text of that length.
  void add_end(std::span<const std::byte> bytes, uint64_t length) {
    add(word_of(bytes) | length << 56);
  }
  void add(uint64_t word) {
    d_ ^= word;
    rounds(2);
    a_ ^= word;
  }
  uint64_t finished() {
    rounds(4);
    return a_ ^ b_ ^ c_ ^ d_;
  }
  void rounds(int count) {
    for (int i = 0; i < count; ++i) {
      a_ += b_;
      b_ = std::rotl(b_, 13) ^ a_;
      a_ = std::rotl(a_, 32);
      c_ += d_;
      d_ = std::rotl(d_, 16) ^ c_;
      a_ += d_;
      d_ = std::rotl(d_, 21) ^ a_;
      c_ += b_;
      b_ = std::rotl(b_, 17) ^ c_;
      c_ = std::rotl(c_, 32);
    }
  }

  uint64_t a_;
  uint64_t b_;
  uint64_t c_;
  uint64_t d_;
};

}  // namespace castor
