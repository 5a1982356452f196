// SPDX-License-Identifier: Apache-2.0
// Results of 8 bits of the epilogues of convolutions: several chunks are packed to a vector.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "jit/conv/tile_epilogue_emitter.hpp"
#include "jit/emit/packer.hpp"

namespace castor::jit {

/// The epilogue for kernels that pack results of 8 bits: nothing where there are no such results.
std::optional<TileEpilogue> packed_epilogue(const TileEpilogue& epilogue);
/// Vectors that wait to be packed in such a kernel at most.
int vectors_of_packs(const TileEpilogue& epilogue);

/// A result of 8 bits, whose chunks of 16 lanes are packed four at a time.
class PackedSink : public Sink {
 public:
  static constexpr int chunks_of_pack = 4;

  explicit PackedSink(const LaneInst& store) : store_(store) {}
  void reserve_constants(LaneEmitter& emitter) final;
  void emit_store(LaneEmitter& emitter, const LaneInst& inst) final;
  /// Stores what waits to be packed.
  void flush(LaneEmitter& emitter);

 private:
  /// Stores the first `chunks` of a full pack. `is_flush`: not right behind the last chunk.
  virtual void put(LaneEmitter& emitter, const OwnedVector& pack, int chunks, bool is_flush) = 0;

  LaneInst store_;
  Packer packer_;
  int waiting_ = 0;  ///< chunks
};

/// Puts sinks of that type, made with `owner`, in the place of those that a packed epilogue's
/// results of 8 bits have. `packed` keeps them.
template <class Packed, class Owner>
void replace_packable(const TileEpilogue& epilogue, std::vector<Sink*>& sinks,
                      std::deque<Packed>& packed, Owner& owner) {
  if (!epilogue.packs) return;
  for (const LaneInst& inst : epilogue.program.code) {
    if (!is_packable(epilogue, inst)) continue;
    const auto sink = static_cast<size_t>(inst.imm);
    sinks[sink] = &packed.emplace_back(epilogue.inputs + sink, inst, owner);
  }
}

}  // namespace castor::jit
