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
  return {{.k_steps = 1}, {.k_steps = 2, .tiles = 2}, {.k_steps = 3, .tiles = 3}, {.k_steps = 5}};
}

Status run_to(SymbolMachine& machine, uint32_t offset, int arrivals) {
  return machine.run([&](uint32_t now) { return now == offset && --arrivals == 0; });
}

/// Where the loop over register tiles begins: no other loop begins before it.
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

/// Every count of register tiles: one, wherever its numbers are, is done right and leaves to the
/// next one what it needs.
Status prove_tile_loop(const KernelSubject<DenseTile>& kernel, ResultProver& prover) {
  constexpr int tiles = 6;
  const auto begin = begin_of_tiles(kernel.code);
  if (!begin) return begin.error();
  Terms terms;
  Symbols symbols(terms);
  auto call = KernelCall::create(kernel.code, symbols);
  if (!call) return call.error();
  DenseCall of(kernel, {.k_steps = kernel.spec.peeled_k_steps + 2, .tiles = tiles}, prover);
  of.lay_out(*call);
  call->begin(of.arguments());
  if (Status status = run_to(call->machine(), *begin, 1); !status) return status;
  const SymbolMachine earlier = call->machine();
  if (Status status = run_to(call->machine(), *begin, 1); !status) return status;
  const AnyArrival arrival(earlier, call->machine(),
                           std::array{of.address_of_tile(1), uint64_t{tiles - 1}});
  of.look_at_tile(1);
  AnyWords words;
  for (const bool is_last : {false, true}) {
    const Word at = words.from(uint64_t{1} << 50);
    const Word left = is_last ? Word{1, 0} : words.from(2);
    call->go_on_from(arrival.at(std::array{at, left}));
    fill(call->machine(), add_region(call->machine(), "the tile", at, of.bytes_of_tile(1).size()),
         of.bytes_of_tile(1));
    if (Status status = run_to(call->machine(), *begin, 1); !status) {
      return in_iteration(status.error());
    }
    if (call->machine().is_done() != is_last) {
      return Error(ErrorCode::internal, "the loop over register tiles ends too early or too late");
    }
    ++prover.proof().iterations;
    if (Status status = of.compare(*call); !status) return status;
    if (Status status = call->check_nothing_else(); !status) return status;
    if (is_last) continue;
    const Word next = at + number(static_cast<int64_t>(of.bytes_of_tile(1).size()));
    const Word less = left + number(-1);
    if (Status status = arrival.check(call->machine(), std::array{next, less}); !status) {
      return status;
    }
  }
  return {};
}

/// Every count of k steps: iterations of their loop, and what follows the last one.
Status prove_k_loop(const KernelSubject<DenseTile>& kernel, ResultProver& prover) {
  const jit::CodeLoop& loop = kernel.code.loops.front();
  const int peeled = kernel.spec.peeled_k_steps;
  {
    Terms terms;
    Symbols symbols(terms);
    auto call = KernelCall::create(kernel.code, symbols);
    if (!call) return call.error();
    DenseCall of(kernel, {.k_steps = peeled + 6}, prover);
    of.lay_out(*call);
    call->begin(of.arguments());
    SymbolMachine& machine = call->machine();
    if (Status status = run_to(machine, loop.begin, 1); !status) return status;
    const SymbolMachine earlier = machine;
    if (Status status = run_to(machine, loop.begin, 1); !status) return status;
    Status status = prove_k_steps(kernel, earlier, machine, of.loop_numbers(2), prover.proof());
    if (!status) return status;
  }
  Terms terms;
  Symbols symbols(terms);
  auto call = KernelCall::create(kernel.code, symbols);
  if (!call) return call.error();
  DenseCall of(kernel, {.k_steps = peeled + 2}, prover);
  of.lay_out(*call);
  call->begin(of.arguments());
  const int groups = static_cast<int>(of.arguments().k_groups);
  if (Status status = run_to(call->machine(), loop.end, groups); !status) return status;
  of.forget_sums({kernel.spec, kernel.target}, call->machine());
  if (Status status = call->machine().run(); !status) return status;
  return of.compare(*call);
}

}  // namespace

Result<ConvProof> prove_kernel(const KernelSubject<DenseTile>& kernel, const Decide& decide) {
  ResultProver prover(kernel.epilogue, decide);
  for (const DenseCounts& counts : counts_of(kernel.spec)) {
    Status status = prove_call(kernel.code, DenseCall(kernel, counts, prover));
    if (!status) return status.error();
  }
  if (!kernel.spec.has_tiles()) {
    if (Status status = prove_k_loop(kernel, prover); !status) return status.error();
    if (Status status = prove_tile_loop(kernel, prover); !status) return status.error();
  }
  return prover.proof();
}

}  // namespace castor::prove
