// SPDX-License-Identifier: Apache-2.0
#include "runtime/listing/listing_writer.hpp"

#include <castor/listing.hpp>

#include <cstdlib>

#include "ir/support/guarded.hpp"
#include "jit/listing/listing.hpp"
#include "jit/target.hpp"

namespace castor {

namespace {

/// The model of the core that CASTOR_CORE names, else of the machine's: no writer is told of
/// others.
jit::PortModel model_in_use() {
  const jit::CpuIdentity& identity = jit::host().identity;
  const auto choice = jit::choose_core({}, identity, std::getenv("CASTOR_CORE"));
  return jit::port_model_of(choice ? choice->core : jit::Core::generic, identity);
}

}  // namespace

Result<std::string> detail::write_listing(const jit::MachineCode& code) {
  return guarded([&] { return jit::listing(code, {.model = model_in_use()}); });
}

ListingWriter listing_writer() { return detail::write_listing; }

}  // namespace castor
