// SPDX-License-Identifier: Apache-2.0
#include "bench/sweep/candidate_run.hpp"

#include "bench/cases/convolution_case.hpp"
#include "runtime/call/nest_call.hpp"
#include "runtime/conv/convolution.hpp"

namespace castor::bench {

namespace {

/// Tensors begin at cache lines.
constexpr size_t alignment = 64;
/// Before the first tensor: masked loads of padding reach there, and take hundreds of cycles where
/// nothing is mapped.
constexpr size_t bytes_before = 4096;

size_t aligned(size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

constexpr uint32_t input_seed = 1;
constexpr uint32_t weight_seed = 2;
constexpr uint32_t zero_point_seed = 3;

size_t count_of(const Dims& extents) {
  return static_cast<size_t>(element_count(extents).value_or(0));
}

size_t zero_point_count(const jit::ConvolutionProblem& problem) {
  return problem.has_weight_zero_points ? static_cast<size_t>(problem.geometry.out_channels) : 0;
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

std::vector<std::byte> patterns(size_t bytes, uint32_t seed) {
  std::vector<std::byte> filled(bytes);
  fill_with_patterns(filled, seed);
  return filled;
}

}  // namespace

Result<SweepTensors> SweepTensors::make(const jit::ConvolutionProblem& problem,
                                        size_t scratch_bytes) {
  const size_t x = count_of(input_extents(problem.geometry));
  const size_t w = count_of(weight_extents(problem.geometry));
  const size_t zero_points = zero_point_count(problem);
  const size_t y = count_of(problem.geometry.output_extents());
  Result<HugeBuffer> memory =
      HugeBuffer::allocate(bytes_before + aligned(x) + aligned(w) + aligned(zero_points) +
                           aligned(sizeof(int32_t) * y) + aligned(scratch_bytes));
  if (!memory.ok()) return memory.error();
  SweepTensors tensors(std::move(memory).value());
  std::byte* next = tensors.memory_.bytes().data() + bytes_before;
  const auto take = [&](size_t bytes) {
    std::byte* taken = next;
    next += aligned(bytes);
    return taken;
  };
  const auto add_input = [&](size_t bytes, bool is_signed, uint32_t seed) {
    std::byte* data = take(bytes);
    fill_with_patterns({data, bytes}, seed);
    const auto extent = static_cast<int64_t>(bytes);
    tensors.inputs_.push_back({data, byte_type(is_signed), {extent}, bytes});
  };
  add_input(x, problem.x_is_signed, input_seed);
  add_input(w, problem.w_is_signed, weight_seed);
  if (zero_points > 0) add_input(zero_points, problem.w_is_signed, zero_point_seed);
  const size_t y_bytes = sizeof(int32_t) * y;
  tensors.output_ = {take(y_bytes), ElementType::i32, {static_cast<int64_t>(y)}, y_bytes};
  tensors.scratch_ = take(scratch_bytes);
  return tensors;
}

SweepConstants::SweepConstants(const jit::ConvolutionProblem& problem)
    : weights_(patterns(count_of(weight_extents(problem.geometry)), weight_seed)),
      zero_points_(patterns(zero_point_count(problem), zero_point_seed)) {
  const bool known = problem.has_constant_weights;
  operands_ = {nullptr, known ? weights_.data() : nullptr};
  if (!zero_points_.empty()) operands_.push_back(known ? zero_points_.data() : nullptr);
}

Result<CandidateRun> CandidateRun::bind(const jit::ConvolutionProblem& problem,
                                        const jit::Candidate& candidate, const jit::Target& target,
                                        const SweepConstants& constants, CodeCache& cache) {
  using Kind = detail::OperandOrigin::Kind;
  const detail::ConvolutionOperands operands = {
      .x_is_signed = problem.x_is_signed,
      .w_is_signed = problem.w_is_signed,
      .w_zero_point = problem.has_weight_zero_points ? 2 : -1,
      .zero_points_per_channel = problem.has_weight_zero_points};
  detail::ScratchPlan scratch;
  auto bound = detail::bind_convolution(problem.geometry, operands, constants.operands(), target,
                                        cache, scratch, {.candidate = &candidate});
  if (!bound.ok()) return bound.error();
  CandidateRun run;
  run.step_.convolution = std::move(bound).value();
  for (size_t i = 0; i < constants.operands().size(); ++i) {
    const bool is_signed = i == 0 ? problem.x_is_signed : problem.w_is_signed;
    run.step_.operands.push_back({{Kind::input, i}, byte_type(is_signed)});
  }
  run.step_.operands.push_back({{Kind::output, 0}, ElementType::i32});
  run.scratch_bytes_ = scratch.bytes();
  return run;
}

Contender CandidateRun::contender(const SweepTensors& tensors) const {
  return {.run = [this, &tensors,
                  outputs = std::vector<View>{tensors.output()}](size_t repetitions) mutable {
    for (size_t i = 0; i < repetitions; ++i) {
      detail::CallMemory memory = {.inputs = tensors.inputs(), .outputs = outputs};
      memory.scratch = tensors.scratch();
      detail::run_convolution(step_, memory);
    }
  }};
}

}  // namespace castor::bench
