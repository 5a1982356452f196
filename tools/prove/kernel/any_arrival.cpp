// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/kernel/any_arrival.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace castor::prove {

using machine::Region;
using machine::Symbols;
using Scalar = machine::Scalar<Symbols>;
using Vector = machine::Vector<Symbols>;

namespace {

constexpr size_t slot_bytes = 8;

Error differs(std::string_view what) {
  return {ErrorCode::internal, fmt::format("at the loop's begin, {} is not what it must be", what)};
}

constexpr auto stack_name = "the stack";
const Region<Symbols>& stack_of(const SymbolMachine& machine) {
  return *machine.memory().find(stack_name);
}

/// The term in a slot; none where some byte is not known.
std::optional<Term> slot_of(const Region<Symbols>& stack, size_t slot) {
  const size_t at = slot * slot_bytes;
  for (size_t i = at; i < at + slot_bytes; ++i) {
    if (!stack.is_known[i]) return std::nullopt;
  }
  return Symbols::join(stack.bytes.data() + at, slot_bytes);
}

bool is_same_byte(const Region<Symbols>& a, const Region<Symbols>& b, size_t at) {
  return a.is_known[at] && b.is_known[at] && machine::are_same_bytes(a.bytes[at], b.bytes[at]);
}

Term part_of(const Vector& vector, size_t part) {
  return Symbols::join(vector.data() + part * slot_bytes, slot_bytes);
}

size_t parts_of(const Vector& vector) { return vector.size() / slot_bytes; }

bool is_same_mask(const machine::Mask<Symbols>& a, const machine::Mask<Symbols>& b) {
  for (size_t bit = 0; bit < a.size(); ++bit) {
    if (!a[bit].same_as(b[bit])) return false;
  }
  return true;
}

std::optional<size_t> index_of(std::span<const Word> variables, uint64_t value) {
  const auto found = std::ranges::find(variables, value, &Word::value);
  if (found == variables.end()) return std::nullopt;
  return static_cast<size_t>(found - variables.begin());
}

}  // namespace

Word AnyWords::any(uint64_t value) {
  // Numbers of 38 bits without order (SplitMix64).
  state_ += 0x9e37'79b9'7f4a'7c15;
  uint64_t mixed = state_;
  mixed = (mixed ^ mixed >> 30) * 0xbf58'476d'1ce4'e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d0'49bb'1331'11eb;
  return {value, static_cast<int64_t>(mixed >> 26 | 1)};
}

Status run_to(SymbolMachine& machine, uint32_t offset, int64_t arrivals) {
  return machine.run([&](uint32_t now) { return now == offset && --arrivals == 0; });
}

Error in_iteration(const Error& error) {
  return {ErrorCode::internal, fmt::format("in any iteration, {}", error.message)};
}

AnyArrival::AnyArrival(const SymbolMachine& earlier, SymbolMachine later,
                       std::span<const Word> variables)
    : later_(std::move(later)) {
  later_.forget_flags();
  find_registers(earlier, variables);
  find_vectors(earlier);
  find_on_stack(earlier, variables);
}

void AnyArrival::find_registers(const SymbolMachine& earlier, std::span<const Word> variables) {
  Terms& terms = later_.domain().terms();
  for (int id = 0; id < std::ssize(variable_in_register_); ++id) {
    const auto index = static_cast<size_t>(id);
    const Scalar& before = earlier.register_at(id);
    const Scalar& now = later_.register_at(id);
    if (now.is_constant()) variable_in_register_[index] = index_of(variables, now.word.value);
    stays_in_register_[index] = !variable_in_register_[index] && before.is_constant() &&
                                now.is_constant() && before.word == now.word;
    const bool is_unknown = !variable_in_register_[index] && !stays_in_register_[index];
    if (is_unknown) later_.set_register(id, Scalar::of(terms.input("unknown", 64)));
  }
}

void AnyArrival::find_vectors(const SymbolMachine& earlier) {
  Terms& terms = later_.domain().terms();
  for (int id = 0; id < std::ssize(stays_in_vector_); ++id) {
    Vector vector = later_.vector(id);
    std::vector<bool>& stays = stays_in_vector_[static_cast<size_t>(id)];
    for (size_t part = 0; part < parts_of(vector); ++part) {
      stays.push_back(part_of(vector, part).same_as(part_of(earlier.vector(id), part)));
      if (stays.back()) continue;
      Symbols::split(terms.input("unknown", 64), vector.data() + part * slot_bytes);
    }
    later_.set_vector(id, vector);
  }
  for (int id = 0; id < std::ssize(stays_in_mask_); ++id) {
    const bool stays = is_same_mask(earlier.mask(id), later_.mask(id));
    stays_in_mask_[static_cast<size_t>(id)] = stays;
    if (stays) continue;
    machine::Mask<Symbols> mask = later_.mask(id);
    for (Term& bit : mask) bit = terms.input("unknown", 1);
    later_.set_mask(id, mask);
  }
}

void AnyArrival::find_on_stack(const SymbolMachine& earlier, std::span<const Word> variables) {
  Region<Symbols>& stack = *later_.memory().find(stack_name);
  const size_t slots = stack.size() / slot_bytes;
  for (size_t slot = 0; slot < slots; ++slot) {
    const auto term = slot_of(stack, slot);
    const auto value = term ? Symbols::value_of(*term) : std::nullopt;
    variable_in_slot_.push_back(value ? index_of(variables, *value) : std::nullopt);
    if (!variable_in_slot_.back()) continue;
    std::fill_n(stack.is_known.begin() + static_cast<int64_t>(slot * slot_bytes), slot_bytes,
                false);
  }
  const Region<Symbols>& before = stack_of(earlier);
  for (size_t at = 0; at < stack.size(); ++at) {
    stays_on_stack_.push_back(is_same_byte(stack, before, at));
    stack.is_known[at] = stays_on_stack_.back();
  }
}

SymbolMachine AnyArrival::at(std::span<const Word> variables, std::span<const Word> counts) const {
  SymbolMachine machine = later_;
  std::vector<int64_t> slopes;
  for (const Word& count : counts) slopes.push_back(count.slope);
  machine.grow_independently(std::move(slopes));
  for (size_t id = 0; id < variable_in_register_.size(); ++id) {
    if (!variable_in_register_[id]) continue;
    Scalar value;
    value.word = variables[*variable_in_register_[id]];
    machine.set_register(static_cast<int>(id), value);
  }
  for (size_t slot = 0; slot < variable_in_slot_.size(); ++slot) {
    if (!variable_in_slot_[slot]) continue;
    machine.memory().store_word({SymbolMachine::stack_base + slot * slot_bytes, 0},
                                variables[*variable_in_slot_[slot]]);
  }
  return machine;
}

SymbolMachine AnyArrival::alone_at(std::span<const Word> variables,
                                   std::span<const Word> counts) const {
  constexpr std::array<std::string_view, 3> kept = {stack_name, "the pool of constants",
                                                    "the arguments"};
  SymbolMachine machine = at(variables, counts);
  std::erase_if(machine.memory().regions(), [&](const Region<Symbols>& region) {
    return std::ranges::find(kept, region.name) == kept.end();
  });
  return machine;
}

Status AnyArrival::check(const SymbolMachine& machine, std::span<const Word> variables) const {
  if (!machine.is_at_same_point(later_)) return differs("the position, or MXCSR,");
  return check_state(machine, variables);
}

Status AnyArrival::check_state(const SymbolMachine& machine,
                               std::span<const Word> variables) const {
  if (Status status = check_registers(machine, variables); !status) return status;
  if (Status status = check_vectors(machine); !status) return status;
  return check_stack(machine, variables);
}

Status AnyArrival::check_registers(const SymbolMachine& machine,
                                   std::span<const Word> variables) const {
  for (size_t id = 0; id < variable_in_register_.size(); ++id) {
    const auto& variable = variable_in_register_[id];
    if (!variable && !stays_in_register_[id]) continue;
    const Scalar& found = machine.register_at(static_cast<int>(id));
    const Word expected =
        variable ? variables[*variable] : later_.register_at(static_cast<int>(id)).word;
    if (found.is_number() && found.word == expected) continue;
    return differs(fmt::format("general register {}", id));
  }
  return {};
}

Status AnyArrival::check_vectors(const SymbolMachine& machine) const {
  for (size_t id = 0; id < stays_in_vector_.size(); ++id) {
    const auto number = static_cast<int>(id);
    for (size_t part = 0; part < stays_in_vector_[id].size(); ++part) {
      if (!stays_in_vector_[id][part]) continue;
      if (part_of(machine.vector(number), part).same_as(part_of(later_.vector(number), part)))
        continue;
      return differs(fmt::format("vector register {}", id));
    }
  }
  for (size_t id = 0; id < stays_in_mask_.size(); ++id) {
    const auto number = static_cast<int>(id);
    if (!stays_in_mask_[id] || is_same_mask(machine.mask(number), later_.mask(number))) continue;
    return differs(fmt::format("opmask {}", id));
  }
  return {};
}

Status AnyArrival::check_stack(const SymbolMachine& machine,
                               std::span<const Word> variables) const {
  for (size_t slot = 0; slot < variable_in_slot_.size(); ++slot) {
    if (!variable_in_slot_[slot]) continue;
    const Word* word =
        machine.memory().stored_word({SymbolMachine::stack_base + slot * slot_bytes, 0});
    if (word != nullptr && *word == variables[*variable_in_slot_[slot]]) continue;
    return differs(fmt::format("slot {} of the stack", slot));
  }
  const Region<Symbols>& stack = stack_of(machine);
  const Region<Symbols>& expected = stack_of(later_);
  for (size_t at = 0; at < stays_on_stack_.size(); ++at) {
    if (!stays_on_stack_[at] || is_same_byte(stack, expected, at)) continue;
    return differs(fmt::format("byte {} of the stack", at));
  }
  return {};
}

}  // namespace castor::prove
