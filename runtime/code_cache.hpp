// SPDX-License-Identifier: Apache-2.0
// The cache of machine code, by what the code depends on and nothing else.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <shared_mutex>
#include <string>
#include <unordered_map>

#include "jit/code_memory.hpp"
#include "jit/conv/channel_kernel.hpp"
#include "jit/conv/conv_kernel.hpp"
#include "jit/conv/depthwise_kernel.hpp"
#include "jit/conv/grouped_nhwc_kernel.hpp"
#include "jit/conv/pack_planes.hpp"
#include "jit/conv/pack_weights.hpp"
#include "jit/emit/nest_emitter.hpp"
#include "jit/nest.hpp"
#include "jit/requantize/byte_table_kernel.hpp"
#include "runtime/fork_private.hpp"
#include "runtime/observe/code_recipe.hpp"

namespace castor {

class Observer;

/// Executable code of one nest in one form, of a copy of tiles, or of a convolution's kernel.
struct NestCode {
  jit::CodeBlock block;
  /// What those who watch the code keep as long as it lives; usually null.
  std::shared_ptr<const void> watch{};
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

/// Code by specialisation key. Thread safe. Bounded: the code that was added first is dropped
/// first (kernels that hold it keep it alive). A failed compile leaves nothing behind.
class CodeCache {
 public:
  /// `observer` is told of all code that is made; it may be null.
  CodeCache(jit::CodeMemory& memory, const jit::SystemCalls& system, size_t capacity_bytes,
            Observer* observer = nullptr)
      : memory_(memory), capacity_bytes_(capacity_bytes), observer_(observer), entries_(system) {}

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

  uint64_t compiled() const { return compiled_.load(std::memory_order_relaxed); }
  uint64_t hits() const { return hits_.load(std::memory_order_relaxed); }
  size_t bytes() const;

 private:
  struct Entries {
    mutable std::shared_mutex mutex;
    std::unordered_map<std::string, NestCodePtr> codes;
    std::deque<const std::string*> oldest_first;  // keys of codes, whose nodes do not move
    size_t bytes = 0;
  };

  Result<NestCodePtr> find_or_emit(std::string key, const CodeRecipe& recipe);
  NestCodePtr find(const std::string& key) const;
  NestCodePtr insert(std::string key, NestCodePtr code);

  jit::CodeMemory& memory_;
  const size_t capacity_bytes_;
  Observer* const observer_;
  mutable ForkPrivate<Entries> entries_;
  std::atomic<uint64_t> compiled_ = 0;
  std::atomic<uint64_t> hits_ = 0;
};

}  // namespace castor
