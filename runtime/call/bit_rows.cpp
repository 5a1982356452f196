// SPDX-License-Identifier: Apache-2.0
// A row is a string of bits, of which each step copies as many as one word holds from any bit of a
// byte on. In a word the string's first bit is the lowest, and where layouts fill bytes from the
// highest bit, the highest.
#include "runtime/call/bit_rows.hpp"

#include <cstring>

#include "ir/support/integer_math.hpp"

namespace castor::detail {

namespace {

template <class Part>
uint64_t read(const std::byte* at) {
  Part part;
  std::memcpy(&part, at, sizeof part);
  return part;
}

template <class Part>
void write(std::byte* at, uint64_t bits) {
  const auto part = static_cast<Part>(bits);
  std::memcpy(at, &part, sizeof part);
}

/// From 1 to 8 bytes, and no other: two parts, which may overlap, make any number.
uint64_t read_bytes(const std::byte* at, uint64_t count) {
  if (count == 8) return read<uint64_t>(at);
  if (count >= 4) return read<uint32_t>(at) | read<uint32_t>(at + count - 4) << (8 * (count - 4));
  if (count >= 2) return read<uint16_t>(at) | read<uint16_t>(at + count - 2) << (8 * (count - 2));
  return read<uint8_t>(at);
}

void write_bytes(std::byte* at, uint64_t bits, uint64_t count) {
  if (count == 8) return write<uint64_t>(at, bits);
  if (count >= 4) {
    write<uint32_t>(at, bits);
    return write<uint32_t>(at + count - 4, bits >> (8 * (count - 4)));
  }
  if (count == 1) return write<uint8_t>(at, bits);
  write<uint16_t>(at, bits);
  write<uint16_t>(at + count - 2, bits >> (8 * (count - 2)));
}

/// Words of strings whose bytes are filled from the lowest bit, or from the highest. Counts are
/// less than 64.
template <bool from_highest>
struct Word {
  static constexpr uint64_t of_bytes(uint64_t bytes) {
    return from_highest ? __builtin_bswap64(bytes) : bytes;
  }
  static constexpr uint64_t to_bytes(uint64_t word) { return of_bytes(word); }
  static constexpr uint64_t without_first(uint64_t word, uint64_t count) {
    return from_highest ? word << count : word >> count;
  }
  static constexpr uint64_t after(uint64_t count, uint64_t word) {
    return from_highest ? word >> count : word << count;
  }
  /// The first `count` bits of a word.
  static constexpr uint64_t first(uint64_t count) { return ~after(count, ~uint64_t{0}); }
};

/// Bits that a step copies at most: a word has them from any bit of its first byte on, and the next
/// step begins at the same bit of a byte.
constexpr uint64_t step_bits = 56;

/// A row, or what is left of it.
struct BitString {
  std::byte* at;
  uint64_t bit;   ///< where it begins in the byte there
  uint64_t left;  ///< bits

  bool has_whole_step() const { return bit + left >= 64; }
  void advance() {
    at += step_bits / 8;
    left -= step_bits;
  }
};

/// Rows by their number.
class RowBits {
 public:
  explicit RowBits(const BitRows& rows)
      : data_(rows.data),
        first_(static_cast<uint64_t>(rows.first * bits_of(rows.element))),
        step_(static_cast<uint64_t>(rows.row_step * bits_of(rows.element))),
        bits_(static_cast<uint64_t>(rows.columns * bits_of(rows.element))),
        end_(rows.data) {
    const uint64_t last = first_ + static_cast<uint64_t>(rows.rows - 1) * step_;
    if (step_ < max_step) end_ += (last + bits_ + 7) / 8;
  }

  uint64_t bits() const { return bits_; }
  bool are_short() const { return bits_ <= step_bits; }
  BitString row(int64_t number) const {
    const uint64_t begin = first_ + static_cast<uint64_t>(number) * step_;
    return {data_ + begin / 8, begin % 8, bits_};
  }

  /// The bytes of the next `count` bits, and others after them: of rows, or between two rows that
  /// are in the same page or in neighbours.
  uint64_t read(const BitString& row, uint64_t count) const {
    if (end_ - row.at >= 8) return detail::read<uint64_t>(row.at);
    return read_bytes(row.at, (row.bit + count + 7) / 8);
  }

 private:
  static constexpr uint64_t max_step = 8 * 2048;

  std::byte* data_;
  uint64_t first_;  // bits, as are the next two
  uint64_t step_;
  uint64_t bits_;
  const std::byte* end_;  ///< after the rows, or, where they are far apart, before them
};

/// What has been gathered is written word by word; bits that do not fill a byte are left to the
/// next word.
template <bool from_highest>
void gather(const BitRows& from, std::byte* to) {
  using Bits = Word<from_highest>;
  uint64_t pending = 0;
  uint64_t pending_bits = 0;  // less than 8
  const auto append = [&](uint64_t bytes, uint64_t bit, uint64_t mask, uint64_t count) {
    const uint64_t more = Bits::without_first(Bits::of_bytes(bytes), bit) & mask;
    pending |= Bits::after(pending_bits, more);
    pending_bits += count;
    write<uint64_t>(to, Bits::to_bytes(pending));
    to += pending_bits / 8;
    pending = Bits::without_first(pending, pending_bits & ~uint64_t{7});
    pending_bits %= 8;
  };
  const RowBits rows(from);
  const int64_t count = from.rows;
  if (rows.are_short()) {
    const uint64_t mask = Bits::first(rows.bits());
    for (int64_t number = 0; number < count; ++number) {
      const BitString row = rows.row(number);
      append(rows.read(row, rows.bits()), row.bit, mask, rows.bits());
    }
    return;
  }
  constexpr uint64_t step_mask = Bits::first(step_bits);
  for (int64_t number = 0; number < count; ++number) {
    BitString row = rows.row(number);
    for (; row.has_whole_step(); row.advance()) {
      append(read<uint64_t>(row.at), row.bit, step_mask, step_bits);
    }
    if (row.left > step_bits) {
      append(rows.read(row, step_bits), row.bit, step_mask, step_bits);
      row.advance();
    }
    append(rows.read(row, row.left), row.bit, Bits::first(row.left), row.left);
  }
}

/// Writes rows whose bits are consecutive in `from_`.
template <bool from_highest>
class Scatterer {
 public:
  Scatterer(const std::byte* from, const BitRows& to) : from_(from), rows_(to) {}

  void copy_short(int64_t number) const {
    merge(rows_.row(number), static_cast<uint64_t>(number) * rows_.bits(), rows_.bits());
  }

  /// Writes whole words while there are more; the bytes of the last keep other bits.
  void copy_long(int64_t number) const {
    uint64_t done = static_cast<uint64_t>(number) * rows_.bits();
    BitString row = rows_.row(number);
    uint64_t before = Bits::of_bytes(read<uint8_t>(row.at)) & Bits::first(row.bit);
    for (; row.has_whole_step(); row.advance()) {
      const uint64_t word = before | taken(done, row.bit);
      write<uint64_t>(row.at, Bits::to_bytes(word));
      before = Bits::without_first(word, step_bits);
      done += step_bits;
    }
    if (row.left > step_bits) {
      merge(row, done, step_bits);
      row.advance();
      done += step_bits;
    }
    merge(row, done, row.left);
  }

 private:
  using Bits = Word<from_highest>;

  /// The bits after the first `done` ones, of which the first is to become that bit of a byte.
  uint64_t taken(uint64_t done, uint64_t bit) const {
    const uint64_t word = Bits::of_bytes(read<uint64_t>(from_ + done / 8));
    return Bits::after(bit, Bits::without_first(word, done % 8));
  }

  void merge(const BitString& row, uint64_t done, uint64_t count) const {
    const uint64_t before = Bits::of_bytes(rows_.read(row, count));
    const uint64_t mask = Bits::after(row.bit, Bits::first(count));
    const uint64_t changed = before ^ ((before ^ taken(done, row.bit)) & mask);
    write_bytes(row.at, Bits::to_bytes(changed), (row.bit + count + 7) / 8);
  }

  const std::byte* from_;
  const RowBits rows_;
};

/// Rows that follow one another may share bytes, and a load soon after a narrower store to its
/// bytes waits for it: so neighbours are written some rows apart.
template <class Copy>
void for_each_apart(int64_t rows, const Copy& copy) {
  constexpr int64_t parts = 8;
  const int64_t part_rows = ceil_div(rows, parts);
  for (int64_t first = 0; first < part_rows; ++first) {
    for (int64_t number = first; number < rows; number += part_rows) copy(number);
  }
}

template <bool from_highest>
void scatter(const std::byte* from, const BitRows& to) {
  const Scatterer<from_highest> scatterer(from, to);
  if (RowBits(to).are_short()) {
    for_each_apart(to.rows, [scatterer](int64_t number) { scatterer.copy_short(number); });
  } else {
    for_each_apart(to.rows, [scatterer](int64_t number) { scatterer.copy_long(number); });
  }
}

}  // namespace

void gather_bit_rows(const BitRows& from, std::byte* to) {
  const bool from_highest = info(from.element).order == StorageOrder::msb_first;
  from_highest ? gather<true>(from, to) : gather<false>(from, to);
}

void scatter_bit_rows(const std::byte* from, const BitRows& to) {
  const bool from_highest = info(to.element).order == StorageOrder::msb_first;
  from_highest ? scatter<true>(from, to) : scatter<false>(from, to);
}

}  // namespace castor::detail
