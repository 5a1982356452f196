// SPDX-License-Identifier: Apache-2.0
#include "bench/footprint.hpp"

#include <numeric>

#include "bench/limits.hpp"

namespace castor::bench {

namespace {

constexpr int64_t main_loop_elements = 256;  // a multiple of every main loop's

size_t bytes_for(ElementType type, int64_t elements) {
  return static_cast<size_t>(elements) * static_cast<size_t>(bits_of(type)) / 8;
}

}  // namespace

int64_t element_quantum(const TypePair& pair) {
  const Ratio ratio = {bits_of(pair.from), bits_of(pair.to)};
  int64_t quantum = main_loop_elements;
  for (const PlainVariant& variant : all_plain_variants(streams_of(ratio))) {
    quantum = std::lcm(quantum, whole_iterations(ratio, variant));
  }
  return quantum;
}

Workspace first_elements(const TypePair& pair, const Workspace& workspace, int64_t elements) {
  return {elements, workspace.source.first(bytes_for(pair.from, elements)),
          workspace.destination.first(bytes_for(pair.to, elements))};
}

Workspace place_tensors(const TypePair& pair, size_t footprint_bytes, std::span<std::byte> memory) {
  constexpr size_t page = 4096;
  constexpr size_t destination_in_page = page - 512;
  const int64_t bits = bits_of(pair.from) + bits_of(pair.to);
  const int64_t quantum = element_quantum(pair);
  const int64_t elements = static_cast<int64_t>(footprint_bytes) * 8 / bits / quantum * quantum;
  const size_t source_bytes = bytes_for(pair.from, elements);
  const size_t begin = (source_bytes + page - 1) / page * page + destination_in_page;
  return {elements, memory.first(source_bytes),
          memory.subspan(begin, bytes_for(pair.to, elements))};
}

}  // namespace castor::bench
