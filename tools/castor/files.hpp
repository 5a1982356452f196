// SPDX-License-Identifier: Apache-2.0
// Whole files in and out; errors have the code io and name the file.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "ir/support/result.hpp"

namespace castor::tools {

/// The content of a regular file or a pipe. A file of more than `limit` bytes is refused.
Result<std::vector<std::byte>> read_file(const std::string& path, size_t limit = SIZE_MAX);

/// Creates or replaces a file with the parts, one after the other.
Status write_file(const std::string& path, std::span<const std::span<const std::byte>> parts);

/// Whether a regular file or a pipe of that name exists.
bool file_exists(const std::string& path);

}  // namespace castor::tools
