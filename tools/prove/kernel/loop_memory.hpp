// SPDX-License-Identifier: Apache-2.0
// Memory at addresses that stand for any, for proofs of loops.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/prove/kernel/any_arrival.hpp"

namespace castor::prove {

using machine::Region;
using machine::Symbols;

inline Word operator*(int64_t factor, const Word& word) {
  return {static_cast<uint64_t>(factor) * word.value, factor * word.slope};
}
inline Word number(int64_t value) { return {static_cast<uint64_t>(value), 0}; }

inline Region<Symbols>& add_region(SymbolMachine& machine, std::string name, const Word& at,
                                   size_t bytes, bool is_writable = false) {
  return machine.memory().add(std::move(name), at.value, bytes, is_writable, at.slope);
}

inline void fill(SymbolMachine& machine, Region<Symbols>& region,
                 std::span<const std::byte> bytes) {
  region.is_known.assign(region.size(), true);
  for (size_t i = 0; i < region.size(); ++i) {
    region.bytes[i] = machine.domain().byte(static_cast<uint8_t>(bytes[i]));
  }
}

template <class T>
std::vector<std::byte> bytes_of(const T& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return {bytes.begin(), bytes.end()};
}

/// Elements that are inputs of the terms.
inline std::vector<Term> add_inputs(SymbolMachine& machine, const std::string& name, const Word& at,
                                    int count, int bits = 8) {
  const size_t bytes = static_cast<size_t>(bits) / 8;
  std::vector<Term> inputs;
  Region<Symbols>& region = add_region(machine, name, at, static_cast<size_t>(count) * bytes);
  region.is_known.assign(region.size(), true);
  for (size_t i = 0; i < region.size(); i += bytes) {
    inputs.push_back(machine.domain().terms().input(fmt::format("{}+{}", name, i), bits));
    Symbols::split(inputs.back(), &region.bytes[i]);
  }
  return inputs;
}

/// What was stored in a region; no term where some of it was not.
inline Term stored_in(SymbolMachine& machine, std::string_view name, int at, int bytes = 1) {
  const Region<Symbols>& region = *machine.memory().find(name);
  for (int i = at; i < at + bytes; ++i) {
    if (!region.is_written[static_cast<size_t>(i)]) return {};
  }
  return Symbols::join(&region.bytes[static_cast<size_t>(at)], bytes);
}

}  // namespace castor::prove
