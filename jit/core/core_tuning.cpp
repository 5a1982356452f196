// SPDX-License-Identifier: Apache-2.0
#include "jit/core/core_tuning.hpp"

#include "ir/support/enumeration.hpp"
#include "jit/target.hpp"

namespace castor::jit {

namespace {

/// In the order of `Core`.
constexpr std::array<CoreTuning, core_count> table = {{
    {.core = Core::generic},
    {.core = Core::zen4},
    {.core = Core::zen5},
    {.core = Core::golden_cove},
}};

constexpr bool is_sorted_by_core() {
  for (size_t i = 0; i < table.size(); ++i) {
    if (table[i].core != static_cast<Core>(i)) return false;
  }
  return true;
}
static_assert(is_sorted_by_core());

constexpr std::array<std::string_view, 1> port_models = {"zen4"};

}  // namespace

std::string_view name_of(PortModel model) { return name_in(port_models, model); }

const CoreTuning& tuning_of(Core core) {
  const auto number = static_cast<size_t>(core);
  return table[number < table.size() ? number : 0];
}

const CoreTuning& Target::tuning() const { return tuning_of(core); }

}  // namespace castor::jit
