// SPDX-License-Identifier: Apache-2.0
// What the machine allows, and how that and everything else is measured: what the benchmark shares
// with the castor command.
#pragma once

#include "tools/limits/huge_buffer.hpp"
#include "tools/limits/measure.hpp"
#include "tools/limits/plain_kernels.hpp"
#include "tools/limits/product_peak.hpp"

namespace castor::bench {
using namespace limits;
}  // namespace castor::bench
