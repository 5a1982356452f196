// SPDX-License-Identifier: Apache-2.0
// Code that the process's own unwinder knows: exceptions, backtrace(), crash handlers.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ir/support/result.hpp"
#include "jit/code.hpp"

namespace castor {

/// Whether the unwinder takes records at run time as libgcc does. Fails (unsupported) where it is
/// LLVM's libunwind, whose function of the same name takes another argument.
Status check_unwinder();

/// Registers the code's records with libgcc for as long as it lives. Making and ending it is thread
/// safe, and no fork comes between, so that a child finds libgcc's lock free; unless another thread
/// was unwinding at the moment of the fork, for which libgcc before version 13 takes it as well.
class UnwindRegistration {
 public:
  UnwindRegistration(std::span<const jit::FrameChange> frame, std::span<const std::byte> code);
  ~UnwindRegistration();
  UnwindRegistration(const UnwindRegistration&) = delete;
  UnwindRegistration& operator=(const UnwindRegistration&) = delete;

 private:
  std::vector<std::byte> records_;
};

}  // namespace castor
