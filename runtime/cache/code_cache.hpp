// SPDX-License-Identifier: Apache-2.0
// The cache of machine code, by what the code depends on and nothing else.
#pragma once

#include <memory>
#include <string>

#include "jit/conv/channel_kernel.hpp"
#include "jit/conv/conv_kernel.hpp"
#include "jit/conv/depthwise_kernel.hpp"
#include "jit/conv/grouped_nhwc_kernel.hpp"
#include "jit/conv/pack_planes.hpp"
#include "jit/conv/pack_weights.hpp"
#include "jit/conv/pack_windows.hpp"
#include "jit/emit/nest_emitter.hpp"
#include "jit/memory/code_memory.hpp"
#include "jit/plan/nest.hpp"
#include "jit/requantize/byte_table_kernel.hpp"
#include "runtime/cache/block_bytes.hpp"
#include "runtime/cache/clock_cache.hpp"
#include "runtime/fork_private.hpp"
#include "runtime/observe/code_watcher.hpp"

namespace castor {

/// Executable code of one nest in one form, of a copy of tiles, or of a convolution's kernel.
struct NestCode {
  jit::CodeBlock block;
  /// What those who watch the code keep as long as it lives; usually null.
  std::shared_ptr<const void> watch{};
  /// Executable memory and the object itself.
  size_t held_bytes() const {
    return jit::round_up(block.held_bytes(), jit::CodeMemory::code_alignment) +
           shared_block_bytes<NestCode>();
  }
  jit::NestFunction entry() const { return entry_as<jit::NestFunction>(); }
  template <class FunctionPointer>
  FunctionPointer entry_as() const {
    return reinterpret_cast<FunctionPointer>(reinterpret_cast<uintptr_t>(block.code()));
  }
};
using NestCodePtr = std::shared_ptr<const NestCode>;

/// The specialisation key: lane program, form of the iteration space, target. Equal keys have
/// equal code; shapes, strides, names and addresses are not in it.
std::string specialisation_key(const jit::Nest& nest, const jit::NestForm& form,
                               const jit::Target& target);

/// The key of a nest that kernels of convolutions apply: besides, which operand the sums are, and
/// how the others lie along rows.
std::string epilogue_key(const jit::Nest& nest, const jit::NestForm& form,
                         const jit::Target& target, const jit::TileEpilogue& epilogue);

/// Code by specialisation key, in a ClockCache: thread safe, without a lock where the code is
/// there; bounded (kernels that hold dropped code keep it alive); generated once for all who ask at
/// the same time. A failed compile leaves nothing behind. May throw std::bad_alloc.
class CodeCache {
 public:
  /// `watcher` is told of all code that is made; it may be null.
  CodeCache(jit::CodeMemory& memory, const jit::SystemCalls& system, size_t capacity_bytes,
            CodeWatcher* watcher = nullptr)
      : memory_(memory), watcher_(watcher), codes_(system, capacity_bytes) {}

  /// The code for a nest, found or compiled. `function` is the canonical one that the nest is of,
  /// for those who watch; it may be null.
  Result<NestCodePtr> get(const jit::Nest& nest, const jit::NestForm& form,
                          const jit::Target& target, const Function* function = nullptr);
  /// The code that copies tiles of elements of that many bytes.
  Result<NestCodePtr> get_tile_copy(int element_bytes);
  /// The inner kernels of convolutions, with an epilogue or, where it is null, without.
  Result<NestCodePtr> get_convolution(const jit::ConvTile& tile, const jit::Target& target,
                                      const jit::TileEpilogue* epilogue = nullptr);
  Result<NestCodePtr> get_convolution(const jit::ChannelTile& tile, const jit::Target& target,
                                      const jit::TileEpilogue* epilogue = nullptr);
  Result<NestCodePtr> get_depthwise(const jit::DepthwiseForm& form, const jit::Target& target,
                                    const jit::TileEpilogue* epilogue = nullptr);
  Result<NestCodePtr> get_grouped(const jit::GroupedNhwcForm& form, const jit::Target& target,
                                  const jit::TileEpilogue* epilogue = nullptr);

  /// The code that looks up bytes.
  Result<NestCodePtr> get_byte_table();

  /// The code that brings weights and input into the kernels' order.
  Result<NestCodePtr> get_weight_packer(const jit::WeightUnit& unit, const jit::Target& target);
  Result<NestCodePtr> get_plane_filler(const jit::PlaneForm& form, const jit::Target& target);
  Result<NestCodePtr> get_window_filler(const jit::WindowForm& form, const jit::Target& target);

  /// What the codes count for is their size, their key's, and the cache's own memory.
  CacheCounters counters() const { return codes_.get().counters(); }

 private:
  using Codes = ClockCache<std::string, NestCode>;

  Result<NestCodePtr> find_or_emit(const std::string& key, const CodeRecipe& recipe);

  jit::CodeMemory& memory_;
  CodeWatcher* const watcher_;
  mutable ForkPrivate<Codes, size_t> codes_;
};

}  // namespace castor
