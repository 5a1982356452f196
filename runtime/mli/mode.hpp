// SPDX-License-Identifier: Apache-2.0
// Arithmetic and rounding of this process's conversions; see castor_mli_set_arithmetic.
#pragma once

#include "castor/mli.h"

namespace castor::mli {

struct Mode {
  castor_mli_arithmetic arithmetic;
  castor_mli_rounding rounding;
};

/// The present choice. Thread safe, takes no lock.
Mode current_mode();

}  // namespace castor::mli
