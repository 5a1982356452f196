// SPDX-License-Identifier: Apache-2.0
// This thread's frames, as libgcc finds them. For signal handlers too: allocates nothing.
#pragma once

#include <unwind.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace castor::test {

struct FoundFrame {
  uintptr_t instruction = 0;
  uintptr_t cfa = 0;
  friend bool operator==(const FoundFrame&, const FoundFrame&) = default;
};

/// The frames of a thread, the innermost first.
class Backtrace {
 public:
  /// Those of the caller, and of who called it.
  [[gnu::noinline]] static Backtrace here() {
    Backtrace found;
    _Unwind_Backtrace(
        [](_Unwind_Context* context, void* to) {
          auto& all = *static_cast<Backtrace*>(to);
          if (all.count_ == all.frames_.size()) return _URC_END_OF_STACK;
          all.frames_[all.count_++] = {_Unwind_GetIP(context), _Unwind_GetCFA(context)};
          return _URC_NO_REASON;
        },
        &found);
    return found;
  }

  std::span<const FoundFrame> frames() const { return std::span(frames_).first(count_); }

  /// The frames of whoever called a function, which is among those found; none where it is not.
  std::span<const FoundFrame> callers_of(const void* function) const {
    const auto all = frames();
    const auto at = std::ranges::find_if(all, [&](const FoundFrame& frame) {
      auto* const before = reinterpret_cast<void*>(frame.instruction - 1);
      return _Unwind_FindEnclosingFunction(before) == function;
    });
    return at == all.end() ? all.last(0) : all.subspan(static_cast<size_t>(at - all.begin()) + 1);
  }

 private:
  std::array<FoundFrame, 64> frames_ = {};
  size_t count_ = 0;
};

}  // namespace castor::test
