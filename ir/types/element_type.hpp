// SPDX-License-Identifier: Apache-2.0
// The element types: one table from which every layer takes names, widths, limits and formats.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ir/support/export.hpp"

namespace castor {

/// The element types of OpenVINO, ONNX and OCP MX, and the same values in older storage layouts of
/// OpenVINO, in table order. The value indexes `element_table`; it differs between versions of
/// castor, unlike the numbers of the C API.
enum class ElementType : uint8_t {
  boolean,
  u1,
  u2,
  u3,
  u4,
  u6,
  u8,
  u16,
  u32,
  u64,
  i2,
  i4,
  i8,
  i16,
  i32,
  i64,
  f4e2m1,
  f6e2m3,
  f6e3m2,
  f8e4m3,
  f8e4m3fnuz,
  f8e5m2,
  f8e5m2fnuz,
  f8e8m0,
  bf16,
  f16,
  f32,
  f64,
  nf4,
  u1_lsb_first,
  u2_msb_first,
  u3_split,
  u6_split,
};
inline constexpr int element_type_count = static_cast<int>(ElementType::u6_split) + 1;

enum class ElementKind : uint8_t {
  boolean,  ///< one byte; 0 is false, any other byte reads as true; 1 is written
  unsigned_integer,
  signed_integer,  ///< two's complement
  floating,        ///< sign, exponent, mantissa: see FloatFormat
  power_of_two,    ///< f8e8m0: an exponent alone
  codebook,        ///< nf4: 16 values by table
};

/// How elements narrower than a byte share bytes; see `storage_bit` in ir/types/storage.hpp.
enum class StorageOrder : uint8_t {
  whole_bytes,  ///< little endian
  lsb_first,    ///< one stream of bits, from the least significant bit of each byte on
  msb_first,    ///< the first element in the most significant bits of a byte
  split,        ///< groups of three bytes: the low bits of each element, then its high bits
};

/// What the codes with the largest exponent mean.
enum class FloatSpecials : uint8_t {
  ieee,      ///< all-ones exponent: infinities and NaNs
  nan_only,  ///< all-ones code is NaN, no infinity (OCP E4M3)
  fnuz,      ///< one NaN (the code of -0), no infinity, no -0
  finite,    ///< every code is a number (OCP MX: E2M1, E2M3, E3M2)
};

/// Layout of a floating format. Value of a normal code: (-1)^s * 1.m * 2^(e - bias).
struct FloatFormat {
  int exponent_bits = 0;
  int mantissa_bits = 0;
  int bias = 0;
  FloatSpecials specials = FloatSpecials::ieee;
};

/// One row of the table.
struct ElementInfo {
  ElementType type;
  std::string_view name;  ///< an older layout's name is its type's, a dot, and the layout
  int bits;
  ElementKind kind;
  StorageOrder order;
  FloatFormat format;
  /// The type whose values it has, if it is one of OpenVINO's older storage layouts.
  std::optional<ElementType> older_layout_of = {};
};

// clang-format off
namespace detail {
using enum ElementKind;
using enum StorageOrder;
using enum FloatSpecials;
using T = ElementType;
}  // namespace detail

/// Formats: IEEE 754-2019 table 3.5 (f16, f32, f64); bfloat16; OCP OFP8 and MX (f8e4m3, f8e5m2,
/// f4e2m1, f6e2m3, f6e3m2, f8e8m0); the fnuz formats as ONNX float8 defines them; OpenVINO's element types.
inline constexpr std::array<ElementInfo, element_type_count> element_table = {{
    //  type                 name            bits  kind                      order                {e, m, bias, specials}  older layout of
    {detail::T::boolean,     "boolean",       8, detail::boolean,          detail::whole_bytes, {}},
    {detail::T::u1,          "u1",            1, detail::unsigned_integer, detail::msb_first,   {}},
    {detail::T::u2,          "u2",            2, detail::unsigned_integer, detail::lsb_first,   {}},
    {detail::T::u3,          "u3",            3, detail::unsigned_integer, detail::lsb_first,   {}},
    {detail::T::u4,          "u4",            4, detail::unsigned_integer, detail::lsb_first,   {}},
    {detail::T::u6,          "u6",            6, detail::unsigned_integer, detail::lsb_first,   {}},
    {detail::T::u8,          "u8",            8, detail::unsigned_integer, detail::whole_bytes, {}},
    {detail::T::u16,         "u16",          16, detail::unsigned_integer, detail::whole_bytes, {}},
    {detail::T::u32,         "u32",          32, detail::unsigned_integer, detail::whole_bytes, {}},
    {detail::T::u64,         "u64",          64, detail::unsigned_integer, detail::whole_bytes, {}},
    {detail::T::i2,          "i2",            2, detail::signed_integer,   detail::lsb_first,   {}},
    {detail::T::i4,          "i4",            4, detail::signed_integer,   detail::lsb_first,   {}},
    {detail::T::i8,          "i8",            8, detail::signed_integer,   detail::whole_bytes, {}},
    {detail::T::i16,         "i16",          16, detail::signed_integer,   detail::whole_bytes, {}},
    {detail::T::i32,         "i32",          32, detail::signed_integer,   detail::whole_bytes, {}},
    {detail::T::i64,         "i64",          64, detail::signed_integer,   detail::whole_bytes, {}},
    {detail::T::f4e2m1,      "f4e2m1",        4, detail::floating,         detail::lsb_first,   {2, 1, 1, detail::finite}},
    {detail::T::f6e2m3,      "f6e2m3",        6, detail::floating,         detail::lsb_first,   {2, 3, 1, detail::finite}},
    {detail::T::f6e3m2,      "f6e3m2",        6, detail::floating,         detail::lsb_first,   {3, 2, 3, detail::finite}},
    {detail::T::f8e4m3,      "f8e4m3",        8, detail::floating,         detail::whole_bytes, {4, 3, 7, detail::nan_only}},
    {detail::T::f8e4m3fnuz,  "f8e4m3fnuz",    8, detail::floating,         detail::whole_bytes, {4, 3, 8, detail::fnuz}},
    {detail::T::f8e5m2,      "f8e5m2",        8, detail::floating,         detail::whole_bytes, {5, 2, 15, detail::ieee}},
    {detail::T::f8e5m2fnuz,  "f8e5m2fnuz",    8, detail::floating,         detail::whole_bytes, {5, 2, 16, detail::fnuz}},
    {detail::T::f8e8m0,      "f8e8m0",        8, detail::power_of_two,     detail::whole_bytes, {8, 0, 127, detail::finite}},
    {detail::T::bf16,        "bf16",         16, detail::floating,         detail::whole_bytes, {8, 7, 127, detail::ieee}},
    {detail::T::f16,         "f16",          16, detail::floating,         detail::whole_bytes, {5, 10, 15, detail::ieee}},
    {detail::T::f32,         "f32",          32, detail::floating,         detail::whole_bytes, {8, 23, 127, detail::ieee}},
    {detail::T::f64,         "f64",          64, detail::floating,         detail::whole_bytes, {11, 52, 1023, detail::ieee}},
    {detail::T::nf4,         "nf4",           4, detail::codebook,         detail::lsb_first,   {}},
    {detail::T::u1_lsb_first, "u1.lsb_first",  1, detail::unsigned_integer, detail::lsb_first,   {}, detail::T::u1},
    {detail::T::u2_msb_first, "u2.msb_first",  2, detail::unsigned_integer, detail::msb_first,   {}, detail::T::u2},
    {detail::T::u3_split,    "u3.split",      3, detail::unsigned_integer, detail::split,       {}, detail::T::u3},
    {detail::T::u6_split,    "u6.split",      6, detail::unsigned_integer, detail::split,       {}, detail::T::u6},
}};
// clang-format on

/// Whether a number that came from outside is one of the enumeration. What follows is for those
/// alone, but for name_of.
constexpr bool is_element_type(ElementType type) {
  return static_cast<size_t>(type) < element_table.size();
}
constexpr const ElementInfo& info(ElementType type) {
  return element_table[static_cast<size_t>(type)];
}
/// "f32"; "unknown" of a number that is none.
constexpr std::string_view name_of(ElementType type) {
  return is_element_type(type) ? info(type).name : std::string_view("unknown");
}
constexpr int bits_of(ElementType type) { return info(type).bits; }
constexpr ElementKind kind_of(ElementType type) { return info(type).kind; }
constexpr bool is_sub_byte(ElementType type) { return bits_of(type) < 8; }
constexpr bool is_boolean(ElementType type) { return kind_of(type) == ElementKind::boolean; }
constexpr bool is_signed_integer(ElementType type) {
  return kind_of(type) == ElementKind::signed_integer;
}
constexpr bool is_unsigned_integer(ElementType type) {
  return kind_of(type) == ElementKind::unsigned_integer;
}
constexpr bool is_integer(ElementType type) {
  return is_signed_integer(type) || is_unsigned_integer(type);
}
/// Integers and boolean.
constexpr bool is_whole(ElementType type) { return is_integer(type) || is_boolean(type); }
constexpr bool is_float(ElementType type) { return kind_of(type) == ElementKind::floating; }
/// Whether a code of the type is an infinity, or a NaN.
constexpr bool has_infinities(ElementType type) {
  return is_float(type) && info(type).format.specials == FloatSpecials::ieee;
}
constexpr bool has_nans(ElementType type) {
  if (kind_of(type) == ElementKind::power_of_two) return true;
  return is_float(type) && info(type).format.specials != FloatSpecials::finite;
}

/// Whether the type has the values of another, in an older storage layout.
constexpr bool is_older_layout(ElementType type) { return info(type).older_layout_of.has_value(); }
/// The type of the same values in its own layout.
constexpr ElementType value_type(ElementType type) {
  return info(type).older_layout_of.value_or(type);
}

namespace detail {
constexpr int count_older_layouts() {
  int count = 0;
  for (const ElementInfo& row : element_table) count += row.older_layout_of ? 1 : 0;
  return count;
}
template <int count>
constexpr std::array<ElementType, count> types_in_table_order(bool older_layouts) {
  std::array<ElementType, count> types = {};
  size_t next = 0;
  for (const ElementInfo& row : element_table) {
    if (row.older_layout_of.has_value() == older_layouts) types[next++] = row.type;
  }
  return types;
}
}  // namespace detail

inline constexpr int older_layout_count = detail::count_older_layouts();
inline constexpr int value_type_count = element_type_count - older_layout_count;
/// The types that differ in their values: one layout of each.
inline constexpr auto value_types = detail::types_in_table_order<value_type_count>(false);
inline constexpr auto older_layouts = detail::types_in_table_order<older_layout_count>(true);

/// The index in `value_types` of the type with the same values.
constexpr size_t value_type_index(ElementType type) {
  size_t index = 0;
  while (value_types[index] != value_type(type)) ++index;
  return index;
}

/// Smallest and largest value of an integer type (boolean: 0 and 1).
constexpr int64_t integer_min(ElementType type) {
  return is_signed_integer(type) ? -(int64_t{1} << (bits_of(type) - 2)) * 2 : 0;
}
constexpr uint64_t integer_max(ElementType type) {
  if (is_boolean(type)) return 1;
  const int value_bits = bits_of(type) - (is_signed_integer(type) ? 1 : 0);
  return ~uint64_t{0} >> (64 - value_bits);
}

/// The type with that name, or nothing. Names are lower case, as `name_of` gives them.
CASTOR_API std::optional<ElementType> element_type_named(std::string_view name);

}  // namespace castor
