// SPDX-License-Identifier: Apache-2.0
// Looking up the packed weights of a convolution that is bound: by what they are packed from, and
// by everything that their layout depends on.
#pragma once

#include <array>
#include <optional>

#include "jit/target.hpp"
#include "runtime/conv/convolution_step.hpp"
#include "runtime/memory/weight_store.hpp"

namespace castor::detail {

/// Where packed weights come from, and what the operands of a convolution hold.
struct WeightSharing {
  WeightStore* store = nullptr;  ///< null: nothing is shared
  /// Content ids of operands, by number; of those that are constants.
  std::array<std::optional<std::array<uint64_t, 2>>, 4> contents = {};
};

/// What the layout of packed weights depends on, number by number.
class WeightForm {
 public:
  /// `kind` is a literal, unlike those of all other layouts.
  WeightForm(std::string_view kind, const jit::Target& target, bool w_is_signed) : key_(kind) {
    add(target.tier, w_is_signed);
  }

  template <class... Number>
  WeightForm& add(Number... numbers) {
    (add_number(static_cast<int64_t>(numbers)), ...);
    return *this;
  }
  const std::string& key() const { return key_; }

 private:
  void add_number(int64_t number);
  std::string key_;
};

/// Which operands weights are packed from: w, and its zero points if there are any (else -1).
struct WeightSources {
  int zero_points = -1;
  bool zero_points_per_channel = false;
};

/// The weights in that form, which `pack` makes of constants where they are not there yet. Throws
/// std::bad_alloc.
Result<PackedDwords> share_weights(const WeightSharing& sharing, WeightForm form,
                                   const WeightSources& from, size_t dwords,
                                   const PackDwords& pack);

}  // namespace castor::detail
