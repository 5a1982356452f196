// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/record_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <utility>

namespace castor {

namespace {

/// Locks a file for as long as it lives.
class FileLock {
 public:
  explicit FileLock(int fd) : fd_(fd) {
    do {
      error_ = ::flock(fd, LOCK_EX) == 0 ? 0 : errno;
    } while (error_ == EINTR);
  }
  ~FileLock() {
    if (error_ == 0) ::flock(fd_, LOCK_UN);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  int error() const { return error_; }

 private:
  int fd_;
  int error_;
};

/// When this process began, in seconds of CLOCK_REALTIME; 0 where the system does not tell.
double process_start() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');  // the program's name may contain anything
  if (name_end == std::string::npos) return 0;
  unsigned long long ticks = 0;  // field 22, the 20th after the name: since the system was started
  const char* format =
      " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu";
  if (std::sscanf(text.c_str() + name_end + 1, format, &ticks) != 1) return 0;
  timespec now{};
  timespec up{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  ::clock_gettime(CLOCK_BOOTTIME, &up);
  const auto seconds = [](const timespec& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double age =
      seconds(up) - static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return seconds(now) - age;
}

/// Whether the file was last written before this process began: by one that had the same id.
bool is_left_over(const struct stat& file) {
  constexpr double coarse = 0.1;  // seconds: ticks, and times of files, are rounded
  const double written =
      static_cast<double>(file.st_mtim.tv_sec) + static_cast<double>(file.st_mtim.tv_nsec) * 1e-9;
  return file.st_size > 0 && written + coarse < process_start();
}

}  // namespace

Error file_error(std::string_view what, std::string_view path, int error_number) {
  return {ErrorCode::io, fmt::format("cannot {} {}: {}", what, path, std::strerror(error_number))};
}

Status prepare_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) {
    return file_error("make the directory", path, errno);
  }
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return file_error("use the directory", path, errno);
  if (!S_ISDIR(found.st_mode)) return file_error("use the directory", path, ENOTDIR);
  if (::access(path.c_str(), W_OK | X_OK) != 0) {
    return file_error("write to the directory", path, errno);
  }
  return {};
}

int write_all(int fd, uint64_t offset, std::span<const std::byte> bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && offset + bytes.size() > limit.rlim_cur) {
    return EFBIG;
  }
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : ENOSPC;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return 0;
}

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Result<RecordFile> RecordFile::open(const std::string& path) {
  const int flags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  FileDescriptor file(::open(path.c_str(), flags, 0600));
  if (file.get() < 0) return file_error("open", path, errno);
  struct stat found {};
  if (::fstat(file.get(), &found) != 0) return file_error("open", path, errno);
  if (!S_ISREG(found.st_mode) || found.st_uid != ::geteuid()) {
    return Error{ErrorCode::io,
                 fmt::format("cannot use {}: expected a regular file of this user, found {}", path,
                             S_ISREG(found.st_mode) ? "another user's" : "something else")};
  }
  const FileLock lock(file.get());
  if (lock.error() != 0) return file_error("lock", path, lock.error());
  if (::fstat(file.get(), &found) != 0) return file_error("open", path, errno);
  if (is_left_over(found) && ::ftruncate(file.get(), 0) != 0) {
    return file_error("empty", path, errno);
  }
  return RecordFile(std::move(file), path);
}

Status RecordFile::append(const std::function<std::vector<std::byte>(uint64_t)>& record) {
  const FileLock lock(file_.get());
  if (lock.error() != 0) return file_error("lock", path_, lock.error());
  const off_t end = ::lseek(file_.get(), 0, SEEK_END);
  if (end < 0) return file_error("write to", path_, errno);
  const auto offset = static_cast<uint64_t>(end);
  const int error = write_all(file_.get(), offset, record(offset));
  if (error == 0) return {};
  if (::ftruncate(file_.get(), end) != 0) return file_error("shorten", path_, errno);
  return file_error("write to", path_, error);
}

}  // namespace castor
