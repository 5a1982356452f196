// SPDX-License-Identifier: Apache-2.0
#include "jit/dump/dump.hpp"

#include <fmt/format.h>

#include <array>

#include "ir/text/text.hpp"
#include "jit/dump/annotate.hpp"
#include "jit/dump/dump_convolution.hpp"
#include "jit/dump/dump_requantization.hpp"
#include "jit/emit/nest_emitter.hpp"
#include "jit/emit/packed_loop.hpp"
#include "jit/lane/halves.hpp"
#include "jit/plan/access_pattern.hpp"
#include "jit/plan/nest.hpp"
#include "jit/requantize/byte_table_kernel.hpp"

namespace castor::jit {

namespace {

std::string heading(size_t index, const Target& target) {
  return fmt::format("nest {} ({}):", index, name_of(target.tier));
}

ValueId value_of(const Function& function, const NestOutput& output) {
  return output.is_scratch() ? output.value : function.results[output.result];
}

std::string place_text(const NestOutput& output) {
  if (output.accumulator >= 0) return fmt::format("accumulator {}", output.accumulator);
  return output.is_scratch() ? "scratch" : fmt::format("result {}", output.result);
}

/// "  source0  %x: f32, contiguous", "  sink0    %y: u8, contiguous, result 0".
std::string operand_text(const Function& function, const Nest& nest, const NestForm& form,
                         size_t operand) {
  const size_t inputs = nest.inputs.size();
  const bool is_input = operand < inputs;
  const ValueId value =
      is_input ? nest.inputs[operand].value : value_of(function, nest.outputs[operand - inputs]);
  const std::string name = is_input ? fmt::format("source{}", operand)  //
                                    : fmt::format("sink{}", operand - inputs);
  return fmt::format("  {:<9}%{}: {}, {}{}\n", name, function.values[value].name,
                     name_of(nest.element(operand)), name_of(form.access[operand]),
                     is_input ? "" : ", " + place_text(nest.outputs[operand - inputs]));
}

std::string main_loop_text(const Nest& nest, const ChunkPlan& plan) {
  if (const CodeTables* tables = plan.tables()) {
    const std::string part = tables->block > 0 ? fmt::format("block of {}", tables->block) : "row";
    return fmt::format("elements by the code of source{}, from a table made for each {}",
                       tables->operand, part);
  }
  if (plan.scales_codes()) {
    return "64 codes at a time, by the products of a scale and each significand that codes have; "
           "the lane program for scales with which results might not be normal";
  }
  if (plan.scales_nibbles()) {
    return "128 codes at a time, by the 16 results that a scale has; the lane program for scales "
           "with which results might not be normal";
  }
  if (plan.encodes_powers()) {
    return "64 elements at a time, by the bytes of their exponents and mantissas; the lane program "
           "for infinities, NaNs and the smallest and largest powers";
  }
  if (plan.encodes_quotients()) {
    return "64 elements at a time, by what the limits between codes are for each divisor; the lane "
           "program for NaNs and for negative, small and large divisors";
  }
  if (plan.columns_first)
    return fmt::format("none: {} chunks of columns at a time, for all rows", plan.chunks);
  if (!plan.has_main_loop) return "none: a strided operand is copied chunk by chunk";
  const int elements = plan.chunks * plan.lanes;
  int read = 0;
  int written = 0;
  for (size_t k = 0; k < nest.operands(); ++k) {
    const int bytes = elements * bits_of(nest.element(k)) / 8;
    const bool is_input = k < nest.inputs.size();
    const bool is_accumulator = !is_input && nest.program.folds();
    if (is_accumulator && plan.fold_vectors > 0) continue;  // it is in registers
    if (is_input || is_accumulator) read += bytes;
    if (!is_input) written += bytes;
  }
  return fmt::format("{} {} an iteration: {} elements, {} B read, {} B written{}", plan.chunks,
                     plan.chunks == 1 ? "chunk" : "chunks", elements, read, written,
                     plan.pending_vectors > 0 ? "; narrow results packed to whole vectors" : "");
}

std::string lanes_text(const Function& function, const LaneProgram& program, int& instructions) {
  std::string text;
  std::string origin;
  for (size_t id = 0; id < program.code.size(); ++id) {
    const LaneInst& inst = program.code[id];
    if (inst.op == LaneOp::constant) continue;
    ++instructions;
    const std::string from = operation_text(function, inst.origin);
    if (from != origin) text += fmt::format("  // {}\n", from);
    origin = from;
    text += fmt::format("  {}\n", print(program, static_cast<LaneId>(id)));
  }
  return text;
}

}  // namespace

std::string print(const Function& function, const Nest& nest, const NestForm& form,
                  const Target& target) {
  std::string text = fmt::format("  loops    {}\n", form.rank);
  for (size_t k = 0; k < nest.operands(); ++k) text += operand_text(function, nest, form, k);
  return text + loops_text(nest, form, target);
}

std::string loops_text(const Nest& nest, const NestForm& form, const Target& target) {
  const ChunkPlan plan = plan_chunks(nest, form, target);
  std::string text = fmt::format(
      "  chunk    {} lanes, the widest of {} bits{}, in vectors of {} bits\n", plan.lanes,
      nest.program.widest_bits(), plan.joins_halves ? " in two halves" : "", target.vector_bits());
  if (const auto packed = packed_loop(nest, form, target)) {
    const int elements = packed->elements();
    text += fmt::format("  {:<8} {} elements an iteration: {} B read, {} B written\n",
                        packed->name(), elements, elements * bits_of(nest.element(0)) / 8,
                        elements * bits_of(nest.element(1)) / 8);
  }
  text += fmt::format("  main     {}\n", main_loop_text(nest, plan));
  text += fmt::format("  tail     chunk by chunk, {}\n",
                      target.has_avx512() ? "masked" : "through a stage on the stack");
  return text;
}

namespace {

/// What dumps say of one nest, below its heading.
Result<std::string> nest_text(const Function& function, const LikelyForms& forms,
                              std::span<const Nest> nests, size_t index, const Target& target) {
  const Nest& nest = nests[index];
  if (nest.convolution) {
    Result<std::string> convolution = convolution_text(function, nests, index, target);
    if (!convolution) return convolution.error();
    return fmt::format("{}  core     {}\n", *convolution, name_of(target.core));
  }
  if (nest.requantization) return requantization_text(function, nest, target);
  const std::string text = print(function, nest, forms.form_of(nest, target), target);
  if (!nest.epilogue) return text;
  int instructions = 0;
  return text + fmt::format("  pieces   of the result of nest {}; on each of them\n{}", index - 1,
                            lanes_text(function, nest.program, instructions));
}

}  // namespace

Result<std::string> dump_nest(const Function& function, const Target& target) {
  std::string text;
  const std::vector<Nest> nests = plan_nests(function, target);
  const LikelyForms forms(function);
  for (size_t i = 0; i < nests.size(); ++i) {
    const Result<std::string> nest = nest_text(function, forms, nests, i, target);
    if (!nest) return nest.error();
    text += heading(i, target) + "\n" + *nest;
  }
  return text;
}

namespace {

/// A nest with lanes, and the form that it most likely has.
struct ShownNest {
  Nest nest;
  NestForm form;
};

/// Not of a convolution's nest.
Result<ShownNest> shown_nest(const Function& function, const LikelyForms& forms, const Nest& nest,
                             const Target& target) {
  if (!nest.requantization) return ShownNest{nest, forms.form_of(nest, target)};
  Result<LikelyRequantization> likely = likely_requantization(function, nest, target);
  if (!likely) return likely.error();
  return ShownNest{std::move(likely->nest), std::move(likely->form)};
}

}  // namespace

Result<std::string> dump_lanes(const Function& function, const Target& target) {
  std::string text;
  const std::vector<Nest> nests = plan_nests(function, target);
  const LikelyForms forms(function);
  for (size_t i = 0; i < nests.size(); ++i) {
    if (nests[i].convolution) {
      text += fmt::format("{} a convolution, without lanes\n", heading(i, target));
      continue;
    }
    const Result<ShownNest> shown = shown_nest(function, forms, nests[i], target);
    if (!shown) return shown.error();
    const auto& [nest, form] = *shown;
    const ChunkPlan plan = plan_chunks(nest, form, target);
    const LaneProgram program = plan.joins_halves ? with_joined_halves(nest.program) : nest.program;
    int instructions = 0;
    const std::string lanes = lanes_text(function, program, instructions);
    text += fmt::format("{} {} lanes; {} instructions, {} constants\n{}", heading(i, target),
                        plan.lanes, instructions,
                        program.code.size() - static_cast<size_t>(instructions), lanes);
  }
  return text;
}

Result<MachineCode> emit_annotated(const Function& function, const Nest& nest, const NestForm& form,
                                   const Target& target) {
  return emit_nest(nest, form, target, annotated_with(function));
}

Result<MachineCode> emit_annotated(const Nest& nest, const NestForm& form, const Target& target) {
  return emit_nest(nest, form, target, {.annotate = true});
}

namespace {

/// The code of a requantization is of its operation: methods know none.
Result<MachineCode> noted(const Function& function, const Nest& nest, Result<MachineCode> code) {
  if (code && nest.requantization) {
    note_operation(function, *nest.requantization, NotedCode::all, *code);
  }
  return code;
}

Result<MachineCode> emit_one(const Function& function, const LikelyForms& forms,
                             std::span<const Nest> nests, size_t index, const Target& target) {
  if (nests[index].convolution) return emit_convolution(function, nests, index, target);
  if (nests[index].requantization && looks_bytes_up(function, nests[index], target)) {
    return noted(function, nests[index], emit_kernel(ByteTableSpec{}, target, {.annotate = true}));
  }
  const Result<ShownNest> shown = shown_nest(function, forms, nests[index], target);
  if (!shown) return shown.error();
  return noted(function, nests[index], emit_annotated(function, shown->nest, shown->form, target));
}

}  // namespace

namespace {

/// The code of a convolution and its packer.
Status add_convolution(const Function& function, std::span<const Nest> nests, size_t index,
                       const Target& target, DumpedNest& dumped) {
  Result<DumpedConvolution> convolution = dumped_convolution(function, nests, index, target);
  if (!convolution) return convolution.error();
  Result<MachineCode> code = emit_convolution(function, nests, index, target);
  if (!code) return code.error();
  dumped.codes.push_back({"microkernel", std::move(code).value()});
  Result<std::optional<MachineCode>> packer =
      emit_input_packer(function, *nests[index].convolution, *convolution, target);
  if (!packer) return packer.error();
  if (*packer) dumped.codes.push_back({"input packer", std::move(**packer)});
  dumped.convolution = std::move(convolution).value();
  return {};
}

}  // namespace

Result<std::vector<DumpedNest>> dump_nests(const Function& function, const Target& target) {
  std::vector<DumpedNest> all;
  const std::vector<Nest> nests = plan_nests(function, target);
  const LikelyForms forms(function);
  for (size_t i = 0; i < nests.size(); ++i) {
    DumpedNest dumped;
    Result<std::string> text = nest_text(function, forms, nests, i, target);
    if (!text) return text.error();
    dumped.text = std::move(text).value();
    dumped.operation = nests[i].convolution ? nests[i].convolution : nests[i].requantization;
    if (nests[i].convolution) {
      if (Status status = add_convolution(function, nests, i, target, dumped); !status) {
        return status.error();
      }
    } else if (i == 0 || !all.back().convolution || !nests[i].epilogue ||
               all.back().convolution->applied() == nullptr) {
      Result<MachineCode> code = emit_one(function, forms, nests, i, target);
      if (!code) return code.error();
      dumped.codes.push_back({"nest", std::move(code).value()});
    }
    all.push_back(std::move(dumped));
  }
  return all;
}

Result<std::vector<MachineCode>> emit_annotated(const Function& function, const Target& target) {
  std::vector<MachineCode> codes;
  const std::vector<Nest> nests = plan_nests(function, target);
  const LikelyForms forms(function);
  for (size_t i = 0; i < nests.size(); ++i) {
    Result<MachineCode> code = emit_one(function, forms, nests, i, target);
    if (!code.ok()) return code.error();
    codes.push_back(std::move(code).value());
  }
  return codes;
}

}  // namespace castor::jit
