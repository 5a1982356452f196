// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/weight_sharing.hpp"

namespace castor::detail {

void WeightForm::add_number(int64_t number) {
  key_.append(reinterpret_cast<const char*>(&number), sizeof number);
}

Result<PackedDwords> share_weights(const WeightSharing& sharing, WeightForm form,
                                   const WeightSources& from, size_t dwords,
                                   const PackDwords& pack) {
  if (sharing.store == nullptr) {
    return pack_alone(std::make_shared<MemorySource>(Allocator{}, "packed weights"), dwords, pack);
  }
  constexpr int weights = 1;
  for (const int operand : {weights, from.zero_points}) {
    if (operand < 0) continue;
    const auto& content = sharing.contents[static_cast<size_t>(operand)];
    if (!content) return Error{ErrorCode::internal, "packed weights: a constant has no content id"};
    form.add((*content)[0], (*content)[1]);
  }
  form.add(from.zero_points >= 0, from.zero_points_per_channel);
  return sharing.store->get(form.key(), dwords, pack);
}

}  // namespace castor::detail
