// SPDX-License-Identifier: Apache-2.0
// Records for unwinding (.eh_frame: Linux Standard Base 5.0, Core, 10.6; DWARF 5, 6.4 and 7.24) of
// a piece of code, made from the notes of its emitter.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "jit/code.hpp"

namespace castor {

/// A section .eh_frame for code that can be called, with its address: one record, and the end.
std::vector<std::byte> eh_frame(std::span<const jit::FrameChange> frame,
                                std::span<const std::byte> code);

/// The sections .eh_frame and .eh_frame_hdr of a file that has them after its code, .eh_frame at
/// the next multiple of 8. They depend on no address.
struct FileUnwinding {
  std::vector<std::byte> bytes;  ///< .eh_frame, then .eh_frame_hdr
  size_t header_bytes = 0;       ///< .eh_frame_hdr alone
};
FileUnwinding unwinding_after(std::span<const jit::FrameChange> frame, size_t code_bytes);

/// The bytes after the code that these sections take, from its end on.
size_t unwinding_bytes_after(std::span<const jit::FrameChange> frame, size_t code_bytes);

}  // namespace castor
