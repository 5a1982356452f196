// SPDX-License-Identifier: Apache-2.0
// Requantization: its attributes, its operands and its result's type.
// Source: embARC MLI 2.0, data conversion group; ir/README.md, Requantization.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "ir/builder.hpp"

namespace castor {

/// The options of a `requantize` operation, as its attributes give them.
RequantizeOptions requantize_options(const Operation& operation);
/// The attributes that say these options; defaults are not written.
Attributes attributes_of(const RequantizeOptions& options);

/// The operation's operand that is a parameter of one side, in the order of `quantization_rules`.
constexpr size_t source_parameter(size_t rule) { return 1 + rule; }
constexpr size_t destination_parameter(size_t rule) { return 4 + rule; }
inline constexpr size_t requantize_operands = 7;

/// The result's type; seven operands, absent ones null. The error names the operand or type, what
/// was found and what was expected.
Result<TensorType> requantize_type(std::span<const TensorType* const> operands,
                                   const WrittenType& written);

/// A scale given at run time that is not 1 to 32767.
Error scale_out_of_range(std::string_view side, int32_t found, int64_t entry);
/// Refuses scales that are not 1 to 32767, given at run time; `side` is "source" or "destination".
Status check_scales(std::string_view side, std::span<const int32_t> scales);

/// Checks extents of parameters given at run time against those of x, the first operand; absent
/// operands are null.
Status check_parameter_extents(const TensorType& from, const TensorType& to,
                               std::span<const Dims* const> extents);

}  // namespace castor
