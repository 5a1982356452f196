// SPDX-License-Identifier: Apache-2.0
// Steps that run code on lanes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "jit/emit/nest_emitter.hpp"
#include "jit/emit/tile_copy.hpp"
#include "jit/plan/tiles.hpp"
#include "runtime/bind/step_base.hpp"
#include "runtime/cache/kernel_code.hpp"

namespace castor::detail {

/// Code of a nest and the argument block that fits it; pointers are filled in by each run.
struct BoundCode {
  KernelCodePtr<jit::NestSpec> code;
  std::vector<int64_t> arguments;
  std::vector<jit::Access> access;  ///< by operand
  int64_t nanoseconds = 0;          ///< that one thread takes for the whole nest, as estimated
};

/// A periodic operand's elements, which a call copies to scratch for the code to read.
struct PeriodCopy {
  size_t operand = 0;
  ElementType element = ElementType::f32;
  size_t offset = 0;   ///< the copy's offset in scratch, in bytes
  int64_t length = 0;  ///< elements of the copy: the period, and over and over again
  Dims extents;        ///< one period's, innermost first
  Dims strides;        ///< the operand's strides over them
};

/// An operand whose part of a tile is copied to scratch, or from there.
struct BoundTileCopy {
  size_t operand = 0;
  jit::TileCopyKind kind = jit::TileCopyKind::strided;
  bool is_output = false;
  int64_t element_bytes = 0;              ///< 0 where it is packed
  size_t offset = 0;                      ///< the copy's offset in scratch, in bytes
  KernelCodePtr<jit::TileCopySpec> code;  ///< copies the part; null where it is packed
};

/// The tiles that a nest is done in (see jit::Tiles); its main code does one.
struct TileLoops {
  std::vector<BoundTileCopy> copies;
  Dims extents;  ///< the whole space's, innermost first
  int axis = 0;  ///< tiles extend along the innermost axis and this one; 0: there is no other
  int64_t columns = 0;
  int64_t rows = 0;
  /// By operand, then axis, in bytes, or in elements where these are sub-byte.
  std::vector<std::array<int64_t, max_rank>> steps;
};

/// What every call of code on lanes needs, for all elements or for a slice.
struct LaneStep : StepBase {
  BoundCode main;
  /// For sub-byte operands that begin inside a byte, where main cannot take them.
  std::optional<BoundCode> any_start;
  bool sub_byte = false;  ///< whether an operand's elements are
  /// Word of the argument block: the address that the first operand's bitwise access counts from.
  size_t first_base = 0;
  size_t first_output = 0;  ///< operands from there on are written
};

/// What the code of an elementwise step was made from.
enum class StepProgram : uint8_t {
  planned,         ///< the program of its nest
  copy,            ///< a copy of a tensor: binding adds it, or f32 is requantized to f32
  requantization,  ///< a method of jit/requantize; constants of slices are operands
};

/// An elementwise nest, of which a call does all elements.
struct ElementwiseStep : LaneStep {
  StepProgram program = StepProgram::planned;
  jit::IterationSpace space;               ///< main's: all elements, or a tile
  KernelCodePtr<jit::NestSpec> streaming;  ///< for large tensors, else null; takes main's arguments
  int64_t bytes = 0;                       ///< bytes of all operands
  std::vector<PeriodCopy> periods;
  std::vector<uint8_t> period_numbers;    ///< see jit::ArgumentLayout; empty where none are needed
  std::shared_ptr<const void> constants;  ///< what constant operands are stored in, if the step's
  std::optional<TileLoops> tiles;         ///< nothing: main does all elements
};

}  // namespace castor::detail
