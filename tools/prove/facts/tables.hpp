// SPDX-License-Identifier: Apache-2.0
// Threshold tables (jit/lower/threshold_table.hpp) beside the specification of `convert`.
#pragma once

#include <functional>

#include "jit/lower/threshold_table.hpp"
#include "tools/prove/facts/fact.hpp"
#include "tools/prove/query/subject.hpp"

namespace castor::prove {

using TableTamper = std::function<void(jit::ThresholdTable&)>;

/// Every code of the table, of a conversion from f16 or bf16.
void check_table(const Conversion& conversion, FactCheck& check, const TableTamper& tamper = {});

/// A conversion from f32 or f64 by the table of bf16, of numbers that were rounded to odd.
void check_rounded_to_odd(const Conversion& conversion, FactCheck& check,
                          const TableTamper& tamper = {});

}  // namespace castor::prove
