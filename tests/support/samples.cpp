// SPDX-License-Identifier: Apache-2.0
#include "tests/support/samples.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <numeric>
#include <random>

#include "tests/support/float_boundaries.hpp"

namespace castor::samples {

namespace {

uint64_t mask_of(ElementType type) { return ~uint64_t{0} >> (64 - bits_of(type)); }

/// Collects `value` and its neighbours, and their negations, modulo 2^N.
void add_around(std::vector<uint64_t>& out, uint64_t value) {
  for (uint64_t near : {value - 1, value, value + 1}) {
    out.push_back(near);
    out.push_back(uint64_t{0} - near);
  }
}

/// Integers halfway between neighbours of a float format with `precision` significant bits: ties
/// to the even neighbour below, above, and to the next power of two.
void add_integer_midpoints(std::vector<uint64_t>& out, int exponent, int precision) {
  if (exponent < precision) return;
  const uint64_t power = uint64_t{1} << exponent;
  const uint64_t half_ulp = uint64_t{1} << (exponent - precision);
  add_around(out, power + half_ulp);
  add_around(out, power + 3 * half_ulp);
  add_around(out, power + (power - half_ulp));
}

std::vector<uint64_t> integer_boundaries(ElementType type) {
  std::vector<uint64_t> out = {0};
  for (int exponent = 0; exponent < bits_of(type); ++exponent) {
    add_around(out, uint64_t{1} << exponent);
    for (const ElementInfo& row : element_table) {
      if (row.kind != ElementKind::floating) continue;
      add_integer_midpoints(out, exponent, row.format.mantissa_bits + 1);
    }
  }
  return out;
}

void normalise(std::vector<uint64_t>& patterns, uint64_t mask) {
  for (uint64_t& pattern : patterns) pattern &= mask;
  std::sort(patterns.begin(), patterns.end());
  patterns.erase(std::unique(patterns.begin(), patterns.end()), patterns.end());
}

/// A value with a uniformly distributed magnitude, in a format with an exponent.
uint64_t random_float(const ElementInfo& row, std::mt19937_64& random) {
  const FloatFormat& format = row.format;
  const int last_field = (1 << format.exponent_bits) - 1;
  const int field = std::clamp(format.bias - 40 + static_cast<int>(random() % 112), 0, last_field);
  const uint64_t cleared_bits = random() % static_cast<uint64_t>(format.mantissa_bits + 1);
  const uint64_t fraction =
      (random() >> cleared_bits << cleared_bits) & ((uint64_t{1} << format.mantissa_bits) - 1);
  const uint64_t sign = random() & 1;
  return sign << (row.bits - 1) | static_cast<uint64_t>(field) << format.mantissa_bits | fraction;
}

/// A value with a uniformly distributed bit length, negated half of the time.
uint64_t random_integer(const ElementInfo& row, std::mt19937_64& random) {
  const uint64_t magnitude = random() >> (64 - row.bits) >> (random() % row.bits);
  return random() % 2 == 0 ? magnitude : uint64_t{0} - magnitude;
}

}  // namespace

std::vector<uint64_t> all_patterns(ElementType type) {
  assert(bits_of(type) <= 16);
  std::vector<uint64_t> patterns(size_t{1} << bits_of(type));
  std::iota(patterns.begin(), patterns.end(), uint64_t{0});
  return patterns;
}

std::vector<uint64_t> boundary_patterns(ElementType type) {
  if (bits_of(type) <= 8) return all_patterns(type);
  std::vector<uint64_t> patterns =
      is_float(type) ? float_boundaries(type) : integer_boundaries(type);
  normalise(patterns, mask_of(type));
  return patterns;
}

std::vector<uint64_t> random_patterns(ElementType type, size_t count, uint64_t seed) {
  const ElementInfo& row = info(type);
  std::mt19937_64 random(seed * element_type_count + static_cast<uint64_t>(type));
  std::vector<uint64_t> patterns(count);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t pattern = i % 2 == 0       ? random()
                             : is_float(type) ? random_float(row, random)
                                              : random_integer(row, random);
    patterns[i] = pattern & mask_of(type);
  }
  return patterns;
}

size_t storage_bytes(ElementType type, size_t count) {
  return (count * static_cast<size_t>(bits_of(type)) + 7) / 8;
}

uint64_t load_pattern(std::span<const std::byte> tensor, ElementType type, size_t index) {
  const ElementInfo& row = info(type);
  const size_t bits = static_cast<size_t>(row.bits);
  uint64_t pattern = 0;
  if (row.order == StorageOrder::whole_bytes) {
    std::memcpy(&pattern, tensor.data() + index * bits / 8, bits / 8);
    return pattern;
  }
  for (size_t i = 0; i < bits; ++i) {
    const size_t at = index * bits + i;
    const size_t in_byte = row.order == StorageOrder::lsb_first ? at % 8 : 7 - at % 8;
    pattern |= (std::to_integer<uint64_t>(tensor[at / 8]) >> in_byte & 1) << i;
  }
  return pattern;
}

void store_pattern(std::span<std::byte> tensor, ElementType type, size_t index, uint64_t pattern) {
  const ElementInfo& row = info(type);
  const size_t bits = static_cast<size_t>(row.bits);
  if (row.order == StorageOrder::whole_bytes) {
    std::memcpy(tensor.data() + index * bits / 8, &pattern, bits / 8);
    return;
  }
  for (size_t i = 0; i < bits; ++i) {
    const size_t at = index * bits + i;
    const size_t in_byte = row.order == StorageOrder::lsb_first ? at % 8 : 7 - at % 8;
    const std::byte bit = std::byte{1} << in_byte;
    tensor[at / 8] = (pattern >> i & 1) != 0 ? tensor[at / 8] | bit : tensor[at / 8] & ~bit;
  }
}

std::vector<std::byte> pack(ElementType type, std::span<const uint64_t> patterns) {
  std::vector<std::byte> tensor(storage_bytes(type, patterns.size()));
  for (size_t i = 0; i < patterns.size(); ++i) store_pattern(tensor, type, i, patterns[i]);
  return tensor;
}

}  // namespace castor::samples
