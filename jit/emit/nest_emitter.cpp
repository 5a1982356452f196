// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/nest_emitter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <new>

#include "jit/emit/bit_fields.hpp"
#include "jit/emit/frame.hpp"
#include "jit/emit/memory_ports.hpp"
#include "jit/emit/windows.hpp"

namespace castor::jit {

namespace {

/// A main loop does at least this many chunks, unless the program is long.
constexpr int least_chunks = 4;
/// Instructions of the lane program times chunks: beyond, the loop is unrolled no further.
constexpr size_t most_unrolled_instructions = 256;
/// Beyond, not even one group of sub-byte elements is unrolled: there is no main loop.
constexpr size_t most_instructions = 4096;

bool is_contiguous(const NestForm& form) {
  return std::ranges::all_of(form.access, [](Access a) { return a == Access::contiguous; });
}

/// Room for a chunk of the widest elements, and for windows.
int stage_bytes(const Nest& nest, const NestForm& form, const Target& target, int lanes) {
  int bytes = nest.has_sub_byte_operand() ? window_bytes(target.vector_bits()) : 0;
  if (target.has_avx512() && is_contiguous(form)) return bytes;  // tails are masked
  for (size_t k = 0; k < nest.operands(); ++k) {
    bytes = std::max(bytes, lanes * chunk_bits_of(nest.element(k)) / 8);
  }
  return (bytes + 63) / 64 * 64;
}

/// Emits one nest. The methods are in the order of the code that they emit.
class NestEmitter : public OperandLocator {
 public:
  NestEmitter(const Nest& nest, const NestForm& form, const Target& target,
              const EmitOptions& options, std::span<uint8_t> buffer)
      : nest_(nest),
        form_(form),
        target_(target),
        options_(options),
        plan_(plan_chunks(nest, form, target)),
        layout_(nest.operands(), form.rank),
        has_groups_(nest.has_sub_byte_operand()),
        code_(buffer),
        frame_(code_, nest.operands(), form.rank, stage_bytes(nest, form, target, plan_.lanes),
               has_groups_),
        lanes_(code_, target, nest.program, plan_.lanes, plan_.pending_vectors),
        windows_(lanes_, frame_),
        modes_(nest.operands(), ChunkMode::whole) {
    make_ports();
  }

  MachineCode emit() {
    emit_prologue();
    emit_axis(form_.rank - 1);
    emit_epilogue();
    MachineCode machine_code;
    machine_code.instruction_bytes = static_cast<uint32_t>(code_.getSize());
    machine_code.pool_begin = static_cast<uint32_t>(code_.finish());
    const auto* bytes = reinterpret_cast<const std::byte*>(code_.getCode());
    machine_code.bytes.assign(bytes, bytes + code_.getSize());
    machine_code.spills = lanes_.spills();
    machine_code.notes = std::move(notes_);
    machine_code.loops = std::move(loops_);
    return machine_code;
  }

 private:
  // The parts of the function.
  void emit_prologue();
  void emit_epilogue();
  void emit_axis(int axis);
  void emit_innermost_axis();
  void emit_streaming_axis();
  void emit_elements_to_alignment();
  void emit_main_loop();
  void emit_tail_loop();
  void emit_tail_groups();
  void emit_tail_chunks(const Xbyak::Operand& end);
  void emit_tail_count();
  void emit_stage_in();
  void emit_stage_out();
  void emit_stage_copy(size_t operand, bool in);
  void emit_chunk(int chunk, int64_t displacement_in_elements);
  void emit_fill_windows();
  void emit_drain_windows();

  // OperandLocator
  ChunkMode mode(size_t operand) const override { return modes_[operand]; }
  Stores stores() const override { return form_.stores; }
  OperandPlace locate(size_t operand, int chunks_back) override;

  void make_ports();
  /// Sub-byte operands have a window; chunks of whole bytes that are not contiguous, and on AVX2
  /// all chunks of the tail, a stage.
  bool has_window(size_t operand) const { return is_sub_byte(nest_.element(operand)); }
  bool is_staged(size_t operand) const {
    return !has_window(operand) &&
           (!target_.has_avx512() || form_.access[operand] == Access::strided);
  }
  ChunkMode main_loop_mode(size_t operand) const;
  ChunkMode tail_mode(size_t operand) const;
  OperandPlace packed_place(size_t operand, int64_t displacement_in_elements);
  WindowOperand window_operand(size_t operand);
  const BitUnpacker& unpacker(size_t input) const { return memory_sources_[input].unpacker(); }
  const BitPacker& bit_packer(size_t operand) const {
    return memory_sinks_[operand - nest_.inputs.size()].bit_packer();
  }
  int group_elements() const { return codes_per_vector(target_.vector_bits()); }
  int group_chunks() const { return group_elements() / plan_.lanes; }
  int element_bytes(size_t operand) const { return bits_of(nest_.element(operand)) / 8; }
  Xbyak::Address argument(size_t word) { return code_.qword[gpr::arguments + 8 * word]; }
  void note(std::string part, std::string text = "", std::string origin = "");
  void end_loop(std::string name, size_t begin, int64_t elements);

  const Nest& nest_;
  const NestForm& form_;
  const Target& target_;
  const EmitOptions& options_;
  const ChunkPlan plan_;
  const ArgumentLayout layout_;
  const bool has_groups_;
  Assembler code_;
  Frame frame_;
  LaneEmitter lanes_;
  const Windows windows_;
  std::deque<MemorySource> memory_sources_;
  std::deque<MemorySink> memory_sinks_;
  std::vector<Source*> sources_;
  std::vector<Sink*> sinks_;
  std::vector<ChunkMode> modes_;
  bool in_tail_ = false;
  int64_t chunk_displacement_ = 0;  // in elements
  std::vector<CodeNote> notes_;
  std::vector<CodeLoop> loops_;
};

void NestEmitter::make_ports() {
  for (size_t k = 0; k < nest_.operands(); ++k) {
    if (k < nest_.inputs.size()) {
      sources_.push_back(&memory_sources_.emplace_back(k, nest_.element(k), *this));
    } else {
      sinks_.push_back(&memory_sinks_.emplace_back(k, nest_.element(k), plan_.packs, *this));
    }
  }
  for (const LaneInst& inst : nest_.program.code) {
    if (inst.op != LaneOp::store) continue;
    memory_sinks_[static_cast<size_t>(inst.imm)].set_store(inst, nest_.program);
  }
}

void NestEmitter::note(std::string part, std::string text, std::string origin) {
  if (!options_.annotate) return;
  const auto offset = static_cast<uint32_t>(code_.getSize());
  notes_.push_back({offset, std::move(part), std::move(text), std::move(origin)});
}

void NestEmitter::end_loop(std::string name, size_t begin, int64_t elements) {
  if (!options_.annotate) return;
  CodeLoop loop{.begin = static_cast<uint32_t>(begin),
                .end = static_cast<uint32_t>(code_.getSize()),
                .elements = elements,
                .name = std::move(name)};
  for (size_t k = 0; k < nest_.operands(); ++k) {
    int64_t& bytes = k < nest_.inputs.size() ? loop.load_bytes : loop.store_bytes;
    bytes += elements * bits_of(nest_.element(k)) / 8;
  }
  loops_.push_back(std::move(loop));
}

void NestEmitter::emit_prologue() {
  note("prologue: frame, operand pointers, constants");
  frame_.enter();
  lanes_.set_spill_base(frame_.spill_offset());
  frame_.load_pointers();
  if (nest_.program.uses_float_state()) {
    constexpr uint32_t nearest_even_masked = 0x1f80;  // no FTZ, no DAZ, exceptions masked
    code_.stmxcsr(frame_.saved_mxcsr());
    code_.ldmxcsr(code_.constant_of(nearest_even_masked));
  }
  lanes_.load_constants(sources_, sinks_);
}

void NestEmitter::emit_epilogue() {
  note("epilogue");
  if (nest_.program.uses_float_state()) code_.ldmxcsr(frame_.saved_mxcsr());
  code_.vzeroupper();
  frame_.leave(lanes_.spill_bytes());
  code_.ret();
}

/// The loop over one axis around those within it.
void NestEmitter::emit_axis(int axis) {
  if (axis == 0) return emit_innermost_axis();
  note(fmt::format("loop over axis {}", axis));
  code_.mov(gpr::scratch, argument(layout_.extent(axis)));
  code_.mov(frame_.loop_counter(axis), gpr::scratch);
  Xbyak::Label next;
  code_.L(next);
  emit_axis(axis - 1);
  note(fmt::format("step along axis {}", axis));
  for (size_t k = 0; k < nest_.operands(); ++k) {
    frame_.advance(k, argument(layout_.step(k, axis)));
  }
  code_.dec(frame_.loop_counter(axis));
  code_.jnz(next, Xbyak::CodeGenerator::T_NEAR);
}

void NestEmitter::emit_innermost_axis() {
  note("innermost axis");
  code_.mov(gpr::extent, argument(layout_.extent(0)));
  code_.xor_(gpr::index.cvt32(), gpr::index.cvt32());
  if (form_.stores == Stores::streaming) return emit_streaming_axis();
  if (plan_.has_main_loop) emit_main_loop();
  emit_tail_loop();
}

/// The tail loop runs twice: first for the elements in front of the first aligned output, then
/// for what the main loop leaves.
void NestEmitter::emit_streaming_axis() {
  Xbyak::Label aligned;
  Xbyak::Label tail;
  emit_elements_to_alignment();
  code_.jmp(tail, Xbyak::CodeGenerator::T_NEAR);
  code_.L(aligned);
  code_.mov(gpr::index, gpr::extent);  // the last chunk may have counted further
  code_.mov(gpr::extent, argument(layout_.extent(0)));
  emit_main_loop();
  code_.L(tail);
  emit_tail_loop();
  code_.cmp(gpr::extent, argument(layout_.extent(0)));
  code_.jl(aligned, Xbyak::CodeGenerator::T_NEAR);
  code_.sfence();
}

/// extent = min(extent, elements of the first streamed output in front of the alignment).
void NestEmitter::emit_elements_to_alignment() {
  size_t output = nest_.inputs.size();
  while (!has_streaming_stores(target_, nest_.element(output))) ++output;
  const int bits = bits_of(nest_.element(output));
  note("elements in front of the first aligned store");
  code_.mov(gpr::counter, frame_.pointer(output));
  code_.neg(gpr::counter);
  code_.and_(gpr::counter, static_cast<uint32_t>(streaming_alignment - 1));
  if (bits < 8) {
    code_.shl(gpr::counter, std::countr_zero(static_cast<unsigned>(8 / bits)));
  } else {
    code_.shr(gpr::counter, std::countr_zero(static_cast<unsigned>(bits / 8)));
  }
  code_.cmp(gpr::counter, gpr::extent);
  code_.cmovl(gpr::extent, gpr::counter);
}

/// Whole iterations, while that many elements are left.
void NestEmitter::emit_main_loop() {
  const int elements = plan_.lanes * plan_.chunks;
  Xbyak::Label loop;
  Xbyak::Label done;
  code_.lea(gpr::limit, code_.ptr[gpr::extent - elements]);
  code_.cmp(gpr::index, gpr::limit);
  code_.jg(done, Xbyak::CodeGenerator::T_NEAR);
  note("main loop");
  code_.align_to(32);
  code_.L(loop);
  const size_t begin = code_.getSize();
  in_tail_ = false;
  for (size_t k = 0; k < nest_.operands(); ++k) modes_[k] = main_loop_mode(k);
  for (int chunk = 0; chunk < plan_.chunks; ++chunk) {
    chunk_displacement_ = int64_t{chunk} * plan_.lanes;
    if (has_groups_ && chunk % group_chunks() == 0) emit_fill_windows();
    emit_chunk(chunk, chunk_displacement_);
    if (has_groups_ && (chunk + 1) % group_chunks() == 0) emit_drain_windows();
  }
  note("next iteration");
  code_.add(gpr::index, elements);
  code_.cmp(gpr::index, gpr::limit);
  code_.jle(loop, Xbyak::CodeGenerator::T_NEAR);
  end_loop("main loop", begin, elements);
  code_.L(done);
}

ChunkMode NestEmitter::main_loop_mode(size_t operand) const {
  if (!has_window(operand)) return ChunkMode::whole;
  // A chunk that is a whole group, or that packing collects, needs no window.
  const bool is_source = operand < nest_.inputs.size();
  const bool in_registers = plan_.lanes == group_elements() || (!is_source && plan_.packs);
  return in_registers ? ChunkMode::whole : ChunkMode::staged;
}

ChunkMode NestEmitter::tail_mode(size_t operand) const {
  return has_window(operand) || is_staged(operand) ? ChunkMode::staged : ChunkMode::masked;
}

/// Windows of the group that begins with the chunk.
void NestEmitter::emit_fill_windows() {
  for (size_t k = 0; k < nest_.inputs.size(); ++k) {
    if (!has_window(k) || modes_[k] == ChunkMode::whole) continue;
    note(fmt::format("fill the window of operand {}", k));
    if (in_tail_) {
      windows_.fill(window_operand(k), unpacker(k));
    } else {
      const OperandPlace place = packed_place(k, chunk_displacement_);
      windows_.fill_whole(window_operand(k), unpacker(k), address_of(code_, place));
    }
  }
}

/// Windows of the group that ends with the chunk.
void NestEmitter::emit_drain_windows() {
  for (size_t k = nest_.inputs.size(); k < nest_.operands(); ++k) {
    if (!has_window(k) || modes_[k] == ChunkMode::whole) continue;
    note(fmt::format("drain the window of operand {}", k));
    if (in_tail_) {
      windows_.drain(window_operand(k), bit_packer(k));
    } else {
      const int64_t begin = chunk_displacement_ - int64_t{group_chunks() - 1} * plan_.lanes;
      const OperandPlace place = packed_place(k, begin);
      windows_.drain_whole(window_operand(k), bit_packer(k), address_of(code_, place));
    }
  }
}

WindowOperand NestEmitter::window_operand(size_t operand) {
  return {operand, nest_.element(operand), form_.access[operand],
          argument(layout_.step(operand, 0)), argument(layout_.base(operand))};
}

/// What is left, a chunk at a time, the last one with fewer lanes.
void NestEmitter::emit_tail_loop() {
  Xbyak::Label done;
  note("tail: chunk by chunk");
  code_.cmp(gpr::index, gpr::extent);
  code_.jge(done, Xbyak::CodeGenerator::T_NEAR);
  in_tail_ = true;
  for (size_t k = 0; k < nest_.operands(); ++k) modes_[k] = tail_mode(k);
  has_groups_ ? emit_tail_groups() : emit_tail_chunks(gpr::extent);
  code_.L(done);
}

/// A group at a time, the last one with fewer elements.
void NestEmitter::emit_tail_groups() {
  Xbyak::Label loop;
  code_.L(loop);
  note("next group");
  code_.mov(frame_.group_begin(), gpr::index);
  code_.lea(gpr::scratch, code_.ptr[gpr::index + group_elements()]);
  code_.cmp(gpr::scratch, gpr::extent);
  code_.cmovg(gpr::scratch, gpr::extent);
  code_.mov(frame_.group_end(), gpr::scratch);
  emit_fill_windows();
  emit_tail_chunks(frame_.group_end());
  emit_drain_windows();
  code_.cmp(gpr::index, gpr::extent);
  code_.jl(loop, Xbyak::CodeGenerator::T_NEAR);
}

void NestEmitter::emit_tail_chunks(const Xbyak::Operand& end) {
  Xbyak::Label loop;
  code_.L(loop);
  const size_t begin = code_.getSize();
  emit_tail_count();
  emit_stage_in();
  emit_chunk(0, 0);
  emit_stage_out();
  note("next chunk");
  code_.add(gpr::index, plan_.lanes);
  code_.cmp(gpr::index, end);
  code_.jl(loop, Xbyak::CodeGenerator::T_NEAR);
  end_loop("tail", begin, plan_.lanes);
}

/// Elements of this chunk: min(lanes, left), as a number for stages and as an opmask.
void NestEmitter::emit_tail_count() {
  code_.mov(gpr::counter, gpr::extent);
  code_.sub(gpr::counter, gpr::index);
  code_.mov(gpr::scratch.cvt32(), plan_.lanes);
  code_.cmp(gpr::counter, gpr::scratch);
  code_.cmovg(gpr::counter, gpr::scratch);
  code_.mov(frame_.chunk_count(), gpr::counter);
  if (!target_.has_avx512()) return;
  code_.or_(gpr::scratch, -1);
  code_.bzhi(gpr::scratch, gpr::scratch, gpr::counter);
  code_.kmovq(tail_mask, gpr::scratch);
}

void NestEmitter::emit_stage_in() {
  for (size_t k = 0; k < nest_.inputs.size(); ++k) {
    if (is_staged(k)) emit_stage_copy(k, true);
  }
}

void NestEmitter::emit_stage_out() {
  for (size_t k = nest_.inputs.size(); k < nest_.operands(); ++k) {
    if (is_staged(k)) emit_stage_copy(k, false);
  }
}

/// Copies the chunk's elements one by one between the operand and its stage.
void NestEmitter::emit_stage_copy(size_t operand, bool in) {
  note(fmt::format("copy operand {} {} its stage", operand, in ? "to" : "from"));
  const int bytes = element_bytes(operand);
  const Xbyak::Address step = argument(layout_.step(operand, 0));
  const bool contiguous = form_.access[operand] == Access::contiguous;
  if (contiguous) {
    code_.lea(gpr::cursor, code_.ptr[frame_.pointer(operand) + gpr::index * bytes]);
  } else {
    code_.mov(gpr::cursor, gpr::index);
    code_.imul(gpr::cursor, step);
    code_.add(gpr::cursor, frame_.pointer(operand));
  }
  const Xbyak::Reg data = bytes == 1   ? Xbyak::Reg(gpr::scratch.cvt8())
                          : bytes == 2 ? Xbyak::Reg(gpr::scratch.cvt16())
                          : bytes == 4 ? Xbyak::Reg(gpr::scratch.cvt32())
                                       : Xbyak::Reg(gpr::scratch);
  const Xbyak::Address element = code_.ptr[gpr::cursor];
  const Xbyak::Address staged =
      code_.ptr[gpr::stack + gpr::counter * bytes + frame_.stage_offset(operand)];
  Xbyak::Label next;
  code_.xor_(gpr::counter.cvt32(), gpr::counter.cvt32());
  code_.L(next);
  code_.mov(data, in ? element : staged);
  code_.mov(in ? staged : element, data);
  contiguous ? code_.add(gpr::cursor, bytes) : code_.add(gpr::cursor, step);
  code_.inc(gpr::counter);
  code_.cmp(gpr::counter, frame_.chunk_count());
  code_.jl(next);
}

void NestEmitter::emit_chunk(int chunk, int64_t displacement_in_elements) {
  chunk_displacement_ = displacement_in_elements;
  std::function<void(LaneId)> annotate;
  if (options_.annotate) {
    annotate = [this, chunk](LaneId id) {
      const uint32_t origin = nest_.program.code[static_cast<size_t>(id)].origin;
      note(fmt::format("chunk {}", chunk), print(nest_.program, id),
           options_.origin_text ? options_.origin_text(origin) : "");
    };
  }
  lanes_.emit_chunk(sources_, sinks_, annotate);
}

/// Packed bits of whole groups.
OperandPlace NestEmitter::packed_place(size_t operand, int64_t displacement_in_elements) {
  const int bits = bits_of(nest_.element(operand));
  code_.imul(gpr::counter, gpr::index, bits);
  code_.shr(gpr::counter, 3);
  code_.add(gpr::counter, frame_.pointer(operand));
  return {.mode = ChunkMode::whole,
          .base = gpr::counter,
          .displacement = displacement_in_elements * bits / 8};
}

OperandPlace NestEmitter::locate(size_t operand, int chunks_back) {
  const int64_t elements = chunk_displacement_ - int64_t{chunks_back} * plan_.lanes;
  if (modes_[operand] != ChunkMode::staged) {
    if (has_window(operand)) return packed_place(operand, elements);
    return {.mode = modes_[operand],
            .base = frame_.pointer(operand),
            .index = gpr::index,
            .scale = element_bytes(operand),
            .displacement = elements * element_bytes(operand)};
  }
  OperandPlace place = {
      .mode = ChunkMode::staged, .base = gpr::stack, .displacement = frame_.stage_offset(operand)};
  if (has_window(operand) && in_tail_) {
    code_.mov(gpr::scratch, gpr::index);
    code_.sub(gpr::scratch, frame_.group_begin());
    place.index = gpr::scratch;
    place.scale = 1;
  } else if (has_window(operand)) {
    place.displacement += elements % group_elements();
  }
  return place;
}

}  // namespace

ChunkPlan plan_chunks(const Nest& nest, const NestForm& form, const Target& target) {
  ChunkPlan plan;
  plan.lanes = target.vector_bits() / nest.program.widest_bits();
  plan.has_main_loop = is_contiguous(form);
  plan.chunks = 1;
  int packed_chunks = 1;
  for (const LaneInst& inst : nest.program.code) {
    if (inst.op != LaneOp::store) continue;
    const ElementType element = nest.program.sinks[static_cast<size_t>(inst.imm)].element;
    if (!needs_packing(inst, element, plan.lanes, target)) continue;
    const int chunks = target.vector_bits() / (plan.lanes * chunk_bits_of(element));
    packed_chunks = std::max(packed_chunks, chunks);
    plan.pending_vectors += std::countr_zero(static_cast<unsigned>(chunks));
  }
  const size_t length = nest.program.code.size();
  const bool room = plan.pending_vectors <= target.vector_registers() / 3;
  const bool is_short = length * static_cast<size_t>(packed_chunks) <= most_unrolled_instructions;
  const int group_chunks =
      nest.has_sub_byte_operand() ? codes_per_vector(target.vector_bits()) / plan.lanes : 1;
  if (!plan.has_main_loop || !room || !is_short) {
    plan.pending_vectors = 0;
    plan.chunks = group_chunks;
    plan.has_main_loop &= length * static_cast<size_t>(group_chunks) <= most_instructions;
    return plan;
  }
  plan.packs = true;
  plan.chunks = std::max(packed_chunks, group_chunks);
  while (plan.chunks < least_chunks &&
         2 * length * static_cast<size_t>(plan.chunks) <= most_unrolled_instructions) {
    plan.chunks *= 2;
  }
  return plan;
}

Result<MachineCode> emit_nest(const Nest& nest, const NestForm& form, const Target& target,
                              const EmitOptions& options) {
  for (size_t bytes = size_t{16} << 10;; bytes *= 4) {
    try {
      const std::unique_ptr<uint8_t[]> buffer(new uint8_t[bytes]);
      return NestEmitter(nest, form, target, options, {buffer.get(), bytes}).emit();
    } catch (const Xbyak::Error& error) {
      const bool too_small = static_cast<int>(error) == Xbyak::ERR_CODE_IS_TOO_BIG;
      if (too_small && bytes < (size_t{64} << 20)) continue;
      return Error{ErrorCode::internal, fmt::format("the assembler refused an instruction of tier "
                                                    "{}: {}",
                                                    name_of(target.tier), error.what())};
    } catch (const std::bad_alloc&) {
      return Error{ErrorCode::out_of_memory, "no memory to generate code in"};
    }
  }
}

}  // namespace castor::jit
