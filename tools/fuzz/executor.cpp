// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/interpreter/interpreter.hpp"
#include "ir/rewrite/canonicalize.hpp"
#include "ir/verify/infer.hpp"
#include "runtime/bind/bind.hpp"
#include "runtime/bind/bound_state.hpp"
#include "runtime/state_access.hpp"
#include "tools/fuzz/generate.hpp"
#include "tools/fuzz/layout.hpp"
#include "tools/testing/executors.hpp"
#include "tools/testing/guarded_allocator.hpp"
#include "tools/testing/thread_per_task.hpp"

namespace castor::fuzz {

namespace {

/// Room for the largest tensors that are drawn, their offsets and canaries.
constexpr size_t page_bytes = static_cast<size_t>(max_streamed_bytes) + (size_t{64} << 10);

Finding refusal(std::string_view message) {
  Finding finding{.kind = Finding::Kind::refusal};
  message.copy(finding.message, sizeof finding.message - 1);
  return finding;
}

/// The first element that differs from what the memory must hold.
Finding compare_elements(const Image& image, std::span<const std::byte> wanted,
                         std::span<const std::byte> found) {
  Finding finding;
  for_each_element(image.shape, image.place.strides, [&](int64_t distance, int64_t index) {
    const uint64_t expected = image.load(wanted.data(), distance);
    const uint64_t actual = image.load(found.data(), distance);
    if (expected == actual) return;
    if (finding.differing++ > 0) return;
    finding.kind = Finding::Kind::element;
    finding.element = index;
    finding.expected = expected;
    finding.actual = actual;
  });
  return finding;
}

/// The first byte that differs.
Finding compare_bytes(const Image& image, std::span<const std::byte> wanted,
                      std::span<const std::byte> found, Finding::Kind kind) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (found[i] == wanted[i]) continue;
    const int64_t byte = static_cast<int64_t>(i) - static_cast<int64_t>(image.front);
    return {.kind = kind,
            .expected = std::to_integer<uint64_t>(wanted[i]),
            .actual = std::to_integer<uint64_t>(found[i]),
            .byte = byte};
  }
  return {};
}

/// Whether a result has the memory of an input that the kernel reads after writing it, or at other
/// indices.
bool overwrites_too_early(const Prepared& prepared, const BoundKernel& bound) {
  const detail::BoundState& state = detail::StateAccess::of(bound);
  for (size_t i = 0; i < prepared.outputs.size(); ++i) {
    if (!prepared.is_in_place(i) || count_of(prepared.outputs[i].shape) == 0) continue;
    const auto input = static_cast<size_t>(prepared.program.results[i].in_place_of);
    if (!state.overlap_rules().allows_in_place(input, i)) return true;
  }
  return false;
}

/// Binds shapes of which one has an axis that is longer: the rules of the IR say whether that may
/// be, and the kernel must say the same.
Finding bind_misfit(const Prepared& prepared, const Kernel& kernel, CallTrace& trace) {
  const BadCall& bad = prepared.program.bad_call;
  std::vector<Dims> shapes;
  for (const Image& input : prepared.inputs) shapes.push_back(input.shape);
  if (shapes[bad.tensor].empty()) {
    shapes[bad.tensor].push_back(2);
  } else {
    const int last = shapes[bad.tensor].rank() - 1;
    ++shapes[bad.tensor][std::min(static_cast<int>(bad.other), last)];
  }
  const bool fits = bind_shapes(*prepared.function, shapes).ok();
  trace.refused_extents = !fits;
  const Result<BoundKernel> bound = kernel.bind(shapes);
  if (bound.ok() == fits) return {};
  return bound.ok() ? Finding{.kind = Finding::Kind::accepted} : refusal(bound.error().to_string());
}

/// Leaves the neighbour's kernel and code in the runtime's caches.
void bind_neighbour(const Neighbour& neighbour, const Runtime& runtime) {
  if (neighbour.function == nullptr) return;
  const Result<Kernel> kernel = runtime.compile(neighbour.function);
  if (kernel) (void)kernel->bind(neighbour.shapes, neighbour.strides);
}

/// Binds to the views. Three programs of four do rows in blocks of so few bytes that small tensors
/// have several (see detail::RowBlocks).
Result<BoundKernel> bind_to(const Kernel& kernel, const Call& call, uint64_t seed) {
  constexpr std::array<int64_t, 4> block_bytes = {0, 48, 256, 1024};
  const int64_t bytes = block_bytes[seed % block_bytes.size()];
  if (bytes == 0) return kernel.bind(call.inputs, call.outputs);
  std::vector<Dims> shapes;
  std::vector<Dims> strides;
  for (const ConstView& input : call.inputs) {
    shapes.push_back(input.shape);
    strides.push_back(input.strides);
  }
  for (const View& output : call.outputs) strides.push_back(output.strides);
  auto bound = detail::bind_kernel(detail::StateAccess::shared(kernel), shapes, strides, {}, bytes);
  if (!bound) return bound.error();
  return detail::StateAccess::handle(std::move(bound).value());
}

}  // namespace

Result<Executor> Executor::create(const std::vector<Tier>& tiers, Tamper tamper) {
  Executor executor;
  executor.tamper_ = std::move(tamper);
  for (Tier tier : tiers) {
    for (const bool frame_pointers : {false, true}) {
      Result<Runtime> runtime = Runtime::create({.tier = tier,
                                                 .frame_pointers = frame_pointers,
                                                 .allocator = test::GuardedAllocator::callbacks()});
      if (!runtime) return runtime.error();
      executor.runtimes_.push_back(std::move(runtime).value());
    }
  }
  for (size_t i = 0; i < max_inputs + max_results; ++i) executor.pages_.emplace_back(page_bytes);
  return executor;
}

test::GuardedPages& Executor::output_pages(size_t output) { return pages_[max_inputs + output]; }

std::byte* Executor::base_of_result(const Prepared& prepared, size_t result) {
  const int input = prepared.program.results[result].in_place_of;
  return base_of(prepared.memory_of(result), prepared.is_in_place(result)
                                                 ? input_pages(static_cast<size_t>(input))
                                                 : output_pages(prepared.owner_of(result)));
}

Call Executor::lay_out(const Prepared& prepared) {
  Call call;
  for (size_t i = 0; i < prepared.inputs.size(); ++i) {
    const Image& image = prepared.inputs[i];
    call.inputs.push_back(image.view<const void*>(copy_to(image, input_pages(i))));
  }
  for (size_t i = 0; i < prepared.outputs.size(); ++i) {
    if (prepared.has_memory(i)) copy_to(prepared.outputs[i], output_pages(i));
    call.outputs.push_back(prepared.outputs[i].view<void*>(base_of_result(prepared, i)));
  }
  return call;
}

namespace {

/// Whether machine code does not compute the function, whatever the tier.
bool is_interpreted(const Prepared& prepared) {
  return !reason_interpreted(*canonicalize(prepared.function)).empty();
}

}  // namespace

Finding Executor::run_kernel(const Prepared& prepared, const Runtime& runtime, const Call& call,
                             CallTrace& trace) {
  const Result<Kernel> kernel = runtime.compile(prepared.function);
  if (!kernel) return refusal(kernel.error().to_string());
  const bool may_be_interpreted = kernel->engine() != Engine::jit && is_interpreted(prepared);
  if (kernel->engine() != Engine::jit && !may_be_interpreted) {
    return refusal(fmt::format("runs in the interpreter: {}", kernel->engine_reason()));
  }
  if (prepared.program.bad_call.kind == BadCall::Kind::extents) {
    if (Finding finding = bind_misfit(prepared, *kernel, trace)) return finding;
  }
  const Result<BoundKernel> bound = bind_to(*kernel, call, prepared.program.seed);
  if (!bound) return refusal(bound.error().to_string());
  if (bound->engine() != Engine::jit && !may_be_interpreted) {
    return refusal(fmt::format("bound to the interpreter: {}", bound->engine_reason()));
  }
  trace.bound = *bound;
  return run_bound(prepared, *bound, call, trace);
}

/// With 0 or less for one scale: the interpreter and the kernel refuse the call.
Finding Executor::run_with_bad_scale(const Prepared& prepared, const BoundKernel& bound,
                                     const Call& call) {
  constexpr std::array<uint64_t, 3> wrong = {0, 0xffff, 0x8000};
  const BadCall& bad = prepared.program.bad_call;
  const Image& image = prepared.inputs[bad.tensor];
  std::byte* base = base_of(image, input_pages(bad.tensor));
  const int64_t wanted = static_cast<int64_t>(bad.other) % count_of(image.shape);
  int64_t place = 0;
  for_each_element(image.shape, image.place.strides, [&](int64_t distance, int64_t index) {
    if (index == wanted) place = distance;
  });
  const uint64_t right = image.load(base, place);
  image.store(base, place, wrong[bad.other % wrong.size()]);
  const Status expected = interpret(*prepared.function, call.inputs, call.outputs);
  const Status found = bound.run(call.inputs, call.outputs);
  image.store(base, place, right);
  if (expected.ok() || found.ok()) return {.kind = Finding::Kind::accepted};
  if (Finding touched = compare_untouched(prepared)) return touched;
  return {};
}

Finding Executor::run_bound(const Prepared& prepared, const BoundKernel& bound, const Call& call,
                            CallTrace& trace) {
  if (const std::optional<Call> bad = spoil(prepared, call)) {
    if (bound.run(bad->inputs, bad->outputs)) return {.kind = Finding::Kind::accepted};
    if (Finding touched = compare_untouched(prepared)) return touched;
  }
  if (prepared.program.bad_call.kind == BadCall::Kind::scale && can_spoil(prepared)) {
    if (Finding finding = run_with_bad_scale(prepared, bound, call)) return finding;
  }
  if (overwrites_too_early(prepared, bound)) {
    trace.refused_in_place = true;
    if (bound.run(call.inputs, call.outputs)) return {.kind = Finding::Kind::accepted};
    return compare_untouched(prepared);
  }
  const StorePolicy stores =
      prepared.program.streams ? StorePolicy::streaming : StorePolicy::automatic;
  test::Backwards backwards(prepared.program.tasks);
  test::ThreadPerTask threads(prepared.program.tasks);
  RunOptions options = {.stores = stores, .executor = &backwards};
  if (prepared.program.runs_threads) options.executor = &threads;
  const Status status = bound.run(call.inputs, call.outputs, options);
  if (!status) return refusal(status.error().to_string());
  if (tamper_) tamper_(prepared, call.outputs);
  return compare(prepared);
}

Finding Executor::compare_result(const Prepared& prepared, size_t result) {
  const Image& memory = prepared.memory_of(result);
  const std::byte* base = base_of_result(prepared, result);
  if (holds(memory, base, memory.after)) return {};
  const std::vector<std::byte> found = read_all(memory, base);
  Finding finding = compare_elements(prepared.outputs[result], memory.after, found);
  // Another result in the same memory has its elements compared on its own turn.
  const bool is_shared = !prepared.is_in_place(result) &&
                         prepared.program.interleaved_behind(prepared.owner_of(result));
  if (!finding && !(is_shared && prepared.has_memory(result))) {
    finding = compare_bytes(memory, memory.after, found, Finding::Kind::stray);
  }
  finding.tensor = result;
  return finding;
}

Finding Executor::compare_input(const Prepared& prepared, size_t input,
                                std::span<const std::byte> wanted) {
  const Image& image = prepared.inputs[input];
  const std::byte* base = base_of(image, input_pages(input));
  if (holds(image, base, wanted)) return {};
  Finding finding = compare_bytes(image, wanted, read_all(image, base), Finding::Kind::input);
  finding.tensor = input;
  return finding;
}

Finding Executor::compare(const Prepared& prepared) {
  for (size_t i = 0; i < prepared.outputs.size(); ++i) {
    if (Finding finding = compare_result(prepared, i)) return finding;
  }
  for (size_t i = 0; i < prepared.inputs.size(); ++i) {
    if (Finding finding = compare_input(prepared, i, prepared.inputs[i].after)) return finding;
  }
  return {};
}

Finding Executor::compare_untouched(const Prepared& prepared) {
  for (size_t i = 0; i < prepared.outputs.size(); ++i) {
    const Image& image = prepared.outputs[i];
    const std::byte* base = base_of_result(prepared, i);
    if (!prepared.has_memory(i) || holds(image, base, image.before)) continue;
    Finding finding =
        compare_bytes(image, image.before, read_all(image, base), Finding::Kind::touched);
    finding.tensor = i;
    return finding;
  }
  for (size_t i = 0; i < prepared.inputs.size(); ++i) {
    if (Finding finding = compare_input(prepared, i, prepared.inputs[i].before)) return finding;
  }
  return {};
}

Finding Executor::run(const Prepared& prepared, size_t tier, CallTrace& trace) {
  const Runtime& runtime = runtimes_[2 * tier + (prepared.program.keeps_frame_pointer() ? 1 : 0)];
  bind_neighbour(prepared.neighbour, runtime);
  const CacheStatistics before = runtime.statistics();
  const Call call = lay_out(prepared);
  trace = {};
  Finding finding = run_kernel(prepared, runtime, call, trace);
  const CacheStatistics after = runtime.statistics();
  trace.found_function = after.function_hits != before.function_hits;
  trace.found_code = after.code_hits != before.code_hits;
  trace.emitted_code = after.codes != before.codes;
  finding.tier = tier;
  return finding;
}

}  // namespace castor::fuzz
