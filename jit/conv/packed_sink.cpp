// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/packed_sink.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace castor::jit {

namespace {

int count_packable(const TileEpilogue& epilogue) {
  const auto packs = [&](const LaneInst& inst) { return is_packable(epilogue, inst); };
  return static_cast<int>(std::ranges::count_if(epilogue.program.code, packs));
}

}  // namespace

std::optional<TileEpilogue> packed_epilogue(const TileEpilogue& epilogue) {
  if (count_packable(epilogue) == 0) return std::nullopt;
  TileEpilogue packed = epilogue;
  packed.program = epilogue.packed;
  packed.packs = true;
  return packed;
}

/// Two chunks in one vector, and a third.
int vectors_of_packs(const TileEpilogue& epilogue) { return 2 * count_packable(epilogue); }

void PackedSink::reserve_constants(LaneEmitter& emitter) {
  packer_ = Packer(emitter, bits_of(store_.type), 8, store_.narrowing);
  assert(packer_.chunks() == chunks_of_pack);
  packer_.reserve_constants(emitter);
}

void PackedSink::emit_store(LaneEmitter& emitter, const LaneInst& inst) {
  ++waiting_;
  OwnedVector pack;
  if (!packer_.emit_push(emitter, emitter.take(inst.a), pack)) return;
  put(emitter, pack, std::exchange(waiting_, 0), false);
}

/// What fills the rest of the vector is not stored.
void PackedSink::flush(LaneEmitter& emitter) {
  if (waiting_ == 0) return;
  OwnedVector pack;
  for (int i = waiting_; i < chunks_of_pack; ++i)
    packer_.emit_push(emitter, emitter.scratch(), pack);
  put(emitter, pack, std::exchange(waiting_, 0), true);
}

}  // namespace castor::jit
