// SPDX-License-Identifier: Apache-2.0
// Listings in C.
#include <castor/listing.h>
#include <castor/listing.hpp>

#include <fmt/format.h>

#include "jit/target.hpp"
#include "runtime/c/guard.hpp"
#include "runtime/c/handles.hpp"
#include "runtime/listing/listing_writer.hpp"

namespace castor {

namespace {

/// The tier asked for, else the one in use, else avx2.
Result<Tier> dumped_tier(castor_tier tier) {
  if (tier < 0 || tier > jit::tier_count) {
    return c::invalid(fmt::format("tier {}, expected 0 to {}", tier, jit::tier_count));
  }
  if (tier != CASTOR_TIER_AUTOMATIC) return static_cast<Tier>(tier - 1);
  const Result<jit::Target> chosen = jit::choose_target({});
  return chosen ? chosen->tier : Tier::avx2;
}

Result<Core> dumped_core(castor_core core) {
  if (core < 0 || core > jit::core_count) {
    return c::invalid(fmt::format("core {}, expected 0 to {}", core, jit::core_count));
  }
  return core == CASTOR_CORE_AUTOMATIC ? Core::generic : static_cast<Core>(core - 1);
}

Result<DumpStage> dumped_stage(castor_dump_stage stage) {
  if (stage < CASTOR_DUMP_IR || stage > CASTOR_DUMP_ASSEMBLY) {
    return c::invalid(fmt::format("stage {}, expected {} to {}", stage,
                                  static_cast<int>(CASTOR_DUMP_IR),
                                  static_cast<int>(CASTOR_DUMP_ASSEMBLY)));
  }
  return static_cast<DumpStage>(stage - 1);
}

}  // namespace

}  // namespace castor

extern "C" castor_status castor_bound_kernel_listing(const castor_bound_kernel* bound,
                                                     castor_text** text,
                                                     castor_error* error) noexcept {
  using namespace castor;
  return c::guarded_make(error, text, [&](std::unique_ptr<castor_text>& made) -> Status {
    if (Status status = c::needed(bound, "bound kernel"); !status) return status;
    Result<std::string> lines = listing(bound->kernel);
    if (!lines) return lines.error();
    made = std::make_unique<castor_text>(castor_text{std::move(lines).value()});
    return {};
  });
}

extern "C" castor_status castor_function_dump(const castor_function* function,
                                              castor_dump_stage stage, castor_tier tier,
                                              castor_core core, castor_text** text,
                                              castor_error* error) noexcept {
  using namespace castor;
  return c::guarded_make(error, text, [&](std::unique_ptr<castor_text>& made) -> Status {
    if (Status status = c::needed(function, "function"); !status) return status;
    const Result<DumpStage> which = dumped_stage(stage);
    if (!which) return which.error();
    const Result<Tier> of_tier = dumped_tier(tier);
    if (!of_tier) return of_tier.error();
    const Result<Core> of_core = dumped_core(core);
    if (!of_core) return of_core.error();
    Result<std::string> lines = dump(function->function, *which, *of_tier, *of_core);
    if (!lines) return lines.error();
    made = std::make_unique<castor_text>(castor_text{std::move(lines).value()});
    return {};
  });
}

extern "C" const castor_disassembler* castor_listing_writer() noexcept {
  static constinit const castor_disassembler writer = {castor::detail::write_listing};
  return &writer;
}
