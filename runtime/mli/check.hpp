// SPDX-License-Identifier: Apache-2.0
// The checks of a conversion, in the order of the embARC MLI library, and some that it lacks; see
// castor/mli.h for the table.
#pragma once

#include "castor/mli.h"

namespace castor::mli {

/// Which element types a function takes.
enum class Accepted : uint8_t {
  all,
  integers,  ///< mli_hlp_convert_tensor_safx: no fp32
};

/// Checks one tensor by itself but for its parameters. Reads no element.
mli_status check_layout(const mli_tensor* tensor);

/// Checks one tensor by itself. Reads no element, and no parameter beyond its container's capacity.
mli_status check_tensor(const mli_tensor* tensor);

/// Checks everything that a conversion needs: the source, the destination, then both together.
mli_status check_conversion(const mli_tensor* source, const mli_tensor* destination,
                            Accepted accepted);

}  // namespace castor::mli
