// SPDX-License-Identifier: Apache-2.0
// castor run: computes a function of a text file from .npy files to .npy files.
#include "castor/castor.hpp"
#include "ir/infer.hpp"
#include "tools/castor/command.hpp"
#include "tools/castor/load_function.hpp"
#include "tools/castor/tensor_files.hpp"

namespace castor::tools {

namespace {

struct RunOptions {
  std::string file;
  std::string function;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  RuntimeOptions runtime;
};

Outcome check_counts(const Function& function, const RunOptions& options) {
  const auto check = [&](std::string_view flag, std::string_view noun, size_t given,
                         size_t wanted) -> Outcome {
    if (given == wanted) return {};
    return wrong_use(fmt::format("@{} has {} {}{}, found {} {}", function.name, wanted, noun,
                                 wanted == 1 ? "" : "s", given, flag));
  };
  if (Outcome wrong = check("--in", "input", options.inputs.size(), function.parameters.size())) {
    return wrong;
  }
  return check("--out", "output", options.outputs.size(), function.results.size());
}

Result<std::vector<Array>> read_inputs(const Function& function, const RunOptions& options) {
  std::vector<Array> inputs;
  for (size_t i = 0; i < function.parameters.size(); ++i) {
    const Value& parameter = function.values[function.parameters[i]];
    Result<Array> array = read_tensor(options.inputs[i], parameter.type.element,
                                      fmt::format("input %{}", parameter.name));
    if (!array) return array.error();
    inputs.push_back(std::move(array).value());
  }
  return inputs;
}

Result<std::vector<OutputTensor>> make_outputs(const Function& function,
                                               const std::vector<Array>& inputs) {
  std::vector<Dims> shapes;
  for (const Array& input : inputs) shapes.push_back(input.shape);
  const Result<BoundShapes> bound = bind_shapes(function, shapes);
  if (!bound) return bound.error();
  std::vector<OutputTensor> outputs;
  for (ValueId id : function.results) {
    Result<OutputTensor> output = make_output(function.type_of(id).element, bound->values[id]);
    if (!output) return output.error();
    outputs.push_back(std::move(output).value());
  }
  return outputs;
}

Status compute(const FunctionPtr& function, const RuntimeOptions& options,
               const std::vector<Array>& inputs, std::vector<OutputTensor>& outputs) {
  const Result<Runtime> runtime = Runtime::create(options);
  if (!runtime) return runtime.error();
  const Result<Kernel> kernel = runtime->compile(function);
  if (!kernel) return kernel.error();
  std::vector<ConstView> sources;
  for (const Array& input : inputs) sources.push_back(input.view());
  std::vector<View> destinations;
  for (OutputTensor& output : outputs) destinations.push_back(output.view());
  const Result<BoundKernel> bound = kernel->bind(sources, destinations);
  if (!bound) return bound.error();
  return bound->run(sources, destinations);
}

Outcome run_function(const RunOptions& options) {
  const Result<FunctionPtr> function = load_function(options.file, options.function);
  if (!function) return failed(function.error());
  if (Outcome wrong = check_counts(**function, options)) return wrong;
  const Result<std::vector<Array>> inputs = read_inputs(**function, options);
  if (!inputs) return failed(inputs.error());
  Result<std::vector<OutputTensor>> outputs = make_outputs(**function, *inputs);
  if (!outputs) return failed(outputs.error());
  const Status computed = compute(*function, options.runtime, *inputs, *outputs);
  if (!computed) return failed(computed.error());
  for (size_t i = 0; i < outputs->size(); ++i) {
    const Status written = write_tensor(options.outputs[i], (*outputs)[i]);
    if (!written) return failed(written.error());
  }
  return {};
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("run", "Compute a function from .npy files");
  auto options = std::make_shared<RunOptions>();
  command->add_option("FILE", options->file, "text with the function")->required()->type_name("");
  command->add_option("--in", options->inputs, "input tensor, once for each, in order")
      ->allow_extra_args(false)
      ->type_name("A.npy");
  command->add_option("--out", options->outputs, "output tensor, once for each, in order")
      ->allow_extra_args(false)
      ->type_name("Y.npy");
  command->add_option("--func", options->function, "function to run, where the text has several")
      ->type_name("NAME");
  add_isa_option(*command, options->runtime.tier);
  add_interpret_option(*command, options->runtime.interpret);
  command->footer(
      "Types that NumPy lacks travel as raw bits in unsigned integers (bf16 as uint16).\n"
      "'constant @name' is read from name.npy or name.bin beside the text.");
  command->callback([options, &action] { action = [options] { return run_function(*options); }; });
}

}  // namespace castor::tools
