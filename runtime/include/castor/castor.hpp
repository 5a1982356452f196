// SPDX-License-Identifier: Apache-2.0
// castor: small tensor functions compiled to x86-64 machine code at run time.
//
// The steps of use, each of which checks what it is given and returns a Result or a Status:
//
//   castor::Runtime runtime = *castor::Runtime::create();
//   castor::Kernel kernel = *runtime.compile(text);          // or a Function built in C++
//   castor::BoundKernel bound = *kernel.bind({{1, 3, 8, 8}});  // the shapes of the inputs
//   castor::Status status = bound.run(inputs, outputs);      // views of the caller's memory
//
// All handles are immutable, cheap to copy, and may be used from any thread. No exception leaves
// these functions: memory that is refused is an error (out_of_memory), and so is what a callback of
// the caller's throws. Numbers that are none of an enumeration are refused (invalid_argument).
#pragma once

#include <castor/statistics.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "castor/executor.hpp"
#include "castor/memory.hpp"
#include "castor/observe.hpp"
#include "ir/builder.hpp"
#include "ir/support/export.hpp"
#include "ir/text/text.hpp"
#include "ir/types/view.hpp"
#include "ir/verify/limits.hpp"
#include "jit/target.hpp"

namespace castor {

namespace detail {
struct RuntimeState;
struct KernelState;
struct BoundState;
struct StateAccess;
}  // namespace detail

using Tier = jit::Tier;
using Core = jit::Core;

/// The library's version, "major.minor.patch".
CASTOR_API std::string_view version();

/// What executes a kernel.
enum class Engine : uint8_t {
  jit,          ///< generated machine code
  interpreter,  ///< the reference interpreter: slow, same bits
};

struct RuntimeOptions {
  /// Generate code for this tier instead of the best that the machine has (or that the
  /// environment variable CASTOR_ISA names).
  std::optional<Tier> tier{};
  /// Plan for this microarchitecture instead of the one that the machine is known to have (or that
  /// the environment variable CASTOR_CORE names). Results are the same.
  std::optional<Core> core{};
  /// Never generate code.
  bool interpret = false;
  /// Keep rbp as the frame pointer in all code, for profilers that follow frame pointers (perf
  /// record -g). Takes about a nanosecond a call; results are the same.
  bool frame_pointers = false;
  /// Bound of the cache: half for machine code, half for the functions that it was made for, with
  /// all that they hold. What was added first is dropped first, unless it was used since; what is
  /// larger than its part is not kept at all. Kernels in use keep theirs, whatever is dropped. 0
  /// keeps nothing.
  size_t cache_bytes = size_t{64} << 20;
  /// What is told to profilers, debuggers, files and a log; nothing by default.
  ObserveOptions observe{};
  /// For scratch, and for packed weights unless `packed_weights` is set.
  Allocator allocator{};
  /// The store where packed weights are looked up, and kept for other kernels that use them;
  /// without one the runtime makes its own.
  PackedWeights packed_weights{};
  /// Maximum bytes of pages with machine code and its constants, whoever holds them: kernels,
  /// also those that outlive the runtime, and the cache. The cache takes at most half of it, and is
  /// emptied where code finds no room. What finds none then runs in the interpreter, and
  /// engine_reason() of the kernel or the bound kernel names what is mapped and the limit; code
  /// whose kernels have died makes room for the next one that is compiled or bound.
  size_t code_bytes_limit = no_limit;
  /// The executor whose threads do large work of calls that name no executor themselves; null: the
  /// caller's thread does all. Held by the runtime and its kernels as long as they live.
  std::shared_ptr<Executor> executor = nullptr;
  /// The largest texts and functions that compile() takes.
  CompileLimits limits{};
};

/// How outputs are stored. Streaming stores go past the caches, which is faster for outputs that no
/// cache can hold, and slower for all others.
enum class StorePolicy : uint8_t {
  automatic,  ///< streaming when a call's tensors exceed the outermost cache
  cached,
  streaming,  ///< where the tensors are dense, large (1 MiB and more), aligned and not in place
};

struct RunOptions {
  StorePolicy stores = StorePolicy::automatic;
  /// The executor whose threads do large work, instead of the runtime's; null: the runtime's. (A
  /// SerialExecutor keeps the call on its own thread.) Borrowed until the call returns.
  Executor* executor = nullptr;
  /// Memory for the call's intermediate results, at least BoundKernel::scratch_bytes() bytes for as
  /// many tasks as the executor has, at a multiple of scratch_alignment, apart from all tensors;
  /// its contents do not matter, and nothing is kept in it. With it a run that succeeds allocates
  /// nothing at all (the interpreter apart). None: the bound kernel's own is used.
  std::span<std::byte> scratch{};
};

/// Whose scratch the calls of a bound kernel use.
enum class ScratchOwner : uint8_t {
  /// The bound kernel keeps one task's scratch, made when it is bound, and that of more tasks from
  /// the first call that has an executor on; only calls that run at the same time allocate more.
  kernel,
  /// The caller: the bound kernel keeps none, and every call that needs scratch must bring it.
  caller,
};

struct BindOptions {
  ScratchOwner scratch = ScratchOwner::kernel;
};

/// A kernel with its `?` dimensions and strides settled. Running it never compiles, and allocates
/// nothing but scratch (see RunOptions::scratch and ScratchOwner; the interpreter apart).
class CASTOR_API BoundKernel {
 public:
  /// Computes outputs from inputs. Checks number, element types, shapes, strides, offsets, bytes
  /// available and overlap first; on a failure no output has been touched.
  ///
  /// An output may be an input's exact memory (same address, element size, storage order, shape and
  /// strides): in place. Else an output may share no byte with anything: of strided tensors that
  /// interleave, all elements count with the whole bytes that hold their bits (of the split
  /// layouts, with their groups of three bytes), and what is between them stays as it is. Strides
  /// so irregular that 16384 steps of reasoning do not tell are refused where ranges of addresses
  /// meet.
  Status run(std::span<const ConstView> inputs, std::span<const View> outputs,
             const RunOptions& options = {}) const;

  /// Extents of the outputs, in the function's order.
  std::span<const Dims> output_shapes() const;
  /// What executes it: the interpreter also where executable memory was refused at binding, or its
  /// limit was reached. Binding again later may find room.
  Engine engine() const;
  /// The tier of its code; nothing in the interpreter.
  std::optional<Tier> tier() const;
  /// Bytes of machine code that its calls may go through, constants among them; code that other
  /// kernels share counts in each.
  size_t code_bytes() const;
  /// Why the interpreter does, or why convolutions are of a lower tier than they could be: the
  /// operating system does not save tile registers, or refused them when a kernel first wanted
  /// them. Else empty. Ends in a zero.
  std::string_view engine_reason() const;
  /// Bytes of scratch that a call takes, split into at most that many tasks: a multiple of
  /// scratch_alignment, 0 where it takes none, SIZE_MAX where they cannot be counted. Fewer than 1:
  /// as many tasks as the runtime's executor has, 1 without one.
  size_t scratch_bytes(int tasks = 0) const;

 private:
  friend class Kernel;
  friend struct detail::StateAccess;
  explicit BoundKernel(std::shared_ptr<const detail::BoundState> state)
      : state_(std::move(state)) {}
  std::shared_ptr<const detail::BoundState> state_;
};

/// A compiled function.
class CASTOR_API Kernel {
 public:
  const Function& function() const;
  Engine engine() const;
  /// Why the interpreter executes this kernel, or why convolutions are of a lower tier than the CPU
  /// allows: the operating system does not save tile registers. Else empty. Ends in a zero. For a
  /// refusal at binding, when they are wanted, see `BoundKernel::engine_reason`.
  std::string_view engine_reason() const;
  /// The tier of its code; nothing in the interpreter.
  std::optional<Tier> tier() const;

  /// Settles shapes and strides. `input_shapes`: extents of every input. `strides`: in elements,
  /// of every input, then of every output; none at all means that every tensor is dense. Strides
  /// are positive wherever the extent exceeds 1; outputs may not overlap themselves.
  Result<BoundKernel> bind(std::span<const Dims> input_shapes, std::span<const Dims> strides = {},
                           const BindOptions& options = {}) const;
  Result<BoundKernel> bind(std::initializer_list<Dims> input_shapes,
                           const BindOptions& options = {}) const;
  /// Settles shapes and strides as these views have them.
  Result<BoundKernel> bind(std::span<const ConstView> inputs, std::span<const View> outputs,
                           const BindOptions& options = {}) const;

 private:
  friend class Runtime;
  friend struct detail::StateAccess;
  explicit Kernel(std::shared_ptr<const detail::KernelState> state) : state_(std::move(state)) {}
  std::shared_ptr<const detail::KernelState> state_;
};

/// Compiles functions and owns the cache of kernels. Kernels survive their runtime. Runtimes share
/// nothing. A child process that inherits one by fork() goes on with an empty cache of its own,
/// even if other threads of the parent were compiling; kernels that it inherits still run.
class CASTOR_API Runtime {
 public:
  /// Fails when `options.tier` or CASTOR_ISA asks for a tier that this machine cannot run, an
  /// option is none of its enumeration, CASTOR_ISA or CASTOR_CORE names none, or the allocator has
  /// one callback without the other. Where there is no AVX2, or executable memory is refused,
  /// functions run in the interpreter and `Kernel::engine_reason` says why, or, where code is first
  /// needed when a kernel is bound, `BoundKernel::engine_reason`. Fails (io) where files that
  /// `options.observe` asks for cannot be written.
  static Result<Runtime> create(const RuntimeOptions& options = {});

  /// The kernel of the function: from the cache, where a function that computes the same has one,
  /// or compiled. Finding it takes no lock. While one thread compiles a function, others that ask
  /// for it wait and get the same code. Failures are not kept.
  Result<Kernel> compile(const FunctionPtr& function) const;
  /// Parses the text and compiles the function of that name, or the only one (see parse_function).
  Result<Kernel> compile(std::string_view text, std::string_view name = {}) const;

  /// Converts `source` to `destination` elementwise: equal shapes, any strides.
  Status convert(const ConstView& source, const View& destination,
                 const ConvertOptions& options = {}) const;

  /// The tier that code is generated for; nothing when everything is interpreted.
  std::optional<Tier> tier() const;
  /// Takes the caches' locks for a moment.
  CacheStatistics statistics() const;
  /// Whether everything that `RuntimeOptions::observe` asks for could be written in this process;
  /// else the first failure.
  Status observation() const;
  MemoryStatistics memory() const;

 private:
  explicit Runtime(std::shared_ptr<detail::RuntimeState> state) : state_(std::move(state)) {}
  std::shared_ptr<detail::RuntimeState> state_;
};

}  // namespace castor
