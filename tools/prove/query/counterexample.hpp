// SPDX-License-Identifier: Apache-2.0
// A counterexample as a reader wants it: the function, the inputs, what each side computes, and the
// command that repeats it.
#pragma once

#include <string>

#include "tools/prove/query/run.hpp"

namespace castor::prove {

/// The interpreter's element for operands given by their bits.
Result<uint64_t> interpreted(const Function& function, std::span<const Bits> inputs);

/// `command` is what repeats it, without the inputs: "castor prove --pair f32/u8 --isa avx2".
std::string counterexample_text(const Finding& finding, const std::string& command);

}  // namespace castor::prove
