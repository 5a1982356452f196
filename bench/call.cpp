// SPDX-License-Identifier: Apache-2.0
// Call/<what>: calls that convert one element of each tensor. Times are medians.
#include <castor/mli.h>
#include <fmt/format.h>

#include <array>
#include <vector>

#include "bench/benchmarks.hpp"
#include "bench/distribution.hpp"

namespace castor::bench {

namespace {

using enum ElementType;

/// One element for each of a function's tensors, of `rank` dimensions of extent 1.
class OneElementViews {
 public:
  OneElementViews(std::span<const TypePair> pairs, int rank) : elements_(2 * pairs.size()) {
    const Dims shape = Dims::filled(rank, 1);
    for (size_t i = 0; i < pairs.size(); ++i) {
      inputs.emplace_back(elements_[2 * i].bytes, pairs[i].from, shape, sizeof(Element));
      outputs.emplace_back(elements_[2 * i + 1].bytes, pairs[i].to, shape, sizeof(Element));
    }
  }
  std::vector<ConstView> inputs;
  std::vector<View> outputs;

 private:
  struct alignas(64) Element {
    std::byte bytes[64] = {};
  };
  std::vector<Element> elements_;
};

/// Runs once to see that it works, then times it.
template <class Call>
Result<Distribution> time_calls(const Call& call) {
  if (Status status = call(); !status) return status.error();
  const Contender contender = {.run = [&call](size_t repetitions) {
    for (size_t i = 0; i < repetitions; ++i) static_cast<void>(call());
  }};
  return distribution_of(sample_batches(contender, distribution_effort));
}

/// `run` of a bound kernel that has one input and one output for each pair.
Result<Distribution> time_run(const Runtime& runtime, std::span<const TypePair> pairs, int rank) {
  const Result<FunctionPtr> function = conversions(pairs, rank);
  if (!function) return function.error();
  const Result<Kernel> kernel = runtime.compile(*function);
  if (!kernel) return kernel.error();
  const OneElementViews views(pairs, rank);
  const Result<BoundKernel> bound = kernel->bind(views.inputs, views.outputs);
  if (!bound) return bound.error();
  return time_calls([&] { return bound->run(views.inputs, views.outputs); });
}

Result<Distribution> time_convert(const Runtime& runtime, const TypePair& pair) {
  const OneElementViews views({&pair, 1}, 1);
  return time_calls([&] { return runtime.convert(views.inputs[0], views.outputs[0]); });
}

/// mli_hlp_convert_tensor of a known form, of one element of sa8 to another scale.
Result<Distribution> time_mli(const Runtime&) {
  alignas(64) std::array<std::array<int8_t, 64>, 2> elements = {};
  std::array<mli_tensor, 2> tensors = {};
  for (size_t i = 0; i < tensors.size(); ++i) {
    mli_tensor& tensor = tensors[i];
    tensor.data.capacity = 1;
    tensor.data.mem.pi8 = elements[i].data();
    tensor.rank = 1;
    tensor.shape[0] = 1;
    tensor.mem_stride[0] = 1;
    tensor.el_type = MLI_EL_SA_8;
    tensor.el_params.sa.dim = -1;
    tensor.el_params.sa.scale.mem.i16 = static_cast<int16_t>(20000 + 3000 * i);
    tensor.el_params.sa.scale_frac_bits.mem.i8 = 18;
  }
  return time_calls([&]() -> Status {
    if (mli_hlp_convert_tensor(&tensors[0], &tensors[1]) == MLI_STATUS_OK) return {};
    return Error{ErrorCode::internal, "mli_hlp_convert_tensor failed"};
  });
}

constexpr std::array<TypePair, 2> pairs = {{{f32, u8}, {f32, f16}}};

/// A way of calling, by name.
struct CallSubject {
  std::string_view name;
  Result<Distribution> (*time)(const Runtime& runtime);
};
constexpr std::array<CallSubject, 4> subjects = {{
    {"run_rank1_2_views",
     [](const Runtime& runtime) {
       return time_run(runtime, {&pairs[0], 1}, 1);
     }},
    {"run_rank6_4_views", [](const Runtime& runtime) { return time_run(runtime, pairs, 6); }},
    {"mli_convert_tensor", time_mli},
    {"convert", [](const Runtime& runtime) { return time_convert(runtime, pairs[0]); }},
}};

}  // namespace

void register_call(Session& session, const Selection& selected) {
  for (const CallSubject& subject : subjects) {
    const std::string name = fmt::format("Call/{}", subject.name);
    if (!selected(name)) continue;
    register_measured(name, [&session, subject](benchmark::State& state) {
      const Result<Distribution> times = subject.time(session.runtime());
      if (!times) return session.fail(state, times.error());
      report_distribution(state, *times);
    });
  }
}

}  // namespace castor::bench
