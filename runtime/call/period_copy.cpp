// SPDX-License-Identifier: Apache-2.0
// Copies of periods: a few elements, again and again, for code whose vectors span rows.
#include <cstring>

#include "ir/types/elements.hpp"
#include "runtime/call/nest_call.hpp"

namespace castor::detail {

namespace {

/// Calls visit(index) for each element of the period, in order.
template <class Visit>
void for_each_index(const PeriodCopy& copy, Visit visit) {
  Dims at = Dims::filled(copy.extents.rank(), 0);
  int64_t index = 0;
  while (true) {
    visit(index);
    int axis = 0;
    for (; axis < at.rank() && at[axis] == copy.extents[axis] - 1; ++axis) {
      index -= at[axis] * copy.strides[axis];
      at[axis] = 0;
    }
    if (axis == at.rank()) return;
    ++at[axis];
    index += copy.strides[axis];
  }
}

/// Makes the period's elements contiguous, those narrower than a byte in bytes. Returns how many.
size_t copy_elements(const PeriodCopy& copy, const Origin& from, std::byte* to) {
  const auto* data = reinterpret_cast<const std::byte*>(from.data);
  const size_t bytes = static_cast<size_t>(jit::lane_bits_of(copy.element) / 8);
  size_t count = 0;
  for_each_index(copy, [&](int64_t index) {
    const uint64_t bits = read_element(data, copy.element, from.offset + index);
    std::memcpy(to + count * bytes, &bits, bytes);
    ++count;
  });
  return count;
}

/// Fills `length` bytes by repeating the first `period` ones.
void repeat(std::byte* data, size_t period, size_t length) {
  for (size_t done = period; done < length;) {
    const size_t more = std::min(done, length - done);
    std::memcpy(data + done, data, more);
    done += more;
  }
}

}  // namespace

void copy_periods(const ElementwiseStep& step, const CallMemory& memory, int64_t* arguments) {
  for (const PeriodCopy& copy : step.periods) {
    std::byte* to = memory.scratch + copy.offset;
    const size_t bytes = static_cast<size_t>(jit::lane_bits_of(copy.element) / 8);
    const Origin from = origin_of(step.operands[copy.operand].origin, memory);
    const size_t period = copy_elements(copy, from, to);
    repeat(to, period * bytes, static_cast<size_t>(copy.length) * bytes);
    arguments[copy.operand] = number_of(to);
  }
}

}  // namespace castor::detail
