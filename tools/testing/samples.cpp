// SPDX-License-Identifier: Apache-2.0
#include "tools/testing/samples.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <numeric>
#include <random>

#include "tools/testing/float_boundaries.hpp"

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
/// to the even neighbour below, above, and to the next power of two; all of the binade for a
/// precision of up to 4 bits.
void add_integer_midpoints(std::vector<uint64_t>& out, int exponent, int precision) {
  if (exponent < precision) return;
  const uint64_t power = uint64_t{1} << exponent;
  const uint64_t half_ulp = uint64_t{1} << (exponent - precision);
  add_around(out, power + half_ulp);
  add_around(out, power + 3 * half_ulp);
  add_around(out, power + (power - half_ulp));
  if (precision > 4) return;
  for (uint64_t odd = 5; odd >> precision == 0; odd += 2) add_around(out, power + odd * half_ulp);
}

std::vector<uint64_t> integer_boundaries(ElementType type) {
  std::vector<uint64_t> out;
  for (uint64_t value = 0; value <= 256; ++value) add_around(out, value);
  for (int exponent = 0; exponent < bits_of(type); ++exponent) {
    add_around(out, uint64_t{1} << exponent);
    for (const ElementInfo& row : element_table) {
      const bool rounds =
          row.kind == ElementKind::floating || row.kind == ElementKind::power_of_two;
      if (!rounds) continue;
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

// ---- Storage of elements narrower than a byte, group by group: a few bytes, read as one number,
// in which each element is one field, or two. Independent of ir/types/storage.hpp, which this
// checks.

/// Bits [shift, shift + width) of the group's number.
struct Field {
  int shift = 0;
  int width = 0;
  uint64_t mask() const { return (uint64_t{1} << width) - 1; }
};

/// Where an element is stored: the group's bytes, how they make a number, and the element's fields.
struct Packed {
  size_t first_byte = 0;
  size_t bytes = 0;
  bool big_endian = false;
  Field low;
  Field high;  ///< used by the split layouts; else of width 0

  uint64_t element_of(uint64_t group) const {
    return (group >> low.shift & low.mask()) | (group >> high.shift & high.mask()) << low.width;
  }
  uint64_t with_element(uint64_t group, uint64_t element) const {
    group &= ~(low.mask() << low.shift | high.mask() << high.shift);
    return group | (element & low.mask()) << low.shift |
           (element >> low.width & high.mask()) << high.shift;
  }
};

Packed packed_at(ElementType type, size_t index) {
  const int bits = bits_of(type);
  const auto in_groups_of = [index](size_t elements, size_t bytes, bool big_endian) {
    return Packed{index / elements * bytes, bytes, big_endian, {}, {}};
  };
  switch (info(type).order) {
    case StorageOrder::whole_bytes: break;
    case StorageOrder::lsb_first: {  // 8 elements: as many bytes as an element has bits
      Packed place = in_groups_of(8, static_cast<size_t>(bits), false);
      place.low = {static_cast<int>(index % 8) * bits, bits};
      return place;
    }
    case StorageOrder::msb_first: {  // the first element on top of the byte
      const int elements = 8 / bits;
      Packed place = in_groups_of(static_cast<size_t>(elements), 1, true);
      place.low = {(elements - 1 - static_cast<int>(index % elements)) * bits, bits};
      return place;
    }
    case StorageOrder::split: {  // a word of low parts, a byte of high parts, the first on top
      const int elements = 24 / bits;
      const int low_width = 16 / elements;
      const int following = elements - 1 - static_cast<int>(index % elements);
      Packed place = in_groups_of(static_cast<size_t>(elements), 3, true);
      place.low = {8 + following * low_width, low_width};
      place.high = {following * (bits - low_width), bits - low_width};
      return place;
    }
  }
  assert(!"an element of whole bytes shares none");
  return {};
}

/// Position in the group's number of its byte `i`.
int shift_of_byte(const Packed& place, size_t i) {
  return 8 * static_cast<int>(place.big_endian ? place.bytes - 1 - i : i);
}

/// The last group may end early: what the tensor lacks reads as 0.
uint64_t read_group(std::span<const std::byte> tensor, const Packed& place) {
  uint64_t group = 0;
  for (size_t i = 0; i < place.bytes && place.first_byte + i < tensor.size(); ++i) {
    group |= std::to_integer<uint64_t>(tensor[place.first_byte + i]) << shift_of_byte(place, i);
  }
  return group;
}

void write_group(std::span<std::byte> tensor, const Packed& place, uint64_t group) {
  for (size_t i = 0; i < place.bytes && place.first_byte + i < tensor.size(); ++i) {
    tensor[place.first_byte + i] = static_cast<std::byte>(group >> shift_of_byte(place, i));
  }
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
  const size_t bits = static_cast<size_t>(bits_of(type));
  if (info(type).order == StorageOrder::split) return (count + 24 / bits - 1) / (24 / bits) * 3;
  return (count * bits + 7) / 8;
}

uint64_t load_pattern(std::span<const std::byte> tensor, ElementType type, size_t index) {
  const size_t bits = static_cast<size_t>(bits_of(type));
  if (bits >= 8) {
    uint64_t pattern = 0;
    std::memcpy(&pattern, tensor.data() + index * bits / 8, bits / 8);
    return pattern;
  }
  const Packed packed = packed_at(type, index);
  return packed.element_of(read_group(tensor, packed));
}

void store_pattern(std::span<std::byte> tensor, ElementType type, size_t index, uint64_t pattern) {
  const size_t bits = static_cast<size_t>(bits_of(type));
  if (bits >= 8) {
    std::memcpy(tensor.data() + index * bits / 8, &pattern, bits / 8);
    return;
  }
  const Packed packed = packed_at(type, index);
  write_group(tensor, packed, packed.with_element(read_group(tensor, packed), pattern));
}

std::vector<std::byte> pack(ElementType type, std::span<const uint64_t> patterns) {
  std::vector<std::byte> tensor(storage_bytes(type, patterns.size()));
  for (size_t i = 0; i < patterns.size(); ++i) store_pattern(tensor, type, i, patterns[i]);
  return tensor;
}

}  // namespace castor::samples
