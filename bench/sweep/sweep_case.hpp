// SPDX-License-Identifier: Apache-2.0
// The convolutions that the sweep measures: the benchmark's layers, and random ones.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "jit/conv/problem.hpp"

namespace castor::bench {

struct SweepCase {
  std::string name;  ///< "resnet50_stem/u8i8/nhwc", "random/1/17 nchw 1x64x56x56 -> 128 ..."
  jit::ConvolutionProblem problem;
};

/// The layers of the benchmark as u8 by i8: in NCHW, in NHWC, and with weights given at run time.
std::vector<SweepCase> layer_cases();

/// `count` random convolutions; equal for equal seeds. Both layouts, one to three spatial axes,
/// dense, grouped and depthwise, every sign and zero point, at most about 2^26 products.
std::vector<SweepCase> random_cases(uint64_t seed, int count);

}  // namespace castor::bench
