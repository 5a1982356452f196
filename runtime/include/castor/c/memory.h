// SPDX-License-Identifier: Apache-2.0
// The caller's memory in castor's C API: allocators, packed weights that kernels share, and what
// memory is in use. Include castor/castor.h.
#pragma once

#include "castor/c/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Scratch, given by a caller or an allocator, begins at a multiple of this many bytes.
#define CASTOR_SCRATCH_ALIGNMENT 64

/// Where scratch and packed weights come from. Without callbacks (fields of zeros): castor's own.
/// (Handles, code, and the small tables of kernels never come from here.)
///
/// The callbacks may be called by any thread that uses castor, at the same time, and must not call
/// castor. They and `context` must live until the last runtime, kernel, bound kernel and
/// castor_packed_weights that were made with them are destroyed: blocks are given back when their
/// users die. The structure itself is copied.
typedef struct castor_allocator {
  size_t struct_size;  ///< sizeof(castor_allocator)
  void* context;       ///< handed to both as it is
  /// Returns `bytes` bytes (1 or more) at a multiple of `alignment` (always
  /// CASTOR_SCRATCH_ALIGNMENT), or NULL, which makes the call that needs them fail with
  /// CASTOR_OUT_OF_MEMORY. A block that is not aligned is given back at once, and the call fails
  /// with CASTOR_INVALID_ARGUMENT. Neither callback should throw where it is C++: then the call
  /// fails so too, and what `release` throws is lost.
  void* (*allocate)(void* context, size_t bytes, size_t alignment);
  /// Takes back what `allocate` returned for the same number of bytes.
  void (*release)(void* context, void* pointer, size_t bytes);
} castor_allocator;
#define CASTOR_ALLOCATOR \
  { sizeof(castor_allocator), NULL, NULL, NULL }

/// Constant weights of convolutions as kernels read them, shared by bound kernels and by all
/// runtimes that are given the same handle (castor_runtime_options).
///
/// When a convolution whose weights (and weight zero points) are constants of the function is
/// bound, its packed form is looked up by the weights' content and everything that the form depends
/// on: so another batch size, the same weights in another function, or another runtime of the same
/// tier mostly finds what is there, and it is packed once even if several threads ask at the same
/// time. An entry dies with the last bound kernel that uses it; nothing else keeps it.
///
/// Any thread may use it, several at a time. Runtimes hold what they need of it: it may be
/// destroyed before them. After fork() a child finds no entries of its parent, and shares what it
/// packs itself; kernels bound before work on in both.
typedef struct castor_packed_weights castor_packed_weights;

/// How packed weights are kept. A field of zeros is its default.
typedef struct castor_packed_weights_options {
  size_t struct_size;                 ///< sizeof(castor_packed_weights_options)
  const castor_allocator* allocator;  ///< copied; NULL: castor's own
  /// Maximum bytes of all packed weights; 0: no bound. Binding a kernel that needs more fails
  /// with CASTOR_OUT_OF_MEMORY; the message names what is held, what is needed, and the limit.
  size_t bytes_limit;
} castor_packed_weights_options;
#define CASTOR_PACKED_WEIGHTS_OPTIONS \
  { sizeof(castor_packed_weights_options), NULL, 0 }

/// `options` may be NULL. On success *weights is the caller's, else NULL. Fails where the allocator
/// has one callback without the other.
CASTOR_API castor_status castor_packed_weights_create(const castor_packed_weights_options* options,
                                                      castor_packed_weights** weights,
                                                      castor_error* error) CASTOR_NOEXCEPT;
CASTOR_API void castor_packed_weights_destroy(castor_packed_weights* weights) CASTOR_NOEXCEPT;

/// What packed weights hold at present, and what happened since they were made.
typedef struct castor_weight_statistics {
  size_t struct_size;  ///< set by the caller: sizeof(castor_weight_statistics)
  uint64_t entries;    ///< weights in one form each, used by one or more bound kernels
  uint64_t bytes;      ///< bytes of all entries
  uint64_t packs;      ///< entries made
  uint64_t hits;       ///< times that binding found its entry
} castor_weight_statistics;
#define CASTOR_WEIGHT_STATISTICS \
  { sizeof(castor_weight_statistics), 0, 0, 0, 0 }

/// Fills in the fields that both sides know, and sets those that only newer headers have to 0.
CASTOR_API castor_status castor_packed_weights_statistics(const castor_packed_weights* weights,
                                                          castor_weight_statistics* statistics,
                                                          castor_error* error) CASTOR_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif
