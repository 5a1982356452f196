// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/look_up.hpp"

#include "ir/types/elements.hpp"

namespace castor::jit {

namespace {

LaneTensor by_bytes(LaneBuilder& builder, LaneTensor& codes, ElementType element,
                    const std::byte* entries) {
  ByteTable table{.index_bits = bits_of(codes.element())};
  for (int i = 0; i < 1 << table.index_bits; ++i) {
    table.entries[static_cast<size_t>(i)] =
        static_cast<uint16_t>(read_element(entries, element, i));
  }
  return LaneTensor::computed(builder, element, {builder.look_up(codes.as_bits(), table)});
}

LaneTensor by_i32_lanes(LaneBuilder& builder, LaneTensor& codes, ElementType element,
                        const std::byte* entries) {
  I32Table table{.index_bits = 4};
  for (int i = 0; i < 1 << table.index_bits; ++i) {
    table.entries[static_cast<size_t>(i)] =
        static_cast<uint32_t>(read_element(entries, element, i));
  }
  const LaneId index = builder.extend_zero(codes.as_bits(), 32);
  return LaneTensor::computed(builder, element, {builder.look_up_i32(index, table)});
}

}  // namespace

std::optional<LaneTensor> look_up_constant(LaneBuilder& builder, LaneTensor& codes,
                                           ElementType element, const std::byte* entries) {
  const int index_bits = bits_of(codes.element());
  if (bits_of(element) == 8) return by_bytes(builder, codes, element, entries);
  // With AVX-512 16-bit entries in memory are permuted without a detour through 32-bit lanes.
  const bool is_wide = bits_of(element) == 32 || !builder.target().has_avx512();
  if (index_bits == 4 && bits_of(element) <= 32 && is_wide) {
    return by_i32_lanes(builder, codes, element, entries);
  }
  return std::nullopt;
}

}  // namespace castor::jit
