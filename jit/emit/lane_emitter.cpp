// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/lane_emitter.hpp"

#include "jit/emit/byte_table.hpp"
#include "jit/emit/float_ops.hpp"
#include "jit/emit/integer_ops.hpp"
#include "jit/emit/resize_ops.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace castor::jit {

namespace {

/// Registers that operations, sources and sinks may want besides operands and results.
constexpr int scratch_vectors = 3;
constexpr int sub_byte_scratch_vectors = 4;
constexpr int look_up_scratch_vectors = 7;      ///< for stores that look up
constexpr int look_up_i16_scratch_vectors = 8;  ///< for those of integers of 64 bits
constexpr int gather_scratch_vectors = 4;       ///< two, and two parts of a table
constexpr int encoder_scratch_vectors = 11;
constexpr int avx2_encoder_scratch_vectors = 4;
constexpr int avx2_byte_look_up_scratch_vectors = 6;  ///< for stores that look up bytes in sixteens
/// k0 means "no mask" in an encoding; k1 is the tail mask.
constexpr uint32_t usable_masks = 0xfc;

/// Whether an operation may want more than one register besides operands and result.
bool wants_scratch(LaneOp op) {
  switch (op) {
    case LaneOp::mul:
    case LaneOp::divide_each:
    case LaneOp::remainder_each:
    case LaneOp::float_remainder_each:
    case LaneOp::quotient_to_signed:
    case LaneOp::look_up:
    case LaneOp::look_up_i32:
    case LaneOp::gather:
    case LaneOp::mask_not: return true;
    default: return false;
  }
}

/// Whether sinks find enough registers in those that pending chunks have left by the time they are
/// joined: signs are pending beside codes.
bool uses_pending_vectors(const LaneProgram& program, int pending_vectors) {
  return pending_vectors > 0 && std::ranges::all_of(program.code, [](const LaneInst& inst) {
           if (inst.op == LaneOp::store) return inst.narrowing == Narrowing::magnitude_code;
           return !wants_scratch(inst.op);
         });
}

int scratch_vectors_of(const LaneProgram& program, const Target& target, int pending_vectors) {
  const auto is_small = [](const MemoryOperand& operand) { return is_sub_byte(operand.element); };
  const bool unpacks_bits = std::ranges::any_of(program.sources, is_small);
  if (!unpacks_bits && uses_pending_vectors(program, pending_vectors)) return 1;
  const bool packs_bits = unpacks_bits || std::ranges::any_of(program.sinks, is_small);
  int scratch = packs_bits ? sub_byte_scratch_vectors : scratch_vectors;
  for (const LaneInst& inst : program.code) {
    if (inst.op == LaneOp::gather) scratch = std::max(scratch, gather_scratch_vectors);
    if (looks_up(inst.narrowing)) scratch = std::max(scratch, look_up_scratch_vectors);
    if (inst.narrowing == Narrowing::look_up_i16) {
      scratch = std::max(scratch, look_up_i16_scratch_vectors);
    }
    if (!encodes(inst.narrowing) || inst.narrowing == Narrowing::magnitude_code) continue;
    scratch = std::max(scratch, target.has_avx512()              ? encoder_scratch_vectors
                                : looks_up_bytes(inst.narrowing) ? avx2_byte_look_up_scratch_vectors
                                                                 : avx2_encoder_scratch_vectors);
  }
  return scratch;
}

/// Whether sinks collect chunks, and so use their constants less often than each chunk its own.
bool collects(const LaneProgram& program) {
  return std::ranges::any_of(program.code, [&](const LaneInst& inst) {
    return inst.op == LaneOp::store &&
           bits_of(inst.type) > lane_bits_of(program.sinks[static_cast<size_t>(inst.imm)].element);
  });
}

/// The program's `join`, or 0 where it has none.
LaneId join_of(const LaneProgram& program) {
  const auto join = std::ranges::find(program.code, LaneOp::join, &LaneInst::op);
  return join == program.code.end() ? 0 : static_cast<LaneId>(join - program.code.begin());
}

}  // namespace

OwnedVector::~OwnedVector() {
  if (emitter_ != nullptr) emitter_->free_vectors_ |= uint32_t{1} << index_;
}

OwnedMask::~OwnedMask() { emitter_->free_masks_ |= uint32_t{1} << index_; }

OwnedSlot::~OwnedSlot() { emitter_->free_slots_.push_back(index_); }

LaneEmitter::LaneEmitter(Assembler& code, const Target& target, const LaneProgram& program,
                         int lanes, int pending_vectors, std::vector<LoopLevel> levels,
                         const TakenRegisters& taken)
    : code_(code),
      target_(target),
      program_(program),
      chunk_lanes_(lanes),
      join_(join_of(program)),
      lanes_(lanes),
      locations_(program.code.size()),
      last_use_(program.code.size(), no_lane),
      pinned_(program.code.size(), false),
      levels_(std::move(levels)),
      kept_(program.code.size(), false),
      wants_pin_(program.code.size(), false),
      homes_(program.code.size(), false),
      free_vectors_((target.vector_registers() == 32 ? ~uint32_t{0} : 0xffff) & ~taken.vectors),
      free_masks_(usable_masks & ~taken.masks) {
  levels_.resize(program.code.size(), LoopLevel::chunk);
  for (size_t i = 0; i < program.code.size(); ++i) {
    for_each_operand(program.code[i], [&](LaneId id) {
      last_use_[static_cast<size_t>(id)] = static_cast<LaneId>(i);
      const bool outlives = is_hoisted(id) && level_of(id) < level_of(static_cast<LaneId>(i));
      kept_[static_cast<size_t>(id)] = kept_[static_cast<size_t>(id)] || outlives;
    });
  }
  // Kept values outlive the instructions of their own level, wherever these are in the program.
  for (size_t i = 0; i < program_.code.size(); ++i) {
    if (kept_[i]) last_use_[i] = no_lane;
  }
  const int scratch = scratch_vectors_of(program_, target_, pending_vectors);
  for (LoopLevel level : {LoopLevel::nest, LoopLevel::row, LoopLevel::chunk}) {
    const int pending = level == LoopLevel::nest ? 0 : pending_vectors;
    const int first_half = join_ > 0 && level == LoopLevel::chunk ? 1 : 0;
    const int free =
        std::popcount(free_vectors_) - max_alive(level) - first_half - pending - scratch;
    pinnable_ = std::max(0, level == LoopLevel::nest ? free : std::min(pinnable_, free));
  }
  plan_hoisted();
}

/// The most vectors that hold a level's own values at once, except those that inner levels use.
int LaneEmitter::max_alive(LoopLevel level) const {
  const auto is_counted = [&](LaneId id) {
    return !is_constant(id) && level_of(id) == level && !(is_mask(type_of(id)) && has_avx512());
  };
  int alive = 0;
  int max = 0;
  std::vector<LaneId> dying;
  for (LaneId i = 0; i < static_cast<LaneId>(program_.code.size()); ++i) {
    const LaneInst& inst = program_.code[static_cast<size_t>(i)];
    if (level_of(i) != level || is_constant(i)) continue;
    if (inst.op != LaneOp::store && is_counted(i)) max = std::max(max, ++alive);
    if (kept_[static_cast<size_t>(i)]) --alive;  // it keeps a register or a slot
    dying.clear();
    for_each_operand(inst, [&](LaneId id) {
      const bool repeated = std::find(dying.begin(), dying.end(), id) != dying.end();
      if (last_use_[static_cast<size_t>(id)] == i && !repeated) dying.push_back(id);
    });
    alive -= static_cast<int>(std::ranges::count_if(dying, is_counted));
  }
  return max;
}

/// Registers for hoisted values, from those that constants could have.
void LaneEmitter::plan_hoisted() {
  for (size_t i = 0; i < program_.code.size() && pinnable_ > 0; ++i) {
    const bool in_mask = is_mask(program_.code[i].type) && has_avx512();
    if (!kept_[i] || in_mask) continue;
    wants_pin_[i] = true;
    --pinnable_;
  }
}

void LaneEmitter::emit_constants(std::span<Source* const> sources, std::span<Sink* const> sinks) {
  const Section noted(code_, CodeSection::constants);
  note_lanes();
  const bool sinks_last = !has_avx512() && collects(program_);
  for (Source* source : sources) source->reserve_constants(*this);
  for (const LaneInst& inst : program_.code) {  // before constants, which may stay in memory
    if (inst.op == LaneOp::look_up_i32) reserve_look_up(*this, inst);
  }
  if (sinks_last) emit_pinned_constants();
  for (Sink* sink : sinks) sink->reserve_constants(*this);
  for (const LaneInst& inst : program_.code) {
    if (inst.op == LaneOp::widen_to_high_half && has_avx512()) {
      reserve_vector(high_half_order(lanes_));
    }
    if (inst.op == LaneOp::mul) reserve_byte_product(*this, inst);
    reserve_quotient(*this, inst);
    if (inst.op == LaneOp::look_up) reserve_look_up(*this, inst);
  }
  if (!sinks_last) emit_pinned_constants();
}

void LaneEmitter::emit_pinned_constants() {
  for (size_t i = 0; i < program_.code.size() && pinnable_ > 0; ++i) {
    if (program_.code[i].op != LaneOp::constant) continue;
    pinned_[i] = true;
    --pinnable_;
    const int vector = allocate_vector();
    locations_[i].vector = vector;
    emit_constant(program_.code[i], vector);
  }
}

void LaneEmitter::emit_constant(const LaneInst& inst, int vector) {
  // Halves may have wider lanes.
  const int bits = std::min(register_bits(inst.type), target_.vector_bits());
  const Xbyak::Xmm to = vector_register(vector, bits);
  const auto value = static_cast<uint64_t>(inst.imm);
  if (value == 0) {
    const Xbyak::Xmm low = vector_register(vector, 128);
    if (vector < 16) {
      code_.vpxor(low, low, low);
    } else {
      code_.vpxord(to, to, to);
    }
    return;
  }
  switch (bits_of(inst.type)) {
    case 8: code_.vpbroadcastb(to, code_.constant_of(static_cast<uint8_t>(value))); break;
    case 16: code_.vpbroadcastw(to, code_.constant_of(static_cast<uint16_t>(value))); break;
    case 32: code_.vpbroadcastd(to, code_.constant_of(static_cast<uint32_t>(value))); break;
    default: code_.vpbroadcastq(to, code_.constant_of(value)); break;
  }
}

/// The register that keeps a vector, as one of `bits`.
std::optional<Xbyak::Xmm> LaneEmitter::reserved(std::span<const uint8_t> bytes, int bits) const {
  for (const ReservedVector& each : reserved_) {
    if (std::ranges::equal(each.bytes, bytes)) return vector_register(each.vector, bits);
  }
  return std::nullopt;
}

void LaneEmitter::reserve_vector(std::span<const uint8_t> bytes) {
  const int bits = static_cast<int>(bytes.size()) * 8;
  if (pinnable_ == 0 || reserved(bytes, bits)) return;
  --pinnable_;
  const int index = allocate_vector();
  reserved_.push_back({{bytes.begin(), bytes.end()}, index});
  code_.vmovups(vector_register(index, bits), code_.constant(bytes));
}

std::optional<int> LaneEmitter::reserve_register() {
  if (pinnable_ == 0) return std::nullopt;
  --pinnable_;
  return allocate_vector();
}

Xbyak::Xmm LaneEmitter::vector(std::span<const uint8_t> bytes, OwnedVector& fallback) {
  const int bits = static_cast<int>(bytes.size()) * 8;
  if (const auto kept = reserved(bytes, bits)) return *kept;
  fallback = scratch();
  return vector(bytes, fallback.as(bits));
}

Xbyak::Xmm LaneEmitter::vector(std::span<const uint8_t> bytes, const Xbyak::Xmm& fallback) {
  if (const auto kept = reserved(bytes, static_cast<int>(bytes.size()) * 8)) return *kept;
  code_.vmovups(fallback, code_.constant(bytes));
  return fallback;
}

LastOperand LaneEmitter::last_vector(std::span<const uint8_t> bytes, int bits) {
  const auto kept = reserved(bytes, bits != 0 ? bits : static_cast<int>(bytes.size()) * 8);
  return kept ? LastOperand(*kept) : LastOperand(code_.constant(bytes));
}

void LaneEmitter::reserve_mask(uint64_t bits) {
  constexpr int wanted_by_operations = 4;
  const bool has_masks = std::ranges::any_of(program_.code, [](const LaneInst& inst) {
    return is_mask(inst.type) || encodes(inst.narrowing);
  });
  const bool is_kept = std::ranges::count(reserved_masks_, bits, &ReservedMask::bits) > 0;
  if (has_masks || is_kept || std::popcount(free_masks_) <= wanted_by_operations) return;
  const int index = allocate_mask();
  reserved_masks_.push_back({bits, index});
  code_.kmovq(Xbyak::Opmask(index), code_.constant_of(bits));
}

Xbyak::Opmask LaneEmitter::mask(uint64_t bits, std::optional<OwnedMask>& fallback) {
  const auto kept = std::ranges::find(reserved_masks_, bits, &ReservedMask::bits);
  if (kept != reserved_masks_.end()) return Xbyak::Opmask(kept->mask);
  fallback.emplace(*this, allocate_mask());
  code_.kmovq(fallback->get(), code_.constant_of(bits));
  return fallback->get();
}

/// Names the program's instructions, whether or not they will have code.
void LaneEmitter::note_lanes() {
  for (LaneId id = 0; code_.annotates() && id < static_cast<LaneId>(program_.code.size()); ++id) {
    CodeNote note = note_of(id, CodeSection::chunk, CodeNote::no_number);
    code_.note_lane({std::move(note.text), note.operation, is_constant(id)});
  }
}

CodeNote LaneEmitter::note_of(LaneId id, CodeSection section, int number) const {
  CodeNote note = {.section = section, .number = number, .text = {}, .origin = {}};
  if (!code_.annotates()) return note;
  const uint32_t origin = program_.code[static_cast<size_t>(id)].origin;
  note.text = print(program_, id);
  note.operation = static_cast<int32_t>(origin);
  if (code_.options().origin_text) note.origin = code_.options().origin_text(origin);
  return note;
}

void LaneEmitter::emit_chunk(std::span<Source* const> sources, std::span<Sink* const> sinks,
                             CodeSection section, int number) {
  if (join_ > 0 && !is_hoisted(join_)) emit_halves(sources, section, number);
  emit_range(join_, static_cast<LaneId>(program_.code.size()), sources, sinks, section, number);
  first_half_ = {};
  current_ = no_lane;
}

/// Emits what is done for one half of a chunk after the other. Both leave the value that is joined;
/// its first half keeps a register of its own.
void LaneEmitter::emit_halves(std::span<Source* const> sources, CodeSection section, int number) {
  emit_range(0, join_, sources, {}, section, number);
  current_ = join_;
  assert(program_.code[static_cast<size_t>(join_)].a == join_ - 1);  // it was not spilled
  first_half_ = take(program_.code[static_cast<size_t>(join_)].a);
  half_ = 1;
  emit_range(0, join_, sources, {}, section, number);
  half_ = 0;
}

/// Emits the instructions from `begin` to before `end` that are of chunks.
void LaneEmitter::emit_range(LaneId begin, LaneId end, std::span<Source* const> sources,
                             std::span<Sink* const> sinks, CodeSection section, int number) {
  for (LaneId id = begin; id < end; ++id) {
    if (is_constant(id) || is_hoisted(id)) continue;
    const Section noted(code_, note_of(id, section, number));
    emit(id, sources, sinks);
  }
}

void LaneEmitter::emit_hoisted(LoopLevel level, std::span<Source* const> sources) {
  const CodeSection section =
      level == LoopLevel::nest ? CodeSection::once : CodeSection::once_per_row;
  const auto count = static_cast<LaneId>(program_.code.size());
  for (LaneId id = 0; id < count; ++id) {
    if (is_constant(id) || level_of(id) != level) continue;
    const Section noted(code_, note_of(id, section, CodeNote::no_number));
    emit(id, sources, {});
    pinned_[static_cast<size_t>(id)] = wants_pin_[static_cast<size_t>(id)];
  }
  current_ = count;  // after every instruction
  for (LaneId id = 0; id < count; ++id) {
    const bool in_slot = kept_[static_cast<size_t>(id)] && !wants_pin_[static_cast<size_t>(id)];
    if (!in_slot || level_of(id) != level) continue;
    const Section noted(code_, note_of(id, section, CodeNote::no_number));
    emit_keep_in_slot(id);
  }
  lanes_ = chunk_lanes_;
  current_ = no_lane;
}

void LaneEmitter::release_hoisted(LoopLevel level) {
  for (LaneId id = 0; id < static_cast<LaneId>(program_.code.size()); ++id) {
    if (is_constant(id) || level_of(id) != level) continue;
    pinned_[static_cast<size_t>(id)] = false;
    homes_[static_cast<size_t>(id)] = false;
    release(id);
  }
}

/// Stores a hoisted value in a slot, unless it was spilled there, and releases its register.
void LaneEmitter::emit_keep_in_slot(LaneId id) {
  Location& at = location(id);
  assert(at.vector >= 0 || at.mask >= 0 || at.slot >= 0);
  if (at.slot < 0) emit_store_in_slot(at);
  homes_[static_cast<size_t>(id)] = true;
  release(id);
}

void LaneEmitter::emit(LaneId id, std::span<Source* const> sources, std::span<Sink* const> sinks) {
  const LaneInst& inst = program_.code[static_cast<size_t>(id)];
  current_ = id;
  lanes_ = id < join_ ? chunk_lanes_ / 2 : chunk_lanes_;
  operands_.clear();
  for_each_operand(inst, [&](LaneId operand) { operands_.push_back(operand); });
  if (inst.op == LaneOp::load) {
    sources[static_cast<size_t>(inst.imm)]->emit_load(*this, inst, define());
  } else if (inst.op == LaneOp::gather) {
    use(inst.a);  // in a register before the result has one
    sources[static_cast<size_t>(inst.imm)]->emit_load(*this, inst, define_apart());
  } else if (inst.op == LaneOp::store) {
    sinks[static_cast<size_t>(inst.imm)]->emit_store(*this, inst);
  } else {
    emitter_of(inst.op)(*this, inst);
  }
  release_dying_operands();
}

}  // namespace castor::jit
