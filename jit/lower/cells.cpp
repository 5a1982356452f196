// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/cells.hpp"

#include <algorithm>

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

/// One cell: its first code, and from which low bits on the next one holds; nothing if there are
/// other codes in it.
std::optional<uint16_t> cell_entry(const Magnitudes& magnitudes, int first, int shift) {
  constexpr int never = 0xff;
  const int code = magnitudes.code(first);
  int threshold = never;
  for (int low = 1; low < 1 << shift && first + low <= magnitudes.infinity(); ++low) {
    const int here = magnitudes.code(first + low);
    if (here == code + 1 && threshold == never) threshold = low;
    if (here != (threshold == never ? code : code + 1)) return std::nullopt;
  }
  return static_cast<uint16_t>(threshold << 8 | code);
}

/// How NaNs get their codes; `top` is the code of the largest magnitudes.
void describe_nans(CellTable& table, ElementType words, ElementType to, int top,
                   const ConvertOptions& options) {
  const FloatFormat& format = info(to).format;
  const int quiet_nan = table.infinity | 1 << (info(words).format.mantissa_bits - 1);
  const int code = converted_word(quiet_nan, words, to, options);
  const int negative = converted_word(quiet_nan | 0x8000, words, to, options);
  table.nan_code = static_cast<uint8_t>(code);
  const bool has_payload = is_float(to) && format.specials == FloatSpecials::ieee;
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

}  // namespace

std::optional<CellTable> encoding_cells(ElementType words, ElementType to,
                                        const ConvertOptions& options) {
  if (bits_of(to) > 8 || to == ElementType::nf4 || options.nan != NanMode::by_type) return {};
  const Magnitudes magnitudes(words, to, options);
  const int infinity = magnitudes.infinity();
  const int shift = cell_shift(words, to);
  const int bottom = magnitudes.code(0);
  const int top = magnitudes.code(infinity);
  // What lies below the first cell, or above the last, has one code.
  int first = 0;
  while (magnitudes.code(first) == bottom && first < infinity) ++first;
  int last = infinity;
  while (last > 0 && magnitudes.code(last - 1) == top) --last;
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
    const std::optional<uint16_t> entry = cell_entry(magnitudes, base + (i << shift), shift);
    if (!entry) return {};
    table.cells.entries[static_cast<size_t>(i)] = *entry;
  }
  describe_nans(table, words, to, top, options);
  return table;
}

}  // namespace castor::jit
