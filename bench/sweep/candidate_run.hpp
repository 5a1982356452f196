// SPDX-License-Identifier: Apache-2.0
// One convolution bound to one of its candidates, ready to be timed.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "bench/limits.hpp"
#include "ir/types/view.hpp"
#include "jit/conv/candidates.hpp"
#include "runtime/cache/code_cache.hpp"
#include "runtime/conv/convolution_step.hpp"

namespace castor::bench {

/// Tensors of one problem, full of bytes of all patterns, and scratch for its calls; all on huge
/// pages, as those of castor-bench are.
class SweepTensors {
 public:
  /// Room for scratch of at most that many bytes.
  static Result<SweepTensors> make(const jit::ConvolutionProblem& problem, size_t scratch_bytes);

  /// x, w, then the weight zero points where there are any.
  const std::vector<ConstView>& inputs() const { return inputs_; }
  const View& output() const { return output_; }
  std::byte* scratch() const { return scratch_; }

 private:
  explicit SweepTensors(HugeBuffer memory) : memory_(std::move(memory)) {}

  HugeBuffer memory_;
  std::vector<ConstView> inputs_;
  View output_;
  std::byte* scratch_ = nullptr;
};

/// Constants that convolutions are bound to.
class SweepConstants {
 public:
  explicit SweepConstants(const jit::ConvolutionProblem& problem);

  /// What is constant when the convolution is bound; null: given at run time.
  std::span<const std::byte* const> operands() const { return operands_; }

 private:
  std::vector<std::byte> weights_, zero_points_;
  std::vector<const std::byte*> operands_;
};

/// Runs one candidate. Fails to be bound as any convolution does.
class CandidateRun {
 public:
  static Result<CandidateRun> bind(const jit::ConvolutionProblem& problem,
                                   const jit::Candidate& candidate, const jit::Target& target,
                                   const SweepConstants& constants, CodeCache& cache);
  size_t scratch_bytes() const { return scratch_bytes_; }
  /// Valid while this object and the tensors live.
  Contender contender(const SweepTensors& tensors) const;

 private:
  CandidateRun() = default;

  detail::ConvolutionStep step_;
  size_t scratch_bytes_ = 0;
};

}  // namespace castor::bench
