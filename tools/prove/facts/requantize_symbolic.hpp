// SPDX-License-Identifier: Apache-2.0
// Methods of requantization on all slices that they admit, with the slices' parameters as terms.
#pragma once

#include "jit/requantize/methods.hpp"
#include "tools/prove/facts/requantize_cases.hpp"

namespace castor::prove {

FactVerdict check_embarc_lines(const FactEffort& effort, const RequantizeTamper& tamper = {});
FactVerdict check_exact_lines(const FactEffort& effort, const RequantizeTamper& tamper = {});
FactVerdict check_rounded_floats(const FactEffort& effort, const RequantizeTamper& tamper = {});
FactVerdict check_rounded_doubles(const FactEffort& effort, const RequantizeTamper& tamper = {});
FactVerdict check_split_floats(const FactEffort& effort, const RequantizeTamper& tamper = {});
FactVerdict check_whole_accumulators(const FactEffort& effort, const RequantizeTamper& tamper = {});
FactVerdict check_i32_products(const FactEffort& effort, const RequantizeTamper& tamper = {});
FactVerdict check_saturating_i32_products(const FactEffort& effort,
                                          const RequantizeTamper& tamper = {});
FactVerdict check_i32_accumulators(const FactEffort& effort, const RequantizeTamper& tamper = {});
FactVerdict check_embarc_from_float(const FactEffort& effort, const RequantizeTamper& tamper = {});
FactVerdict check_embarc_to_float(const FactEffort& effort, const RequantizeTamper& tamper = {});
FactVerdict check_to_float(const FactEffort& effort, const RequantizeTamper& tamper = {});
FactVerdict check_to_float_through_double(const FactEffort& effort,
                                          const RequantizeTamper& tamper = {});
FactVerdict check_float_quotients(const FactEffort& effort, const RequantizeTamper& tamper = {});
FactVerdict check_doubles(const FactEffort& effort, const RequantizeTamper& tamper = {});
FactVerdict check_cut_accumulators(const FactEffort& effort, const RequantizeTamper& tamper = {});
/// That constants of drawn slices are what the questions of their methods have them by.
FactVerdict check_constants(const FactEffort& effort, const RequantizeTamper& tamper = {});

}  // namespace castor::prove
