// SPDX-License-Identifier: Apache-2.0
#include "runtime/call/padding_call.hpp"

#include <algorithm>

namespace castor::detail {

namespace {

/// Fills the padding of one tensor whose elements are words.
template <class Word>
class Padding {
 public:
  explicit Padding(const PaddingStep& step)
      : step_(step),
        strides_(dense_strides(step.extents)),
        last_(last_padded_axis()),
        value_(static_cast<Word>(step.value)) {}

  /// Axes from `axis` on; `data` is their first element.
  void fill(Word* data, int axis = 0) const {
    const int64_t stride = strides_[axis];
    const int64_t begin = step_.begins[axis];
    const int64_t end = step_.ends[axis];
    std::fill(data, data + begin * stride, value_);
    std::fill(data + end * stride, data + step_.extents[axis] * stride, value_);
    if (axis >= last_) return;
    for (int64_t i = begin; i < end; ++i) fill(data + i * stride, axis + 1);
  }

 private:
  int last_padded_axis() const {
    int last = step_.extents.rank() - 1;
    while (last > 0 && !step_.has_padding(last)) --last;
    return last;
  }

  const PaddingStep& step_;
  const Dims strides_;
  const int last_;
  const Word value_;
};

template <class Word>
void fill(const PaddingStep& step, const CallMemory& memory) {
  Padding<Word>(step).fill(reinterpret_cast<Word*>(address(step.operands[0], memory)));
}

}  // namespace

void run_padding(const PaddingStep& step, const CallMemory& memory) {
  switch (step.element_bytes) {
    case 1: return fill<uint8_t>(step, memory);
    case 2: return fill<uint16_t>(step, memory);
    case 4: return fill<uint32_t>(step, memory);
    default: return fill<uint64_t>(step, memory);
  }
}

}  // namespace castor::detail
