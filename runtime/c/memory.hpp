// SPDX-License-Identifier: Apache-2.0
// Allocators of the C API as those of the C++ API.
#pragma once

#include <castor/c/memory.h>

#include <castor/memory.hpp>

namespace castor::c {

/// No callbacks where `given` is null. Whether both are there is for the C++ API to check.
Status read_allocator(const castor_allocator* given, Allocator& allocator);

/// A bound in C, where 0 is none.
inline size_t limit_of(size_t given) { return given == 0 ? no_limit : given; }

}  // namespace castor::c
