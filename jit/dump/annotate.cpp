// SPDX-License-Identifier: Apache-2.0
#include "jit/dump/annotate.hpp"

#include "ir/text/text.hpp"

namespace castor::jit {

std::string operation_text(const Function& function, uint32_t index) {
  if (index >= function.operations.size()) return "";
  return print(function, function.operations[index]);
}

EmitOptions annotated_with(const Function& function) {
  return {.annotate = true,
          .origin_text = [&](uint32_t index) { return operation_text(function, index); }};
}

void note_operation(const Function& function, uint32_t operation, NotedCode noted,
                    MachineCode& code) {
  const std::string text = operation_text(function, operation);
  for (CodeNote& note : code.notes) {
    if (info(note.section).kind == SectionKind::frame) continue;
    if (note.operation >= 0 && noted != NotedCode::all) continue;
    note.operation = static_cast<int32_t>(operation);
    note.origin = text;
  }
  for (CodeLane& lane : code.lanes) {
    if (noted == NotedCode::all) lane.operation = static_cast<int32_t>(operation);
  }
}

}  // namespace castor::jit
