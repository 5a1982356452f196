// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/byte_table_sixteens.hpp"

#include <algorithm>

#include "jit/emit/op_helpers.hpp"
#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

namespace {

constexpr int half = 128;

using Sixteen = std::array<uint8_t, 16>;
using Half = std::array<uint8_t, half>;

std::vector<uint8_t> table_vector(const LaneEmitter& emitter, const Sixteen& entries) {
  return vector_constant<uint8_t>(emitter.target().vector_bits(),
                                  [&](int i) { return entries[static_cast<size_t>(i % 16)]; });
}

Xbyak::Address repeated(LaneEmitter& emitter, int value) {
  return emitter.code().constant(repeated_constant<uint8_t>(emitter.target().vector_bits(), value));
}

/// vpshufb takes entry i % 16 for an index from 0 up, and 0 for a negative one. So what the steps
/// give for an index that they have passed, one after the other, is combined by xor: each has the
/// difference of its entries to those of the step before. Sixteens that do not differ need no step.
struct Step {
  int first;  ///< index of its first entry
  Sixteen difference;
};

std::vector<Step> steps_of(const Half& entries, int count = half) {
  std::vector<Step> steps;
  Sixteen before = {};
  for (int first = 0; first < count; first += 16) {
    Sixteen now;
    std::copy_n(entries.begin() + first, 16, now.begin());
    Sixteen difference;
    std::ranges::transform(now, before, difference.begin(), std::bit_xor());
    if (difference != Sixteen{}) steps.push_back({first, difference});
    before = now;
  }
  return steps;
}

/// The index of the first steps, which is not negative where they count.
enum class Index : uint8_t {
  byte,       ///< the byte: negative ones are the second steps' alone
  low_bits,   ///< its low 6 or 7 bits
  magnitude,  ///< at most 127, of a signed number
};

/// Steps by the first index, and by the byte less 128, which is negative for bytes below.
struct Plan {
  Index index = Index::byte;
  std::vector<Step> first;
  std::vector<Step> second;
};

int index_of(Index index, int byte) {
  return index == Index::low_bits ? byte - half : std::min(256 - byte, half - 1);
}

Plan plan_by(Index index, const ByteTable& table) {
  const auto entry = [&](int i) {
    return static_cast<uint8_t>(table.entries[static_cast<size_t>(i)]);
  };
  Half lower;
  Half upper;
  for (int i = 0; i < half; ++i) {
    const int both = index == Index::byte ? 0 : entry(index_of(index, half + i));
    lower[static_cast<size_t>(i)] = entry(i);
    upper[static_cast<size_t>(i)] = static_cast<uint8_t>(entry(half + i) ^ both);
  }
  return {index, steps_of(lower), steps_of(upper)};
}

/// A table of fewer bits has no second steps; that of 256 is looked up in the fewest steps.
Plan plan_of(const ByteTable& table) {
  if (table.index_bits < 8) {
    Half entries;
    std::copy_n(table.entries.begin(), half, entries.begin());
    return {Index::low_bits, steps_of(entries, 1 << table.index_bits), {}};
  }
  Plan best = plan_by(Index::byte, table);
  const auto steps = [](const Plan& plan) { return plan.first.size() + plan.second.size(); };
  for (Index index : {Index::low_bits, Index::magnitude}) {
    Plan plan = plan_by(index, table);
    if (steps(plan) < steps(best)) best = std::move(plan);
  }
  return best;
}

/// `from` has the indices, `work_index` is overwritten; both may be one. `is_first`: `to` has no
/// value yet.
void emit_steps(LaneEmitter& emitter, const std::vector<Step>& steps, Xmm from,
                const Xmm& work_index, const Xmm& to, bool is_first) {
  Assembler& code = emitter.code();
  const OwnedVector work = emitter.scratch();
  const Xmm found = work.as(width_of(to));
  int at = 0;
  for (const Step& step : steps) {
    // Saturating: negative indices stay negative.
    if (step.first != at) {
      code.vpsubsb(work_index, from, repeated(emitter, step.first - at));
      from = work_index;
    }
    at = step.first;
    OwnedVector fallback;
    const Xmm entries = vector_register(
        emitter.vector(table_vector(emitter, step.difference), fallback).getIdx(), width_of(to));
    code.vpshufb(is_first ? to : found, entries, from);
    if (!is_first) emit_xor(emitter, to, to, found);
    is_first = false;
  }
}

}  // namespace

void reserve_look_up_in_sixteens(LaneEmitter& emitter, const ByteTable& table) {
  const Plan plan = plan_of(table);
  for (const std::vector<Step>& steps : {plan.first, plan.second}) {
    for (const Step& step : steps) emitter.reserve_vector(table_vector(emitter, step.difference));
  }
}

void emit_look_up_in_sixteens(LaneEmitter& emitter, const ByteTable& table, const Xmm& bytes,
                              UpperBits upper_bits, const Xmm& to) {
  Assembler& code = emitter.code();
  const Plan plan = plan_of(table);
  const OwnedVector index_owner = emitter.scratch();
  const Xmm index = index_owner.as(width_of(to));
  Xmm from = index;
  switch (plan.index) {
    case Index::byte: from = bytes; break;
    case Index::low_bits: {
      if (table.index_bits < 8 && upper_bits == UpperBits::zero) {
        from = bytes;
        break;
      }
      const int low_bits = (1 << std::min(table.index_bits, 7)) - 1;
      emit_and(emitter, index, bytes, repeated(emitter, low_bits));
      break;
    }
    case Index::magnitude:
      code.vpabsb(index, bytes);
      code.vpminub(index, index, repeated(emitter, half - 1));
      break;
  }
  emit_steps(emitter, plan.first, from, index, to, true);
  if (plan.first.empty()) emit_zero(emitter, to);
  if (plan.second.empty()) return;
  emit_xor(emitter, index, bytes, repeated(emitter, half));
  emit_steps(emitter, plan.second, index, index, to, false);
}

}  // namespace castor::jit
