// SPDX-License-Identifier: Apache-2.0
#include "tools/castor/check_report.hpp"

#include <fmt/format.h>

#include "tools/castor/describe.hpp"
#include "tools/castor/format_value.hpp"
#include "tools/testing/samples.hpp"

namespace castor::tools {

namespace {

std::string name_of_input(const PreparedCase& prepared, size_t input) {
  const Function& function = *prepared.function;
  return fmt::format("%{}", function.values[function.parameters[input]].name);
}

std::string name_of_output(const PreparedCase& prepared, size_t output) {
  const Function& function = *prepared.function;
  return fmt::format("%{}", function.values[function.results[output]].name);
}

/// The element of an input that an elementwise function reads for the output's element `at`: the
/// same index, with axes aligned on the right and those of size 1 repeated. Nothing where the
/// shapes do not allow that.
std::optional<int64_t> matching_element(const Dims& at, const Dims& output, const Dims& input) {
  const int lead = output.rank() - input.rank();
  if (lead < 0) return {};
  int64_t index = 0;
  for (int axis = 0; axis < input.rank(); ++axis) {
    const bool repeated = input[axis] == 1;
    if (!repeated && input[axis] != output[lead + axis]) return {};
    index = index * input[axis] + (repeated ? 0 : at[lead + axis]);
  }
  return index;
}

std::string describe_inputs(const PreparedCase& prepared, const Dims& at, const Dims& output) {
  std::string text;
  for (size_t i = 0; i < prepared.inputs.size(); ++i) {
    const std::optional<int64_t> element = matching_element(at, output, prepared.test.shapes[i]);
    if (!element) continue;
    const ElementType type = prepared.input_type(i);
    const uint64_t bits =
        samples::load_pattern(prepared.inputs[i], type, static_cast<size_t>(*element));
    text += fmt::format("  input    {} {} {}\n", name_of_input(prepared, i), name_of(type),
                        format_element(bits, type));
  }
  return text;
}

std::string describe_element(const PreparedCase& prepared, const Finding& finding) {
  const ElementType type = prepared.output_type(finding.tensor);
  const Dims& shape = prepared.output_shapes[finding.tensor];
  const Dims at = coordinates(finding.element, shape);
  return fmt::format("output {}: {} of {} elements differ, the first at {} (flat index {})\n",
                     name_of_output(prepared, finding.tensor), finding.differing,
                     *element_count(shape), to_string(at), finding.element) +
         describe_inputs(prepared, at, shape) +
         fmt::format("  expected {} {}  (interpreter)\n", name_of(type),
                     format_element(finding.expected, type)) +
         fmt::format("  actual   {} {}  (machine code)\n", name_of(type),
                     format_element(finding.actual, type));
}

std::string describe_unused_bits(const PreparedCase& prepared, const Finding& finding) {
  return fmt::format(
      "output {}: bits beside the elements, in byte {} of the view: expected 0x{:02x}, found "
      "0x{:02x}\n",
      name_of_output(prepared, finding.tensor), finding.byte, finding.expected, finding.actual);
}

std::string describe_canary(const PreparedCase& prepared, const Finding& finding) {
  const ElementType type = prepared.output_type(finding.tensor);
  const size_t start = prepared.test.start_of(prepared.inputs.size() + finding.tensor, type);
  const size_t reach = prepared.test.reach_of(prepared.inputs.size() + finding.tensor,
                                              prepared.output_shapes[finding.tensor]);
  const auto size = static_cast<ptrdiff_t>(samples::storage_bytes(type, start + reach));
  const bool before = finding.byte < 0;
  return fmt::format("output {}: wrote outside the tensor of {} bytes, {} bytes {} it\n",
                     name_of_output(prepared, finding.tensor), size,
                     before ? -finding.byte : finding.byte - size + 1, before ? "before" : "after");
}

std::string describe(const PreparedCase& prepared, const Finding& finding) {
  switch (finding.kind) {
    case Finding::Kind::element: return describe_element(prepared, finding);
    case Finding::Kind::unused_bits: return describe_unused_bits(prepared, finding);
    case Finding::Kind::canary: return describe_canary(prepared, finding);
    case Finding::Kind::input:
      return fmt::format("input {} was written\n", name_of_input(prepared, finding.tensor));
    case Finding::Kind::failure: return fmt::format("the run failed: {}\n", finding.message);
  }
  return {};
}

}  // namespace

std::string report(const PreparedCase& prepared, const FunctionPtr& function,
                   const Finding& finding, Tier tier, const std::string& repeat) {
  return fmt::format("MISMATCH: @{} on {}\n", function->name, name_of(tier)) +
         describe(prepared, finding) +
         fmt::format(
             "  case     {}, seed {}, {} elements after a 64-byte boundary{}\n",
             describe(prepared.test), prepared.test.seed, prepared.test.misalignment,
             prepared.test.start > 0 ? ", elements narrower than a byte from inside a byte" : "") +
         fmt::format("  repeat   {}\n", repeat) + describe_function(function) +
         describe_code(function, tier);
}

}  // namespace castor::tools
