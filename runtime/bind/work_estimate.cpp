// SPDX-License-Identifier: Apache-2.0
#include "runtime/bind/work_estimate.hpp"

#include <algorithm>

#include "jit/core/core_tuning.hpp"
#include "jit/plan/table_method.hpp"

namespace castor::detail {

namespace {

int64_t to_ns(double nanoseconds) {
  constexpr double max = 1e18;
  return static_cast<int64_t>(std::clamp(nanoseconds, 0.0, max));
}

}  // namespace

int64_t nest_ns(const jit::Nest& nest, std::span<const jit::Access> operands,
                const jit::Target& target, double elements, int64_t bytes) {
  const int lanes = target.vector_bits() / std::max(nest.program.widest_bits(), 1);
  const jit::WorkRates& rates = target.tuning().rates;
  const auto length = static_cast<double>(nest.program.code.size());
  const auto gathers =
      static_cast<double>(jit::lane_by_lane_gathers(nest.program, operands, target));
  // ns for entries of tables, and for operands that are not contiguous
  double single = gathers * elements / rates.gathered_elements;
  for (const jit::Access access : operands) {
    if (access == jit::Access::strided) single += elements / rates.strided_elements;
    if (access == jit::Access::bitwise) single += elements / rates.bitwise_elements;
  }
  return to_ns(static_cast<double>(bytes) / rates.bytes +
               elements / lanes * length / rates.instructions + single);
}

int64_t byte_tables_ns(const jit::Target& target, int64_t elements) {
  return to_ns(static_cast<double>(elements) / target.tuning().rates.table_bytes);
}

int64_t convolution_ns(const ConvolutionGeometry& geometry, const jit::Target& target) {
  const jit::WorkRates& rates = target.tuning().rates;
  auto outputs = static_cast<double>(geometry.batch) * static_cast<double>(geometry.out_channels);
  auto inputs = static_cast<double>(geometry.batch) * static_cast<double>(geometry.channels);
  auto window = static_cast<double>(geometry.group_channels());
  for (const ConvolutionAxis& axis : geometry.axes) {
    outputs *= static_cast<double>(axis.output);
    inputs *= static_cast<double>(axis.input);
    window *= static_cast<double>(axis.kernel);
  }
  const int64_t filters = geometry.has_weights_by_image ? geometry.batch : 1;
  const double weights = static_cast<double>(filters * geometry.out_channels) * window;
  return to_ns(outputs * window / rates.products + weights / rates.bytes +
               (inputs + outputs * sizeof(int32_t)) / rates.convolution_bytes);
}

}  // namespace castor::detail
