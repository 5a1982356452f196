// SPDX-License-Identifier: Apache-2.0
#include "bench/sweep/candidate_run.hpp"

#include "bench/cases/convolution_case.hpp"
#include "runtime/call/nest_call.hpp"
#include "runtime/conv/convolution.hpp"

namespace castor::bench {

namespace {

constexpr size_t cache_line = 64;

size_t count_of(const Dims& extents) {
  return static_cast<size_t>(element_count(extents).value_or(0));
}

std::vector<std::byte> patterns(size_t bytes, uint32_t seed) {
  std::vector<std::byte> filled(bytes);
  fill_with_patterns(filled, seed);
  return filled;
}

Dims input_extents(const ConvolutionGeometry& geometry) {
  Dims extents = {geometry.batch, geometry.channels};
  for (const ConvolutionAxis& axis : geometry.axes) extents.push_back(axis.input);
  return extents;
}

Dims weight_extents(const ConvolutionGeometry& geometry) {
  Dims extents = {geometry.out_channels, geometry.group_channels()};
  for (const ConvolutionAxis& axis : geometry.axes) extents.push_back(axis.kernel);
  return extents;
}

ElementType byte_type(bool is_signed) { return is_signed ? ElementType::i8 : ElementType::u8; }

}  // namespace

SweepTensors::SweepTensors(const jit::ConvolutionProblem& problem)
    : problem_(problem),
      x_(patterns(count_of(input_extents(problem.geometry)), 1)),
      w_(patterns(count_of(weight_extents(problem.geometry)), 2)),
      y_(count_of(problem.geometry.output_extents())) {
  if (!problem.has_weight_zero_points) return;
  zero_points_ = patterns(static_cast<size_t>(problem.geometry.out_channels), 3);
}

std::vector<ConstView> SweepTensors::inputs() const {
  const auto flat = [](const std::vector<std::byte>& bytes, bool is_signed) {
    return ConstView{
        bytes.data(), byte_type(is_signed), {static_cast<int64_t>(bytes.size())}, bytes.size()};
  };
  std::vector<ConstView> views = {flat(x_, problem_.x_is_signed), flat(w_, problem_.w_is_signed)};
  if (!zero_points_.empty()) views.push_back(flat(zero_points_, problem_.w_is_signed));
  return views;
}

View SweepTensors::output() {
  return {
      y_.data(), ElementType::i32, {static_cast<int64_t>(y_.size())}, y_.size() * sizeof(int32_t)};
}

std::vector<const std::byte*> SweepTensors::constants() const {
  std::vector<const std::byte*> constants = {nullptr, nullptr};
  if (!zero_points_.empty()) constants.push_back(nullptr);
  if (!problem_.has_constant_weights) return constants;
  constants[1] = w_.data();
  if (!zero_points_.empty()) constants[2] = zero_points_.data();
  return constants;
}

Result<CandidateRun> CandidateRun::bind(const jit::ConvolutionProblem& problem,
                                        const jit::Candidate& candidate, const jit::Target& target,
                                        SweepTensors& tensors, CodeCache& cache) {
  using Kind = detail::OperandOrigin::Kind;
  const detail::ConvolutionOperands operands = {
      .x_is_signed = problem.x_is_signed,
      .w_is_signed = problem.w_is_signed,
      .w_zero_point = problem.has_weight_zero_points ? 2 : -1,
      .zero_points_per_channel = problem.has_weight_zero_points};
  detail::ScratchPlan scratch;
  auto bound = detail::bind_convolution(problem.geometry, operands, tensors.constants(), target,
                                        cache, scratch, {.candidate = &candidate});
  if (!bound.ok()) return bound.error();
  CandidateRun run;
  run.step_.convolution = std::move(bound).value();
  run.inputs_ = tensors.inputs();
  run.outputs_ = {tensors.output()};
  for (size_t i = 0; i < run.inputs_.size(); ++i) {
    run.step_.operands.push_back({{Kind::input, i}, run.inputs_[i].element});
  }
  run.step_.operands.push_back({{Kind::output, 0}, ElementType::i32});
  run.scratch_.resize(scratch.bytes() + cache_line);
  return run;
}

void CandidateRun::run() {
  detail::CallMemory memory = {.inputs = inputs_, .outputs = outputs_};
  const auto past = reinterpret_cast<uintptr_t>(scratch_.data()) % cache_line;
  memory.scratch = scratch_.data() + (cache_line - past) % cache_line;
  detail::run_convolution(step_, memory);
}

Contender CandidateRun::contender() {
  return {.run = [this](size_t repetitions) {
    for (size_t i = 0; i < repetitions; ++i) run();
  }};
}

}  // namespace castor::bench
