// SPDX-License-Identifier: Apache-2.0
// Allocators and packed weights of the C API.
#include "runtime/c/memory.hpp"

#include "runtime/c/guard.hpp"
#include "runtime/c/handles.hpp"
#include "runtime/c/structs.hpp"

namespace castor::c {

namespace {

Result<PackedWeightsOptions> options_of(const castor_packed_weights_options* options) {
  castor_packed_weights_options given;
  Status status = read_struct(options, "castor_packed_weights_options", given);
  if (!status) return status.error();
  PackedWeightsOptions result;
  status = read_allocator(given.allocator, result.allocator);
  if (!status) return status.error();
  result.bytes_limit = limit_of(given.bytes_limit);
  return result;
}

castor_weight_statistics counters_in_c(const PackedWeightsStatistics& counters) {
  castor_weight_statistics result = CASTOR_WEIGHT_STATISTICS;
  result.entries = counters.entries;
  result.bytes = counters.bytes;
  result.packs = counters.packs;
  result.hits = counters.hits;
  return result;
}

}  // namespace

Status read_allocator(const castor_allocator* given, Allocator& allocator) {
  castor_allocator fields;
  if (Status status = read_struct(given, "castor_allocator", fields); !status) return status;
  allocator = {.allocate = fields.allocate, .release = fields.release, .context = fields.context};
  return {};
}

}  // namespace castor::c

extern "C" {

castor_status castor_packed_weights_create(const castor_packed_weights_options* options,
                                           castor_packed_weights** weights,
                                           castor_error* error) noexcept {
  using namespace castor;
  return c::guarded_make(error, weights,
                         [&](std::unique_ptr<castor_packed_weights>& made) -> Status {
                           const Result<PackedWeightsOptions> given = c::options_of(options);
                           if (!given) return given.error();
                           Result<PackedWeights> created = PackedWeights::create(*given);
                           if (!created) return created.error();
                           made = std::make_unique<castor_packed_weights>(
                               castor_packed_weights{std::move(created).value()});
                           return {};
                         });
}

void castor_packed_weights_destroy(castor_packed_weights* weights) noexcept { delete weights; }

castor_status castor_packed_weights_statistics(const castor_packed_weights* weights,
                                               castor_weight_statistics* statistics,
                                               castor_error* error) noexcept {
  using namespace castor;
  return c::guarded(error, [&]() -> Status {
    if (Status status = c::needed(weights, "packed weights"); !status) return status;
    return c::fill_struct(statistics, "castor_weight_statistics",
                          [&] { return c::counters_in_c(weights->weights.statistics()); });
  });
}

}  // extern "C"
