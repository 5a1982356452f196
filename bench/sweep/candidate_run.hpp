// SPDX-License-Identifier: Apache-2.0
// One convolution bound to one of its candidates, ready to be timed.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "bench/measure.hpp"
#include "ir/types/view.hpp"
#include "jit/conv/candidates.hpp"
#include "runtime/cache/code_cache.hpp"
#include "runtime/conv/convolution_step.hpp"

namespace castor::bench {

/// Tensors of one problem, full of bytes of all patterns.
class SweepTensors {
 public:
  explicit SweepTensors(const jit::ConvolutionProblem& problem);

  /// x, w, then the weight zero points where there are any.
  std::vector<ConstView> inputs() const;
  View output();
  /// What is constant when the convolution is bound; null: given at run time.
  std::vector<const std::byte*> constants() const;

 private:
  const jit::ConvolutionProblem& problem_;
  std::vector<std::byte> x_, w_, zero_points_;
  std::vector<int32_t> y_;
};

/// Runs one candidate on the tensors. Fails as binding does.
class CandidateRun {
 public:
  static Result<CandidateRun> bind(const jit::ConvolutionProblem& problem,
                                   const jit::Candidate& candidate, const jit::Target& target,
                                   SweepTensors& tensors, CodeCache& cache);
  /// Valid while this object and the tensors live.
  Contender contender();

 private:
  CandidateRun() = default;
  void run();

  std::vector<ConstView> inputs_;
  std::vector<View> outputs_;
  std::vector<std::byte> scratch_;
  detail::ConvolutionStep step_;
};

}  // namespace castor::bench
