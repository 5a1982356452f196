// SPDX-License-Identifier: Apache-2.0
// Tables of conversions that are kept for the life of the process.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "ir/types/convert_options.hpp"

namespace castor::jit {

/// The tables of conversions from f16 and bf16, each made once, for making one takes longer than
/// all else in a compilation; that there is none is kept too. A slot is filled without a lock: the
/// second thread drops its table.
template <class Table>
class KeptTables {
 public:
  /// The table that `make` makes, or made for an earlier call.
  template <class Make>
  const std::optional<Table>& get(ElementType from, ElementType to, const ConvertOptions& options,
                                  Make make) {
    Slot& slot = slot_of(from, to, options);
    if (const std::optional<Table>* known = slot.load(std::memory_order_acquire)) return *known;
    auto made = std::make_unique<const std::optional<Table>>(make(from, to, options));
    const std::optional<Table>* expected = nullptr;
    if (slot.compare_exchange_strong(expected, made.get(), std::memory_order_acq_rel)) {
      return *made.release();
    }
    return *expected;
  }

 private:
  using Slot = std::atomic<const std::optional<Table>*>;

  Slot& slot_of(ElementType from, ElementType to, const ConvertOptions& options) {
    return slots_[from == ElementType::f16 ? 0 : 1][static_cast<size_t>(to)][static_cast<size_t>(
        options.overflow)][static_cast<size_t>(options.rounding)][static_cast<size_t>(options.nan)];
  }

  Slot slots_[2][element_type_count][overflow_names.size()][rounding_names.size()]
             [nan_mode_names.size()] = {};
};

}  // namespace castor::jit
