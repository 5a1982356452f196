// SPDX-License-Identifier: Apache-2.0
// Derives an iteration of any number from two runs of a nest's code.
#include <fmt/format.h>

#include "tools/prove/kernel/nest_run.hpp"

namespace castor::prove {

using machine::Region;
using machine::SymbolByte;
using machine::Word;
using Scalar = machine::Scalar<Symbols>;

namespace {

constexpr int general_registers = 16;
constexpr int vector_registers = 32;
constexpr int opmasks = 8;
constexpr int index_register = 6;  // rsi: jit/emit/frame.hpp
constexpr size_t slot_bytes = 8;

bool is_unknown(const Term& term) {
  return term.op() == TermOp::input && term.terms().input_name(term.node().detail) == "unknown";
}

/// By how much a number grows from iteration to iteration, where that is always the same.
std::optional<int64_t> growth(uint64_t first, uint64_t now, uint64_t next) {
  if (now - first != next - now) return std::nullopt;
  return static_cast<int64_t>(next - now);
}

/// A number that grows by the difference of two; all else is unknown.
Scalar generalised(Symbols& symbols, const Scalar& first, const Scalar& now, const Scalar& next) {
  Scalar value = now;
  if (first.is_number() && now.is_number() && next.is_number()) {
    if (const auto slope = growth(first.word.value, now.word.value, next.word.value)) {
      value.word.slope = *slope;
      return value;
    }
  }
  value.word = {};
  value.data = symbols.terms().input("unknown", 64);
  return value;
}

/// The constant in a slot of 8 bytes.
std::optional<uint64_t> number_at(const Region<Symbols>& region, size_t at) {
  for (size_t i = 0; i < slot_bytes; ++i) {
    if (!region.is_known[at + i]) return std::nullopt;
  }
  return Symbols::value_of(Symbols::join(region.bytes.data() + at, slot_bytes));
}

Term slot_of(const machine::Vector<Symbols>& vector, size_t at) {
  return Symbols::join(vector.data() + at, slot_bytes);
}

bool same_byte(const Region<Symbols>& a, const Region<Symbols>& b, size_t at) {
  return Symbols::join(&a.bytes[at], 1).same_as(Symbols::join(&b.bytes[at], 1));
}

Error not_reached(std::string_view what) {
  return {ErrorCode::internal,
          fmt::format("an iteration later {} is not what the loop needs", what)};
}

}  // namespace

int64_t NestRun::index() const {
  return static_cast<int64_t>(machine_.register_at(index_register).word.value);
}

castor::Status NestRun::make_any_iteration(NestRun& first, NestRun& next, int64_t elements) {
  generalise_registers(first, next);
  generalise_memory("the stack", first, next);
  generalise_memory("the arguments", first, next);
  begun_ = index();
  for (size_t k = 0; k < tensors_.size(); ++k) {
    if (castor::Status status = move_tensor(k, elements); !status) return status;
  }
  return {};
}

void NestRun::generalise_registers(NestRun& first, NestRun& next) {
  Symbols& symbols = machine_.domain();
  for (int i = 0; i < general_registers; ++i) {
    machine_.set_register(i, generalised(symbols, first.machine_.register_at(i),
                                         machine_.register_at(i), next.machine_.register_at(i)));
  }
  for (int i = 0; i < vector_registers; ++i) {
    machine::Vector<Symbols> vector = machine_.vector(i);
    for (size_t at = 0; at < vector.size(); at += slot_bytes) {
      const Term slot = slot_of(vector, at);
      const bool stays = slot.same_as(slot_of(first.machine_.vector(i), at)) &&
                         slot.same_as(slot_of(next.machine_.vector(i), at));
      if (stays) continue;
      Symbols::split(symbols.terms().input("unknown", 64), vector.data() + at);
    }
    machine_.set_vector(i, vector);
  }
  for (int i = 0; i < opmasks; ++i) {
    machine::Mask<Symbols> mask = machine_.mask(i);
    for (size_t bit = 0; bit < mask.size(); ++bit) {
      const bool stays = mask[bit].same_as(first.machine_.mask(i)[bit]) &&
                         mask[bit].same_as(next.machine_.mask(i)[bit]);
      if (stays) continue;
      mask[bit] = symbols.terms().input("unknown", 1);
    }
    machine_.set_mask(i, mask);
  }
  machine_.forget_flags();
}

void NestRun::generalise_memory(std::string_view region, NestRun& first, NestRun& next) {
  Region<Symbols>& here = *machine_.memory().find(region);
  const Region<Symbols>& before = *first.machine_.memory().find(region);
  const Region<Symbols>& after = *next.machine_.memory().find(region);
  for (size_t at = 0; at + slot_bytes <= here.size(); at += slot_bytes) {
    const auto was = number_at(before, at);
    const auto is = number_at(here, at);
    const auto will_be = number_at(after, at);
    const auto slope = was && is && will_be ? growth(*was, *is, *will_be) : std::nullopt;
    if (slope && *slope != 0) {
      machine_.memory().store_word({here.base + at, 0}, {*is, *slope});
      continue;
    }
    for (size_t i = at; i < at + slot_bytes; ++i) {
      const bool is_known = before.is_known[i] && here.is_known[i] && after.is_known[i];
      here.is_known[i] = is_known && same_byte(here, before, i) && same_byte(here, after, i);
    }
  }
}

castor::Status NestRun::move_tensor(size_t operand, int64_t elements) {
  const NestTensor& tensor = tensors_[operand];
  const int64_t moved_bits = tensor.bits_along(elements);
  if (moved_bits == 0) return {};
  if (moved_bits % 8 != 0) {
    return Error(ErrorCode::unsupported, "iterations do not move by whole bytes");
  }
  Region<Symbols>& region = region_of(operand);
  const int64_t gone = (tensor.first * tensor.bits_each() + tensor.bits_along(index())) / 8;
  region.slope = moved_bits / 8;
  region.base += static_cast<uint64_t>(gone);
  region.bytes.erase(region.bytes.begin(), region.bytes.begin() + gone);
  region.is_known.erase(region.is_known.begin(), region.is_known.begin() + gone);
  std::vector<SymbolByte>& before = before_[operand];
  if (!before.empty()) before.erase(before.begin(), before.begin() + gone);
  if (!region.bytes.empty()) kept_[operand] = region.bytes.front();
  region.is_written.assign(region.bytes.size(), false);
  skipped_bytes_[operand] = gone;
  return {};
}

castor::Status NestRun::check_next_iteration(NestRun& other) {
  for (int i = 0; i < general_registers; ++i) {
    const Scalar& mine = machine_.register_at(i);
    const Scalar& its = other.machine_.register_at(i);
    if (!mine.is_number()) continue;
    const uint64_t expected = mine.word.value + static_cast<uint64_t>(mine.word.slope);
    if (!its.is_number() || its.word.value != expected) {
      return not_reached(fmt::format("general register {}", i));
    }
  }
  for (int i = 0; i < vector_registers; ++i) {
    const machine::Vector<Symbols>& mine = machine_.vector(i);
    for (size_t at = 0; at < mine.size(); at += slot_bytes) {
      const Term slot = slot_of(mine, at);
      if (!is_unknown(slot) && !slot.same_as(slot_of(other.machine_.vector(i), at))) {
        return not_reached(fmt::format("vector register {}", i));
      }
    }
  }
  for (int i = 0; i < opmasks; ++i) {
    for (size_t bit = 0; bit < machine_.mask(i).size(); ++bit) {
      const Term& a = machine_.mask(i)[bit];
      if (is_unknown(a) || a.same_as(other.machine_.mask(i)[bit])) continue;
      return not_reached(fmt::format("opmask {}", i));
    }
  }
  if (castor::Status status = check_memory("the stack", other); !status) return status;
  return check_memory("the arguments", other);
}

castor::Status NestRun::check_memory(std::string_view region, NestRun& other) {
  const Region<Symbols>& mine = *machine_.memory().find(region);
  const Region<Symbols>& its = *other.machine_.memory().find(region);
  for (size_t at = 0; at + slot_bytes <= mine.size(); at += slot_bytes) {
    const Word address = {mine.base + at, 0};
    if (const Word* word = machine_.memory().stored_word(address)) {
      const Word* found = other.machine_.memory().stored_word(address);
      const auto number = found != nullptr ? found->value : number_at(its, at);
      const uint64_t expected = word->value + static_cast<uint64_t>(word->slope);
      if (number == expected) continue;
      return not_reached(fmt::format("{}+{:#x}", region, at));
    }
    for (size_t i = at; i < at + slot_bytes; ++i) {
      if (!mine.is_known[i] || (its.is_known[i] && same_byte(mine, its, i))) continue;
      return not_reached(fmt::format("{}+{:#x}", region, i));
    }
  }
  return {};
}

}  // namespace castor::prove
