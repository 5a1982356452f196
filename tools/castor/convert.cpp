// SPDX-License-Identifier: Apache-2.0
// castor convert: converts the elements of one .npy file.
#include "castor/castor.hpp"
#include "tools/castor/command.hpp"
#include "tools/castor/tensor_files.hpp"

namespace castor::tools {

namespace {

struct ConvertCommand {
  std::string input;
  std::string output;
  ElementType to = ElementType::f32;
  std::optional<ElementType> from;
  ConvertOptions options;
  RuntimeOptions runtime;
};

/// Reads the input as `--from`, or as the file's own type.
Result<Array> read_input(const ConvertCommand& command) {
  if (command.from) return read_tensor(command.input, *command.from, "input");
  return read_npy(command.input);
}

Outcome refuse_unimplemented(ElementType type) {
  if (is_implemented(type)) return {};
  return wrong_use(fmt::format("element type {} is known but not implemented", name_of(type)));
}

Outcome convert_file(const ConvertCommand& command) {
  if (Outcome refused = refuse_unimplemented(command.to)) return refused;
  if (Outcome refused = refuse_unimplemented(command.from.value_or(command.to))) return refused;
  const Result<Array> input = read_input(command);
  if (!input) return failed(input.error());
  const Status admitted = check_convert_options(input->element, command.to, command.options);
  if (!admitted) return wrong_use(admitted.error().message);
  Result<OutputTensor> output = make_output(command.to, input->shape);
  if (!output) return failed(output.error());
  const Result<Runtime> runtime = Runtime::create(command.runtime);
  if (!runtime) return failed(runtime.error());
  const Status converted = runtime->convert(input->view(), output->view(), command.options);
  if (!converted) return failed(converted.error());
  const Status written = write_tensor(command.output, *output);
  if (!written) return failed(written.error());
  return {};
}

/// The names of an option's values: "saturate, wrap or nan".
template <size_t N>
std::string choices(const std::array<std::string_view, N>& names) {
  std::string text(names[1]);  // the first entry is the default, which is not written
  for (size_t i = 2; i < N; ++i) text += fmt::format("{}{}", i + 1 < N ? ", " : " or ", names[i]);
  return text;
}

std::string element_type_names() {
  std::string names;
  for (const ElementInfo& row : element_table) {
    if (row.implemented) names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  }
  return names;
}

}  // namespace

void add_convert(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("convert", "Convert the elements of a .npy file");
  auto options = std::make_shared<ConvertCommand>();
  const std::string types = element_type_names();
  command->add_option("IN.npy", options->input, "file to read")->required()->type_name("");
  command->add_option("OUT.npy", options->output, "file to write")->required()->type_name("");
  add_named_option<ElementType>(*command, "--to", options->to, element_type_named, "element type",
                                types, "element type to convert to: " + types)
      ->required();
  add_named_option<ElementType>(*command, "--from", options->from, element_type_named,
                                "element type", types,
                                "element type of the input, where it travels as raw bits (bf16)");
  add_named_option<Overflow>(*command, "--overflow", options->options.overflow, overflow_named,
                             "overflow mode", choices(overflow_names),
                             "for values out of range: " + choices(overflow_names));
  add_named_option<Rounding>(*command, "--rounding", options->options.rounding, rounding_named,
                             "rounding mode", choices(rounding_names),
                             "from float to integer: " + choices(rounding_names));
  add_isa_option(*command, options->runtime.tier);
  add_interpret_option(*command, options->runtime.interpret);
  command->callback([options, &action] { action = [options] { return convert_file(*options); }; });
}

}  // namespace castor::tools
