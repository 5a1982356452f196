// SPDX-License-Identifier: Apache-2.0
// What the public handles point to.
#pragma once

#include <castor/castor.hpp>

#include <atomic>

#include "runtime/check_views.hpp"
#include "runtime/code_cache.hpp"
#include "runtime/fork_private.hpp"
#include "runtime/kernel_table.hpp"

namespace castor::detail {

/// Code memory and cache; shared by a runtime and its kernels, which may outlive it.
struct CodeStore {
  CodeStore(const jit::SystemCalls& system, size_t capacity_bytes)
      : memory(system), cache(memory, system, capacity_bytes) {}
  jit::CodeMemory memory;
  CodeCache cache;
};

/// A compiled function, without the names that the caller gave to its values.
struct Compiled {
  FunctionPtr canonical;  ///< what the nests were planned from
  jit::Target target;
  std::shared_ptr<CodeStore> store;
  std::vector<jit::Nest> nests;
  std::vector<NestCodePtr> dense;   ///< code of each nest for dense operands
  std::string interpreted_because;  ///< not empty: there is no code
};

struct KernelState {
  FunctionPtr function;
  std::shared_ptr<const Compiled> compiled;
};

/// Where a nest's operand comes from at each run.
struct OperandOrigin {
  enum class Kind : uint8_t { input, output, constant } kind;
  size_t index = 0;                     ///< of the view among inputs or outputs
  const std::byte* constant = nullptr;  ///< data owned by the function
};

/// Code of a nest and the argument block that fits it; pointers are filled in by each run.
struct BoundCode {
  NestCodePtr code;
  std::vector<int64_t> arguments;
  std::vector<jit::Access> access;  ///< of each operand
};

/// One nest ready to run.
struct BoundNest {
  BoundCode main;         ///< without code where there are no elements
  NestCodePtr streaming;  ///< for large tensors, else null; takes main's arguments
  BoundCode any_start;    ///< for sub-byte operands that begin inside a byte; else without code
  bool sub_byte = false;  ///< whether an operand's elements are
  int64_t bytes = 0;      ///< of all operands
  /// Word of the argument block: the address that the first operand's bitwise access counts from.
  size_t first_base = 0;
  std::vector<OperandOrigin> operands;
};

struct BoundState {
  std::shared_ptr<const KernelState> kernel;
  std::vector<BoundTensor> inputs;
  std::vector<BoundTensor> outputs;
  std::vector<Dims> output_shapes;
  std::vector<BoundNest> nests;
  /// For each input and output: the output may be written where the input lies, because they walk
  /// alike and no nest reads the input after the output's own.
  std::vector<bool> in_place_allowed;  // [input * outputs.size() + output]
};

struct RuntimeState {
  explicit RuntimeState(const jit::SystemCalls& system) : table(system) {}
  std::optional<jit::Target> target;
  std::string interpreted_because;
  size_t cache_bytes = 0;
  std::shared_ptr<CodeStore> store;
  mutable ForkPrivate<KernelTable> table;
  std::atomic<uint64_t> functions = 0;
  std::atomic<uint64_t> function_hits = 0;
};

/// Runtime::create with other system calls, so that tests can refuse memory.
Result<std::shared_ptr<RuntimeState>> make_runtime(const RuntimeOptions& options,
                                                   const jit::SystemCalls& system);

/// From a verified function to code, stage by stage.
Result<std::shared_ptr<const Compiled>> compile(const FunctionPtr& function,
                                                const RuntimeState& runtime);

}  // namespace castor::detail
