// SPDX-License-Identifier: Apache-2.0
// The memory of the tensors of an Elementwise benchmark.
#pragma once

#include <optional>
#include <vector>

#include "bench/bound_call.hpp"
#include "bench/cases/elementwise_case.hpp"
#include "bench/limits.hpp"

namespace castor::bench {

/// Tensors in memory. Smaller extents use the first bytes of each.
struct ElementwiseTensors {
  std::vector<std::byte*> inputs;
  std::byte* result = nullptr;
};

/// Puts the tensors next to each other, each at an offset of its own within a page, the result as
/// far as can be from the false dependence of a load on a store to an address with the same low 12
/// bits. Fails (internal) when they do not fit.
Result<ElementwiseTensors> place_tensors(const ElementwiseCase& each, const Extents& extents,
                                         std::span<std::byte> memory);

/// Fills the inputs with ordinary numbers, differently each. Depends on its arguments alone.
void fill_inputs(const ElementwiseCase& each, const Extents& extents,
                 const ElementwiseTensors& tensors);

/// Fills them with bit patterns of all kinds.
void fill_inputs_with_patterns(const ElementwiseCase& each, const Extents& extents,
                               const ElementwiseTensors& tensors);

/// Views of the tensors; those of the inputs as the row lays them out, or all in that layout.
std::vector<ConstView> input_views(const ElementwiseCase& each, const Extents& extents,
                                   const ElementwiseTensors& tensors,
                                   std::optional<Layout> layout = {});
Result<View> result_view(const ElementwiseCase& each, const Extents& extents,
                         const ElementwiseTensors& tensors);

/// Each operand's elements once: what a plain kernel has to move. Inputs of less than a thirtieth
/// of all bytes are left out.
PlainTensors plain_tensors(std::span<const ConstView> inputs, const View& result);
/// Bytes of all operands' elements, each once.
size_t operand_bytes(std::span<const ConstView> inputs, const View& result);

/// "u8[1024, 3] f32[3] -> f16[1024, 3]".
std::string shapes_text(std::span<const ConstView> inputs, const View& result);

}  // namespace castor::bench
