// SPDX-License-Identifier: Apache-2.0
// The main loop of an elementwise function in L1: tensors that grow along it.
#pragma once

#include "bench/elementwise_tensors.hpp"
#include "bench/loop_slope.hpp"
#include "bench/session.hpp"

namespace castor::bench {

/// Calls on few and on many elements with the loops and access patterns of `call`, so that they
/// differ by iterations of the main loop, of `iteration_elements` each. Tensors grow along columns
/// where that can be, else along rows. Fails (internal) where neither does.
Result<LoopSlope> growing_slope(Session& session, const ElementwiseCase& each,
                                const BoundCall& call, int64_t iteration_elements);

/// Tensors in the footprint's memory, filled with ordinary numbers.
Result<ElementwiseTensors> filled_tensors(Session& session, const ElementwiseCase& each,
                                          const Extents& extents, const Footprint& footprint);

/// The function bound to the tensors as the row lays them out, or all in that layout.
Result<BoundCall> bind_tensors(const Session& session, const ElementwiseCase& each,
                               const Extents& extents, const ElementwiseTensors& tensors,
                               std::optional<Layout> layout = {});

}  // namespace castor::bench
