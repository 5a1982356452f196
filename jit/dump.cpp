// SPDX-License-Identifier: Apache-2.0
#include "jit/dump.hpp"

#include <fmt/format.h>

#include "ir/text.hpp"
#include "jit/emit/nest_emitter.hpp"
#include "jit/nest.hpp"

namespace castor::jit {

namespace {

std::string heading(size_t index, const Target& target) {
  return fmt::format("nest {} ({}):\n", index, name_of(target.tier));
}

}  // namespace

std::string print(const Function& function, const Nest& nest, const NestForm& form,
                  const Target& target) {
  const ChunkPlan plan = plan_chunks(nest, form, target);
  std::string text =
      fmt::format("  loops: {} (dimensions that all operands walk alike are one)\n", form.rank);
  for (size_t k = 0; k < nest.operands(); ++k) {
    const bool is_input = k < nest.inputs.size();
    const std::string name =
        is_input
            ? "%" + function.values[nest.inputs[k]].name
            : fmt::format(
                  "result {} (%{})", nest.outputs[k - nest.inputs.size()],
                  function.values[function.results[nest.outputs[k - nest.inputs.size()]]].name);
    text += fmt::format("  {:<6} {}: {}, {}\n", is_input ? "load" : "store", name,
                        name_of(nest.element(k)), name_of(form.access[k]));
  }
  text += fmt::format("  chunk: {} lanes, widest lane {} bits, vectors of {} bits\n", plan.lanes,
                      nest.program.widest_bits(), target.vector_bits());
  text += plan.has_main_loop
              ? fmt::format("  main loop: {} chunks, {} elements{}\n", plan.chunks,
                            plan.chunks * plan.lanes,
                            plan.packs ? ", narrow results packed to full vectors" : "")
              : std::string("  main loop: none, a strided operand is copied chunk by chunk\n");
  text += target.has_avx512() ? "  tail: masked\n" : "  tail: through a stage on the stack\n";
  return text;
}

Result<std::string> dump_nest(const Function& function, const Target& target) {
  std::string text;
  const std::vector<Nest> nests = plan_nests(function, target);
  for (size_t i = 0; i < nests.size(); ++i) {
    const NestForm form = NestForm::dense(nests[i].operands());
    text += heading(i, target) + print(function, nests[i], form, target);
  }
  return text;
}

Result<std::string> dump_lanes(const Function& function, const Target& target) {
  std::string text;
  const std::vector<Nest> nests = plan_nests(function, target);
  for (size_t i = 0; i < nests.size(); ++i) {
    const NestForm form = NestForm::dense(nests[i].operands());
    text += heading(i, target);
    text += fmt::format("  lanes: {}\n", plan_chunks(nests[i], form, target).lanes);
    text += print(nests[i].program);
  }
  return text;
}

Result<std::vector<MachineCode>> emit_annotated(const Function& function, const Target& target) {
  EmitOptions options;
  options.annotate = true;
  options.origin_text = [&](uint32_t index) {
    return index < function.operations.size() ? print(function, function.operations[index])
                                              : std::string();
  };
  std::vector<MachineCode> codes;
  for (const Nest& nest : plan_nests(function, target)) {
    Result<MachineCode> code = emit_nest(nest, NestForm::dense(nest.operands()), target, options);
    if (!code.ok()) return code.error();
    codes.push_back(std::move(code).value());
  }
  return codes;
}

}  // namespace castor::jit
