// SPDX-License-Identifier: Apache-2.0
// The common type of two element types: OpenVINO ConvertPromoteTypes-14, for all types of castor.
//
// Sources: OpenVINO's specification of ConvertPromoteTypes-14, and its implementation
// (src/core/src/op/convert_promote_types.cpp), which castor follows where they differ. "S" and "D"
// are operands of rank 0 and of another rank under pytorch_scalar_promotion; "unsafe" needs
// promote_unsafe; reals are the floats, f8e8m0 and nf4; bits are those of the type's name.
//
// clang-format off
// | types                | documentation         | OpenVINO              | castor                | why                   |
// |----------------------|-----------------------|-----------------------|-----------------------|-----------------------|
// | which                | any supported type    | 18 types; others are  | all value types       | any two of them       |
// |                      |                       | refused, even if both |                       | convert               |
// |                      |                       | are the same          |                       |                       |
// | both the same        | that type             | that type             | that type             |                       |
// | boolean, T           | T                     | T, always safe; no    | as OpenVINO           | 0 and 1 are in every  |
// |                      |                       | rule for S            |                       | type but f8e8m0       |
// | integer, real        | the real; safe with   | the real; by the bits | as OpenVINO: nf4 has  | bits are what the     |
// |                      | twice the bits        | alone (bf16 of i8 is  | 4, f8e8m0 has 8       | documentation counts  |
// |                      |                       | safe); no rule for S  |                       |                       |
// | u, another u;        | bit widening is       | the wider, safe       | as OpenVINO           | holds every value     |
// | i, another i         | unsafe                |                       |                       |                       |
// | u, i                 | signed, at least      | signed, of max(2 *    | the same from i2 on,  | u2, u3, u6 and i2     |
// |                      | twice u's bits;       | bits(u), bits(i)) in  | the next that there   | continue the series;  |
// |                      | widening is unsafe    | i4 to i64; safe if    | is: u3, i4 -> i8      | 2 * 3 bits are no     |
// |                      |                       | i has twice u's bits  |                       | type                  |
// | u1                   |                       | an unsigned integer   | as OpenVINO           |                       |
// | u64, i               | u64_integer_promotion | the same, whatever    | the same; it must     | a name that is none   |
// |                      | _target, unsafe       | type that is          | name an element type  | is a mistake          |
// | reals of different   | fewest bits that hold | the wider, safe       | the least type that   | the same for          |
// | widths               | both                  |                       | holds both; safe if   | OpenVINO's types;     |
// |                      |                       |                       | it is one of them:    | f8e8m0's range and    |
// |                      |                       |                       | f8e8m0, f16 -> f32;   | nf4's 24 bits fit no  |
// |                      |                       |                       | nf4, f16 -> f32       | wider neighbour       |
// | reals of one width   | the same, unsafe      | f16, bf16 -> f32;     | the least type that   | the same for          |
// |                      |                       | f8e4m3, f8e5m2 ->     | holds both, unsafe;   | OpenVINO's types,     |
// |                      |                       | f16; else refused     | f16 before bf16       | which chose f16       |
// | f8e5m2, f8e5m2fnuz   |                       |                       | f16                   | infinities count as   |
// |                      |                       |                       |                       | values                |
// | f6e2m3, f6e3m2       |                       |                       | f8e4m3, unsafe        | f8e4m3 before         |
// |                      |                       |                       |                       | f8e4m3fnuz            |
// | f6e2m3, f8e5m2       |                       |                       | f16, unsafe           | 3 mantissa bits       |
// | f4 or f6, f8 fnuz    |                       |                       | as with f8e4m3 and    | -0 counts as 0, which |
// |                      |                       |                       | f8e5m2                | it equals             |
// | f8e8m0, f4, f6 or f8 |                       |                       | bf16, unsafe          | 2^-127 to 2^127 are   |
// |                      |                       |                       |                       | not in f16            |
// | S and D, both        | D's; safe where D     | D's; safe where D has | as OpenVINO (so u16   | a model that passes   |
// | integers or both     | holds all of S        | as many bits and the  | in i8 is safe)        | there passes here     |
// | reals                |                       | same sign, or is      |                       |                       |
// |                      |                       | signed with half      |                       |                       |
// | both S, or both D    | as without the        | the same              | the same              |                       |
// |                      | attribute             |                       |                       |                       |
// | dynamic types, ranks |                       | dynamic               | there are none        | ranks are known       |
// | older layouts        |                       |                       | as the type of their  | results are in the    |
// |                      |                       |                       | values: u1.lsb_first, | layout of the table;  |
// |                      |                       |                       | u1 -> u1; two equal   | equal types are never |
// |                      |                       |                       | layouts stay          | converted             |
// clang-format on
#pragma once

#include "ir/function.hpp"
#include "ir/support/export.hpp"

namespace castor {

/// The attributes of `convert_promote_types`; the default value is the op's default.
struct PromoteOptions {
  bool promote_unsafe = false;            ///< take a common type that may widen or lose precision
  bool pytorch_scalar_promotion = false;  ///< a scalar takes the type of the other operand
  /// The common type of u64 and a signed integer.
  ElementType u64_integer_promotion_target = ElementType::f32;
  friend bool operator==(const PromoteOptions&, const PromoteOptions&) = default;
};

/// What of an operand decides its promotion.
struct PromoteOperand {
  ElementType type;
  bool is_scalar = false;  ///< rank 0
};

/// The common type, which depends on the two types, the options and which operand is a scalar: not
/// on the operands' order, and not on values. The error has OpenVINO's text, both types and what
/// would help.
CASTOR_API Result<ElementType> promoted_type(const PromoteOperand& a, const PromoteOperand& b,
                                             const PromoteOptions& options);

/// The options of an operation, as its attributes give them. The error says which attribute does
/// not fit, what was found and what was expected.
CASTOR_API Result<PromoteOptions> promote_options(const Operation& operation);

/// The attributes that say these options; defaults are not written.
CASTOR_API Attributes attributes_of(const PromoteOptions& options);

}  // namespace castor
