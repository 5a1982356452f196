// SPDX-License-Identifier: Apache-2.0
// The parts of the dense microkernel's emitter: inside jit/conv/dense only.
#pragma once

#include <functional>
#include <memory>

#include "jit/conv/dense/tile_spec.hpp"
#include "jit/conv/epilogue/epilogue_emitter.hpp"
#include "jit/emit/assembler.hpp"

namespace castor::jit::dense {

using Xbyak::Operand;
using Xbyak::Reg64;
using Xbyak::Xmm;

/// General registers with one meaning throughout the code. An epilogue may overwrite RAX, RDX, RSI,
/// R9 and R13 to R15.
namespace reg {
inline const Reg64 arguments(Operand::RDI);
inline const Reg64 source(Operand::R8);        ///< of the tile's first pixel
inline const Reg64 stores(Operand::R10);       ///< the tile's ConvStore or TilePlace
inline const Reg64 k_steps_end(Operand::R11);  ///< the end of the loop's offsets
inline const Reg64 tiles(Operand::RBP);        ///< that are left
inline const Reg64 callers_stack(Operand::R12);
inline const Reg64 weights(Operand::R9);      ///< of the next k step
inline const Reg64 k_step(Operand::RSI);      ///< the next k step, from the end, counts up to 0
inline const Reg64 pixel(Operand::RAX);       ///< the k step's input at the tile's first pixel
inline const Reg64 output(Operand::RAX);      ///< of what is not stored by row groups
inline const Reg64 row_output(Operand::R13);  ///< of the next row of a row group
inline const Reg64 output_step(Operand::RDX);
inline const Reg64 scratch(Operand::RCX);
inline const Reg64 k_groups(Operand::RCX);    ///< that are left
inline const Reg64 input(Operand::RBX);       ///< of the k step's four channels
inline const Reg64 input_step(Operand::RCX);  ///< in the loop and the peeled k steps
inline const Reg64 input_steps_3(Operand::RDX);
inline const Reg64 stage(Operand::RCX);     ///< counts bytes of the staging buffer
inline const Reg64 operands(Operand::RBX);  ///< of the epilogue
}  // namespace reg

/// Some rows of a register tile.
struct TileRows {
  int begin = 0;
  int end = 0;
};

/// The code of one microkernel, and its vector registers: accumulators, the vectors of a k step, a
/// broadcast operand, a product.
struct TileCode {
  TileCode(const DenseTile& of, const Target& on, std::span<uint8_t> buffer)
      : tile(of),
        target(on),
        lanes(on.vector_bits() / 32),
        rows(of.rows()),
        vectors(of.vectors_of(lanes)),
        code(buffer) {}

  Xmm sum(int row, int vector) const { return reg(row * vectors + vector); }
  Xmm vector(int index) const { return reg(rows * vectors + index); }
  Xmm broadcast() const { return reg((rows + 1) * vectors); }
  Xmm product() const { return reg((rows + 1) * vectors + 1); }
  Xmm reg(int index) const { return vector_register(index, target.vector_bits()); }

  bool by_pixels() const { return tile.vectorised == Vectorised::pixels; }
  bool compresses() const { return tile.store == StorePolicy::compressed; }
  bool transposes() const { return tile.store == StorePolicy::transposed; }
  bool takes_input() const { return tile.source != PixelSource::packed; }
  int vector_bytes() const { return 4 * lanes; }
  int row_bytes() const { return vectors * vector_bytes(); }  ///< of the staging buffer
  /// Channels in the last vector of channels.
  int last_lanes() const { return tile.channels - (vectors - 1) * lanes; }

  Xbyak::Address argument(size_t offset) { return code.qword[reg::arguments + offset]; }
  /// A field of a vector's ConvStore; of vector 0 it may be one of the tile's TilePlace.
  Xbyak::Address store(int of_vector, size_t offset) {
    return code.ptr[reg::stores + static_cast<size_t>(of_vector) * sizeof(ConvStore) + offset];
  }
  /// The address in an output of i32 at the first pixel that a vector stores.
  void emit_output_of(int of_vector) {
    code.mov(reg::output, store(of_vector, offsetof(TilePlace, pixel)));
    code.shl(reg::output, 2);
    code.add(reg::output, argument(offsetof(DenseArguments, output)));
  }
  /// Moves the address of a row of the output to the next row's.
  void emit_add_output_step(const Reg64& to) {
    takes_input() ? code.add(to, argument(offsetof(DenseArguments, output_step)))
                  : code.add(to, reg::output_step);
  }

  const DenseTile& tile;
  const Target& target;
  const int lanes;
  const int rows;
  const int vectors;
  Assembler code;
};

/// Emits the products of single k steps.
class KStepEmitter {
 public:
  explicit KStepEmitter(TileCode& tile) : t_(tile), code_(tile.code) {}

  /// Where pixels come from the input: to its first channels.
  void emit_start_of_input();
  /// The products of some rows, of the k step that is `position` after the one whose offset is at
  /// `at`.
  void emit(const Xbyak::RegExp& at, int position, const TileRows& rows);
  /// Bytes of the weights of one k step.
  int weight_bytes() const { return t_.by_pixels() ? 4 * t_.rows : t_.row_bytes(); }

 private:
  void emit_vectors_of_input();
  void emit_prefetch_of_next_tile();
  void emit_products(int row, int position);
  /// The operands: packed weights are consecutive, input is at the k step's pixel.
  Xbyak::RegExp vector_address(int vector, int position) const;
  Xbyak::RegExp row_address(int row, int position) const;

  TileCode& t_;
  Assembler& code_;
};

/// Emits the accumulators' values: first ones, products along K, zero-point compensation.
class SumsEmitter {
 public:
  explicit SumsEmitter(TileCode& tile) : t_(tile), code_(tile.code), k_step_(tile) {}

  /// The first values of a tile's accumulators.
  void emit_start();
  /// All k steps but the peeled ones.
  void emit_loop();
  /// The peeled k steps of one row group after another, each followed by its compensation and by
  /// what `emit_end` emits. All rows are one group where no k steps are peeled.
  void emit_groups(const std::function<void(const TileRows&)>& emit_end);

 private:
  void emit_prefetch_of_output();
  void emit_k_steps();
  void emit_peeled_k_steps(const TileRows& group);
  void emit_compensation(const TileRows& rows);

  TileCode& t_;
  Assembler& code_;
  KStepEmitter k_step_;
};

/// Emits stores of accumulators as they are: row by row, or compressed.
class StoreEmitter {
 public:
  explicit StoreEmitter(TileCode& tile) : t_(tile), code_(tile.code) {}

  /// All that follows a tile's loop.
  void emit(SumsEmitter& sums);
  /// Makes the lanes of a vector that are stored the first ones.
  void emit_compression(int vector);
  /// Loads the mask of the lanes that the tile's last vector stores; jumps if these are all.
  void emit_mask_of_last_vector();
  void emit_jump_if_full(Xbyak::Label& full);
  /// Loads a mask of the first lanes.
  void emit_lanes_mask(int count);
  Xbyak::Address lanes_mask(int count);  ///< a vector of them, for vpmaskmovd
  /// Stores under the opmask, or under `mask`, a vector.
  void emit_masked_store(const Xbyak::Address& to, const Xmm& from, const Xmm& mask);

 private:
  void emit_group(const TileRows& group);
  void emit_rows(const TileRows& group, bool is_masked);
  void emit_store(const Xmm& from, int vector, bool is_masked);
  void emit_stores_of(int vector);

  TileCode& t_;
  Assembler& code_;
};

/// Emits what goes by way of a staging buffer: transposed stores, and epilogues.
class StageEmitter {
 public:
  /// `epilogue` may be null.
  StageEmitter(TileCode& tile, StoreEmitter& stores, const TileEpilogue* epilogue);

  bool is_needed() const { return epilogue_ || t_.transposes(); }
  bool has_epilogue() const { return epilogue_ != nullptr; }
  /// Whether the epilogue's values fit the stack; known when all code is emitted.
  bool fits_frame() const;
  /// Bytes of stack: for the staging buffer and the epilogue.
  int frame_bytes() const;

  /// Once before and after all tiles; the stack pointer is at the frame.
  void emit_entry();
  void emit_exit();
  /// All that follows a tile's loop.
  void emit(SumsEmitter& sums);

 private:
  int stage_bytes() const;
  void emit_stage(const TileRows& rows);
  void emit_transposed_stores();
  void emit_transposed_channels(const Xbyak::RegExp& stage, int count);
  void emit_block_loads(const Xbyak::RegExp& stage, int row);

  void emit_rows_epilogue();
  void emit_full_epilogue();
  void emit_epilogue_of(int vector);
  void emit_transposed_epilogue();
  void emit_block_epilogue(int count);
  void emit_operands_of(EpilogueEmitter& epilogue, int vector);
  void emit_loop(int first, int step, int end, const std::function<void()>& emit_body);

  TileCode& t_;
  Assembler& code_;
  StoreEmitter& stores_;
  std::unique_ptr<EpilogueEmitter> epilogue_;       ///< null where there is none
  std::unique_ptr<EpilogueEmitter> full_epilogue_;  ///< of tiles all of whose lanes are stored
};

}  // namespace castor::jit::dense
