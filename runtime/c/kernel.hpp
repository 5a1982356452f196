// SPDX-License-Identifier: Apache-2.0
// Making kernels' handles.
#pragma once

#include <memory>

#include "runtime/c/handles.hpp"

namespace castor::c {

/// The handle of a compiled kernel. Throws std::bad_alloc.
Status make_kernel(Result<Kernel> kernel, std::unique_ptr<castor_kernel>& made);

}  // namespace castor::c
