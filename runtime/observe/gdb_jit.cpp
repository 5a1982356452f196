// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/gdb_jit.hpp"

#include <memory>
#include <mutex>

#include "jit/memory/published.hpp"
#include "runtime/fork_private.hpp"
#include "runtime/observe/symbol_file.hpp"
#include "runtime/observe/unwind_records.hpp"

extern "C" {

__attribute__((weak, visibility("default")))
jit_descriptor __jit_debug_descriptor = {1, 0, nullptr, nullptr};

/// Empty: debuggers put a breakpoint here.
__attribute__((weak, visibility("default"), noinline)) void __jit_debug_register_code() {
  __asm__ volatile("" ::: "memory");
}
}

namespace castor {

namespace {

enum Action : uint32_t { no_action, register_code, unregister_code };

/// Guards the list among castor's threads. Never destroyed: code may die after main has returned.
/// A child that was forked while the parent held it finds a free one.
std::mutex& list_mutex() {
  using Mutex = ForkPrivate<std::mutex>;
  static constinit jit::Published<Mutex> mutex;
  return mutex.get([] { return std::make_unique<Mutex>(jit::SystemCalls::real()); }).get();
}

void tell_debugger(Action action, jit_code_entry* entry) {
  __jit_debug_descriptor.relevant_entry = entry;
  __jit_debug_descriptor.action_flag = action;
  __jit_debug_register_code();
  __jit_debug_descriptor.action_flag = no_action;
  __jit_debug_descriptor.relevant_entry = nullptr;
}

void link(jit_code_entry& entry) {
  entry.next_entry = __jit_debug_descriptor.first_entry;
  if (entry.next_entry != nullptr) entry.next_entry->prev_entry = &entry;
  __jit_debug_descriptor.first_entry = &entry;
}

void unlink(jit_code_entry& entry) {
  if (entry.next_entry != nullptr) entry.next_entry->prev_entry = entry.prev_entry;
  jit_code_entry*& before = entry.prev_entry != nullptr ? entry.prev_entry->next_entry
                                                        : __jit_debug_descriptor.first_entry;
  before = entry.next_entry;
}

}  // namespace

GdbRegistration::GdbRegistration(std::string_view name, std::span<const std::byte> code,
                                 std::span<const jit::FrameChange> frame)
    : entry_(std::make_unique<Entry>(Entry{symbol_file(name, code, eh_frame(frame, code))})) {
  jit_code_entry& listed = entry_->listed;
  listed.symfile_addr = reinterpret_cast<const char*>(entry_->symbols.data());
  listed.symfile_size = entry_->symbols.size();
  const std::lock_guard lock(list_mutex());
  link(listed);
  tell_debugger(register_code, &listed);
}

GdbRegistration::~GdbRegistration() {
  try {
    const std::lock_guard lock(list_mutex());
    unlink(entry_->listed);
    tell_debugger(unregister_code, &entry_->listed);
  } catch (...) {  // locking failed, in a forked child: the list keeps its entry
    (void)entry_.release();
  }
}

}  // namespace castor
