// SPDX-License-Identifier: Apache-2.0
#include "bench/convolution_call.hpp"

#include <fmt/format.h>

#include "bench/convolution_check.hpp"

namespace castor::bench {

namespace {

Result<BoundCall> checked_call(const Runtime& runtime, const ConvolutionCase& each,
                               const ConvolutionWeights& weights, const ConvolutionTensors& tensors,
                               Executor* executor) {
  const Result<FunctionPtr> function = convolution_function(each, weights);
  if (!function) return function.error();
  Result<BoundCall> call =
      bind_call(runtime, *function, tensors.inputs(each), {tensors.output(each)});
  if (!call) return call;
  call->options.executor = executor;
  if (Status status = run_and_check(*call, each, weights, tensors); !status) return status.error();
  return call;
}

}  // namespace

Result<BoundCall> prepare_convolution(Session& session, const ConvolutionCase& each,
                                      Executor* executor) {
  const Result<std::span<std::byte>> memory = session.memory(memory_of_layers);
  if (!memory) return memory.error();
  const ConvolutionWeights weights = make_weights(each);
  const Result<ConvolutionTensors> tensors = place_tensors(each, *memory);
  if (!tensors) return tensors.error();
  fill_inputs(*tensors, weights);
  for (const TierRuntime& of : session.all_tiers()) {
    const Result<BoundCall> call = checked_call(of.runtime, each, weights, *tensors, executor);
    if (call) continue;
    return Error{call.error().code,
                 fmt::format("tier {}: {}", name_of(of.tier), call.error().message)};
  }
  return checked_call(session.runtime(), each, weights, *tensors, executor);
}

}  // namespace castor::bench
