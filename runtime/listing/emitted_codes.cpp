// SPDX-License-Identifier: Apache-2.0
#include "runtime/listing/emitted_codes.hpp"

#include "jit/dump/dump.hpp"
#include "jit/emit/chunk_plan.hpp"
#include "runtime/compiled.hpp"
#include "runtime/conv/convolution_output.hpp"

namespace castor::detail {

namespace {

struct Part {
  const char* name;
  const KernelCode<jit::NestSpec>* code;
  jit::NestForm form;
};

/// The parts that NestBinding gives both kinds of steps.
std::vector<Part> lane_parts(const Compiled& compiled, const LaneStep& step,
                             const jit::NestForm& main) {
  std::vector<Part> parts = {{"", step.main.code.get(), main}};
  if (step.any_start) {
    parts.push_back({", from any element", step.any_start->code.get(),
                     jit::bitwise_form(main, compiled.nests[step.nest].storage())});
  }
  return parts;
}

/// The form that NestBinding gives streaming code.
Part streaming_part(const Compiled& compiled, const ElementwiseStep& step) {
  return {", streaming stores", step.streaming.get(),
          jit::streaming_form(compiled.nests[step.nest], step.space.form, compiled.target)};
}

Status visit_parts(const Compiled& compiled, size_t nest, const std::vector<Part>& parts,
                   const std::function<Status(const EmittedCode&)>& visit) {
  for (const Part& part : parts) {
    Result<jit::MachineCode> code =
        jit::emit_annotated(*compiled.canonical, compiled.nests[nest], part.form, compiled.target);
    if (!code) return code.error();
    Status status = visit({part.name, std::move(code).value(), part.code});
    if (!status) return status;
  }
  return {};
}

}  // namespace

Status for_each_emitted(const Compiled& compiled, const ElementwiseStep& step,
                        const std::function<Status(const EmittedCode&)>& visit) {
  if (step.program != StepProgram::planned) return {};
  std::vector<Part> parts = lane_parts(compiled, step, step.space.form);
  if (step.streaming != nullptr) parts.insert(parts.begin() + 1, streaming_part(compiled, step));
  return visit_parts(compiled, step.nest, parts, visit);
}

Status for_each_emitted(const Compiled& compiled, const FoldStep& step,
                        const std::function<Status(const EmittedCode&)>& visit) {
  if (step.combines || step.main.code == nullptr) return {};
  return visit_parts(compiled, step.nest, {{"", step.main.code.get(), step.space.form}}, visit);
}

Status for_each_emitted(const Compiled& compiled, const BoundEpilogue& epilogue,
                        const std::function<Status(const EmittedCode&)>& visit) {
  return visit_parts(compiled, epilogue.nest,
                     lane_parts(compiled, epilogue, epilogue.walk.space.form), visit);
}

}  // namespace castor::detail
