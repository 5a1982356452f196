// SPDX-License-Identifier: Apache-2.0
#include "tools/castor/format_value.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "ir/numerics/scalar.hpp"

namespace castor::tools {

namespace {

std::string format_number(uint64_t bits, ElementType type) {
  const double value = std::bit_cast<double>(numerics::convert(bits, type, ElementType::f64, {}));
  if (std::isnan(value)) return std::signbit(value) ? "-nan" : "nan";
  if (type == ElementType::f64) return fmt::format("{}", value);
  return fmt::format("{}", static_cast<float>(value));  // exact: f32 holds every narrower type
}

}  // namespace

std::string format_value(uint64_t bits, ElementType type) {
  switch (kind_of(type)) {
    case ElementKind::boolean: return bits != 0 ? "true" : "false";
    case ElementKind::unsigned_integer: return fmt::format("{}", bits);
    case ElementKind::signed_integer: {
      const int unused = 64 - bits_of(type);
      return fmt::format("{}", static_cast<int64_t>(bits << unused) >> unused);
    }
    case ElementKind::floating:
    case ElementKind::power_of_two:
    case ElementKind::codebook: return format_number(bits, type);
  }
  return format_bits(bits, type);
}

std::string format_bits(uint64_t bits, ElementType type) {
  return fmt::format("0x{:0{}X}", bits, (bits_of(type) + 3) / 4);
}

std::string format_element(uint64_t bits, ElementType type) {
  return fmt::format("{} ({})", format_value(bits, type), format_bits(bits, type));
}

}  // namespace castor::tools
