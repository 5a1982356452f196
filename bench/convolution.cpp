// SPDX-License-Identifier: Apache-2.0
// ConvInteger/<layer>/<types of x and w>, with /nhwc, /runtime_weights, an epilogue
// and which operands have zero points. Depthwise layers, which multiply little, have a
// stream_fraction beside peak_fraction.
#include <fmt/format.h>

#include <optional>
#include <vector>

#include "bench/benchmarks.hpp"
#include "bench/convolution_call.hpp"
#include "bench/limits.hpp"
#include "bench/plain_contest.hpp"

namespace castor::bench {

namespace {

/// Figures of one layer.
struct Measured {
  double ns = 0;
  double gmacps = 0;
  double peak_gmacps = 0;
  double peak_fraction = 0;
  double gigahertz = 0;
  std::optional<double> stream_fraction{};  ///< for depthwise layers
};

/// Plain kernels that load x and store a tensor as large as y, where these are most of the work.
Result<std::optional<PlainContest>> plain_contest(Session& session, const ConvolutionCase& each,
                                                  std::vector<Contender>& all) {
  const bool is_depthwise = each.layer.group_channels() == 1 && each.layer.groups > 1;
  if (!is_depthwise) return std::optional<PlainContest>();
  const Result<std::span<std::byte>> memory = session.memory(memory_of_layers);
  if (!memory) return memory.error();
  const Result<ConvolutionTensors> tensors = place_tensors(each, *memory);
  if (!tensors) return tensors.error();
  const PlainTensors plain = {{tensors->x}, tensors->y};
  return std::optional<PlainContest>(std::in_place, session.plain_kernels(), streams_of(plain),
                                     memory_of_layers, plain, all);
}

/// Batches of the peak are short, so that on a disturbed machine it is rather the layer that is
/// found slow than the peak.
Result<Measured> measure(Session& session, const ConvolutionCase& each, const BoundCall& call) {
  const ProductPeak peak(session.tier());
  std::vector<Contender> all = {call.contender(), peak.contender(), session.clock().contender()};
  const Result<std::optional<PlainContest>> plain = plain_contest(session, each, all);
  if (!plain) return plain.error();
  measure_in_turn(all, session.effort(memory_of_layers));
  const auto products = static_cast<double>(each.layer.products());
  Measured measured;
  measured.ns = all[0].median_ns();
  measured.gmacps = products / measured.ns;
  measured.peak_fraction = median_ratio(all[1], all[0]) * products / peak.products();
  measured.peak_gmacps = peak.products() / all[1].median_ns();
  measured.gigahertz = CoreClock::gigahertz(all[2]);
  if (*plain) measured.stream_fraction = (*plain)->stream_fraction(all);
  return measured;
}

Status run_case(benchmark::State& state, Session& session, const ConvolutionCase& each) {
  const Result<BoundCall> call = prepare_convolution(session, each);
  if (!call) return call.error();
  const Result<Measured> measured = measure(session, each, *call);
  if (!measured) return measured.error();
  report_time(state, measured->ns);
  state.counters["GMACps"] = measured->gmacps;
  state.counters["peak_GMACps"] = measured->peak_gmacps;
  state.counters["peak_fraction"] = measured->peak_fraction;
  state.counters["GHz"] = measured->gigahertz;
  if (measured->stream_fraction) state.counters["stream_fraction"] = *measured->stream_fraction;
  state.SetLabel(fmt::format("{} -> {}; peak {}", to_string(each.x_shape()),
                             to_string(each.y_shape()), ProductPeak(session.tier()).name()));
  return {};
}

}  // namespace

void register_convolution(Session& session, const Selection& selected) {
  for (const ConvolutionLayer& layer : convolution_layers()) {
    for (const ConvolutionVariant& variant : convolution_variants(layer)) {
      const ConvolutionCase each = {layer, variant};
      if (!selected(each.name())) continue;
      register_measured(each.name(), [&session, each](benchmark::State& state) {
        if (Status status = run_case(state, session, each); !status) {
          session.fail(state, status.error());
        }
      });
    }
  }
}

}  // namespace castor::bench
