// SPDX-License-Identifier: Apache-2.0
// The numbers that element types have in the C API. They are published in castor/c/tensor.h and
// never change, whatever order the element types have in C++.
#pragma once

#include <castor/c/tensor.h>

#include <array>
#include <optional>

#include "ir/types/element_type.hpp"

namespace castor::c {

/// One row of the table.
struct ElementNumber {
  ElementType type;
  castor_element_type number;
};

// clang-format off
inline constexpr std::array<ElementNumber, element_type_count> element_numbers = {{
    {ElementType::boolean, CASTOR_BOOLEAN},
    {ElementType::u1, CASTOR_U1},
    {ElementType::u2, CASTOR_U2},
    {ElementType::u3, CASTOR_U3},
    {ElementType::u4, CASTOR_U4},
    {ElementType::u6, CASTOR_U6},
    {ElementType::u8, CASTOR_U8},
    {ElementType::u16, CASTOR_U16},
    {ElementType::u32, CASTOR_U32},
    {ElementType::u64, CASTOR_U64},
    {ElementType::i2, CASTOR_I2},
    {ElementType::i4, CASTOR_I4},
    {ElementType::i8, CASTOR_I8},
    {ElementType::i16, CASTOR_I16},
    {ElementType::i32, CASTOR_I32},
    {ElementType::i64, CASTOR_I64},
    {ElementType::f4e2m1, CASTOR_F4E2M1},
    {ElementType::f6e2m3, CASTOR_F6E2M3},
    {ElementType::f6e3m2, CASTOR_F6E3M2},
    {ElementType::f8e4m3, CASTOR_F8E4M3},
    {ElementType::f8e4m3fnuz, CASTOR_F8E4M3FNUZ},
    {ElementType::f8e5m2, CASTOR_F8E5M2},
    {ElementType::f8e5m2fnuz, CASTOR_F8E5M2FNUZ},
    {ElementType::f8e8m0, CASTOR_F8E8M0},
    {ElementType::bf16, CASTOR_BF16},
    {ElementType::f16, CASTOR_F16},
    {ElementType::f32, CASTOR_F32},
    {ElementType::f64, CASTOR_F64},
    {ElementType::nf4, CASTOR_NF4},
    {ElementType::u1_lsb_first, CASTOR_U1_LSB_FIRST},
    {ElementType::u2_msb_first, CASTOR_U2_MSB_FIRST},
    {ElementType::u3_split, CASTOR_U3_SPLIT},
    {ElementType::u6_split, CASTOR_U6_SPLIT},
}};
// clang-format on

constexpr bool element_numbers_are_in_enum_order() {
  for (size_t i = 0; i < element_numbers.size(); ++i) {
    if (element_numbers[i].type != static_cast<ElementType>(i)) return false;
  }
  return true;
}
static_assert(element_numbers_are_in_enum_order());

/// The number of an element type.
constexpr castor_element_type to_c(ElementType type) {
  return element_numbers[static_cast<size_t>(type)].number;
}

/// Whether every number from 1 to `element_type_count` is that of one type.
constexpr bool every_number_has_a_type() {
  std::array<bool, element_type_count> has_type = {};
  for (const ElementNumber& row : element_numbers) {
    if (row.number < 1 || row.number > element_type_count || has_type[row.number - 1]) return false;
    has_type[row.number - 1] = true;
  }
  return true;
}
static_assert(every_number_has_a_type());

/// By number less 1.
inline constexpr auto types_by_number = [] {
  std::array<ElementType, element_type_count> types = {};
  for (const ElementNumber& row : element_numbers) types[row.number - 1] = row.type;
  return types;
}();

/// The element type of a number from 1 to `element_type_count`, or nothing.
constexpr std::optional<ElementType> element_numbered(castor_element_type number) {
  if (number < 1 || number > element_type_count) return std::nullopt;
  return types_by_number[static_cast<size_t>(number) - 1];
}

}  // namespace castor::c
