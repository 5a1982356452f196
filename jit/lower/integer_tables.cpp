// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/integer_tables.hpp"

#include <algorithm>

#include "jit/lower/convert.hpp"
#include "jit/lower/small_values.hpp"

namespace castor::jit {

namespace {

/// Integers of `index_bits` bits, as the index of a table.
struct Range {
  int index_bits;
  int64_t min;
  int64_t max;
};

Range range_of(int index_bits, bool is_signed) {
  if (!is_signed) return {index_bits, 0, (int64_t{1} << index_bits) - 1};
  const int64_t above = int64_t{1} << (index_bits - 1);
  return {index_bits, -above, above - 1};
}

/// The codes of the range, by the low bits of its integers, of those of all bytes.
ByteTable table_of(const ByteTable& bytes, const Range& range) {
  ByteTable table;
  table.index_bits = range.index_bits;
  const int64_t mask = (int64_t{1} << range.index_bits) - 1;
  for (int64_t value = range.min; value <= range.max; ++value) {
    table.entries[static_cast<size_t>(value & mask)] =
        bytes.entries[static_cast<size_t>(value & 0xff)];
  }
  return table;
}

/// The smallest range whose limits have the codes of all integers beyond them. One of 64 costs no
/// more where the target looks them up at once, and needs no mask.
Range sufficient_range(const LaneBuilder& builder, const ByteTable& bytes, bool is_signed) {
  const auto code = [&](int64_t value) { return bytes.entries[static_cast<size_t>(value & 0xff)]; };
  const Range all = range_of(8, is_signed);
  for (const int index_bits : {4, 6}) {
    const Range range = range_of(index_bits, is_signed);
    if (code(range.min) != code(all.min) || code(range.max) != code(all.max)) continue;
    const bool is_masked =
        is_signed && index_bits == 4 && !has_zero_of_negative(table_of(bytes, range));
    if (!is_masked || !builder.has_look_up(6)) return range;
  }
  return all;
}

/// Lanes clamped to the range.
LaneId clamped(LaneBuilder& builder, LaneId lanes, const Range& range) {
  const LaneType type = integer_lane(bits_of(builder.type_of(lanes)));
  const auto number = [&](int64_t value) {
    return builder.constant(type, static_cast<uint64_t>(value));
  };
  if (range.min == 0) return builder.min_unsigned(lanes, number(range.max));
  return builder.max_signed(builder.min_signed(lanes, number(range.max)), number(range.min));
}

/// The index of a table of bytes, whose bit 7 counts where they have 16 entries.
LaneId byte_index(LaneBuilder& builder, LaneId bytes, const Range& range, const ByteTable& table) {
  if (range.min < 0 && has_zero_of_negative(table)) {
    return builder.min_signed(bytes,
                              builder.constant(LaneType::i8, static_cast<uint64_t>(range.max)));
  }
  const LaneId index = clamped(builder, bytes, range);
  const bool has_sign = range.min < 0 && range.index_bits == 4;
  return has_sign ? builder.bit_and(index, builder.constant(LaneType::i8, 0xf)) : index;
}

/// Whether the largest number is what overflow gives, and i8 has it.
bool is_within_bytes(ElementType to) {
  if (kind_of(to) == ElementKind::codebook) return true;
  return kind_of(to) == ElementKind::floating &&
         info(to).format.specials == FloatSpecials::finite && largest_finite(to) <= 127;
}

/// The codes of 512 integers from `first` on, by their low nine bits.
ByteTable table_of_nine_bits(int64_t first, ElementType to, const ConvertOptions& options) {
  ByteTable table;
  for (int64_t value = first; value < first + 512; ++value) {
    const auto index = static_cast<size_t>(value & 0x1ff);
    const int code = code_of_integer(value, to, options);
    uint16_t& entry = table.entries[index & 0xff];
    entry = static_cast<uint16_t>(entry | code << (index < 256 ? 0 : 8));
  }
  return table;
}

}  // namespace

std::optional<LaneTensor> convert_i16_by_table(LaneBuilder& builder, LaneTensor& source,
                                               ElementType to, const ConvertOptions& options) {
  const ElementType from = source.element();
  const bool has_form = bits_of(from) == 16 && source.natural_bits() == 16 &&
                        kind_of(to) == ElementKind::floating && largest_finite(to) < 0x1p9;
  if (!has_form || !builder.has_look_up(8)) return std::nullopt;
  const bool is_signed = is_signed_integer(from);
  // Where all numbers are below 2^8, signed ones are the index as they are.
  const bool is_own_index = is_signed && largest_finite(to) < 0x1p8;
  const auto word = [&](int64_t value) {
    return builder.constant(LaneType::i16, static_cast<uint64_t>(value));
  };
  const LaneId integer = source.as_integer(16);
  LaneId index = no_lane;
  if (is_own_index) {
    index = clamped(builder, integer, {9, -256, 255});
  } else {
    const LaneId size = is_signed ? builder.absolute(integer) : integer;
    index = builder.min_unsigned(size, word(511));
    if (is_signed) index = builder.merge_bits(0x8000, integer, index);
  }
  const ByteTable table = table_of_nine_bits(is_own_index ? -256 : 0, to, options);
  const Storable storable = {index, Narrowing::look_up_9_bits, builder.add_byte_table(table)};
  const LaneId value = builder.integer_to_float(source.as_integer(32), true, LaneType::f32);
  return LaneTensor::encoded(builder, to, storable, value, options);
}

std::optional<LaneTensor> convert_integer_by_table(LaneBuilder& builder, LaneTensor& source,
                                                   ElementType to, const ConvertOptions& options) {
  const ElementType from = source.element();
  if (!is_whole(from) || !is_within_bytes(to)) return std::nullopt;
  const bool is_signed = is_signed_integer(from);
  const ByteTable bytes =
      *conversion_table(is_signed ? ElementType::i8 : ElementType::u8, to, options);
  const Range range = sufficient_range(builder, bytes, is_signed);
  const ByteTable table = table_of(bytes, range);
  const int lane_bits = std::max(source.natural_bits(), bits_of(from));
  // In sixteens, bytes have tables that take fewer steps than a clamp and this one.
  if (lane_bits == 8 && !builder.has_look_up(range.index_bits)) return std::nullopt;
  const LaneId lanes = source.as_integer(lane_bits);
  if (lane_bits == 8) {
    const LaneId codes = builder.look_up(byte_index(builder, lanes, range, table), table);
    return LaneTensor::computed(builder, to, {codes, Narrowing::fits_unsigned});
  }
  const LaneId value = builder.integer_to_float(source.as_integer(std::max(lane_bits, 32)),
                                                is_signed, LaneType::f32);
  // Packs clamp signed lanes of up to 32 bits.
  const bool packs = is_signed && lane_bits <= 32;
  const Storable storable = {packs ? lanes : clamped(builder, lanes, range),
                             is_signed ? Narrowing::look_up_i8 : Narrowing::look_up_u8,
                             builder.add_byte_table(table)};
  return LaneTensor::encoded(builder, to, storable, value, options);
}

}  // namespace castor::jit
