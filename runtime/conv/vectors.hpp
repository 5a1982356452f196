// SPDX-License-Identifier: Apache-2.0
// What the loops of packing have in common that are written for vectors; inside runtime/conv only.
#pragma once

#include <immintrin.h>

#include <cstddef>

#include "runtime/conv/interleave.hpp"

/// Every tier has AVX2, but not the baseline that the compiler is given; tiers with tiles have
/// AVX-512, but where the emulator carries them out.
#define CASTOR_AVX2 [[gnu::target("avx2")]]
#define CASTOR_AVX512 [[gnu::target("avx512f,avx512bw,avx512vl")]]

namespace castor::detail {

inline __m128i load_16(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
inline void store_16(__m128i bytes, void* to) {
  _mm_storeu_si128(static_cast<__m128i*>(to), bytes);
}

}  // namespace castor::detail
