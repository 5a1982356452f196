// SPDX-License-Identifier: Apache-2.0
// What Linux says when a process asks for tile data, where the emulator stands in for the CPU.
#pragma once

#include <cstdint>

namespace castor::emulator {

/// As Linux's arch_prctl does: grants tile data at the first request. Without it instructions on
/// tile data raise SIGILL, as they do on a CPU that has them.
int64_t arch_prctl(int request, uint64_t argument);

bool is_tile_data_permitted();

/// From now on requests fail with that error number.
void refuse_tile_data(int error);

}  // namespace castor::emulator
