// SPDX-License-Identifier: Apache-2.0
// castor convert: converts the elements of one .npy file.
#include <charconv>

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
  std::optional<Dims> shape;
  ConvertOptions options;
  RuntimeOptions runtime;
};

/// Reads the input as `--from`, or as the file's own type.
Result<Array> read_input(const ConvertCommand& command) {
  if (!command.from) return read_npy(command.input);
  Result<Array> array = read_tensor(command.input, *command.from, "input");
  if (!array || !command.shape) return array;
  if (Status status = give_shape(*array, *command.shape, "input"); !status) return status.error();
  return array;
}

/// Extents between commas; none for a scalar.
std::optional<Dims> shape_named(std::string_view text) {
  Dims shape;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    int64_t extent = 0;
    const auto [next, error] = std::from_chars(at, end, extent);
    if (error != std::errc() || extent < 0 || shape.rank() == max_rank) return std::nullopt;
    shape.push_back(extent);
    if (next == end) break;
    at = next + 1;
    if (*next != ',' || at == end) return std::nullopt;
  }
  return shape;
}

Outcome convert_file(const ConvertCommand& command) {
  if (command.shape && !(command.from && is_sub_byte(*command.from))) {
    return wrong_use(
        "--shape is for --from with an element type narrower than a byte; other files have theirs");
  }
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
    names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
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
                                "element type of the input, where it travels as raw bits (bf16, "
                                "f8e4m3) or packed bytes (u4)");
  add_named_option<Dims>(*command, "--shape", options->shape, shape_named, "shape",
                         "extents such as 2,3 ('' for a scalar)",
                         "shape of an input of packed bytes: extents such as 2,3 (default: one "
                         "dimension, as many elements as the bytes hold)");
  add_named_option<Overflow>(*command, "--overflow", options->options.overflow, overflow_named,
                             "overflow mode", choices(overflow_names),
                             "for values out of range: " + choices(overflow_names));
  add_named_option<Rounding>(*command, "--rounding", options->options.rounding, rounding_named,
                             "rounding mode", choices(rounding_names),
                             "from float to integer, or to f8e8m0: " + choices(rounding_names));
  add_named_option<NanMode>(
      *command, "--nan", options->options.nan, nan_mode_named, "nan mode", choices(nan_mode_names),
      "for NaN to a float type without NaN, as f4e2m1: " + choices(nan_mode_names));
  command->footer(
      "Elements narrower than a byte travel as their packed bytes: uint8 of one dimension.");
  add_isa_option(*command, options->runtime.tier);
  add_core_option(*command, options->runtime.core);
  add_interpret_option(*command, options->runtime.interpret);
  command->callback([options, &action] { action = [options] { return convert_file(*options); }; });
}

}  // namespace castor::tools
