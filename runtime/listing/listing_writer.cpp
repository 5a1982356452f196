// SPDX-License-Identifier: Apache-2.0
#include <castor/listing.hpp>

#include "jit/listing/listing.hpp"

namespace castor {

ListingWriter listing_writer() {
  return [](const jit::MachineCode& code) { return jit::listing(code); };
}

}  // namespace castor
