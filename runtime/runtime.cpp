// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <new>

#include "runtime/state.hpp"

namespace castor {

namespace {

Error no_memory() { return {ErrorCode::out_of_memory, "no memory left"}; }

KernelStatePtr add_kernel(detail::RuntimeState& runtime, const FunctionPtr& function,
                          std::shared_ptr<const detail::Compiled> compiled) {
  // Executable memory that was refused may be granted later.
  const bool keep = compiled->interpreted_because.empty() || !runtime.target;
  auto kernel =
      std::make_shared<detail::KernelState>(detail::KernelState{function, std::move(compiled)});
  runtime.functions.fetch_add(1, std::memory_order_relaxed);
  if (keep) runtime.table.get().add(kernel, runtime.cache_bytes / 2);
  return kernel;
}

Result<KernelStatePtr> kernel_of(detail::RuntimeState& runtime, const FunctionPtr& function) {
  if (KernelStatePtr found = runtime.table.get().find(function)) {
    runtime.function_hits.fetch_add(1, std::memory_order_relaxed);
    return found;
  }
  const CompileWatch watch(runtime.observer.get(), *function);
  Result<std::shared_ptr<const detail::Compiled>> compiled = detail::compile(function, runtime);
  watch.done(compiled);
  if (!compiled.ok()) return compiled.error();
  return add_kernel(runtime, function, std::move(compiled).value());
}

/// A conversion of one tensor of a rank, with every extent unknown.
Result<FunctionPtr> conversion_function(ElementType from, ElementType to, int rank,
                                        const ConvertOptions& options) {
  FunctionBuilder builder("convert");
  const TensorType type{from, Shape(static_cast<size_t>(rank), Dim::any())};
  builder.result(builder.convert(builder.parameter("source", type), to, options));
  return builder.finish();
}

Result<FunctionPtr> cached_conversion(detail::RuntimeState& runtime, ElementType from,
                                      ElementType to, int rank, const ConvertOptions& options) {
  const uint64_t key =
      static_cast<uint64_t>(from) | static_cast<uint64_t>(to) << 8 |
      static_cast<uint64_t>(rank) << 16 | static_cast<uint64_t>(options.overflow) << 24 |
      static_cast<uint64_t>(options.rounding) << 32 | static_cast<uint64_t>(options.nan) << 40;
  KernelTable& table = runtime.table.get();
  if (FunctionPtr known = table.find_conversion(key)) return known;
  Result<FunctionPtr> function = conversion_function(from, to, rank, options);
  if (!function.ok()) return function;
  return table.add_conversion(key, std::move(function).value());
}

}  // namespace

std::string_view version() { return CASTOR_VERSION; }

Result<std::shared_ptr<detail::RuntimeState>> detail::make_runtime(const RuntimeOptions& options,
                                                                   const jit::SystemCalls& system) {
  auto state = std::make_shared<RuntimeState>(system);
  state->cache_bytes = options.cache_bytes;
  Result<std::shared_ptr<Observer>> observer = Observer::create(options.observe, system);
  if (!observer.ok()) return observer.error();
  state->observer = std::move(observer).value();
  if (options.interpret) {
    state->interpreted_because = "the runtime was asked to interpret";
    return state;
  }
  if (!options.tier && !jit::host().best) {
    state->interpreted_because =
        fmt::format("this CPU ({}) lacks AVX2, FMA, F16C or BMI2", jit::host().cpu);
    return state;
  }
  Result<jit::Target> target = jit::choose_target(options.tier);
  if (!target.ok()) return target.error();
  state->target = *target;
  state->store = std::make_shared<CodeStore>(system_calls_for(options.observe, system),
                                             options.cache_bytes / 2, state->observer);
  return state;
}

Result<Runtime> Runtime::create(const RuntimeOptions& options) {
  try {
    Result<std::shared_ptr<detail::RuntimeState>> state =
        detail::make_runtime(options, jit::SystemCalls::real());
    if (!state.ok()) return state.error();
    return Runtime(std::move(state).value());
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

Result<Kernel> Runtime::compile(const FunctionPtr& function) const {
  if (function == nullptr) {
    return Error{ErrorCode::invalid_argument, "compile: no function (null)"};
  }
  try {
    Result<KernelStatePtr> kernel = kernel_of(*state_, function);
    if (!kernel.ok()) return kernel.error();
    return Kernel(std::move(kernel).value());
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

Result<Kernel> Runtime::compile(std::string_view text, std::string_view name) const {
  try {
    Result<FunctionPtr> function = parse_function(text, name);
    if (!function.ok()) {
      if (state_->observer) state_->observer->refused("compile", function.error());
      return function.error();
    }
    return compile(*function);
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

Status Runtime::convert(const ConstView& source, const View& destination,
                        const ConvertOptions& options) const {
  try {
    Result<FunctionPtr> function = cached_conversion(*state_, source.element, destination.element,
                                                     source.shape.rank(), options);
    if (!function.ok()) return function.error();
    Result<Kernel> kernel = compile(*function);
    if (!kernel.ok()) return kernel.error();
    const std::span inputs(&source, 1);
    const std::span outputs(&destination, 1);
    Result<BoundKernel> bound = kernel->bind(inputs, outputs);
    if (!bound.ok()) return bound.error();
    return bound->run(inputs, outputs);
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

Status Runtime::observation() const {
  if (!state_->observer) return {};
  std::optional<Error> failure = state_->observer->failure();
  if (!failure) return {};
  return std::move(*failure);
}

std::optional<Tier> Runtime::tier() const {
  if (!state_->target) return std::nullopt;
  return state_->target->tier;
}

CacheStatistics Runtime::statistics() const {
  CacheStatistics statistics;
  statistics.functions = state_->functions.load(std::memory_order_relaxed);
  statistics.function_hits = state_->function_hits.load(std::memory_order_relaxed);
  if (state_->store) {
    const CodeCache& cache = state_->store->cache;
    statistics.codes = cache.compiled();
    statistics.code_hits = cache.hits();
    statistics.code_bytes = cache.bytes();
  }
  return statistics;
}

}  // namespace castor
