// SPDX-License-Identifier: Apache-2.0
// Formats of elements that share a scale by blocks: OCP Microscaling Formats 1.0, and NVFP4.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "ir/support/result.hpp"
#include "ir/types/element_type.hpp"

namespace castor {

struct MxFormat {
  std::string_view name;
  ElementType element;
  ElementType scale;
  int64_t block;          ///< elements that share a scale, unless another number is given
  int fraction_bits;      ///< an integer stands for a multiple of 2^-fraction_bits
  bool has_tensor_scale;  ///< whether all scales are multiplied by one more
};

inline constexpr std::array<MxFormat, 7> mx_formats = {{
    {"mxfp8_e4m3", ElementType::f8e4m3, ElementType::f8e8m0, 32, 0, false},
    {"mxfp8_e5m2", ElementType::f8e5m2, ElementType::f8e8m0, 32, 0, false},
    {"mxfp6_e2m3", ElementType::f6e2m3, ElementType::f8e8m0, 32, 0, false},
    {"mxfp6_e3m2", ElementType::f6e3m2, ElementType::f8e8m0, 32, 0, false},
    {"mxfp4", ElementType::f4e2m1, ElementType::f8e8m0, 32, 0, false},
    {"mxint8", ElementType::i8, ElementType::f8e8m0, 32, 6, false},
    {"nvfp4", ElementType::f4e2m1, ElementType::f8e4m3, 16, 0, true},
}};

inline constexpr std::array<std::string_view, mx_formats.size()> mx_format_names = [] {
  std::array<std::string_view, mx_formats.size()> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = mx_formats[i].name;
  return names;
}();

/// The format of that name, or null.
constexpr const MxFormat* mx_format_named(std::string_view name) {
  for (const MxFormat& format : mx_formats) {
    if (format.name == name) return &format;
  }
  return nullptr;
}

struct CompositionCall;

/// The format that a call names; the error says which there are.
Result<const MxFormat*> mx_format_of(const CompositionCall& call);

}  // namespace castor
