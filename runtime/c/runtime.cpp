// SPDX-License-Identifier: Apache-2.0
// Runtimes of the C API.
#include <castor/c/runtime.h>

#include <fmt/format.h>

#include "runtime/c/executor.hpp"
#include "runtime/c/guard.hpp"
#include "runtime/c/handles.hpp"
#include "runtime/c/kernel.hpp"
#include "runtime/c/limits.hpp"
#include "runtime/c/memory.hpp"
#include "runtime/c/observe.hpp"
#include "runtime/c/structs.hpp"
#include "runtime/c/tensor.hpp"

namespace castor::c {

namespace {

Result<RuntimeOptions> options_of(const castor_runtime_options* options) {
  castor_runtime_options given;
  constexpr size_t first_version = offsetof(castor_runtime_options, limits);
  Status status = read_struct(options, "castor_runtime_options", given, first_version);
  if (!status) return status.error();
  RuntimeOptions result;
  if (given.tier < 0 || given.tier > jit::tier_count) {
    return invalid(fmt::format("tier {}, expected 0 to {}", given.tier, jit::tier_count));
  }
  if (given.tier != CASTOR_TIER_AUTOMATIC) result.tier = static_cast<Tier>(given.tier - 1);
  if (given.core < 0 || given.core > jit::core_count) {
    return invalid(fmt::format("core {}, expected 0 to {}", given.core, jit::core_count));
  }
  if (given.core != CASTOR_CORE_AUTOMATIC) result.core = static_cast<Core>(given.core - 1);
  result.interpret = given.interpret != 0;
  result.frame_pointers = given.frame_pointers != 0;
  if (given.cache_bytes != 0) result.cache_bytes = given.cache_bytes;
  result.code_bytes_limit = limit_of(given.code_bytes_limit);
  if (given.packed_weights != nullptr) result.packed_weights = given.packed_weights->weights;
  std::optional<ExecutorFromC> executor;
  if (status = read_executor(given.executor, executor); !status) return status.error();
  if (executor) result.executor = std::make_shared<ExecutorFromC>(*executor);
  if (status = read_allocator(given.allocator, result.allocator); !status) return status.error();
  status = read_observe_options(given.observe, result.observe);
  if (!status) return status.error();
  if (status = read_limits(given.limits, result.limits); !status) return status.error();
  return result;
}

castor_statistics counters_in_c(const CacheStatistics& counters) {
  castor_statistics result = CASTOR_STATISTICS;
  result.functions = counters.functions;
  result.function_hits = counters.function_hits;
  result.function_misses = counters.function_misses;
  result.function_evictions = counters.function_evictions;
  result.function_compile_ns = counters.function_compile_ns;
  result.function_bytes = counters.function_bytes;
  result.codes = counters.codes;
  result.code_hits = counters.code_hits;
  result.code_misses = counters.code_misses;
  result.code_evictions = counters.code_evictions;
  result.code_compile_ns = counters.code_compile_ns;
  result.code_bytes = counters.code_bytes;
  return result;
}

castor_memory_statistics bytes_in_c(const MemoryStatistics& bytes) {
  castor_memory_statistics result = CASTOR_MEMORY_STATISTICS;
  result.scratch_bytes = bytes.scratch_bytes;
  result.packed_weight_bytes = bytes.packed_weight_bytes;
  result.code_bytes = bytes.code_bytes;
  return result;
}

}  // namespace

}  // namespace castor::c

extern "C" {

castor_status castor_runtime_create(const castor_runtime_options* options, castor_runtime** runtime,
                                    castor_error* error) noexcept {
  using namespace castor;
  return c::guarded_make(error, runtime, [&](std::unique_ptr<castor_runtime>& made) -> Status {
    const Result<RuntimeOptions> given = c::options_of(options);
    if (!given) return given.error();
    Result<Runtime> created = Runtime::create(*given);
    if (!created) return created.error();
    made = std::make_unique<castor_runtime>(castor_runtime{std::move(created).value()});
    return {};
  });
}

void castor_runtime_destroy(castor_runtime* runtime) noexcept { delete runtime; }

castor_tier castor_runtime_tier(const castor_runtime* runtime) noexcept {
  return runtime == nullptr ? CASTOR_TIER_NONE : castor::c::to_c(runtime->runtime.tier());
}

castor_status castor_runtime_compile(const castor_runtime* runtime, const castor_function* function,
                                     castor_kernel** kernel, castor_error* error) noexcept {
  using namespace castor;
  return c::guarded_make(error, kernel, [&](std::unique_ptr<castor_kernel>& made) -> Status {
    if (Status status = c::needed(runtime, "runtime"); !status) return status;
    if (Status status = c::needed(function, "function"); !status) return status;
    return c::make_kernel(runtime->runtime.compile(function->function), made);
  });
}

castor_status castor_runtime_compile_text(const castor_runtime* runtime, const char* text,
                                          size_t length, const char* name, castor_kernel** kernel,
                                          castor_error* error) noexcept {
  using namespace castor;
  return c::guarded_make(error, kernel, [&](std::unique_ptr<castor_kernel>& made) -> Status {
    if (Status status = c::needed(runtime, "runtime"); !status) return status;
    if (Status status = c::needed(text, length, "text"); !status) return status;
    return c::make_kernel(
        runtime->runtime.compile(std::string_view(text, length), name == nullptr ? "" : name),
        made);
  });
}

castor_status castor_convert(const castor_runtime* runtime, const castor_view* source,
                             const castor_view* destination, const castor_convert_options* options,
                             castor_error* error) noexcept {
  using namespace castor;
  return c::guarded(error, [&]() -> Status {
    if (Status status = c::needed(runtime, "runtime"); !status) return status;
    if (Status status = c::needed(source, "source"); !status) return status;
    if (Status status = c::needed(destination, "destination"); !status) return status;
    const Result<ConvertOptions> how = c::convert_options_of(options);
    if (!how) return how.error();
    ConstView from;
    if (Status status = c::read_view(*source, {"source"}, from); !status) return status;
    View to;
    if (Status status = c::read_view(*destination, {"destination"}, to); !status) return status;
    return runtime->runtime.convert(from, to, *how);
  });
}

castor_status castor_runtime_statistics(const castor_runtime* runtime,
                                        castor_statistics* statistics,
                                        castor_error* error) noexcept {
  using namespace castor;
  return c::guarded(error, [&]() -> Status {
    if (Status status = c::needed(runtime, "runtime"); !status) return status;
    return c::fill_struct(statistics, "castor_statistics",
                          [&] { return c::counters_in_c(runtime->runtime.statistics()); });
  });
}

castor_status castor_runtime_memory(const castor_runtime* runtime,
                                    castor_memory_statistics* statistics,
                                    castor_error* error) noexcept {
  using namespace castor;
  return c::guarded(error, [&]() -> Status {
    if (Status status = c::needed(runtime, "runtime"); !status) return status;
    return c::fill_struct(statistics, "castor_memory_statistics",
                          [&] { return c::bytes_in_c(runtime->runtime.memory()); });
  });
}

castor_status castor_runtime_observation(const castor_runtime* runtime,
                                         castor_error* error) noexcept {
  using namespace castor;
  return c::guarded(error, [&]() -> Status {
    if (Status status = c::needed(runtime, "runtime"); !status) return status;
    return runtime->runtime.observation();
  });
}

}  // extern "C"
