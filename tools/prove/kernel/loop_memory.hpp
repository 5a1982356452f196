// SPDX-License-Identifier: Apache-2.0
// Memory at addresses that stand for any, for proofs of loops.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/prove/kernel/any_arrival.hpp"
#include "tools/prove/kernel/kernel_call.hpp"

namespace castor::prove {

using machine::Region;

inline Word operator*(int64_t factor, const Word& word) {
  return {static_cast<uint64_t>(factor) * word.value, factor * word.slope};
}
inline Word number(int64_t value) { return {static_cast<uint64_t>(value), 0}; }

inline Region<Symbols>& add_region(SymbolMachine& machine, std::string name, const Word& at,
                                   size_t bytes, bool is_writable = false) {
  return machine.memory().add(std::move(name), at.value, bytes, is_writable, at.slope);
}

/// Sets an argument of 8 bytes, of which no part is known, to a number that may be any.
inline void set_argument(SymbolMachine& machine, size_t offset, const Word& word) {
  Region<Symbols>& region = *machine.memory().find("the arguments");
  std::fill_n(region.is_known.begin() + static_cast<int64_t>(offset), sizeof word.value, false);
  machine.memory().store_word({region.base + offset, 0}, word);
}

template <class T>
std::vector<std::byte> bytes_of(const T& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  return {bytes.begin(), bytes.end()};
}

/// Elements that are inputs of the terms.
inline std::vector<Term> add_inputs(SymbolMachine& machine, const std::string& name, const Word& at,
                                    int count, int bits = 8) {
  std::vector<Term> inputs;
  for (int i = 0; i < count; ++i) {
    inputs.push_back(machine.domain().terms().input(fmt::format("{}[{}]", name, i), bits));
  }
  const int64_t bytes = int64_t{count} * bits / 8;
  set_elements(add_region(machine, name, at, static_cast<size_t>(bytes)), inputs);
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
