// SPDX-License-Identifier: Apache-2.0
#include "jit/lane/rounded_quotients.hpp"

#include <algorithm>
#include <bit>
#include <optional>

#include "ir/types/element_type.hpp"
#include "jit/lane/quotient_facts.hpp"

namespace castor::jit {

namespace {

class Search {
 public:
  explicit Search(const LaneProgram& program) : program_(program), reads_(program.code.size(), 0) {
    for (const LaneInst& inst : program.code) {
      for_each_operand(inst, [&](LaneId id) { ++reads_[static_cast<size_t>(id)]; });
    }
  }

  /// The quotient that an instruction rounds, if it is one of that form.
  LaneId quotient_of(const LaneInst& rounding, LaneId id) const {
    const bool has_form = rounding.op == LaneOp::float_to_signed && bits_of(rounding.type) == 32 &&
                          rounding.mask == no_lane &&
                          rounding.imm == static_cast<int64_t>(LaneRounding::nearest_even);
    if (!has_form) return no_lane;
    const LaneInst& cut = at(rounding.a);
    if (cut.op != LaneOp::min_signed || !is_read_once(rounding.a)) return no_lane;
    const bool limit_is_first = at(cut.a).op == LaneOp::constant;
    const LaneInst& limit = at(limit_is_first ? cut.a : cut.b);
    const LaneId quotient = limit_is_first ? cut.b : cut.a;
    if (limit.op != LaneOp::constant || at(quotient).op != LaneOp::float_quotient) return no_lane;
    const double number = std::bit_cast<float>(static_cast<uint32_t>(limit.imm));
    const bool is_cut_again = number >= max_bounded_quotient || is_stored_up_to(id, number);
    return is_read_once(quotient) && is_cut_again ? quotient : no_lane;
  }

 private:
  const LaneInst& at(LaneId id) const { return program_.code[static_cast<size_t>(id)]; }
  bool is_read_once(LaneId id) const { return reads_[static_cast<size_t>(id)] == 1; }

  /// Whether stores saturate an integer to types whose largest number is the limit, and nothing
  /// else reads it.
  bool is_stored_up_to(LaneId id, double limit) const {
    return std::ranges::all_of(program_.code, [&](const LaneInst& reader) {
      bool reads = false;
      for_each_operand(reader, [&](LaneId operand) { reads = reads || operand == id; });
      if (!reads) return true;
      const bool saturates =
          reader.op == LaneOp::store && (reader.narrowing == Narrowing::saturate_to_signed ||
                                         reader.narrowing == Narrowing::saturate_to_unsigned);
      if (!saturates) return false;
      const ElementType element = program_.sinks[static_cast<size_t>(reader.imm)].element;
      return is_integer(element) && static_cast<double>(integer_max(element)) == limit;
    });
  }

  const LaneProgram& program_;
  std::vector<int> reads_;  // by instruction
};

}  // namespace

RoundedQuotients rounded_quotients(const LaneProgram& program,
                                   const std::function<bool(LaneId)>& is_candidate) {
  const Search search(program);
  const size_t count = program.code.size();
  RoundedQuotients found = {std::vector<LaneId>(count, no_lane), std::vector<bool>(count, false)};
  for (size_t i = 0; i < count; ++i) {
    const LaneInst& inst = program.code[i];
    const LaneId quotient = search.quotient_of(inst, static_cast<LaneId>(i));
    if (quotient == no_lane || !is_candidate(quotient)) continue;
    found.quotient[i] = quotient;
    found.is_absorbed[static_cast<size_t>(quotient)] = true;
    found.is_absorbed[static_cast<size_t>(inst.a)] = true;
  }
  return found;
}

}  // namespace castor::jit
