// SPDX-License-Identifier: Apache-2.0
// Files that records are appended to, which several writers of one process may share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/support/result.hpp"

namespace castor {

/// The error (io) of a call that failed for a file: "cannot open /tmp/x: No such file or
/// directory".
Error file_error(std::string_view what, std::string_view path, int error_number);

/// Makes the directory where only the last part of its path is missing, and checks that files can
/// be made there. Fails (io).
Status prepare_directory(const std::string& path);

/// Writes all bytes, or fails with the system's error number. What would exceed the process's limit
/// on file sizes fails too (EFBIG), instead of killing the process.
int write_all(int fd, uint64_t offset, std::span<const std::byte> bytes);

/// An open file descriptor, closed with its owner.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();
  int get() const { return fd_; }

 private:
  int fd_;
};

/// A file named by this process's id, of which each record is written whole or not at all. Writers
/// lock the file while they write, so that several may append. Not thread safe.
class RecordFile {
 public:
  /// Opens or makes the file, readable for this user alone. What an earlier process of the same id
  /// left there is removed; what this process wrote stays. Refuses (io) links and files of others.
  static Result<RecordFile> open(const std::string& path);

  /// Appends what `record` gives, which is told the offset where it will stand (0: the file's
  /// beginning). Fails (io).
  Status append(const std::function<std::vector<std::byte>(uint64_t offset)>& record);

  int descriptor() const { return file_.get(); }
  const std::string& path() const { return path_; }

 private:
  RecordFile(FileDescriptor file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}
  FileDescriptor file_;
  std::string path_;
};

}  // namespace castor
