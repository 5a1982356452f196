// SPDX-License-Identifier: Apache-2.0
// Listings in C.
#include <castor/listing.h>
#include <castor/listing.hpp>

#include "runtime/c/guard.hpp"
#include "runtime/c/handles.hpp"
#include "runtime/listing/listing_writer.hpp"

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

extern "C" const castor_disassembler* castor_listing_writer() noexcept {
  static constinit const castor_disassembler writer = {castor::detail::write_listing};
  return &writer;
}
