// SPDX-License-Identifier: Apache-2.0
// What the public handles point to.
#pragma once

#include <castor/castor.hpp>

#include <array>
#include <optional>

#include "jit/emit/tile_copy.hpp"
#include "jit/plan/tiles.hpp"
#include "runtime/cache/code_cache.hpp"
#include "runtime/cache/kernel_table.hpp"
#include "runtime/check/check_overlap.hpp"
#include "runtime/conv/convolution.hpp"
#include "runtime/fork_private.hpp"
#include "runtime/memory/runtime_memory.hpp"
#include "runtime/memory/scratch.hpp"
#include "runtime/memory/task_scratch.hpp"
#include "runtime/observe/observer.hpp"
#include "runtime/requantize/scale_checks.hpp"

namespace castor::detail {

/// Code memory and cache; shared by a runtime and its kernels, which may outlive it.
struct CodeStore {
  CodeStore(const jit::SystemCalls& system, size_t capacity_bytes,
            std::shared_ptr<CodeWatcher> told = nullptr, size_t code_bytes_limit = no_limit)
      : watcher(std::move(told)),
        memory(system, code_bytes_limit),
        cache(memory, system, capacity_bytes, watcher.get()) {}
  std::shared_ptr<CodeWatcher> watcher;  ///< null: nobody watches
  jit::CodeMemory memory;
  CodeCache cache;
};

/// Code that compiling makes ahead, in the form that a nest most likely has.
struct LikelyCode {
  jit::NestForm form;
  KernelCodePtr<jit::NestSpec> code;
};

/// A compiled function, without the names that the caller gave to its values.
struct Compiled {
  FunctionPtr function;   ///< what was compiled; without its names where these are long
  FunctionPtr canonical;  ///< what the nests were planned from
  jit::Target target;
  std::shared_ptr<CodeStore> store;
  std::shared_ptr<Observer> observer;  ///< null: nobody watches
  RuntimeMemoryPtr memory;
  std::vector<jit::Nest> nests;
  std::vector<LikelyCode> likely;      ///< codes of each nest
  std::string interpreted_because;     ///< not empty: there is no code
  std::shared_ptr<Executor> executor;  ///< used by calls that name none; may be null
};

struct KernelState {
  FunctionPtr function;
  std::shared_ptr<const Compiled> compiled;
};

/// Where a nest's operand comes from at each run.
struct OperandOrigin {
  enum class Kind : uint8_t { input, output, constant, scratch } kind;
  size_t index = 0;                     ///< the view's index among inputs or outputs
  const std::byte* constant = nullptr;  ///< data owned by the function
  size_t offset = 0;                    ///< in the call's scratch, in bytes
};

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
  int64_t element_bytes = 0;
  size_t offset = 0;                      ///< the copy's offset in scratch, in bytes
  KernelCodePtr<jit::TileCopySpec> code;  ///< copies the part
};

/// How a nest runs tile by tile (see jit::Tiles); its main code computes one tile.
struct TiledWalk {
  std::vector<BoundTileCopy> copies;
  Dims extents;  ///< the whole space's, innermost first
  int axis = 0;  ///< tiles extend along the innermost axis and this one; 0: there is no other
  int64_t columns = 0;
  int64_t rows = 0;
  std::vector<std::array<int64_t, max_rank>> steps;  ///< by operand, then axis, in bytes
};

struct BoundEpilogue;
struct BoundRequantization;
struct BoundByteTables;

/// One nest ready to run.
struct BoundNest {
  /// What it was bound from, of Compiled::nests; null for copies that binding adds, and where there
  /// are no elements.
  const jit::Nest* planned = nullptr;
  jit::IterationSpace space;               ///< that main runs over: all, or a tile
  BoundCode main;                          ///< without code where there are no elements
  KernelCodePtr<jit::NestSpec> streaming;  ///< for large tensors, else null; takes main's arguments
  BoundCode any_start;      ///< for sub-byte operands that begin inside a byte; else without code
  bool sub_byte = false;    ///< whether an operand's elements are
  int64_t bytes = 0;        ///< bytes of all operands
  int64_t nanoseconds = 0;  ///< time of a convolution or byte tables: see BoundCode
  /// Word of the argument block: the address that the first operand's bitwise access counts from.
  size_t first_base = 0;
  size_t first_output = 0;            ///< operands from there on are written
  std::vector<ElementType> elements;  ///< by operand
  std::vector<OperandOrigin> operands;
  /// For each operand, whether it is the tensor of its origin element by element: not broadcast,
  /// not reshaped.
  std::vector<bool> walks_space;
  std::vector<PeriodCopy> periods;
  std::shared_ptr<const BoundConvolution> convolution;  ///< then there is no main code
  /// The convolution whose result it takes slice by slice (see runtime/conv/epilogue.hpp), else
  /// null.
  std::shared_ptr<const BoundEpilogue> epilogue;
  /// A requantization with parameters given at run time, else null: then there is no main code.
  std::shared_ptr<const BoundRequantization> requantization;
  std::shared_ptr<const BoundByteTables> tables;  ///< where bytes are looked up, else null
  std::shared_ptr<const void> keeps;              ///< keeps the memory of constant operands, if any
  std::vector<uint8_t> period_numbers;  ///< see jit::ArgumentLayout; empty where none are needed
  std::optional<TiledWalk> tiles;       ///< set where the nest runs tile by tile
};

struct BoundState {
  std::shared_ptr<const KernelState> kernel;
  std::vector<BoundTensor> inputs;
  std::vector<BoundTensor> outputs;
  std::vector<Dims> output_shapes;
  std::vector<BoundNest> nests;
  std::vector<ScaleCheck> scales;  ///< checked for machine code; the interpreter checks them itself
  std::string interpreted_because;  ///< not empty: there is no code, and no nest
  size_t scratch_bytes = 0;         ///< bytes per task
  bool keeps_scratch = true;        ///< else every call brings its own
  mutable ScratchPool scratch;
  mutable TaskScratchPool task_scratch;
  InPlaceOrder order;  ///< in which nests read inputs and write outputs

  OverlapRules overlap_rules() const { return {inputs, outputs, order}; }
};

/// What kernels consist of, for tools that tell how they run, and for other interfaces.
struct StateAccess {
  static const BoundState& of(const BoundKernel& kernel) { return *kernel.state_; }
  static const KernelState& of(const Kernel& kernel) { return *kernel.state_; }
};

struct RuntimeState {
  RuntimeState(const jit::SystemCalls& system, size_t cache_bytes)
      : table(system, cache_bytes / 2) {}
  std::optional<jit::Target> target;
  std::string interpreted_because;
  CompileLimits limits;
  std::shared_ptr<Executor> executor;
  std::shared_ptr<CodeStore> store;
  std::shared_ptr<Observer> observer;  ///< null: nobody watches
  RuntimeMemoryPtr memory;
  mutable ForkPrivate<KernelTable, size_t> table;
};

/// Runs machine code for tensors that were checked in full: of the views, only `data` and `offset`
/// are looked at. Refuses values that the function does not take. Throws std::bad_alloc. Shown by
/// the shared library for castor_mli alone.
CASTOR_API Status run_checked(const BoundState& bound, std::span<const ConstView> inputs,
                              std::span<const View> outputs, const RunOptions& options,
                              bool in_place);

/// Runtime::create with other system calls, so that tests can refuse memory.
Result<std::shared_ptr<RuntimeState>> make_runtime(const RuntimeOptions& options,
                                                   const jit::SystemCalls& system);

/// Compiles a verified function to code, stage by stage.
Result<std::shared_ptr<const Compiled>> compile(const FunctionPtr& function,
                                                const RuntimeState& runtime);

}  // namespace castor::detail
