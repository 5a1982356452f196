// SPDX-License-Identifier: Apache-2.0
// Sources of 16 bits to small floats in f16 lanes, where the target computes with them.
#pragma once

#include "ir/types/convert_options.hpp"
#include "jit/lower/lane_tensor.hpp"

namespace castor::jit {

/// Whether `encode_in_f16_lanes` takes the conversion: from f16, bf16, i16 and u16 to formats whose
/// numbers are few powers of two around 1.
bool encodes_in_f16_lanes(const LaneBuilder& builder, ElementType from, ElementType to,
                          const ConvertOptions& options);

/// The codes in i16 lanes, each rounded once, as a store finishes them. Options are canonical.
Storable encode_in_f16_lanes(LaneBuilder& builder, LaneTensor& source, ElementType to,
                             const ConvertOptions& options);

}  // namespace castor::jit
