// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/unwind_registration.hpp"

#include <pthread.h>

#include <cstdint>
#include <mutex>

#include "runtime/observe/unwind_records.hpp"

extern "C" {

// libgcc's (unwind-dw2-fde.c): takes the beginning of a section .eh_frame.
void __register_frame(const void* eh_frame);
void __deregister_frame(const void* eh_frame);

// LLVM's libunwind has it, and libgcc has not.
__attribute__((weak)) void __unw_add_dynamic_fde(uintptr_t record);
}

namespace castor {

namespace {

/// Held while libgcc's lock is taken, and across forks.
constinit std::mutex registering;

// When the library is loaded, before the lock is ever taken. Where memory for the handlers is
// short, a fork may come between.
const int registered = ::pthread_atfork([] { registering.lock(); }, [] { registering.unlock(); },
                                        [] { registering.unlock(); });

}  // namespace

Status check_unwinder() {
  if (&__unw_add_dynamic_fde == nullptr) return {};
  return Error{ErrorCode::unsupported,
               "unwind records: this program unwinds with LLVM's libunwind, expected libgcc"};
}

UnwindRegistration::UnwindRegistration(std::span<const jit::FrameChange> frame,
                                       std::span<const std::byte> code)
    : records_(eh_frame(frame, code)) {
  const std::lock_guard lock(registering);
  __register_frame(records_.data());
}

UnwindRegistration::~UnwindRegistration() {
  const std::lock_guard lock(registering);
  __deregister_frame(records_.data());
}

}  // namespace castor
