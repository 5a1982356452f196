// SPDX-License-Identifier: Apache-2.0
#include "jit/memory/unshared_file.hpp"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <new>

namespace castor::jit {

struct UnsharedFile::Entry {
  Entry(int number, dev_t on_device, ino_t with_inode)
      : fd(number), device(on_device), inode(with_inode) {}
  bool is(const struct stat& status) const {
    return status.st_dev == device && status.st_ino == inode;
  }

  int fd;
  dev_t device;
  ino_t inode;
  Entry* previous = nullptr;
  Entry* next = nullptr;

  // All entries of the process. The handlers below hold the lock across a fork, so a child finds
  // the list whole and the lock free.
  static std::mutex mutex;
  static Entry* first;

  void link();
  void unlink();
  static void before_fork() { mutex.lock(); }
  static void after_fork_in_parent() { mutex.unlock(); }
  static void after_fork_in_child();
  static const int registered;
};

constinit std::mutex UnsharedFile::Entry::mutex;
constinit UnsharedFile::Entry* UnsharedFile::Entry::first = nullptr;

// When the library is loaded, before the lock is ever taken: a fork that came between the two would
// leave the child a lock that nobody releases. Where memory for the handlers is short, children
// keep the files.
const int UnsharedFile::Entry::registered =
    ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);

void UnsharedFile::Entry::link() {
  const std::lock_guard lock(mutex);
  next = first;
  if (next != nullptr) next->previous = this;
  first = this;
}

void UnsharedFile::Entry::unlink() {
  const std::lock_guard lock(mutex);
  if (next != nullptr) next->previous = previous;
  (previous != nullptr ? previous->next : first) = next;
}

/// Calls nothing but what a child of a process with threads may call.
void UnsharedFile::Entry::after_fork_in_child() {
  for (Entry* entry = first; entry != nullptr; entry = entry->next) {
    struct stat status {};
    if (::fstat(entry->fd, &status) == 0 && entry->is(status)) ::close(entry->fd);
    entry->fd = -1;
  }
  mutex.unlock();
}

Result<UnsharedFile> UnsharedFile::take(const SystemCalls& system, int fd) {
  struct stat status {};
  if (system.fstat(fd, &status) != 0) {
    const Error error = refused("fstat(memfd)", 0, errno);
    system.close(fd);
    return error;
  }
  auto* entry = new (std::nothrow) Entry(fd, status.st_dev, status.st_ino);
  if (entry == nullptr) {
    system.close(fd);
    return Error{ErrorCode::out_of_memory, "no memory left"};  // short: allocates nothing
  }
  return UnsharedFile(system, std::unique_ptr<Entry>(entry));
}

UnsharedFile::UnsharedFile(const SystemCalls& system, std::unique_ptr<Entry> entry)
    : system_(&system), entry_(std::move(entry)) {
  entry_->link();
}

UnsharedFile::UnsharedFile(UnsharedFile&& other) noexcept = default;

UnsharedFile& UnsharedFile::operator=(UnsharedFile&& other) noexcept {
  std::swap(system_, other.system_);
  std::swap(entry_, other.entry_);
  return *this;
}

UnsharedFile::~UnsharedFile() {
  if (entry_ == nullptr) return;
  entry_->unlink();
  if (is_open()) system_->close(entry_->fd);
}

int UnsharedFile::number() const { return entry_->fd; }

bool UnsharedFile::is_file(int fd) const {
  struct stat status {};
  return system_->fstat(fd, &status) == 0 && entry_->is(status);
}

}  // namespace castor::jit
