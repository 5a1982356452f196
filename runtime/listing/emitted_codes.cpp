// SPDX-License-Identifier: Apache-2.0
#include "runtime/listing/emitted_codes.hpp"

#include "jit/dump/dump.hpp"

namespace castor::detail {

namespace {

struct Part {
  const char* name;
  const KernelCode<jit::NestSpec>* code;
  jit::NestForm form;
};

/// The forms that NestCodes gives a nest's codes.
std::vector<Part> parts_of(const BoundNest& nest, const jit::NestForm& main) {
  jit::NestForm streaming = main;
  streaming.stores = jit::Stores::streaming;
  streaming.baked_period = 0;
  return {{"", nest.main.code.get(), main},
          {", streaming stores", nest.streaming.get(), streaming},
          {", from any element", nest.any_start.code.get(),
           jit::bitwise_form(main, nest.planned->storage())}};
}

}  // namespace

Status for_each_emitted(const Compiled& compiled, const BoundNest& nest, const jit::NestForm& form,
                        const std::function<Status(const EmittedCode&)>& visit) {
  if (nest.planned == nullptr || !is_elementwise(nest)) return {};
  for (const Part& part : parts_of(nest, form)) {
    if (part.code == nullptr) continue;
    Result<jit::MachineCode> code =
        jit::emit_annotated(*compiled.canonical, *nest.planned, part.form, compiled.target);
    if (!code) return code.error();
    Status status = visit({part.name, std::move(code).value(), part.code});
    if (!status) return status;
  }
  return {};
}

}  // namespace castor::detail
