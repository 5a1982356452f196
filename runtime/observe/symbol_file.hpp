// SPDX-License-Identifier: Apache-2.0
// An ELF file in memory with one symbol: the name of a piece of code.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace castor {

/// A 64-bit little-endian ELF file whose only symbol is a global function of that name at the
/// code's address, of its size. Its section .text has the address and the size, and no bytes:
/// whoever reads the file finds those in the process's memory.
std::vector<std::byte> symbol_file(std::string_view name, std::span<const std::byte> code,
                                   std::span<const std::byte> eh_frame);

}  // namespace castor
