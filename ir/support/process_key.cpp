// SPDX-License-Identifier: Apache-2.0
#include "ir/support/process_key.hpp"

#include <sys/auxv.h>

#include <array>
#include <atomic>
#include <ctime>

namespace castor {

namespace {

/// What is left where the system gives no random bits.
uint64_t word_of_the_start(uint64_t index) noexcept {
  SipHash::Key start = {};
  const auto* random = reinterpret_cast<const std::byte*>(::getauxval(AT_RANDOM));
  if (random != nullptr) std::memcpy(&start, random, sizeof start);
  timespec now = {};
  (void)::clock_gettime(CLOCK_MONOTONIC, &now);
  const std::array<uint64_t, 4> words = {index, static_cast<uint64_t>(now.tv_sec),
                                         static_cast<uint64_t>(now.tv_nsec),
                                         reinterpret_cast<uintptr_t>(&now)};
  SipHash hash(start);
  hash.add(std::as_bytes(std::span(words)));
  return hash.low();
}

/// One word of the key, drawn by whoever needs it first; 0: not drawn. Threads that draw it at the
/// same time all take the one that was stored first.
uint64_t key_word(std::atomic<uint64_t>& word, uint64_t index) noexcept {
  uint64_t present = word.load(std::memory_order_relaxed);
  if (present != 0) return present;
  const uint64_t mine = random_word(index) | uint64_t{1};
  return word.compare_exchange_strong(present, mine, std::memory_order_relaxed) ? mine : present;
}

constinit std::array<std::atomic<uint64_t>, 2> key_words = {};

}  // namespace

uint64_t random_word(uint64_t index, GetRandom get) noexcept {
  uint64_t word = 0;
  const ssize_t got = get(&word, sizeof word, GRND_NONBLOCK);
  return got == ssize_t{sizeof word} ? word : word_of_the_start(index);
}

SipHash::Key process_key() noexcept {
  return {key_word(key_words[0], 0), key_word(key_words[1], 1)};
}

}  // namespace castor
