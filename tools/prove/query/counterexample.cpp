// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/query/counterexample.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ir/interpreter/interpreter.hpp"
#include "ir/text/text.hpp"
#include "ir/types/elements.hpp"
#include "tools/prove/term/evaluate.hpp"

namespace castor::prove {
namespace {

using Element = std::array<std::byte, 8>;

uint64_t low_word(Bits bits) { return static_cast<uint64_t>(bits); }

std::string program_text(const jit::LaneProgram& program) {
  std::string text;
  for (size_t i = 0; i < program.code.size(); ++i) {
    text += "  " + jit::print(program, static_cast<jit::LaneId>(i)) + "\n";
  }
  return text;
}

}  // namespace

Result<uint64_t> interpreted(const Function& function, std::span<const Bits> inputs) {
  std::vector<Element> operands(inputs.size());
  std::vector<ConstView> sources;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ElementType type = function.type_of(function.parameters[i]).element;
    write_element(operands[i].data(), type, 0, low_word(inputs[i]));
    sources.emplace_back(operands[i].data(), type, Dims{1}, operands[i].size());
  }
  const ElementType type = function.type_of(function.results[0]).element;
  Element result = {};
  const View destination(result.data(), type, Dims{1}, result.size());
  const castor::Status status = interpret(function, sources, std::span(&destination, 1));
  if (!status) return status.error();
  return read_element(result.data(), type, 0);
}

std::string counterexample_text(const Finding& finding, const std::string& command) {
  const Query& query = *finding.query;
  const std::vector<Bits>& inputs = finding.verdict.inputs;
  std::string bits;
  for (const Bits input : inputs) {
    bits += fmt::format("{}0x{:x}", bits.empty() ? "" : ",", low_word(input));
  }
  const Result<uint64_t> reference = interpreted(*finding.subject.function, inputs);
  const uint64_t computed = low_word(evaluate(query.computed, inputs));
  const uint64_t specified = low_word(evaluate(query.specified, inputs));
  std::string text = fmt::format("{} on {} is wrong\n{}", finding.subject.name,
                                 name_of(finding.tier), print(*finding.subject.function));
  text += fmt::format(
      "inputs {}\nspecification 0x{:x}, interpreter {}, lane program 0x{:x}{}\n", bits, specified,
      reference ? fmt::format("0x{:x}", *reference) : reference.error().message, computed,
      computed == specified ? ", in which a precondition does not hold" : "");
  text += program_text(query.nest.program);
  return text + fmt::format("to repeat: {} --inputs {}\n", command, bits);
}

}  // namespace castor::prove
