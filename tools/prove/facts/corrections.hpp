// SPDX-License-Identifier: Apache-2.0
// Corrections of a convolution's sums for signs and zero points (jit/conv/README.md).
#pragma once

#include "jit/conv/dot_product.hpp"
#include "tools/prove/facts/fact.hpp"

namespace castor::prove {

/// What a test does to a correction: plants a fault.
struct CorrectionTamper {
  Bits x_flip = 0x80;        ///< what the sign flip of x adds to its zero point
  int64_t count_offset = 0;  ///< added to the count of products
  int32_t sum_bits = 0;      ///< xored to a window sum's words
};

/// For one engine and one combination of signs: the sum of the engine's products, corrected, is the
/// sum of (x - zx)(w - zw), where some positions may be padded, which hold zx.
void check_correction(jit::ProductEngine engine, bool x_is_signed, bool w_is_signed,
                      FactCheck& check, const CorrectionTamper& tamper = {});

/// The words of a window sum and of a zero point: their products add up to -s z.
void check_words(FactCheck& check, const CorrectionTamper& tamper = {});

}  // namespace castor::prove
