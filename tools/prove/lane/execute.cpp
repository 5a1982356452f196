// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/lane/execute.hpp"

#include <fmt/format.h>

#include "tools/prove/lane/step.hpp"

namespace castor::prove {

using jit::LaneInst;
using jit::LaneOp;

namespace {

class Execution {
 public:
  Execution(const jit::LaneProgram& program, const SourceElements& sources, Terms& terms)
      : program_(program), sources_(sources), terms_(terms), values_(program.code.size()) {
    result_.elements.resize(program.sinks.size());
    result_.broken = terms.truth(false);
  }

  Result<LaneResult> run() {
    for (size_t i = 0; i < program_.code.size(); ++i) {
      const LaneInst& inst = program_.code[i];
      if (inst.op == LaneOp::store) {
        store(inst);
        continue;
      }
      values_[i] = value_of(inst);
      if (!values_[i]) {
        return Error(ErrorCode::unsupported,
                     fmt::format("no meaning of the lane operation in '{}'",
                                 jit::print(program_, static_cast<jit::LaneId>(i))));
      }
    }
    return std::move(result_);
  }

 private:
  LaneStep step_of(const LaneInst& inst) {
    const bool logic = inst.op >= LaneOp::mask_and && inst.op <= LaneOp::mask_resize;
    const bool c_is_operand = inst.mask == jit::no_lane;
    return {.program = program_,
            .inst = inst,
            .a = operand(inst.a, logic),
            .b = operand(inst.b, logic),
            .c = c_is_operand ? operand(inst.c, false) : Term(),
            .terms = terms_,
            .broken = result_.broken};
  }

  /// An operand as a truth value, or as a lane: AVX2 uses one for the other.
  Term operand(jit::LaneId id, bool as_truth) {
    if (id == jit::no_lane) return {};
    const Term value = values_[static_cast<size_t>(id)];
    const jit::LaneType type = program_.code[static_cast<size_t>(id)].type;
    if (as_truth) return truth(value);
    return is_mask(type) ? mask_of(value, bits_of(type)) : value;
  }

  /// A lane of all ones or all zeros is a truth value.
  Term truth(const Term& value) {
    if (value.width() == 1) return value;
    const Term set = bit(value, value.width() - 1);
    result_.broken = result_.broken | not_equal(value, mask_of(set, value.width()));
    return set;
  }

  Term value_of(const LaneInst& inst) {
    switch (inst.op) {
      case LaneOp::load: return loaded(inst);
      case LaneOp::gather: return gathered(inst);
      case LaneOp::constant: return constant(inst);
      default: break;
    }
    const bool merges = inst.mask != jit::no_lane;
    LaneStep step = step_of(inst);
    if (!merges) return meaning_of(step);
    // Its mask says how it is computed.
    if (inst.op == LaneOp::float_quotient || inst.op == LaneOp::quotient_to_signed) return {};
    // What a masked-out lane would have broken counts for nothing.
    const Term mask = operand(inst.mask, true);
    Term broken_there = terms_.truth(false);
    LaneStep masked{.program = program_,
                    .inst = inst,
                    .a = step.a,
                    .b = step.b,
                    .c = {},
                    .terms = terms_,
                    .broken = broken_there};
    const Term value = meaning_of(masked);
    if (!value) return {};
    result_.broken = result_.broken | (mask & broken_there);
    const Term otherwise = inst.c == jit::no_lane ? like(value, 0) : operand(inst.c, false);
    return if_then_else(mask, value, otherwise);
  }

  Term constant(const LaneInst& inst) {
    const auto bits = static_cast<Bits>(static_cast<uint64_t>(inst.imm));
    return is_mask(inst.type) ? terms_.truth(bits != 0) : terms_.constant(bits_of(inst.type), bits);
  }

  /// Whole bytes of signed integers are extended by their sign, all else with zeros.
  Term loaded(const LaneInst& inst) {
    return extended(inst, sources_[static_cast<size_t>(inst.imm)].front());
  }

  Term extended(const LaneInst& inst, const Term& bits) const {
    const ElementType element = program_.sources[static_cast<size_t>(inst.imm)].element;
    const bool by_sign = is_signed_integer(element) && !is_sub_byte(element);
    return by_sign ? extend_sign(bits, bits_of(inst.type)) : extend_zero(bits, bits_of(inst.type));
  }

  /// An entry of the source by a lane; one that is no entry's number is a broken precondition.
  Term gathered(const LaneInst& inst) {
    const std::vector<Term>& entries = sources_[static_cast<size_t>(inst.imm)];
    const Term lane = operand(inst.a, false);
    const int bits = program_.sources[static_cast<size_t>(inst.imm)].index_bits;
    const Term index = truncate(lane, bits);
    result_.broken = result_.broken | not_equal(extend_zero(index, lane.width()), lane);
    return extended(inst, entry_of(entries, index));
  }

  void store(const LaneInst& inst) {
    LaneStep step = step_of(inst);
    const auto sink = static_cast<size_t>(inst.imm);
    result_.elements[sink] = stored_element(step, program_.sinks[sink].element);
  }

  const jit::LaneProgram& program_;
  const SourceElements& sources_;
  Terms& terms_;
  std::vector<Term> values_;
  LaneResult result_;
};

}  // namespace

Result<LaneResult> execute(const jit::LaneProgram& program, const SourceElements& sources,
                           Terms& terms) {
  return Execution(program, sources, terms).run();
}

Result<LaneResult> execute(const jit::LaneProgram& program, std::span<const Term> elements,
                           Terms& terms) {
  SourceElements sources;
  for (const Term& element : elements) sources.push_back({element});
  return execute(program, sources, terms);
}

}  // namespace castor::prove
