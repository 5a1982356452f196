// SPDX-License-Identifier: Apache-2.0
// What the C API asks to be told of, as the C++ API does.
#pragma once

#include <castor/c/observe.h>

#include <castor/observe.hpp>

namespace castor::c {

/// Nothing is told where `given` is null. Throws std::bad_alloc.
Status read_observe_options(const castor_observe_options* given, ObserveOptions& options);

}  // namespace castor::c
