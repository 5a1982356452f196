// SPDX-License-Identifier: Apache-2.0
// Dumps of requantizations' nests, on dense tensors, as if unknown extents were long.
#pragma once

#include <string>

#include "jit/plan/nest.hpp"
#include "jit/requantize/plan.hpp"

namespace castor::jit {

/// The method that a requantization most likely takes, its nest, and the nest's form.
struct LikelyRequantization {
  std::vector<const RequantizeMethod*> methods;  ///< of which a call takes the first that can
  Nest nest;                                     ///< of the first of them
  NestForm form;
};

/// `nest`: of the requantization. Where the types have all parameters there is one method.
Result<LikelyRequantization> likely_requantization(const Function& function, const Nest& nest,
                                                   const Target& target);

/// Whether bytes are looked up in tables that the method makes.
bool looks_bytes_up(const Function& function, const Nest& nest, const Target& target);

/// Formats, methods, the layout of the slices' constants, and the loops.
Result<std::string> requantization_text(const Function& function, const Nest& nest,
                                        const Target& target);

}  // namespace castor::jit
