// SPDX-License-Identifier: Apache-2.0
// castor run: computes a function of a text file from .npy files to .npy files.
#include <map>

#include "castor/castor.hpp"
#include "castor/thread_pool.hpp"
#include "ir/verify/infer.hpp"
#include "tools/castor/command.hpp"
#include "tools/castor/load_function.hpp"
#include "tools/castor/load_model.hpp"
#include "tools/castor/number_option.hpp"
#include "tools/castor/observe_options.hpp"
#include "tools/castor/profile.hpp"
#include "tools/castor/tensor_files.hpp"

namespace castor::tools {

namespace {

struct RunOptions {
  std::string file;
  std::string function;
  onnx::PlanOptions plan;  ///< where the file is a model
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  RuntimeOptions runtime;
  int threads = 1;  ///< 0: one for each core
  bool profile = false;
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

/// Reads the inputs; those that travel as packed bytes take their shapes from the parameters.
class InputReader {
 public:
  InputReader(const Function& function, const RunOptions& options)
      : function_(function), options_(options), inputs_(function.parameters.size()) {}

  Result<std::vector<Array>> read() {
    for (const bool packed : {false, true}) {  // packed ones last: others say what names are
      for (size_t i = 0; i < inputs_.size(); ++i) {
        if (is_sub_byte(parameter(i).type.element) != packed) continue;
        if (Status status = read(i); !status) return status.error();
      }
    }
    return std::move(inputs_);
  }

 private:
  const Value& parameter(size_t i) const { return function_.values[function_.parameters[i]]; }

  Status read(size_t i) {
    const std::string what = fmt::format("input %{}", parameter(i).name);
    const TensorType& type = parameter(i).type;
    Result<Array> array = read_tensor(options_.inputs[i], type.element, what);
    if (!array) return array.error();
    if (is_sub_byte(type.element)) {
      const Result<Dims> shape = find_shape(type, array->shape[0], what);
      if (!shape) return shape.error();
      if (Status status = give_shape(*array, *shape, what); !status) return status;
    }
    learn_names(type.shape, array->shape);
    inputs_[i] = std::move(array).value();
    return {};
  }

  /// Dimensions without a number are those of other inputs by their names; a single one that is not
  /// takes what the bytes hold.
  Result<Dims> find_shape(const TensorType& type, int64_t elements, const std::string& what) const {
    Dims shape;
    int unknown = -1;
    int64_t others = 1;
    for (const Dim& dim : type.shape) {
      const auto known = sizes_.find(dim.name);
      const bool is_known = dim.is_fixed() || known != sizes_.end();
      if (!is_known && unknown >= 0) {
        return Error{ErrorCode::invalid_argument,
                     fmt::format("{}: packed bytes do not tell more than one unknown dimension of "
                                 "{}; write the others as numbers",
                                 what, to_string(type))};
      }
      if (!is_known) unknown = shape.rank();
      shape.push_back(dim.is_fixed() ? dim.extent : is_known ? known->second : 0);
      if (is_known && __builtin_mul_overflow(others, shape[shape.rank() - 1], &others)) others = 0;
    }
    if (unknown >= 0) shape[unknown] = others > 0 ? elements / others : 0;
    return shape;
  }

  void learn_names(const Shape& written, const Dims& shape) {
    for (size_t axis = 0; axis < written.size() && static_cast<int>(axis) < shape.rank(); ++axis) {
      const Dim& dim = written[axis];
      if (!dim.is_fixed() && !dim.name.empty()) sizes_[dim.name] = shape[static_cast<int>(axis)];
    }
  }

  const Function& function_;
  const RunOptions& options_;
  std::vector<Array> inputs_;
  std::map<std::string, int64_t> sizes_;  ///< by name
};

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

Status compute(const FunctionPtr& function, const RunOptions& options,
               const std::vector<Array>& inputs, std::vector<OutputTensor>& outputs) {
  RuntimeOptions with_threads = options.runtime;
  if (options.threads != 1) {
    const Result<std::shared_ptr<Executor>> pool = make_thread_pool(options.threads);
    if (!pool) return pool.error();
    with_threads.executor = *pool;
  }
  const Result<Runtime> runtime = Runtime::create(with_threads);
  if (!runtime) return runtime.error();
  const Result<Kernel> kernel = runtime->compile(function);
  if (!kernel) return kernel.error();
  std::vector<ConstView> sources;
  for (const Array& input : inputs) sources.push_back(input.view());
  std::vector<View> destinations;
  for (OutputTensor& output : outputs) destinations.push_back(output.view());
  const Result<BoundKernel> bound = kernel->bind(sources, destinations);
  if (!bound) return bound.error();
  if (!options.profile) return bound->run(sources, destinations);
  const Result<Profile> profile = take_profile(*bound, sources, destinations);
  if (!profile) return profile.error();
  const auto tier = bound->tier();
  fmt::print("@{} on {}, {} thread{}: {}", function->name, name_of(*tier), options.threads,
             options.threads == 1 ? "" : "s", print(*profile));
  return {};
}

Outcome run_function(const RunOptions& options) {
  const Result<FunctionPtr> function = load_function(options.file, options.function, options.plan);
  if (!function) return failed(function.error());
  if (Outcome wrong = check_counts(**function, options)) return wrong;
  const Result<std::vector<Array>> inputs = InputReader(**function, options).read();
  if (!inputs) return failed(inputs.error());
  Result<std::vector<OutputTensor>> outputs = make_outputs(**function, *inputs);
  if (!outputs) return failed(outputs.error());
  const Status computed = compute(*function, options, *inputs, *outputs);
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
  add_strict(*command, options->plan);
  command->add_option("--func", options->function, "function to run, where the text has several")
      ->type_name("NAME");
  add_number_option<int>(*command, "--threads", options->threads, 0, 256, "N",
                         "threads for large tensors; 0: one for each core (default: 1)");
  add_isa_option(*command, options->runtime.tier);
  add_core_option(*command, options->runtime.core);
  add_frame_pointers_option(*command, options->runtime.frame_pointers);
  add_interpret_option(*command, options->runtime.interpret);
  command->add_flag("--profile", options->profile,
                    "call it for half a second, and print where the time goes");
  add_observe_options(*command, options->runtime);
  command->footer(
      "Types that NumPy lacks travel as raw bits in unsigned integers (bf16 as uint16, 8-bit\n"
      "floats as uint8); elements narrower than a byte as their packed bytes, uint8 of one\n"
      "dimension, with the shape that the function writes.\n"
      "'constant @name' is read from name.npy or name.bin beside the text.");
  command->callback([options, &action] { action = [options] { return run_function(*options); }; });
}

}  // namespace castor::tools
