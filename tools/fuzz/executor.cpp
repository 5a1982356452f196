// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/executor.hpp"

#include <fmt/format.h>

#include <cstring>

#include "tools/fuzz/generate.hpp"
#include "tools/fuzz/layout.hpp"

namespace castor::fuzz {

namespace {

/// Room for the largest tensors that are drawn, their offsets and canaries.
constexpr size_t page_bytes = static_cast<size_t>(most_streamed_bytes) + (size_t{64} << 10);

Finding refusal(std::string_view message) {
  Finding finding{.kind = Finding::Kind::refusal};
  message.copy(finding.message, sizeof finding.message - 1);
  return finding;
}

uint64_t load(const std::byte* at, int64_t bytes) {
  uint64_t pattern = 0;
  std::memcpy(&pattern, at, static_cast<size_t>(bytes));
  return pattern;
}

/// The first element that differs from what the image wants.
Finding compare_elements(const Image& image, const std::byte* found) {
  Finding finding;
  const std::byte* const after = image.after.data();
  for_each_element(image.shape, image.place.strides, [&](int64_t distance, int64_t index) {
    const uint64_t expected = load(image.element_at(after, distance), image.element_bytes());
    const uint64_t actual = load(image.element_at(found, distance), image.element_bytes());
    if (expected == actual) return;
    if (finding.differing++ > 0) return;
    finding.kind = Finding::Kind::element;
    finding.element = index;
    finding.expected = expected;
    finding.actual = actual;
  });
  return finding;
}

/// The first byte that differs, which is one that the call had to leave alone.
Finding compare_bytes(const Image& image, const std::byte* found, Finding::Kind kind) {
  for (size_t i = 0; i < image.after.size(); ++i) {
    if (found[i] == image.after[i]) continue;
    const int64_t byte = static_cast<int64_t>(i) - static_cast<int64_t>(image.front);
    return {.kind = kind,
            .expected = std::to_integer<uint64_t>(image.after[i]),
            .actual = std::to_integer<uint64_t>(found[i]),
            .byte = byte};
  }
  return {};
}

bool is_intact(const Image& image, const std::byte* found) {
  return std::memcmp(image.after.data(), found, image.after.size()) == 0;
}

}  // namespace

Result<Executor> Executor::create(const std::vector<Tier>& tiers, Tamper tamper) {
  Executor executor;
  executor.tamper_ = std::move(tamper);
  for (Tier tier : tiers) {
    Result<Runtime> runtime = Runtime::create({.tier = tier});
    if (!runtime) return runtime.error();
    executor.runtimes_.push_back(std::move(runtime).value());
  }
  for (size_t i = 0; i < most_inputs + most_results; ++i) executor.pages_.emplace_back(page_bytes);
  return executor;
}

test::GuardedPages& Executor::output_pages(size_t output) { return pages_[most_inputs + output]; }

Executor::Call Executor::lay_out(const Prepared& prepared) {
  Call call;
  const auto copy = [](const Image& image, test::GuardedPages& pages) {
    std::byte* base = place_of(image, pages);
    std::copy(image.before.begin(), image.before.end(), base);
    return base;
  };
  for (size_t i = 0; i < prepared.inputs.size(); ++i) {
    const Image& image = prepared.inputs[i];
    call.inputs.push_back(image.view<const void*>(copy(image, input_pages(i))));
  }
  for (size_t i = 0; i < prepared.outputs.size(); ++i) {
    const Image& image = prepared.image_of(i);
    const int input = prepared.program.results[i].in_place_of;
    std::byte* base = prepared.is_in_place(i)
                          ? place_of(image, input_pages(static_cast<size_t>(input)))
                          : copy(image, output_pages(i));
    call.outputs.push_back(image.view<void*>(base));
    call.outputs.back().element = prepared.outputs[i].element;
  }
  return call;
}

Status Executor::run_kernel(const Prepared& prepared, const Runtime& runtime,
                            const Call& call) const {
  const Result<Kernel> kernel = runtime.compile(prepared.function);
  if (!kernel) return kernel.error();
  if (kernel->engine() != Engine::jit) {
    return Error{ErrorCode::unsupported,
                 fmt::format("runs in the interpreter: {}", kernel->engine_reason())};
  }
  const Result<BoundKernel> bound = kernel->bind(call.inputs, call.outputs);
  if (!bound) return bound.error();
  const StorePolicy stores =
      prepared.program.streams ? StorePolicy::streaming : StorePolicy::automatic;
  return bound->run(call.inputs, call.outputs, {.stores = stores});
}

Finding Executor::compare(const Prepared& prepared) {
  for (size_t i = 0; i < prepared.outputs.size(); ++i) {
    const Image& image = prepared.image_of(i);
    const int input = prepared.program.results[i].in_place_of;
    const std::byte* found = place_of(
        image, prepared.is_in_place(i) ? input_pages(static_cast<size_t>(input)) : output_pages(i));
    if (is_intact(image, found)) continue;
    Finding finding = compare_elements(image, found);
    if (!finding) finding = compare_bytes(image, found, Finding::Kind::stray);
    finding.tensor = i;
    return finding;
  }
  for (size_t i = 0; i < prepared.inputs.size(); ++i) {
    const std::byte* found = place_of(prepared.inputs[i], input_pages(i));
    if (is_intact(prepared.inputs[i], found)) continue;
    Finding finding = compare_bytes(prepared.inputs[i], found, Finding::Kind::input);
    finding.tensor = i;
    return finding;
  }
  return {};
}

Finding Executor::run(const Prepared& prepared, size_t tier, CacheUse& use) {
  const Runtime& runtime = runtimes_[tier];
  const CacheStatistics before = runtime.statistics();
  const Call call = lay_out(prepared);
  const Status status = run_kernel(prepared, runtime, call);
  const CacheStatistics behind = runtime.statistics();
  use = {behind.function_hits != before.function_hits, behind.code_hits != before.code_hits,
         behind.codes != before.codes};
  if (status && tamper_) tamper_(prepared, call.outputs);
  Finding finding = status ? compare(prepared) : refusal(status.error().to_string());
  finding.tier = tier;
  return finding;
}

}  // namespace castor::fuzz
