// SPDX-License-Identifier: Apache-2.0
// The families of benchmarks. Each registers those of its names that are selected.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/distribution.hpp"
#include "bench/selection.hpp"
#include "bench/session.hpp"

namespace castor::bench {

/// Convert/<source>/<destination>/<footprint>: every pair of value types, and the older
/// layouts from and to their own type.
void register_convert(Session& session, const Selection& selected);
/// ConvertSpecial/<source>/<destination>: NaNs, infinities and subnormals against ordinary values,
/// from every format that has any.
void register_convert_special(Session& session, const Selection& selected);
/// Elementwise/<function>/<footprint>: arithmetic, broadcasts and fused functions;
/// Elementwise/<function>/<rows>x<columns> of square matrices that are stored transposed.
void register_elementwise(Session& session, const Selection& selected);
/// SubByteViews/<source>/<destination>/<layout>: every sub-byte type from and to f32, in views that
/// are strided, transposed, have gaps, or begin inside bytes.
void register_sub_byte_views(Session& session, const Selection& selected);
/// LookUp/<codes>/<elements>/<tensor, nchw or nhwc>, with /constant: tables for the tensor, for
/// each plane, for each channel.
void register_look_up(Session& session, const Selection& selected);
/// Reduce/<function>/<bytes>: reductions, and quantization by a tensor's or a row's own range;
/// ReduceThreads/<function>/<bytes> by two threads.
void register_reduction(Session& session, const Selection& selected);
/// QuantizedLayer/<nchw or nhwc>, with /range: a layer that quantizes its input by its own range.
void register_quantized_layer(Session& session, const Selection& selected);
/// ConvInteger/<layer>/<types of x and w>, with /nhwc and /runtime_weights.
void register_convolution(Session& session, const Selection& selected);
/// MatMulInteger/<rows>x<K>x<columns>/<types of a and b>, with /runtime_b and others.
void register_matmul(Session& session, const Selection& selected);
/// Requantize/<arithmetic>/<source>/<destination>/<granularity>: fx8, fx16, sa8, sa32 and f32;
/// parameters by tensor, or along the outer or inner axis of a matrix.
void register_requantize(Session& session, const Selection& selected);
/// RequantizeThreads/<arithmetic>/<source>/<destination>/<granularity>: 256 MiB, by two threads.
void register_requantize_threads(Session& session, const Selection& selected);
/// ConvertThreads/<source>/<destination>/256MiB: two threads against one, and against the memory.
void register_convert_threads(Session& session, const Selection& selected);
/// WakeUp/<executor>/<KiB>: where two threads begin to win.
void register_wake_up(Session& session, const Selection& selected);
/// ConvIntegerThreads/<layer>/<types of x and w>, with /nhwc: two threads against one.
void register_convolution_threads(Session& session, const Selection& selected);
/// Compile/<what>/<cold or hit>/<idle or busy>, by what the other core does.
void register_compile(Session& session, const Selection& selected);
/// Compile/conv_<layer>/cold/<idle or busy>, and Compile/conv_layers of all dense ones.
void register_compile_convolution(Session& session, const Selection& selected);
/// Compile/growth/<kind>/<operations>: functions of thousands of operations and nests.
void register_compile_growth(Session& session, const Selection& selected);
/// CacheLookup/<what>: finding known functions and codes, by one thread and by two.
void register_cache_lookup(Session& session, const Selection& selected);
/// Call/<what>: what a call costs that converts one element.
void register_call(Session& session, const Selection& selected);
/// Start/runtime, Start/first_runtime: making a runtime, and the first one of a process.
void register_start(Session& session, const Selection& selected);

/// The value types, in table order; without the older layouts.
std::vector<ElementType> all_element_types();
/// Each older layout with the type of the same values, both ways.
std::vector<TypePair> layout_pairs();

/// Registers one benchmark that runs once and reports its own time.
void register_measured(const std::string& name, std::function<void(benchmark::State&)> run);

/// Registers those cells that are selected by their name(): each runs by `run(state, session,
/// cell)`, whose failure is the benchmark's.
template <class Cells, class Run>
void register_cells(Session& session, const Selection& selected, const Cells& cells, Run run) {
  for (const auto& cell : cells) {
    if (!selected(cell.name())) continue;
    register_measured(cell.name(), [&session, cell, run](benchmark::State& state) {
      if (Status status = run(state, session, cell); !status) session.fail(state, status.error());
    });
  }
}

/// Sets the time (nanoseconds) of the only iteration.
void report_time(benchmark::State& state, double nanoseconds);

/// Reports the median as the time, minimum and 90th percentile as counters.
void report_distribution(benchmark::State& state, const Distribution& nanoseconds);

}  // namespace castor::bench
