// SPDX-License-Identifier: Apache-2.0
#include "runtime/bind/work_estimate.hpp"

#include <algorithm>

namespace castor::detail {

namespace {

// Measured on a server core of 2023 (Emerald Rapids) with tensors in the second-level cache, by
// castor-bench --benchmark_filter='(Convert|Elementwise|Requantize)/.*256KiB' and ConvInteger/.*.
constexpr double bytes_a_ns = 64;
constexpr double instructions_a_ns = 8;
/// Elements of operands that are copied first, and of those whose bits are reached one by one.
constexpr double strided_elements_a_ns = 2;
constexpr double bitwise_elements_a_ns = 0.5;
constexpr double table_bytes_a_ns = 32;
constexpr double products_a_ns = 400;
constexpr double convolution_bytes_a_ns = 16;

int64_t to_ns(double nanoseconds) {
  constexpr double max = 1e18;
  return static_cast<int64_t>(std::clamp(nanoseconds, 0.0, max));
}

}  // namespace

int64_t nest_ns(const jit::Nest& nest, std::span<const jit::Access> operands,
                const jit::Target& target, double elements, int64_t bytes) {
  const int lanes = target.vector_bits() / std::max(nest.program.widest_bits(), 1);
  const auto length = static_cast<double>(nest.program.code.size());
  double single = 0;  // ns for operands that are not contiguous
  for (const jit::Access access : operands) {
    if (access == jit::Access::strided) single += elements / strided_elements_a_ns;
    if (access == jit::Access::bitwise) single += elements / bitwise_elements_a_ns;
  }
  return to_ns(static_cast<double>(bytes) / bytes_a_ns +
               elements / lanes * length / instructions_a_ns + single);
}

int64_t byte_tables_ns(int64_t elements) {
  return to_ns(static_cast<double>(elements) / table_bytes_a_ns);
}

int64_t convolution_ns(const ConvolutionGeometry& geometry) {
  auto outputs = static_cast<double>(geometry.batch) * static_cast<double>(geometry.out_channels);
  auto inputs = static_cast<double>(geometry.batch) * static_cast<double>(geometry.channels);
  auto window = static_cast<double>(geometry.group_channels());
  for (const ConvolutionAxis& axis : geometry.axes) {
    outputs *= static_cast<double>(axis.output);
    inputs *= static_cast<double>(axis.input);
    window *= static_cast<double>(axis.kernel);
  }
  return to_ns(outputs * window / products_a_ns +
               (inputs + outputs * sizeof(int32_t)) / convolution_bytes_a_ns);
}

}  // namespace castor::detail
