// SPDX-License-Identifier: Apache-2.0
// A number that is cut to a small integer needs few bits of its significand, and its exponent only
// in a small range. Integers move one way as the magnitude grows, so that all numbers from one to
// another have one code where these two have.
#include "jit/lower/class_table.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "jit/lower/kept_tables.hpp"
#include "jit/lower/small_values.hpp"

namespace castor::jit {

namespace {

constexpr int upper_bytes = 128;  // without their sign
constexpr int sign = 0x8000;
constexpr uint8_t infinity_mark = 0x80;

/// The codes of all numbers with one upper byte: positive ones by the upper bits of the lower byte,
/// then negative ones.
using Codes = std::vector<uint8_t>;

class ClassTableBuilder {
 public:
  ClassTableBuilder(ElementType from, ElementType to, const ConvertOptions& options)
      : from_(from), to_(to), options_(options) {
    table_.infinity = static_cast<uint16_t>(infinity_bits(from));
  }

  std::optional<ClassTable> build() {
    for (int low_bits = 0; low_bits <= max_low_bits; ++low_bits) {
      table_.low_bits = low_bits;
      if (find_classes()) return fill() ? std::optional(table_) : std::nullopt;
    }
    return std::nullopt;
  }

 private:
  static constexpr int max_low_bits = 4;

  int code(int bits) const { return converted_code(bits, from_, to_, options_); }

  /// The code of the numbers from `first` to `last`, which are no NaNs as far as infinity; nothing
  /// if they have several.
  std::optional<int> common_code(int first, int last, int sign_bit) const {
    if (first > table_.infinity) return 0;
    const int lowest = code(sign_bit | first);
    return lowest == code(sign_bit | std::min<int>(last, table_.infinity)) ? std::optional(lowest)
                                                                           : std::nullopt;
  }

  /// Appends the codes of the numbers with that upper byte and sign. False if these need more low
  /// bits.
  bool add_codes(int upper, int sign_bit, Codes& codes) const {
    const auto count = size_t{1} << table_.low_bits;
    const int first = upper << 8;
    if (const auto all = common_code(first, first | 0xff, sign_bit)) {
      codes.insert(codes.end(), count, static_cast<uint8_t>(*all));
      return true;
    }
    const int step = 256 >> table_.low_bits;
    for (int i = 0; i < 256; i += step) {
      const auto one = common_code(first + i, first + i + step - 1, sign_bit);
      if (!one) return false;
      codes.push_back(static_cast<uint8_t>(*one));
    }
    return true;
  }

  /// Gives upper bytes whose numbers have equal codes one class.
  bool find_classes() {
    classes_.clear();
    for (int upper = 0; upper < upper_bytes; ++upper) {
      Codes codes;
      if (!add_codes(upper, 0, codes) || !add_codes(upper, sign, codes)) return false;
      const auto known = std::ranges::find(classes_, codes);
      class_of_[static_cast<size_t>(upper)] = static_cast<int>(known - classes_.begin());
      if (known == classes_.end()) classes_.push_back(codes);
    }
    return true;
  }

  bool has_negative_codes() const {
    const auto count = std::ptrdiff_t{1} << table_.low_bits;
    return std::ranges::any_of(classes_, [count](const Codes& codes) {
      return std::any_of(codes.begin() + count, codes.end(),
                         [](uint8_t code) { return code != 0; });
    });
  }

  /// Writes both tables. False if the index has too many bits.
  bool fill() {
    const int class_bits = std::bit_width(classes_.size() - 1);
    const int magnitude_bits = table_.low_bits + class_bits;
    const bool has_sign = has_negative_codes();
    const int index_bits = std::max(6, magnitude_bits + (has_sign ? 1 : 0));
    if (index_bits > 7) return false;
    table_.sign_bit = static_cast<uint16_t>(has_sign ? 1 << magnitude_bits : 0);
    table_.classes.index_bits = 7;
    table_.codes.index_bits = index_bits;
    for (int upper = 0; upper < upper_bytes; ++upper) {
      const int mark = upper == table_.infinity >> 8 ? infinity_mark : 0;
      table_.classes.entries[static_cast<size_t>(upper)] =
          static_cast<uint16_t>(class_of_[static_cast<size_t>(upper)] << table_.low_bits | mark);
    }
    const auto count = size_t{1} << table_.low_bits;
    for (size_t i = 0; i < classes_.size(); ++i) {
      for (size_t low = 0; low < count; ++low) {
        const size_t index = i << table_.low_bits | low;
        table_.codes.entries[index] = classes_[i][low];
        if (has_sign) table_.codes.entries[index | table_.sign_bit] = classes_[i][count + low];
      }
    }
    return true;
  }

  ElementType from_;
  ElementType to_;
  ConvertOptions options_;
  ClassTable table_;
  std::vector<Codes> classes_;
  std::array<int, upper_bytes> class_of_ = {};
};

}  // namespace

std::optional<ClassTable> class_table(ElementType from, ElementType to,
                                      const ConvertOptions& options) {
  // What is wrapped moves both ways.
  const bool wraps = options.overflow == Overflow::wrap;
  if (!is_integer(to) || bits_of(to) > 4 || wraps) return std::nullopt;
  static KeptTables<ClassTable> tables;
  return tables.get(from, to, options,
                    [](ElementType source, ElementType target, const ConvertOptions& how) {
                      return ClassTableBuilder(source, target, how).build();
                    });
}

}  // namespace castor::jit
