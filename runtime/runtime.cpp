// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "ir/support/enumeration.hpp"
#include "jit/emulated_features.hpp"
#include "jit/tile_permission.hpp"
#include "runtime/check/check_views.hpp"
#include "runtime/observe/observer.hpp"
#include "runtime/runtime_state.hpp"

namespace castor {

std::string_view version() { return CASTOR_VERSION; }

namespace {

Status check_options(const RuntimeOptions& options) {
  if (options.tier) {
    Status status = check_enumeration("tier", *options.tier, jit::tier_count);
    if (!status) return status;
  }
  if (options.core) {
    Status status = check_enumeration("core", *options.core, jit::core_count);
    if (!status) return status;
  }
  return check_enumeration("log_level", options.observe.log_level,
                           static_cast<size_t>(LogLevel::error) + 1);
}

bool asks_for_a_tier(const RuntimeOptions& options) {
  const char* named = std::getenv("CASTOR_ISA");
  return options.tier || (named != nullptr && *named != '\0');
}

}  // namespace

Result<std::shared_ptr<detail::RuntimeState>> detail::make_runtime(const RuntimeOptions& options,
                                                                   const jit::SystemCalls& system) {
  if (Status status = check_options(options); !status) return status.error();
  // Kernels in use keep at least half of the executable memory where that is bounded.
  const size_t cache_bytes = std::min(options.cache_bytes, options.code_bytes_limit / 2);
  auto state = std::make_shared<RuntimeState>(system, cache_bytes);
  Result<RuntimeMemoryPtr> memory =
      make_runtime_memory(options.allocator, options.packed_weights, system);
  if (!memory.ok()) return memory.error();
  state->memory = std::move(memory).value();
  Result<std::shared_ptr<Observer>> observer = Observer::create(options.observe, system);
  if (!observer.ok()) return observer.error();
  state->observer = std::move(observer).value();
  state->executor = options.executor;
  state->limits = options.limits;
  if (options.interpret) {
    state->interpreted_because = "the runtime was asked to interpret";
    return state;
  }
  if (!options.tier && !jit::host().best) {
    state->interpreted_because =
        fmt::format("this CPU ({}) lacks AVX2, FMA, F16C or BMI2", jit::host().cpu);
    return state;
  }
  Result<jit::Target> target = jit::choose_target(options.tier, options.core);
  if (!target.ok()) return target.error();
  state->target = *target;
  state->target->frame_pointers = options.frame_pointers;
  if (!asks_for_a_tier(options)) state->lower_tier_because = jit::best_tier_lower_because();
  const jit::SystemCalls of_tier = jit::system_calls_for(target->tier, system);
  state->store =
      std::make_shared<CodeStore>(system_calls_for(options.observe, of_tier), cache_bytes / 2,
                                  state->observer, options.code_bytes_limit);
  // Kernels may outlive the runtime, and the store with them.
  state->store->cache.set_make_room([table = std::weak_ptr(state->table)] {
    if (const auto living = table.lock()) living->get().clear_kernels();
  });
  return state;
}

Result<Runtime> Runtime::create(const RuntimeOptions& options) {
  return detail::guarded_call([&]() -> Result<Runtime> {
    Result<std::shared_ptr<detail::RuntimeState>> state =
        detail::make_runtime(options, jit::SystemCalls::real());
    if (!state.ok()) return state.error();
    return Runtime(std::move(state).value());
  });
}

Result<Kernel> Runtime::compile(const FunctionPtr& function) const {
  return detail::guarded_call([&]() -> Result<Kernel> {
    if (function == nullptr) {
      return Error{ErrorCode::invalid_argument, "compile: no function (null)"};
    }
    if (Status status = check_limits(*function, state_->limits); !status) return status.error();
    Result<KernelStatePtr> kernel = state_->table->get().get(function, *state_);
    if (!kernel.ok()) return kernel.error();
    return Kernel(std::move(kernel).value());
  });
}

Result<Kernel> Runtime::compile(std::string_view text, std::string_view name) const {
  Result<FunctionPtr> function = parse_function(text, name, {{}, state_->limits});
  if (function.ok()) return compile(*function);
  if (state_->observer) state_->observer->refused("compile", function.error());
  return function.error();
}

namespace {

Status check_elements(ElementType source, ElementType destination) {
  if (Status status = check_element("source", source); !status) return status;
  return check_element("destination", destination);
}

}  // namespace

Status Runtime::convert(const ConstView& source, const View& destination,
                        const ConvertOptions& options) const {
  return detail::guarded_call([&]() -> Status {
    if (Status status = check_elements(source.element, destination.element); !status) return status;
    const Result<FunctionPtr> function = state_->table->get().get_conversion(
        source.element, destination.element, source.shape.rank(), options);
    if (!function.ok()) return function.error();
    Result<Kernel> kernel = compile(*function);
    if (!kernel.ok()) return kernel.error();
    const std::span inputs(&source, 1);
    const std::span outputs(&destination, 1);
    Result<BoundKernel> bound = kernel->bind(inputs, outputs);
    if (!bound.ok()) return bound.error();
    return bound->run(inputs, outputs);
  });
}

Status Runtime::observation() const {
  return detail::guarded_call([&]() -> Status {
    if (!state_->observer) return {};
    std::optional<Error> failure = state_->observer->failure();
    if (!failure) return {};
    return std::move(*failure);
  });
}

std::optional<Tier> Runtime::tier() const {
  if (!state_->target) return std::nullopt;
  return state_->target->tier;
}

MemoryStatistics Runtime::memory() const {
  MemoryStatistics statistics;
  statistics.scratch_bytes = state_->memory->scratch->bytes();
  statistics.packed_weight_bytes = state_->memory->weights->statistics().bytes;
  if (state_->store) statistics.code_bytes = state_->store->memory.mapped_bytes();
  return statistics;
}

CacheStatistics Runtime::statistics() const {
  CacheStatistics statistics;
  try {
    KernelTable& table = state_->table->get();
    const CacheCounters functions = table.kernel_counters();
    statistics.functions = functions.made;
    statistics.function_hits = functions.hits;
    statistics.function_misses = functions.misses;
    statistics.function_evictions = functions.evictions;
    statistics.function_compile_ns = functions.make_ns;
    statistics.function_bytes = functions.bytes + table.conversion_counters().bytes;
    if (!state_->store) return statistics;
    const CacheCounters codes = state_->store->cache.counters();
    statistics.codes = codes.made;
    statistics.code_hits = codes.hits;
    statistics.code_misses = codes.misses;
    statistics.code_evictions = codes.evictions;
    statistics.code_compile_ns = codes.make_ns;
    statistics.code_bytes = codes.bytes;
  } catch (...) {  // std::bad_alloc, for a cache that nobody used yet: it counted nothing
  }
  return statistics;
}

}  // namespace castor
