// SPDX-License-Identifier: Apache-2.0
// How much memory machine code and its constants take, and how much they may.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include "ir/support/result.hpp"

namespace castor::jit {

/// Counts bytes of pages that hold code or constants, up to a limit. Thread safe. A forked child
/// also counts, against the limit alone, what other threads of its parent were about to map when it
/// was made.
class CodeBudget {
 public:
  explicit CodeBudget(size_t limit) : limit_(limit) {}

  size_t mapped() const { return mapped_.load(std::memory_order_relaxed); }

 private:
  friend class CodeReservation;
  const size_t limit_;
  std::atomic<size_t> taken_ = 0;  // mapped, or about to be
  std::atomic<size_t> mapped_ = 0;
};

/// Bytes taken from a budget for as long as this lives.
class CodeReservation {
 public:
  CodeReservation() = default;
  CodeReservation(CodeReservation&& other) noexcept
      : budget_(std::move(other.budget_)),
        bytes_(std::exchange(other.bytes_, 0)),
        mapped_(std::exchange(other.mapped_, 0)) {}
  CodeReservation& operator=(CodeReservation&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
    return *this;
  }
  ~CodeReservation() {
    if (budget_ == nullptr) return;
    budget_->mapped_.fetch_sub(mapped_, std::memory_order_relaxed);
    budget_->taken_.fetch_sub(bytes_, std::memory_order_relaxed);
  }

  /// Takes over what another reservation of the same budget has.
  void add(CodeReservation other) {
    if (budget_ == nullptr) budget_ = other.budget_;
    bytes_ += std::exchange(other.bytes_, 0);
    mapped_ += std::exchange(other.mapped_, 0);
  }

  /// The bytes are mapped now.
  void set_mapped() {
    mapped_ = bytes_;
    budget_->mapped_.fetch_add(mapped_, std::memory_order_relaxed);
  }

  /// Fails with executable_memory where the limit would be exceeded; the message names what is
  /// mapped, what is needed, and the limit.
  static Result<CodeReservation> take(const std::shared_ptr<CodeBudget>& budget, size_t bytes);

 private:
  CodeReservation(std::shared_ptr<CodeBudget> budget, size_t bytes)
      : budget_(std::move(budget)), bytes_(bytes) {}

  std::shared_ptr<CodeBudget> budget_;
  size_t bytes_ = 0;
  size_t mapped_ = 0;
};

/// Whether it is the limit that an error inside of code memory is about (limit_exceeded), and not
/// the system.
inline bool is_limit_reached(const Error& error) { return error.code == ErrorCode::limit_exceeded; }

}  // namespace castor::jit
