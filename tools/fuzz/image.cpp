// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/image.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "ir/numerics/scalar.hpp"
#include "ir/types/storage.hpp"
#include "tools/fuzz/layout.hpp"
#include "tools/testing/samples.hpp"

namespace castor::fuzz {

namespace {

constexpr size_t canary_bytes = 64;  // one vector of the widest tier

void fill_with_canaries(std::vector<std::byte>& bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(0xa7 + 29 * i);
}

const std::vector<uint64_t>& boundary_table(ElementType type) {
  static const std::vector<std::vector<uint64_t>> tables = [] {
    std::vector<std::vector<uint64_t>> made(element_type_count);
    for (const ElementInfo& row : element_table) {
      made[static_cast<size_t>(row.type)] = samples::boundary_patterns(row.type);
    }
    return made;
  }();
  return tables[static_cast<size_t>(type)];
}

/// Patterns drawn from a table.
std::vector<uint64_t> draw_patterns(const std::vector<uint64_t>& table, size_t count,
                                    uint64_t seed) {
  Random random(seed);
  std::vector<uint64_t> patterns(count);
  for (uint64_t& pattern : patterns) pattern = random.pick(table);
  return patterns;
}

uint64_t mask_of(ElementType type) { return ~uint64_t{0} >> (64 - bits_of(type)); }

std::vector<uint64_t> half_steps(size_t count, const DataSpec& data) {
  Random random(data.seed);
  std::vector<uint64_t> patterns(count);
  for (uint64_t& pattern : patterns) {
    const int64_t max = random.percent(70) ? 300 : 70'000;
    const auto halves = static_cast<double>(random.between(-max, max) * data.scale);
    const auto number = static_cast<float>(std::ldexp(halves, -data.frac - 1));
    const auto beside = static_cast<uint32_t>(random.percent(30) ? random.between(-1, 1) : 0);
    pattern = std::bit_cast<uint32_t>(number) + beside;
  }
  return patterns;
}

std::vector<uint64_t> make_patterns(ElementType type, size_t count, const DataSpec& data) {
  switch (data.kind) {
    case DataSpec::Kind::same: return std::vector<uint64_t>(count, data.pattern);
    case DataSpec::Kind::random: return samples::random_patterns(type, count, data.seed);
    case DataSpec::Kind::special: return special_patterns(type, count, data.seed);
    case DataSpec::Kind::range: return range_patterns(type, data.min, data.max, count, data.seed);
    case DataSpec::Kind::halves: return half_steps(count, data);
    case DataSpec::Kind::boundary: break;
  }
  return draw_patterns(boundary_table(type), count, data.seed);
}

/// Small numbers twice; zeros of both signs, limits and NaNs once.
std::vector<uint64_t> make_special_table(ElementType type) {
  std::vector<uint64_t> table;
  for (int round = 0; round < 2; ++round) {
    for (int8_t number : {0, 0, 1, 2, 3, 5, 7, -1, -2, -3}) {
      const auto pattern = static_cast<uint64_t>(static_cast<uint8_t>(number));
      table.push_back(numerics::convert(pattern, ElementType::i8, type, {}));
    }
  }
  const uint64_t all = mask_of(type);
  const uint64_t sign = all / 2 + 1;
  for (uint64_t pattern : {sign, sign - 1, all, all - 1, sign + 1, uint64_t{1}}) {
    table.push_back(pattern & all);
  }
  if (!is_float(type)) return table;
  const int mantissa = info(type).format.mantissa_bits;
  const uint64_t exponents = (sign - 1) >> mantissa << mantissa;  // infinity, where there is one
  for (uint64_t pattern : {exponents, exponents - 1, exponents + 1, uint64_t{1} << mantissa}) {
    table.push_back(pattern);
    table.push_back(pattern | sign);
  }
  return table;
}

const std::vector<uint64_t>& special_table(ElementType type) {
  static const std::vector<std::vector<uint64_t>> tables = [] {
    std::vector<std::vector<uint64_t>> made;
    for (const ElementInfo& row : element_table) made.push_back(make_special_table(row.type));
    return made;
  }();
  return tables[static_cast<size_t>(type)];
}

}  // namespace

std::vector<uint64_t> special_patterns(ElementType type, size_t count, uint64_t seed) {
  return draw_patterns(special_table(type), count, seed);
}

std::vector<uint64_t> range_patterns(ElementType type, int32_t min, int32_t max, size_t count,
                                     uint64_t seed) {
  Random random(seed);
  std::vector<uint64_t> patterns(count);
  for (uint64_t& pattern : patterns) {
    const size_t kind = random.below(8);
    const int64_t number = kind == 0 ? min : kind == 1 ? max : random.between(min, max);
    pattern = static_cast<uint64_t>(number) & mask_of(type);
  }
  return patterns;
}

uint64_t Image::load(const std::byte* base, int64_t distance) const {
  const std::span tensor(base + front, tensor_bytes);
  return samples::load_pattern(tensor, element, static_cast<size_t>(place.offset + distance));
}

void Image::store(std::byte* base, int64_t distance, uint64_t pattern) const {
  const std::span tensor(base + front, tensor_bytes);
  samples::store_pattern(tensor, element, static_cast<size_t>(place.offset + distance), pattern);
}

std::byte* Image::byte_of(std::byte* base, int64_t distance) const {
  return base + front + storage_bit(element, place.offset + distance, 0) / 8;
}

std::byte Image::bit_of(int64_t distance) const {
  return std::byte{1} << (storage_bit(element, place.offset + distance, 0) % 8);
}

bool Image::is_dense() const {
  const Dims dense = dense_strides(shape);
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] > 1 && place.strides[axis] != dense[axis]) return false;
  }
  return place.offset == 0;
}

size_t first_byte_of(ElementType element, int64_t index) {
  if (info(element).order == StorageOrder::split) {
    return static_cast<size_t>(index / aligned_elements(element) * 3);
  }
  return static_cast<size_t>(index * bits_of(element) / 8);
}

Image make_image(ElementType element, const Dims& shape, const Placement& place) {
  Image image;
  image.element = element;
  image.shape = shape;
  image.place = place;
  const auto elements = static_cast<size_t>(place.offset + reach_of(shape, place.strides));
  const auto shift = static_cast<size_t>(place.shift);
  image.front = place.at_end ? canary_bytes : shift;
  const size_t tail = place.at_end ? shift : canary_bytes;
  image.tensor_bytes = samples::storage_bytes(element, elements);
  image.view_bytes = image.tensor_bytes + (place.spare ? tail : 0);
  image.bytes = image.front + image.tensor_bytes + tail;
  const bool hides = place.hides_front && !place.at_end;
  image.hidden = hides ? image.front + first_byte_of(element, place.offset) : 0;
  image.before.resize(image.bytes);
  fill_with_canaries(image.before);
  return image;
}

Image make_guest(ElementType element, const Placement& place, const Image& owner) {
  Image image = owner;
  image.before.clear();
  image.after.clear();
  image.element = element;
  image.place = place;
  return image;
}

void fill(Image& image, const DataSpec& data) {
  const int64_t count = image.place.offset + reach_of(image.shape, image.place.strides);
  const std::vector<uint64_t> patterns =
      make_patterns(image.element, static_cast<size_t>(count), data);
  int64_t distance = -image.place.offset;
  for (uint64_t pattern : patterns) image.store(image.before.data(), distance++, pattern);
}

void invert_elements(const Image& image, std::span<std::byte> before,
                     std::span<const std::byte> after) {
  if (image.is_dense()) {
    const size_t own =
        samples::storage_bytes(image.element, static_cast<size_t>(count_of(image.shape)));
    for (size_t i = image.front; i < image.front + own; ++i) before[i] = ~after[i];
    return;
  }
  for_each_element(image.shape, image.place.strides, [&](int64_t distance, int64_t) {
    const uint64_t expected = image.load(after.data(), distance);
    image.store(before.data(), distance, ~expected & mask_of(image.element));
  });
}

std::byte* copy_to(const Image& image, test::GuardedPages& pages) {
  std::byte* base = base_of(image, pages);
  std::copy(image.before.begin() + static_cast<ptrdiff_t>(image.hidden), image.before.end(),
            base + image.hidden);
  return base;
}

bool holds(const Image& image, const std::byte* base, std::span<const std::byte> wanted) {
  return std::equal(wanted.begin() + static_cast<ptrdiff_t>(image.hidden), wanted.end(),
                    base + image.hidden);
}

std::vector<std::byte> read_all(const Image& image, const std::byte* base) {
  std::vector<std::byte> all = image.before;
  std::copy(base + image.hidden, base + image.bytes,
            all.begin() + static_cast<ptrdiff_t>(image.hidden));
  return all;
}

}  // namespace castor::fuzz
