// SPDX-License-Identifier: Apache-2.0
// ConvInteger/<layer>/<types of x and w>, with /nhwc, /runtime_weights, an epilogue
// and which operands have zero points.
#include <fmt/format.h>

#include <array>

#include "bench/benchmarks.hpp"
#include "bench/convolution_call.hpp"
#include "bench/convolution_peak.hpp"

namespace castor::bench {

namespace {

/// Figures of one layer.
struct Measured {
  double ns = 0;
  double gmacps = 0;
  double peak_gmacps = 0;
  double peak_fraction = 0;
  double gigahertz = 0;
};

/// Batches of the peak are short, so that on a disturbed machine it is rather the layer that is
/// found slow than the peak.
Measured measure(Session& session, const ConvolutionCase& each, const BoundCall& call) {
  const ConvolutionPeak peak(session.tier());
  std::array<Contender, 3> all = {call.contender(), peak.contender(), session.clock().contender()};
  measure_in_turn(all, session.effort(memory_of_layers));
  const auto products = static_cast<double>(each.layer.products());
  Measured measured;
  measured.ns = all[0].median_ns();
  measured.gmacps = products / measured.ns;
  measured.peak_fraction = median_ratio(all[1], all[0]) * products / peak.products();
  measured.peak_gmacps = peak.products() / all[1].median_ns();
  measured.gigahertz = CoreClock::gigahertz(all[2]);
  return measured;
}

Status run_case(benchmark::State& state, Session& session, const ConvolutionCase& each) {
  const Result<BoundCall> call = prepare_convolution(session, each);
  if (!call) return call.error();
  const Measured measured = measure(session, each, *call);
  report_time(state, measured.ns);
  state.counters["GMACps"] = measured.gmacps;
  state.counters["peak_GMACps"] = measured.peak_gmacps;
  state.counters["peak_fraction"] = measured.peak_fraction;
  state.counters["GHz"] = measured.gigahertz;
  state.SetLabel(fmt::format("{} -> {}; peak {}", to_string(each.x_shape()),
                             to_string(each.y_shape()), ConvolutionPeak(session.tier()).name()));
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
