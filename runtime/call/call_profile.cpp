// SPDX-License-Identifier: Apache-2.0
#include "runtime/call/call_profile.hpp"

namespace castor::detail {

std::string_view name_of(Work work) {
  switch (work) {
    case Work::nest: return "nest";
    case Work::pack_weights: return "pack weights";
    case Work::pack_input: return "pack input";
    case Work::window_sums: return "window sums";
    case Work::block: return "block";
    case Work::transpose: return "transpose";
    case Work::epilogue: return "epilogue";
  }
  return "unknown";
}

WorkTotals CallProfile::totals(size_t nest, Work work) const {
  const Sums& sums = nests_[nest][static_cast<size_t>(work)];
  return {.parts = sums.parts,
          .nanoseconds = sums.nanoseconds,
          .amount = {.bytes_read = sums.bytes_read,
                     .bytes_written = sums.bytes_written,
                     .products = sums.products}};
}

}  // namespace castor::detail
