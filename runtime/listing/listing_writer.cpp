// SPDX-License-Identifier: Apache-2.0
#include "runtime/listing/listing_writer.hpp"

#include <castor/listing.hpp>

#include "ir/support/guarded.hpp"
#include "jit/listing/listing.hpp"

namespace castor {

Result<std::string> detail::write_listing(const jit::MachineCode& code) {
  return guarded([&] { return jit::listing(code); });
}

ListingWriter listing_writer() { return detail::write_listing; }

}  // namespace castor
