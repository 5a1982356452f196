// SPDX-License-Identifier: Apache-2.0
// Dumps of convolutions' nests, planned as if unknown extents were long.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jit/code.hpp"
#include "jit/conv/candidates.hpp"
#include "jit/plan/nest.hpp"

namespace castor::jit {

/// A convolution as it is most likely bound.
struct DumpedConvolution {
  ConvolutionProblem problem;
  std::vector<Candidate> candidates;     ///< by ascending cycles: the first is chosen
  std::optional<TileEpilogue> epilogue;  ///< that kernels apply, if the chosen one's do

  const Candidate& chosen() const { return candidates.front(); }
  const TileEpilogue* applied() const { return chosen().applies_epilogue ? &*epilogue : nullptr; }
};

/// `index`: of the convolution's nest. Fails (unsupported) where it has nothing to multiply.
Result<DumpedConvolution> dumped_convolution(const Function& function, std::span<const Nest> nests,
                                             size_t index, const Target& target);

/// The operation, its plan, and what becomes of the nest after it. `index`: of the convolution's
/// nest. Fails (unsupported) where it has nothing to multiply.
Result<std::string> convolution_text(const Function& function, std::span<const Nest> nests,
                                     size_t index, const Target& target);

/// The microkernel with notes, all but its frame of the convolution or of the epilogue's
/// operations.
Result<MachineCode> emit_convolution(const Function& function, std::span<const Nest> nests,
                                     size_t index, const Target& target);

/// The code that packs the input for the chosen plan, with notes; nothing where loops of the
/// library pack it, or nothing does.
Result<std::optional<MachineCode>> emit_input_packer(const Function& function, uint32_t operation,
                                                     const DumpedConvolution& convolution,
                                                     const Target& target);

}  // namespace castor::jit
