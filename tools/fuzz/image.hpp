// SPDX-License-Identifier: Apache-2.0
// Images of tensors' memory: every byte that the code could reach, before and after a call.
#pragma once

#include <vector>

#include "ir/view.hpp"
#include "tests/support/guarded_pages.hpp"
#include "tools/fuzz/program.hpp"

namespace castor::fuzz {

/// The memory of one tensor with canaries in front and behind, up to the inaccessible page on the
/// side where it lies close to one.
struct Image {
  ElementType element = ElementType::f32;
  Dims shape;
  Placement place;
  size_t front = 0;               ///< canaries in front of the view's first byte
  size_t view_bytes = 0;          ///< that the view says are available
  std::vector<std::byte> before;  ///< canaries, data
  std::vector<std::byte> after;   ///< what a call must leave

  /// A view of the tensor in an image whose memory begins at `base`.
  template <class Pointer>
  BasicView<Pointer> view(std::byte* base) const {
    return {base + front, element, shape, place.strides, place.offset, view_bytes};
  }
  /// The bytes of the element at that distance from the first, in such memory.
  template <class Byte>
  Byte* element_at(Byte* base, int64_t distance) const {
    return base + front + static_cast<size_t>((place.offset + distance) * element_bytes());
  }
  int64_t element_bytes() const { return bits_of(element) / 8; }
};

/// An image of canaries alone, `after` still empty.
Image make_image(ElementType element, const Dims& shape, const Placement& place);

/// Puts data into an input's image: its elements, and the gaps and the elements in front of them.
void fill(Image& image, const DataSpec& data);

/// Makes every element of `before` differ from `after` in every bit.
void invert_elements(Image& image);

/// Where an image lies in guarded pages: at their end or at their beginning.
inline std::byte* place_of(const Image& image, test::GuardedPages& pages) {
  return image.place.at_end ? pages.at_end(image.before.size()) : pages.at_begin();
}

}  // namespace castor::fuzz
