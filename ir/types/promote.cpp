// SPDX-License-Identifier: Apache-2.0
#include "ir/types/promote.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/support/enumeration.hpp"

namespace castor {

namespace {

// clang-format off
namespace cells {
constexpr ElementType
    bo = ElementType::boolean,
    u1 = ElementType::u1, u2 = ElementType::u2, u3 = ElementType::u3, u4 = ElementType::u4,
    u6 = ElementType::u6, u8 = ElementType::u8, u16 = ElementType::u16, u32 = ElementType::u32,
    u64 = ElementType::u64,
    i2 = ElementType::i2, i4 = ElementType::i4, i8 = ElementType::i8, i16 = ElementType::i16,
    i32 = ElementType::i32, i64 = ElementType::i64,
    f4 = ElementType::f4e2m1, e23 = ElementType::f6e2m3, e32 = ElementType::f6e3m2,
    e43 = ElementType::f8e4m3, z43 = ElementType::f8e4m3fnuz,
    e52 = ElementType::f8e5m2, z52 = ElementType::f8e5m2fnuz, e80 = ElementType::f8e8m0,
    bf = ElementType::bf16, f16 = ElementType::f16, f32 = ElementType::f32,
    f64 = ElementType::f64, nf4 = ElementType::nf4;
/// In place of a type: u64_integer_promotion_target.
constexpr ElementType tgt = ElementType{255};

using Row = std::array<ElementType, value_type_count>;
/// The common type under promote_unsafe, by the two types in the order of value_types. Symmetric.
/// Source: OpenVINO's ConvertPromoteTypes-14 as implemented, extended as ir/types/promote.hpp lists.
constexpr std::array<Row, value_type_count> common_types = {{
//          bo   u1   u2   u3   u4   u6   u8   u16  u32  u64  i2   i4   i8   i16  i32  i64  f4   e23  e32  e43  z43  e52  z52  e80  bf   f16  f32  f64  nf4
/* bo  */ { bo,  u1,  u2,  u3,  u4,  u6,  u8,  u16, u32, u64, i2,  i4,  i8,  i16, i32, i64, f4,  e23, e32, e43, z43, e52, z52, e80, bf,  f16, f32, f64, nf4},
/* u1  */ { u1,  u1,  u2,  u3,  u4,  u6,  u8,  u16, u32, u64, i2,  i4,  i8,  i16, i32, i64, f4,  e23, e32, e43, z43, e52, z52, e80, bf,  f16, f32, f64, nf4},
/* u2  */ { u2,  u2,  u2,  u3,  u4,  u6,  u8,  u16, u32, u64, i4,  i4,  i8,  i16, i32, i64, f4,  e23, e32, e43, z43, e52, z52, e80, bf,  f16, f32, f64, nf4},
/* u3  */ { u3,  u3,  u3,  u3,  u4,  u6,  u8,  u16, u32, u64, i8,  i8,  i8,  i16, i32, i64, f4,  e23, e32, e43, z43, e52, z52, e80, bf,  f16, f32, f64, nf4},
/* u4  */ { u4,  u4,  u4,  u4,  u4,  u6,  u8,  u16, u32, u64, i8,  i8,  i8,  i16, i32, i64, f4,  e23, e32, e43, z43, e52, z52, e80, bf,  f16, f32, f64, nf4},
/* u6  */ { u6,  u6,  u6,  u6,  u6,  u6,  u8,  u16, u32, u64, i16, i16, i16, i16, i32, i64, f4,  e23, e32, e43, z43, e52, z52, e80, bf,  f16, f32, f64, nf4},
/* u8  */ { u8,  u8,  u8,  u8,  u8,  u8,  u8,  u16, u32, u64, i16, i16, i16, i16, i32, i64, f4,  e23, e32, e43, z43, e52, z52, e80, bf,  f16, f32, f64, nf4},
/* u16 */ { u16, u16, u16, u16, u16, u16, u16, u16, u32, u64, i32, i32, i32, i32, i32, i64, f4,  e23, e32, e43, z43, e52, z52, e80, bf,  f16, f32, f64, nf4},
/* u32 */ { u32, u32, u32, u32, u32, u32, u32, u32, u32, u64, i64, i64, i64, i64, i64, i64, f4,  e23, e32, e43, z43, e52, z52, e80, bf,  f16, f32, f64, nf4},
/* u64 */ { u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, tgt, tgt, tgt, tgt, tgt, tgt, f4,  e23, e32, e43, z43, e52, z52, e80, bf,  f16, f32, f64, nf4},
/* i2  */ { i2,  i2,  i4,  i8,  i8,  i16, i16, i32, i64, tgt, i2,  i4,  i8,  i16, i32, i64, f4,  e23, e32, e43, z43, e52, z52, e80, bf,  f16, f32, f64, nf4},
/* i4  */ { i4,  i4,  i4,  i8,  i8,  i16, i16, i32, i64, tgt, i4,  i4,  i8,  i16, i32, i64, f4,  e23, e32, e43, z43, e52, z52, e80, bf,  f16, f32, f64, nf4},
/* i8  */ { i8,  i8,  i8,  i8,  i8,  i16, i16, i32, i64, tgt, i8,  i8,  i8,  i16, i32, i64, f4,  e23, e32, e43, z43, e52, z52, e80, bf,  f16, f32, f64, nf4},
/* i16 */ { i16, i16, i16, i16, i16, i16, i16, i32, i64, tgt, i16, i16, i16, i16, i32, i64, f4,  e23, e32, e43, z43, e52, z52, e80, bf,  f16, f32, f64, nf4},
/* i32 */ { i32, i32, i32, i32, i32, i32, i32, i32, i64, tgt, i32, i32, i32, i32, i32, i64, f4,  e23, e32, e43, z43, e52, z52, e80, bf,  f16, f32, f64, nf4},
/* i64 */ { i64, i64, i64, i64, i64, i64, i64, i64, i64, tgt, i64, i64, i64, i64, i64, i64, f4,  e23, e32, e43, z43, e52, z52, e80, bf,  f16, f32, f64, nf4},
/* f4  */ { f4,  f4,  f4,  f4,  f4,  f4,  f4,  f4,  f4,  f4,  f4,  f4,  f4,  f4,  f4,  f4,  f4,  e23, e32, e43, z43, e52, z52, bf,  bf,  f16, f32, f64, f32},
/* e23 */ { e23, e23, e23, e23, e23, e23, e23, e23, e23, e23, e23, e23, e23, e23, e23, e23, e23, e23, e43, e43, z43, f16, f16, bf,  bf,  f16, f32, f64, f32},
/* e32 */ { e32, e32, e32, e32, e32, e32, e32, e32, e32, e32, e32, e32, e32, e32, e32, e32, e32, e43, e32, e43, z43, e52, z52, bf,  bf,  f16, f32, f64, f32},
/* e43 */ { e43, e43, e43, e43, e43, e43, e43, e43, e43, e43, e43, e43, e43, e43, e43, e43, e43, e43, e43, e43, f16, f16, f16, bf,  bf,  f16, f32, f64, f32},
/* z43 */ { z43, z43, z43, z43, z43, z43, z43, z43, z43, z43, z43, z43, z43, z43, z43, z43, z43, z43, z43, f16, z43, f16, f16, bf,  bf,  f16, f32, f64, f32},
/* e52 */ { e52, e52, e52, e52, e52, e52, e52, e52, e52, e52, e52, e52, e52, e52, e52, e52, e52, f16, e52, f16, f16, e52, f16, bf,  bf,  f16, f32, f64, f32},
/* z52 */ { z52, z52, z52, z52, z52, z52, z52, z52, z52, z52, z52, z52, z52, z52, z52, z52, z52, f16, z52, f16, f16, f16, z52, bf,  bf,  f16, f32, f64, f32},
/* e80 */ { e80, e80, e80, e80, e80, e80, e80, e80, e80, e80, e80, e80, e80, e80, e80, e80, bf,  bf,  bf,  bf,  bf,  bf,  bf,  e80, bf,  f32, f32, f64, f32},
/* bf  */ { bf,  bf,  bf,  bf,  bf,  bf,  bf,  bf,  bf,  bf,  bf,  bf,  bf,  bf,  bf,  bf,  bf,  bf,  bf,  bf,  bf,  bf,  bf,  bf,  bf,  f32, f32, f64, f32},
/* f16 */ { f16, f16, f16, f16, f16, f16, f16, f16, f16, f16, f16, f16, f16, f16, f16, f16, f16, f16, f16, f16, f16, f16, f16, f32, f32, f16, f32, f64, f32},
/* f32 */ { f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f64, f32},
/* f64 */ { f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64},
/* nf4 */ { nf4, nf4, nf4, nf4, nf4, nf4, nf4, nf4, nf4, nf4, nf4, nf4, nf4, nf4, nf4, nf4, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f64, nf4},
}};
}  // namespace cells
// clang-format on

constexpr bool table_is_symmetric() {
  for (size_t a = 0; a < value_type_count; ++a) {
    if (cells::common_types[a][a] != value_types[a]) return false;
    for (size_t b = 0; b < a; ++b) {
      if (cells::common_types[a][b] != cells::common_types[b][a]) return false;
    }
  }
  return true;
}
static_assert(table_is_symmetric());

/// OpenVINO's texts.
constexpr std::string_view integer_to_real =
    "Integer input cannot be safely promoted to floating-point.";
constexpr std::string_view scalar_does_not_fit =
    "Scalar input cannot be PyTorch-like promoted using safe promotion rules.";
constexpr std::string_view unsigned_to_signed =
    "Unsigned integer input cannot be safely promoted into any supported signed integer.";
constexpr std::string_view unsupported_types =
    "Unsupported input element types for ConvertPromoteTypes with given attributes.";

/// What a promotion sees of a type; nf4 counts as real. In the order of `safety`.
enum class Category : uint8_t { boolean, unsigned_integer, signed_integer, real };
constexpr int category_count = 4;

constexpr Category category_of(ElementType type) {
  if (is_boolean(type)) return Category::boolean;
  if (is_unsigned_integer(type)) return Category::unsigned_integer;
  return is_signed_integer(type) ? Category::signed_integer : Category::real;
}

/// `a` is of the lesser category, `common` the type of the table.
struct Promotion {
  ElementType a;
  ElementType b;
  ElementType common;
};

/// When a promotion is safe, and what is said when it is not.
struct Safety {
  bool (*is_safe)(const Promotion&);
  std::string_view error;
  std::string_view rule;
};

constexpr Safety always = {[](const Promotion&) { return true; }, {}, {}};
constexpr Safety twice_as_wide = {
    [](const Promotion& p) { return bits_of(p.b) >= 2 * bits_of(p.a); }, integer_to_real,
    "a floating-point type of at least twice the integer's bits"};
constexpr Safety signed_twice_as_wide = {
    [](const Promotion& p) { return bits_of(p.b) >= 2 * bits_of(p.a); }, unsigned_to_signed,
    "a signed integer of at least twice the unsigned one's bits"};
constexpr Safety one_of_both = {
    [](const Promotion& p) { return p.common == p.a || p.common == p.b; }, unsupported_types,
    "one type that holds the values of the other"};

/// The safety of a promotion, by the categories of both, the lesser first.
constexpr Safety safety[category_count][category_count] = {
    //                boolean  unsigned  signed                real
    /* boolean  */ {always, always, always, always},
    /* unsigned */ {always, always, signed_twice_as_wide, twice_as_wide},
    /* signed   */ {always, always, always, twice_as_wide},
    /* real     */ {always, always, always, one_of_both},
};

Error refused(const PromoteOperand& a, const PromoteOperand& b, std::string_view text,
              std::string_view rule) {
  const auto scalar = [](const PromoteOperand& operand) {
    return operand.is_scalar ? " (a scalar)" : "";
  };
  return {ErrorCode::invalid_function,
          fmt::format("convert_promote_types: {} Found {}{} and {}{}, expected {}, or "
                      "promote_unsafe = true",
                      text, name_of(a.type), scalar(a), name_of(b.type), scalar(b), rule)};
}

/// Whether pytorch_scalar_promotion is about these two: different numbers of one kind, one of them
/// a scalar.
bool is_scalar_case(const PromoteOperand& a, const PromoteOperand& b) {
  if (a.is_scalar == b.is_scalar || is_boolean(a.type) || is_boolean(b.type)) return false;
  return is_integer(a.type) == is_integer(b.type);
}

/// OpenVINO counts bits; a signed type of half the bits counts as wide enough for an unsigned one.
bool scalar_is_safe(ElementType scalar, ElementType tensor) {
  if (is_unsigned_integer(scalar) == is_unsigned_integer(tensor)) {
    return bits_of(tensor) >= bits_of(scalar);
  }
  return is_unsigned_integer(scalar) && 2 * bits_of(tensor) >= bits_of(scalar);
}

Status check_types(const PromoteOperand& a, const PromoteOperand& b,
                   const PromoteOptions& options) {
  for (ElementType type : {a.type, b.type, options.u64_integer_promotion_target}) {
    Status status = check_enumeration("element type", type, element_table.size());
    if (!status) return status;
  }
  return {};
}

}  // namespace

Result<ElementType> promoted_type(const PromoteOperand& a, const PromoteOperand& b,
                                  const PromoteOptions& options) {
  if (Status status = check_types(a, b, options); !status) return status.error();
  if (a.type == b.type) return a.type;
  const ElementType x = value_type(a.type);
  const ElementType y = value_type(b.type);
  if (x == y) return x;
  if (options.pytorch_scalar_promotion && is_scalar_case(a, b)) {
    const ElementType scalar = a.is_scalar ? x : y;
    const ElementType tensor = a.is_scalar ? y : x;
    if (options.promote_unsafe || scalar_is_safe(scalar, tensor)) return tensor;
    return refused(a, b, scalar_does_not_fit,
                   "a tensor of the scalar's signedness and at least its bits");
  }
  const ElementType common = cells::common_types[value_type_index(x)][value_type_index(y)];
  const bool in_order = category_of(x) <= category_of(y);
  const Promotion promotion = {in_order ? x : y, in_order ? y : x, common};
  const Safety& row = safety[static_cast<size_t>(category_of(promotion.a))]
                            [static_cast<size_t>(category_of(promotion.b))];
  if (!options.promote_unsafe && !row.is_safe(promotion)) return refused(a, b, row.error, row.rule);
  return common == cells::tgt ? options.u64_integer_promotion_target : common;
}

}  // namespace castor
