// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/image.hpp"

#include <algorithm>

#include "tests/support/samples.hpp"
#include "tools/fuzz/layout.hpp"

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
      if (row.implemented)
        made[static_cast<size_t>(row.type)] = samples::boundary_patterns(row.type);
    }
    return made;
  }();
  return tables[static_cast<size_t>(type)];
}

std::vector<uint64_t> make_patterns(ElementType type, size_t count, const DataSpec& data) {
  switch (data.kind) {
    case DataSpec::Kind::same: return std::vector<uint64_t>(count, data.pattern);
    case DataSpec::Kind::random: return samples::random_patterns(type, count, data.seed);
    case DataSpec::Kind::boundary: break;
  }
  const std::vector<uint64_t>& table = boundary_table(type);
  Random random(data.seed);
  std::vector<uint64_t> patterns(count);
  for (uint64_t& pattern : patterns) pattern = random.pick(table);
  return patterns;
}

}  // namespace

Image make_image(ElementType element, const Dims& shape, const Placement& place) {
  Image image{element, shape, place, 0, 0, {}, {}};
  const int64_t elements = place.offset + reach_of(shape, place.strides);
  const auto bytes = static_cast<size_t>(elements * image.element_bytes());
  const auto shift = static_cast<size_t>(place.shift);
  image.front = place.at_end ? canary_bytes : shift;
  const size_t behind = place.at_end ? shift : canary_bytes;
  image.view_bytes = bytes + (place.spare ? behind : 0);
  image.before.resize(image.front + bytes + behind);
  fill_with_canaries(image.before);
  return image;
}

void fill(Image& image, const DataSpec& data) {
  const int64_t count = image.place.offset + reach_of(image.shape, image.place.strides);
  const std::vector<uint64_t> patterns =
      make_patterns(image.element, static_cast<size_t>(count), data);
  const auto size = static_cast<size_t>(image.element_bytes());
  std::byte* at = image.before.data() + image.front;
  for (uint64_t pattern : patterns) {
    std::memcpy(at, &pattern, size);
    at += size;
  }
}

void invert_elements(Image& image) {
  const auto size = static_cast<size_t>(image.element_bytes());
  std::byte* const before = image.before.data();
  const std::byte* const after = image.after.data();
  for_each_element(image.shape, image.place.strides, [&](int64_t distance, int64_t) {
    const std::byte* expected = image.element_at(after, distance);
    std::transform(expected, expected + size, image.element_at(before, distance),
                   [](std::byte byte) { return ~byte; });
  });
}

}  // namespace castor::fuzz
