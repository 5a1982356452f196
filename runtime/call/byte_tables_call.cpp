// SPDX-License-Identifier: Apache-2.0
// Requantization by tables of bytes: runs of elements, each looked up in its slice's table.
#include <algorithm>

#include "ir/support/integer_math.hpp"
#include "runtime/call/nest_call.hpp"
#include "runtime/requantize/requantization.hpp"

namespace castor::detail {

namespace {

constexpr int64_t table_entries = 256;
/// Partitions of a run end where cache lines do, if the run begins with one.
constexpr int64_t line_bytes = 64;

/// One call. Elements are numbered run by run.
class TableCall {
 public:
  TableCall(const TableStep& step, const CallMemory& memory)
      : step_(step),
        function_(step.code->entry()),
        all_(ready_tables(step, memory)),
        source_(reinterpret_cast<std::byte*>(address(step.operands.front(), memory))),
        destination_(reinterpret_cast<std::byte*>(address(step.operands.back(), memory))) {}

  int64_t elements() const {
    int64_t runs = 1;
    for (const int64_t extent : step_.extents) runs *= extent;
    return runs * step_.run;
  }

  /// The elements from `begin` to `end`.
  void run(int64_t begin, int64_t end) const {
    while (begin < end) {
      const int64_t first = begin % step_.run;
      const int64_t count = std::min(end - begin, step_.run - first);
      look_up(begin / step_.run, first, count);
      begin += count;
    }
  }

 private:
  /// Some elements of a run.
  void look_up(int64_t run, int64_t first, int64_t count) const {
    int64_t from = first;
    int64_t to = first;
    int64_t slice = 0;
    for (int axis = step_.extents.rank() - 1; axis >= 0; --axis) {
      const int64_t index = run % step_.extents[axis];
      run /= step_.extents[axis];
      from += index * step_.source_strides[axis];
      to += index * step_.destination_strides[axis];
      slice += index * step_.slice_steps[axis];
    }
    const jit::ByteTableCall call{source_ + from, destination_ + to, count,
                                  all_ + slice * table_entries};
    function_(&call);
  }

  const TableStep& step_;
  const jit::KernelFunction<jit::ByteTableSpec> function_;
  const std::byte* all_;
  std::byte* source_;
  std::byte* destination_;
};

}  // namespace

void run_byte_tables(const TableStep& step, const CallMemory& memory) {
  const TableCall call(step, memory);
  const int64_t elements = call.elements();
  const int64_t lines = ceil_div(elements, line_bytes);
  const int64_t max = memory.tasks == nullptr ? 1 : memory.tasks->count_for(step.nanoseconds);
  const int64_t tasks = std::min(max, lines);
  if (tasks <= 1) return call.run(0, elements);
  memory.tasks->run(tasks, [&](int64_t task) {
    const auto end_of = [&](int64_t number) {
      return std::min(lines * number / tasks * line_bytes, elements);
    };
    call.run(end_of(task), end_of(task + 1));
  });
}

}  // namespace castor::detail
