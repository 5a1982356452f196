// SPDX-License-Identifier: Apache-2.0
// Compile/conv_<layer>/cold/<idle or busy>: the time until a kernel is ready to run whose weights
// are given at run time, so that none are packed; Compile/conv_layers: all dense layers in turn;
// Compile/conv_<layer>_with_packing: the same with constant weights.
#include <fmt/format.h>

#include "bench/benchmarks.hpp"
#include "bench/convolution_tensors.hpp"
#include "bench/distribution.hpp"
#include "bench/other_core.hpp"

namespace castor::bench {

namespace {

using enum ElementType;

constexpr size_t cold_samples = 500;

/// A convolution to compile and bind.
struct Subject {
  ConvolutionCase each;
  FunctionPtr function;
};

/// Nanoseconds of each compile, one after the other.
using Times = Result<std::vector<double>>;

Result<Subject> subject_of(const ConvolutionLayer& layer, bool runtime_weights) {
  const ConvolutionCase each = {layer, {.x = u8, .w = i8, .runtime_weights = runtime_weights}};
  const Result<FunctionPtr> function = convolution_function(each, make_weights(each));
  if (!function) return function.error();
  return Subject{each, *function};
}

/// A runtime that has compiled a few conversions: its first pages of code memory are mapped and
/// touched.
Result<Runtime> warmed_runtime(Tier tier) {
  Result<Runtime> runtime = Runtime::create({.tier = tier});
  if (!runtime) return runtime;
  for (const ElementType to : {u8, f16, i16, f64}) {
    const Result<FunctionPtr> function = conversion(f32, to);
    if (!function) return function.error();
    if (const auto kernel = runtime->compile(*function); !kernel) return kernel.error();
  }
  return runtime;
}

/// Compiles and binds: the code of a convolution follows from its extents.
Result<double> time_binding(const Runtime& runtime, const Subject& subject,
                            const ConvolutionTensors& tensors) {
  const std::vector<ConstView> inputs = tensors.inputs(subject.each);
  const View output = tensors.output(subject.each);
  const double begin = now_ns();
  const Result<Kernel> kernel = runtime.compile(subject.function);
  if (!kernel) return kernel.error();
  const Result<BoundKernel> bound = kernel->bind(inputs, {&output, 1});
  const double elapsed = now_ns() - begin;
  if (!bound) return bound.error();
  return elapsed;
}

/// Each subject in turn, every time in a fresh runtime with warm code memory.
Times cold_times(Session& session, std::span<const Subject> subjects) {
  const Result<std::span<std::byte>> memory = session.memory(memory_of_layers);
  if (!memory) return memory.error();
  std::vector<double> times;
  for (size_t i = 0; times.size() < cold_samples; ++i) {
    const Subject& subject = subjects[i % subjects.size()];
    const auto tensors = place_tensors(subject.each, *memory);
    if (!tensors) return tensors.error();
    const Result<Runtime> runtime = warmed_runtime(session.tier());
    if (!runtime) return runtime.error();
    const Result<double> time = time_binding(*runtime, subject, *tensors);
    if (!time) return time.error();
    times.push_back(*time);
  }
  return times;
}

/// What is timed together.
struct Family {
  std::string name;
  std::vector<ConvolutionLayer> layers;
  bool runtime_weights = true;
};

std::vector<Family> families() {
  std::vector<Family> all;
  Family dense = {"conv_layers", {}};
  for (const ConvolutionLayer& layer : convolution_layers()) {
    if (layer.groups == 1) dense.layers.push_back(layer);
    for (const std::string_view chosen : {"resnet50_stem", "resnet50_6_3x3", "resnet50_7_1x1"}) {
      if (layer.name != chosen) continue;
      all.push_back({fmt::format("conv_{}", layer.name), {layer}});
      all.push_back({fmt::format("conv_{}_with_packing", layer.name), {layer}, false});
    }
  }
  all.push_back(std::move(dense));
  return all;
}

void run_family(benchmark::State& state, Session& session, const Family& family, OtherCore other) {
  const auto cores = OccupiedCore::start(other);
  if (!cores) return session.skip(state, cores.error());
  std::vector<Subject> subjects;
  for (const ConvolutionLayer& layer : family.layers) {
    const Result<Subject> subject = subject_of(layer, family.runtime_weights);
    if (!subject) return session.fail(state, subject.error());
    subjects.push_back(*subject);
  }
  const Times times = cold_times(session, subjects);
  if (!times) return session.fail(state, times.error());
  report_distribution(state, distribution_of(*times));
}

}  // namespace

void register_compile_convolution(Session& session, const Selection& selected) {
  for (const Family& family : families()) {
    for (const OtherCore other : {OtherCore::idle, OtherCore::busy}) {
      const std::string name = fmt::format("Compile/{}/cold/{}", family.name, name_of(other));
      if (!selected(name)) continue;
      register_measured(name, [&session, family, other](benchmark::State& state) {
        run_family(state, session, family, other);
      });
    }
  }
}

}  // namespace castor::bench
