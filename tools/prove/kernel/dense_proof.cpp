// SPDX-License-Identifier: Apache-2.0
// The dense microkernel: calls of a few counts, and without tile registers every count of k steps
// and of register tiles.
#include <algorithm>
#include <array>

#include "tools/prove/kernel/dense_call.hpp"
#include "tools/prove/kernel/loop_memory.hpp"

namespace castor::prove {

namespace {

using jit::DenseTile;

/// Peeled k steps follow an even number of others.
std::vector<DenseCounts> counts_of(const DenseTile& tile) {
  if (tile.has_tiles()) {
    return {{.k_steps = 1, .channel_tiles = 2}, {.k_steps = 2, .tiles = 2}};
  }
  if (tile.peeled_k_steps > 0) {
    const int peeled = tile.peeled_k_steps;
    return {{.k_steps = peeled}, {.k_steps = peeled + 2, .tiles = 2}, {.k_steps = peeled + 4}};
  }
  std::vector<DenseCounts> counts = {
      {.k_steps = 1}, {.k_steps = 2, .tiles = 2}, {.k_steps = 3, .tiles = 3}, {.k_steps = 5}};
  if (tile.loops_k_groups) {
    counts.push_back({.k_steps = 2, .k_groups = 1});
    counts.push_back({.k_steps = 1, .k_groups = 3});
  }
  return counts;
}

/// The begin of the loop over register tiles, which is around all others.
Result<uint32_t> begin_of_tiles(const jit::MachineCode& code) {
  const auto program = jit::decode(code);
  if (!program) return program.error();
  uint32_t begin = code.pool_begin;
  for (const jit::DecodedInstruction& each : *program) {
    const auto target = jit::branch_target(each);
    if (target && *target <= each.offset) begin = std::min(begin, *target);
  }
  return begin;
}

/// The loops of a kernel without tile registers: every count of k steps and of register tiles.
class DenseLoops {
 public:
  DenseLoops(const KernelSubject<DenseTile>& kernel, uint32_t begin_of_tiles, ResultProver& prover)
      : kernel_(kernel),
        begin_of_tiles_(begin_of_tiles),
        peeled_(kernel.spec.peeled_k_steps),
        prover_(prover) {}

  Status prove() {
    if (Status status = prove_k_loop(); !status) return status;
    if (Status status = prove_after_k_loop(); !status) return status;
    return prove_tiles();
  }

 private:
  /// A call on a machine of its own, ready to begin.
  struct Call {
    Call(const KernelSubject<DenseTile>& kernel, const DenseCounts& counts, ResultProver& prover)
        : dense(kernel, counts, prover), kernel_call(KernelCall::create(kernel.code, symbols)) {
      if (!kernel_call) return;
      dense.lay_out(*kernel_call);
      kernel_call->begin(dense.arguments());
    }
    SymbolMachine& machine() { return kernel_call->machine(); }

    Terms terms;
    Symbols symbols{terms};
    DenseCall dense;
    Result<KernelCall> kernel_call;
  };

  /// Iterations, and how each tile comes to the first one.
  Status prove_k_loop() {
    constexpr int k_steps = 6;  // without peeled ones
    Call call(kernel_, {.k_steps = peeled_ + k_steps, .tiles = 3}, prover_);
    if (!call.kernel_call) return call.kernel_call.error();
    const SymbolMachine started = call.machine();
    const int64_t groups = call.dense.arguments().k_groups;
    const uint32_t begin = kernel_.code.loops.front().begin;
    SymbolMachine earlier = started;
    if (Status status = run_to(earlier, begin); !status) return status;
    SymbolMachine later = earlier;
    const int64_t iterations_of_tile = k_steps / 2 * groups;
    const int64_t to_last_group = iterations_of_tile + (groups - 1) * k_steps / 2;
    if (Status status = run_to(later, begin, to_last_group + 1); !status) return status;
    const Word all = number(peeled_ + k_steps);
    KLoop loop(kernel_, earlier, later, call.dense.loop_numbers(1, groups - 1, 2, all),
               call.dense.arguments().input_step);
    for (const int odd : {0, 1}) {
      if (odd == 1 && peeled_ > 0) continue;
      const Word count = 2 * words_.any(2) + number(peeled_ + odd);
      SymbolMachine machine = started;
      set_argument(machine, offsetof(jit::DenseArguments, k_step_count), count);
      const KLoopNumbers numbers = call.dense.loop_numbers(0, 0, odd, count);
      machine.grow_independently({numbers.offset.slope});
      if (Status status = run_to(machine, begin); !status) return in_iteration(status.error());
      if (Status status = loop.check(machine, numbers); !status) return status;
    }
    return loop.prove_iterations(prover_.proof());
  }

  /// After the last iteration of any tile, whatever the accumulators hold.
  Status prove_after_k_loop() {
    constexpr int tiles = 6;
    Call call(kernel_, {.k_steps = peeled_ + 2, .tiles = tiles}, prover_);
    if (!call.kernel_call) return call.kernel_call.error();
    const int64_t groups = call.dense.arguments().k_groups;
    const uint32_t end = kernel_.code.loops.front().end;
    SymbolMachine earlier = call.machine();
    if (Status status = run_to(earlier, end); !status) return status;
    SymbolMachine later = earlier;
    if (Status status = run_to(later, end, 2 * groups - 1); !status) return status;
    const KLoopNumbers numbers = call.dense.loop_numbers(1, groups - 1, 2, number(peeled_ + 2));
    std::vector<Word> variables = {call.dense.address_of_tile(1), number(tiles - 1), numbers.source,
                                   numbers.weights, numbers.k_steps_end};
    if (numbers.input != Word{}) variables.push_back(numbers.input);
    if (kernel_.spec.loops_k_groups) variables.push_back(number(1));  // the last group
    const AnyArrival arrival(earlier, later, variables);
    call.kernel_call->go_on_from(arrival.at(variables, {}));
    call.dense.forget_sums({kernel_.spec, kernel_.target}, call.machine());
    call.dense.look_at_tile(1);
    if (Status status = run_to(call.machine(), begin_of_tiles_); !status) {
      return in_iteration(status.error());
    }
    if (Status status = call.dense.compare(*call.kernel_call); !status) return status;
    return call.kernel_call->check_nothing_else();
  }

  /// A register tile leaves to the next one what it needs, however many there are.
  Status prove_tiles() {
    constexpr int tiles = 6;
    Call call(kernel_, {.k_steps = peeled_ + 2, .tiles = tiles}, prover_);
    if (!call.kernel_call) return call.kernel_call.error();
    const SymbolMachine started = call.machine();
    SymbolMachine earlier = started;
    if (Status status = run_to(earlier, begin_of_tiles_); !status) return status;
    SymbolMachine later = earlier;
    if (Status status = run_to(later, begin_of_tiles_); !status) return status;
    const AnyArrival arrival(earlier, later,
                             std::array{call.dense.address_of_tile(1), number(tiles - 1)});
    SymbolMachine machine = started;
    const Word count = words_.any(1);
    set_argument(machine, offsetof(jit::DenseArguments, tiles), count);
    machine.grow_independently({count.slope});
    if (Status status = run_to(machine, begin_of_tiles_); !status) {
      return in_iteration(status.error());
    }
    const std::array first = {call.dense.address_of_tile(0), count};
    if (Status status = arrival.check(machine, first); !status) return status;
    call.dense.look_at_tile(1);
    for (const bool is_last : {false, true}) {
      if (Status status = prove_tile(call, arrival, is_last); !status) return status;
    }
    return {};
  }

  Status prove_tile(Call& call, const AnyArrival& arrival, bool is_last) {
    const std::span<const std::byte> bytes = call.dense.bytes_of_tile(1);
    const Word at = words_.any(uint64_t{1} << 50);
    const Word left = is_last ? Word{1, 0} : words_.any(2);
    call.kernel_call->go_on_from(arrival.at(std::array{at, left}, std::array{left}));
    SymbolMachine& machine = call.machine();
    fill(machine.domain(), add_region(machine, "the tile", at, bytes.size()), bytes);
    if (Status status = run_to(machine, begin_of_tiles_); !status) {
      return in_iteration(status.error());
    }
    if (machine.is_done() != is_last) {
      return Error(ErrorCode::internal, "the loop over register tiles ends too early or too late");
    }
    ++prover_.proof().iterations;
    if (Status status = call.dense.compare(*call.kernel_call); !status) return status;
    if (Status status = call.kernel_call->check_nothing_else(); !status) return status;
    if (is_last) return {};
    const Word next = at + number(std::ssize(bytes));
    return arrival.check(machine, std::array{next, left + number(-1)});
  }

  const KernelSubject<DenseTile> kernel_;
  const uint32_t begin_of_tiles_;
  const int peeled_;
  ResultProver& prover_;
  AnyWords words_;
};

}  // namespace

Result<ConvProof> prove_kernel(const KernelSubject<DenseTile>& kernel, const Decide& decide) {
  ResultProver prover(kernel.epilogue, decide);
  if (Status status = prover.check_provable(); !status) return status.error();
  if (kernel.spec.window_sums == jit::WindowSums::own_products) {
    return Error{ErrorCode::unsupported,
                 "window sums that a kernel stores for others are not proved"};
  }
  for (const DenseCounts& counts : counts_of(kernel.spec)) {
    Status status = prove_call(kernel.code, DenseCall(kernel, counts, prover));
    if (!status) return status.error();
  }
  if (kernel.spec.has_tiles()) return prover.proof();
  const auto begin = begin_of_tiles(kernel.code);
  if (!begin) return begin.error();
  Status status = DenseLoops(kernel, *begin, prover).prove();
  if (!status) return status.error();
  return prover.proof();
}

}  // namespace castor::prove
