// SPDX-License-Identifier: Apache-2.0
// The caller's memory: allocators, packed weights that kernels share, and what memory is in use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "ir/support/export.hpp"
#include "ir/support/result.hpp"

namespace castor {

namespace detail {
class WeightStore;
struct WeightAccess;
}  // namespace detail

/// No bound.
inline constexpr size_t no_limit = std::numeric_limits<size_t>::max();

/// Scratch, given by a caller or an allocator, begins at a multiple of this many bytes.
inline constexpr size_t scratch_alignment = 64;

/// Where scratch and packed weights come from: plain callbacks, so that C can give them. Without
/// callbacks: the aligned operator new. (Handles, code, and the small tables of kernels never come
/// from here.)
///
/// The callbacks may be called by any thread that uses castor, at the same time, with castor's
/// floating-point environment (MXCSR 0x1F80) instead of the thread's, and must not call castor.
/// They and `context` must live until the last runtime, kernel, bound kernel and PackedWeights that
/// were made with them are gone: blocks are given back when their users die.
struct Allocator {
  /// Returns `bytes` bytes (1 or more) at a multiple of `alignment` (always scratch_alignment), or
  /// null, which makes the call that needs them fail with out_of_memory. A block that is not
  /// aligned is given back at once, and the call fails with invalid_argument. Should not throw: if
  /// it does, the call fails with invalid_argument, or out_of_memory for std::bad_alloc.
  void* (*allocate)(void* context, size_t bytes, size_t alignment) = nullptr;
  /// Takes back what `allocate` returned for the same number of bytes. Should not throw: nobody is
  /// told.
  void (*release)(void* context, void* pointer, size_t bytes) = nullptr;
  void* context = nullptr;  ///< handed to both as it is
};

struct PackedWeightsOptions {
  Allocator allocator{};
  /// Maximum bytes of all packed weights. Binding a kernel that needs more fails with
  /// out_of_memory; the message names what is held, what is needed, and the limit.
  size_t bytes_limit = no_limit;
};

/// What a PackedWeights holds at present, and what happened since it was made.
struct PackedWeightsStatistics {
  size_t entries = 0;  ///< weights in one form each, used by one or more bound kernels
  size_t bytes = 0;    ///< bytes of all entries
  uint64_t packs = 0;  ///< entries made
  uint64_t hits = 0;   ///< times that binding found its entry
};

/// Constant weights of convolutions as kernels read them, shared by bound kernels and, if they are
/// given the same object, by runtimes.
///
/// When a convolution whose weights (and weight zero points) are constants of the function is
/// bound, its packed form is looked up by the weights' content and everything that the form depends
/// on: the tier, the form's tiles, the products. So another batch size, the same weights in another
/// function, or another runtime of the same tier mostly finds what is there, and it is packed once
/// even if several threads ask at the same time. An entry dies with the last bound kernel that uses
/// it; nothing else keeps it.
///
/// A handle, cheap to copy; may be used from any thread. After fork() a child finds no entries of
/// its parent, and shares what it packs itself; kernels bound before work on in both.
class CASTOR_API PackedWeights {
 public:
  /// None: a runtime that is given this makes its own, with its allocator.
  PackedWeights() = default;
  /// Fails where the allocator has one callback without the other.
  static Result<PackedWeights> create(const PackedWeightsOptions& options = {});

  explicit operator bool() const { return store_ != nullptr; }
  /// All 0 where there is none.
  PackedWeightsStatistics statistics() const;

 private:
  friend struct detail::WeightAccess;
  explicit PackedWeights(std::shared_ptr<detail::WeightStore> store) : store_(std::move(store)) {}
  std::shared_ptr<detail::WeightStore> store_;
};

/// Bytes in use by a runtime and the kernels made with it, those that outlive it included.
struct MemoryStatistics {
  size_t scratch_bytes = 0;        ///< held by bound kernels and calls; not the callers' own
  size_t packed_weight_bytes = 0;  ///< bytes of its PackedWeights, whichever runtime uses them
  size_t code_bytes = 0;           ///< pages of machine code and its constants
};

}  // namespace castor
