// SPDX-License-Identifier: Apache-2.0
// The key of this process's hashes, drawn without a lock and without an exception.
#pragma once

#include <sys/random.h>

#include <cstdint>

#include "ir/support/sip_hash.hpp"

namespace castor {

/// The type of getrandom(2), which a test may replace.
using GetRandom = ssize_t (*)(void* bytes, size_t count, unsigned flags);

/// 64 bits that nobody outside the process can foresee, from getrandom(2). Where that fails
/// (kernels before 3.17, a seccomp filter, a pool that is not filled so soon after the start of the
/// machine) they are a hash of the 16 random bytes that the kernel gives to each program that it
/// starts (AT_RANDOM), of `index` and of the time: hard to guess from outside, though whoever reads
/// the process's memory at its start knows them. Words of different indices are independent. Takes
/// no lock, allocates nothing, never fails.
uint64_t random_word(uint64_t index, GetRandom get = ::getrandom) noexcept;

/// The key of ContentId: drawn at the first call, constant from then on; a forked child has its
/// parent's. Thread safe without a lock, so that a child forked in the middle of the first call
/// does not wait for a thread that it lacks.
SipHash::Key process_key() noexcept;

}  // namespace castor
