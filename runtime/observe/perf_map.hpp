// SPDX-License-Identifier: Apache-2.0
// The map of perf: which address belongs to which name, in one text file for each process.
#pragma once

#include "runtime/observe/record_file.hpp"

namespace castor {

/// Not thread safe.
class PerfMap {
 public:
  /// perf-PID.map of this process in the directory, which is made where it is missing.
  static Result<PerfMap> open(const std::string& directory);
  /// "START SIZE name", both hexadecimal.
  Status add(std::string_view name, std::span<const std::byte> code);

 private:
  explicit PerfMap(RecordFile file) : file_(std::move(file)) {}
  RecordFile file_;
};

}  // namespace castor
