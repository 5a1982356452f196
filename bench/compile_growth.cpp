// SPDX-License-Identifier: Apache-2.0
// Compile/growth/<kind>/<operations>: from a text to a kernel, in a runtime of its own. Times
// are medians; ns_per_op shows whether time grows with the number of operations alone, and
// bind_ns_per_op shows it for binding.
#include <fmt/format.h>

#include <array>

#include "bench/benchmarks.hpp"
#include "bench/distribution.hpp"
#include "tools/testing/growing_functions.hpp"

namespace castor::bench {

namespace {

constexpr std::array<size_t, 4> sizes = {1000, 2000, 5000, 10'000};
constexpr size_t samples = 7;

/// Nanoseconds.
struct Times {
  double compile = 0;
  double bind = 0;
};

/// One kind of function in one size.
struct GrowthCell {
  test::GrowingFunction kind;
  size_t operations;
  std::string name() const { return fmt::format("Compile/growth/{}/{}", kind.name, operations); }
};

std::vector<Dims> input_shapes(const Function& function) {
  std::vector<Dims> shapes;
  for (const ValueId id : function.parameters) {
    Dims& extents = shapes.emplace_back();
    for (const Dim& dim : function.type_of(id).shape) {
      extents.push_back(dim.is_fixed() ? dim.extent : 64);
    }
  }
  return shapes;
}

Result<Times> time_once(Tier tier, const std::string& text) {
  const Result<Runtime> runtime = Runtime::create({.tier = tier});
  if (!runtime) return runtime.error();
  Times times;
  double begin = now_ns();
  const Result<Kernel> kernel = runtime->compile(text);
  times.compile = now_ns() - begin;
  if (!kernel) return kernel.error();
  const std::vector<Dims> shapes = input_shapes(kernel->function());
  begin = now_ns();
  const Result<BoundKernel> bound = kernel->bind(shapes);
  times.bind = now_ns() - begin;
  if (!bound) return bound.error();
  return times;
}

Status run_cell(benchmark::State& state, Session& session, const GrowthCell& cell) {
  const std::string text = cell.kind.text(cell.operations);
  std::vector<double> compile;
  std::vector<double> bind;
  while (compile.size() < samples) {
    const Result<Times> times = time_once(session.tier(), text);
    if (!times) return times.error();
    compile.push_back(times->compile);
    bind.push_back(times->bind);
  }
  const Distribution distribution = distribution_of(compile);
  const auto operations = static_cast<double>(cell.operations);
  report_distribution(state, distribution);
  state.counters["ns_per_op"] = distribution.median / operations;
  state.counters["bind_ns_per_op"] = distribution_of(bind).median / operations;
  return {};
}

}  // namespace

void register_compile_growth(Session& session, const Selection& selected) {
  std::vector<GrowthCell> cells;
  for (const test::GrowingFunction& kind : test::growing_functions) {
    for (const size_t operations : sizes) cells.push_back({kind, operations});
  }
  register_cells(session, selected, cells, run_cell);
}

}  // namespace castor::bench
