// SPDX-License-Identifier: Apache-2.0
// Runtimes of the C API.
#include <castor/c/runtime.h>

#include <fmt/format.h>

#include "runtime/c/guard.hpp"
#include "runtime/c/handles.hpp"
#include "runtime/c/kernel.hpp"
#include "runtime/c/structs.hpp"
#include "runtime/c/tensor.hpp"

namespace castor::c {

namespace {

constexpr size_t runtime_options_1 = sizeof(castor_runtime_options);
constexpr size_t statistics_1 = sizeof(castor_statistics);

Result<RuntimeOptions> options_of(const castor_runtime_options* options) {
  castor_runtime_options given;
  Status status = read_struct(options, runtime_options_1, "castor_runtime_options", given);
  if (!status) return status.error();
  RuntimeOptions result;
  if (given.tier < 0 || given.tier > jit::tier_count) {
    return invalid(fmt::format("tier {}, expected 0 to {}", given.tier, jit::tier_count));
  }
  if (given.tier != CASTOR_TIER_AUTOMATIC) result.tier = static_cast<Tier>(given.tier - 1);
  result.interpret = given.interpret != 0;
  if (given.cache_bytes != 0) result.cache_bytes = given.cache_bytes;
  return result;
}

castor_statistics counters_in_c(const CacheStatistics& counters) {
  castor_statistics result = CASTOR_STATISTICS;
  result.functions = counters.functions;
  result.function_hits = counters.function_hits;
  result.codes = counters.codes;
  result.code_hits = counters.code_hits;
  result.code_bytes = counters.code_bytes;
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
    if (Status status = c::needed(statistics, "statistics"); !status) return status;
    Status status = c::check_struct_size(statistics, c::statistics_1, sizeof(castor_statistics),
                                         "castor_statistics");
    if (!status) return status;
    c::write_struct(c::counters_in_c(runtime->runtime.statistics()), statistics);
    return {};
  });
}

}  // extern "C"
