// SPDX-License-Identifier: Apache-2.0
// Images of tensors' memory: every byte that the code could reach, before and after a call.
#pragma once

#include <span>
#include <vector>

#include "ir/types/view.hpp"
#include "tools/fuzz/program.hpp"
#include "tools/testing/guarded_pages.hpp"

namespace castor::fuzz {

/// The memory of one tensor with canaries before and after it, up to the inaccessible page on the
/// side where it is close to one. A tensor in another one's memory has no bytes here.
struct Image {
  ElementType element = ElementType::f32;
  Dims shape;
  Placement place;
  size_t front = 0;               ///< canaries before the view's first byte
  size_t view_bytes = 0;          ///< that the view says are available
  size_t tensor_bytes = 0;        ///< from the view's first byte to the last element's last one
  size_t bytes = 0;               ///< bytes of the memory
  size_t hidden = 0;              ///< the first ones of these, which are in the inaccessible page
  std::vector<std::byte> before;  ///< canaries, data
  std::vector<std::byte> after;   ///< what a call must leave

  /// A view of the tensor in an image whose memory begins at `base`.
  template <class Pointer>
  BasicView<Pointer> view(std::byte* base) const {
    return {base + front, element, shape, place.strides, place.offset, view_bytes};
  }
  /// The element at that distance from the first, in such memory, all of which must be readable.
  uint64_t load(const std::byte* base, int64_t distance) const;
  void store(std::byte* base, int64_t distance, uint64_t pattern) const;
  /// Where the lowest bit of that element is stored: the byte, and the bit in it.
  std::byte* byte_of(std::byte* base, int64_t distance) const;
  std::byte bit_of(int64_t distance) const;

  /// Row-major, without gaps, from the view's first byte on: unused bits become 0 in an output.
  bool is_dense() const;
};

/// Bytes before the first byte of an element of an array; of the split layouts, of its group.
size_t first_byte_of(ElementType element, int64_t index);

/// An image of canaries alone, `after` still empty.
Image make_image(ElementType element, const Dims& shape, const Placement& place);

/// The image of a tensor that shares the memory of `owner`, with an offset of its own.
Image make_guest(ElementType element, const Placement& place, const Image& owner);

/// Zeros, ones, limits, infinities, NaNs and small numbers.
std::vector<uint64_t> special_patterns(ElementType type, size_t count, uint64_t seed);

/// Integers from `min` to `max`, these two more often than others.
std::vector<uint64_t> range_patterns(ElementType type, int32_t min, int32_t max, size_t count,
                                     uint64_t seed);

/// Puts data into an input's image: its elements, and the gaps and the elements before them.
void fill(Image& image, const DataSpec& data);

/// Makes every element differ from `after` in every bit, in the memory `before`; of a dense tensor,
/// the unused bits as well.
void invert_elements(const Image& image, std::span<std::byte> before,
                     std::span<const std::byte> after);

/// Where an image is in guarded pages: at their end or at their beginning. What is hidden is before
/// the pages.
inline std::byte* base_of(const Image& image, test::GuardedPages& pages) {
  return image.place.at_end ? pages.at_end(image.bytes) : pages.at_begin() - image.hidden;
}

/// Copies `before` to the pages, where they hold the image.
std::byte* copy_to(const Image& image, test::GuardedPages& pages);

/// Whether the memory at `base` is what it was or must be; looks at nothing hidden.
bool holds(const Image& image, const std::byte* base, std::span<const std::byte> wanted);

/// All of the memory at `base`; what is hidden as it was before.
std::vector<std::byte> read_all(const Image& image, const std::byte* base);

}  // namespace castor::fuzz
