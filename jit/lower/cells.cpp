// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/cells.hpp"

#include <algorithm>
#include <atomic>
#include <memory>

#include "jit/lower/small_values.hpp"

namespace castor::jit {

namespace {

/// The conversion of magnitudes: of numbers and infinity, by their bits.
class Magnitudes {
 public:
  Magnitudes(ElementType words, ElementType to, const ConvertOptions& options)
      : words_(words), to_(to), options_(options) {}

  int infinity() const {
    const FloatFormat& format = info(words_).format;
    return ((1 << format.exponent_bits) - 1) << format.mantissa_bits;
  }
  int code(int bits) const { return converted_word(bits, words_, to_, options_); }

 private:
  ElementType words_;
  ElementType to_;
  ConvertOptions options_;
};

/// Cells of one place of the destination's significand, as far as low bits fit a byte.
int cell_shift(ElementType words, ElementType to) {
  return std::min(7, info(words).format.mantissa_bits - info(to).format.mantissa_bits);
}

/// The least of the numbers from `low` to `high` for which `holds`, which does for `high` and, once
/// it does, for all above.
template <class Holds>
int first_that(int low, int high, Holds holds) {
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (holds(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/// One cell, of which `code` gives the codes by low bits: the first one, and from which low bits on
/// the next one holds; nothing if there are others in it. Codes ascend.
template <class CodeOf>
std::optional<uint16_t> cell_entry(CodeOf code, int shift) {
  constexpr int never = 0xff;
  const int last_low = (1 << shift) - 1;
  const int first = code(0);
  const int last = code(last_low);
  if (last != first && last != first + 1) return std::nullopt;
  const int threshold =
      last == first ? never : first_that(0, last_low, [&](int low) { return code(low) != first; });
  return static_cast<uint16_t>(threshold << 8 | first);
}

/// How NaNs get their codes; `top` is the code of the largest magnitudes.
void describe_nans(CellTable& table, ElementType words, ElementType to, int top,
                   const ConvertOptions& options) {
  const int quiet_nan = table.infinity | 1 << (info(words).format.mantissa_bits - 1);
  const int code = converted_word(quiet_nan, words, to, options);
  const int negative = converted_word(quiet_nan | 0x8000, words, to, options);
  table.nan_code = static_cast<uint8_t>(code);
  const bool has_payload = has_infinities(to);
  const bool same_rest = negative == (code | table.sign_bit) && table.sign == CellTable::copied;
  if (code == top && (same_rest || negative == code)) {
    table.nan = CellTable::as_magnitude;
  } else if (has_payload) {
    table.nan = CellTable::with_sign_and_payload;
  } else {
    table.nan = same_rest ? CellTable::with_sign : CellTable::constant;
  }
}

CellTable::Sign sign_rule(ElementType to) {
  if (to == ElementType::f8e8m0) return CellTable::negative_is_zero;
  return info(to).format.specials == FloatSpecials::fnuz ? CellTable::copied_unless_zero
                                                         : CellTable::copied;
}

/// nf4's cells: an eighth of a binade, positive numbers first. Codes descend as the magnitude of a
/// negative number grows, so its low bits count backward.
std::optional<CellTable> nf4_cells(ElementType words, const ConvertOptions& options) {
  const Magnitudes magnitudes(words, ElementType::nf4, options);
  const int shift = info(words).format.mantissa_bits - 3;
  const int one = info(words).format.bias << info(words).format.mantissa_bits;
  CellTable table;
  table.cells.index_bits = 7;
  table.shift = shift;
  table.base = static_cast<uint16_t>(one - (first_negative_cell - 1) * (1 << shift));
  table.most = static_cast<uint16_t>(one);
  table.infinity = static_cast<uint16_t>(magnitudes.infinity());
  table.sign = CellTable::selects;
  table.nan = CellTable::constant;
  const int last_low = (1 << shift) - 1;
  for (int i = 0; i < first_negative_cell; ++i) {
    const int first = table.base + (i << shift);
    const auto positive = [&](int low) { return magnitudes.code(first + low); };
    const auto negative = [&](int low) {
      return magnitudes.code(0x8000 | (first + last_low - low));
    };
    const std::optional<uint16_t> above = cell_entry(positive, shift);
    const std::optional<uint16_t> below = cell_entry(negative, shift);
    if (!above || !below) return {};
    table.cells.entries[static_cast<size_t>(i)] = *above;
    table.cells.entries[static_cast<size_t>(i + first_negative_cell)] = *below;
  }
  return table;
}

std::optional<CellTable> make_cells(ElementType words, ElementType to,
                                    const ConvertOptions& options) {
  if (to == ElementType::nf4) return nf4_cells(words, options);
  const Magnitudes magnitudes(words, to, options);
  const int infinity = magnitudes.infinity();
  const int shift = cell_shift(words, to);
  const int bottom = magnitudes.code(0);
  const int top = magnitudes.code(infinity);
  // What lies below the first cell, or above the last, has one code.
  const int first =
      first_that(0, infinity, [&](int bits) { return magnitudes.code(bits) != bottom; });
  const int last = first_that(0, infinity, [&](int bits) { return magnitudes.code(bits) == top; });
  const int base = std::max((first >> shift) - 1, 0) << shift;
  const int most = std::min(((last >> shift) + 1) << shift, infinity);
  const int count = ((most - base) >> shift) + 1;
  if (count > 256) return {};

  CellTable table;
  table.cells.index_bits = count <= 64 ? 6 : 8;
  table.shift = shift;
  table.base = static_cast<uint16_t>(base);
  table.most = static_cast<uint16_t>(most);
  table.infinity = static_cast<uint16_t>(infinity);
  table.sign = sign_rule(to);
  table.sign_bit =
      table.sign == CellTable::negative_is_zero ? 0 : static_cast<uint8_t>(1 << (bits_of(to) - 1));
  for (int i = 0; i < count; ++i) {
    const int begin = base + (i << shift);
    const auto code = [&](int low) { return magnitudes.code(std::min(begin + low, infinity)); };
    const std::optional<uint16_t> entry = cell_entry(code, shift);
    if (!entry) return {};
    table.cells.entries[static_cast<size_t>(i)] = *entry;
  }
  describe_nans(table, words, to, top, options);
  return table;
}

/// Tables are made once and kept for the life of the process, for making one takes longer than the
/// rest of a compilation. A slot is filled without a lock: who comes second drops what it made.
using Slot = std::atomic<const CellTable*>;

Slot& slot_of(ElementType words, ElementType to, const ConvertOptions& options) {
  static Slot slots[2][element_type_count][overflow_names.size()][rounding_names.size()];
  return slots[words == ElementType::f16 ? 0 : 1][static_cast<size_t>(to)]
              [static_cast<size_t>(options.overflow)][static_cast<size_t>(options.rounding)];
}

}  // namespace

std::optional<CellTable> encoding_cells(ElementType words, ElementType to,
                                        const ConvertOptions& options) {
  // Codes have to ascend with the magnitude, from zero to infinity.
  const bool ascends = options.nan == NanMode::by_type && options.overflow != Overflow::nan;
  if (bits_of(to) > 8 || !ascends) return std::nullopt;
  Slot& slot = slot_of(words, to, options);
  if (const CellTable* known = slot.load(std::memory_order_acquire)) return *known;
  const std::optional<CellTable> made = make_cells(words, to, options);
  if (!made) return std::nullopt;
  auto kept = std::make_unique<const CellTable>(*made);
  const CellTable* expected = nullptr;
  if (slot.compare_exchange_strong(expected, kept.get(), std::memory_order_release)) {
    static_cast<void>(kept.release());
  }
  return made;
}

}  // namespace castor::jit
