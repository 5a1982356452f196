// SPDX-License-Identifier: Apache-2.0
// Kernels that no lane program gives, as the heads of golden listings name them: what the code of a
// microkernel or a packer depends on, word by word. The words are those of the specs' fields
// (jit/kernel/spec.hpp); tests/data/golden/README.md lists them.
#pragma once

#include <set>
#include <string>
#include <variant>

#include "jit/conv/dense/tile_spec.hpp"
#include "jit/conv/dot/dot_spec.hpp"
#include "jit/conv/pack/pack_input.hpp"
#include "jit/conv/pack/pack_weights.hpp"
#include "jit/conv/sliding/sliding_spec.hpp"
#include "jit/emit/tile_copy.hpp"
#include "jit/requantize/byte_table_kernel.hpp"

namespace castor::test {

/// Everything that the code of one kernel depends on besides target and epilogue.
using KernelSpec =
    std::variant<jit::DenseTile, jit::DepthwiseSpec, jit::GroupedNhwcSpec, jit::PackInput,
                 jit::PackWeights, jit::DotTile, jit::TileCopySpec, jit::ByteTableSpec>;

/// Reads "dense channels=2 vectors=1 store=compressed". Fields that are not named have their
/// defaults. Fails (invalid_argument) at a word that is not known, naming it.
Result<KernelSpec> read_kernel_spec(const std::string& words);

/// Reads the blocks of rows of a depthwise or grouped kernel: "outputs=4 above=1, outputs=2". Fails
/// (invalid_argument) at a word that is not known, and where the kernel has no blocks.
Status read_blocks(const std::string& words, KernelSpec& spec);

/// Emits the kernel; `epilogue` may be null. Fails (invalid_argument) where the target has no such
/// code, or where it takes no epilogue but has one.
Result<jit::MachineCode> emit_spec(const KernelSpec& spec, const jit::Target& target,
                                   const jit::TileEpilogue* epilogue,
                                   const jit::EmitOptions& options = {});

/// What the kernel shows: its kind, each switch that is on ("depthwise sign_flip"), each choice
/// ("pixel_vectorised window_sums=i32": dense ones by what is
/// along their vectors), and for microkernels how they multiply.
std::set<std::string> switches_of(const KernelSpec& spec);

}  // namespace castor::test
