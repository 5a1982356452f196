// SPDX-License-Identifier: Apache-2.0
// The binder of a function's nests, inside runtime/bind only. Its methods are in bind_nest.cpp,
// bind_elementwise.cpp, bind_pooling.cpp, bind_convolution.cpp and bind_requantization.cpp.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "ir/shape/pooling.hpp"
#include "jit/plan/split_space.hpp"
#include "jit/requantize/plan.hpp"
#include "runtime/bind/bound_state.hpp"
#include "runtime/bind/convolution_tensors.hpp"
#include "runtime/bind/nest_binding.hpp"
#include "runtime/bind/value_origins.hpp"
#include "runtime/compiled.hpp"
#include "runtime/conv/convolution_output.hpp"
#include "runtime/conv/convolution_step.hpp"
#include "runtime/requantize/requantization.hpp"

namespace castor::detail {

inline void add_operand(StepBase& step, const OperandOrigin& origin, ElementType element,
                        bool matches_space) {
  step.operands.push_back({origin, element, matches_space});
}

/// Binds the nests of one function, in the order in which they run.
class NestBinder {
 public:
  NestBinder(BoundState& bound, BoundShapes shapes, int64_t repetitions)
      : bound_(bound),
        compiled_(*bound.kernel->compiled),
        origins_(bound, std::move(shapes)),
        codes_(compiled_, origins_.scratch(), repetitions),
        is_folded_(compiled_.nests.size(), false) {}

  Status run();

 private:
  const LikelyCode* likely(size_t n) const {
    return n < compiled_.likely.size() ? &compiled_.likely[n] : nullptr;
  }

  /// A step, without operands, that does the nest at hand, or a part of it.
  template <class AnyStep>
  AnyStep new_step() const {
    AnyStep step;
    step.nest = at_;
    return step;
  }

  Status copy_what_is_not_dense(const jit::Nest& nest);
  bool is_readable(const jit::Nest& nest, size_t input, const TensorOrigin& root) const;
  Status bind_copy(ValueId root, ElementType element);
  Status bind_copy_step(const jit::Nest& nest, const TensorOrigin& from, const TensorOrigin& to,
                        bool matches_space = true);
  TensorOrigin tensor_of(const jit::Nest& nest, size_t k);
  TensorOrigin stored(ValueId value, ElementType element);
  bool matches_space(const jit::Nest& nest, size_t k) const;
  void add_outputs(LaneStep& result, const jit::Nest& nest, std::vector<Dims>& strides);
  Status add_dense_operand(StepBase& result, ValueId value, ElementType element);
  Status copy_to(const TensorOrigin& to, const TensorOrigin& from, ValueId value);
  Status bind_codes(const jit::Nest& nest, const LikelyCode* likely, const Dims& extents,
                    std::span<const Dims> strides, ElementwiseStep result);

  Status bind_elementwise(const jit::Nest& nest);
  Status add_inputs(const jit::Nest& nest, const jit::SplitSpace& split, LaneStep& result,
                    std::vector<Dims>& strides, std::vector<size_t>& copies);
  Status bind_folds(const jit::Nest& nest);
  Status expand_blocks(ElementType element, TensorOrigin& tensor, jit::NestInput& input);

  TensorOrigin pooled(const jit::NestInput& input, ElementType element);
  PoolingGeometry pooling_of(ValueId result, const Dims& operand) const;
  Result<PaddingStep> padding_of(ValueId operand, const PoolingGeometry& geometry,
                                 ElementType element) const;
  TensorOrigin bind_padding(PaddingStep step, ValueId result, ElementType element, bool is_copy);
  Status pad_what_is_pooled(const jit::Nest& nest);
  Status pad_outputs(const jit::Nest& nest);
  void give_back_padded(const jit::Nest& nest);

  Status bind_requantization_nest(const jit::Nest& nest);
  BoundSide bind_side(StepBase& result, const Operation& operation, ValueId value,
                      size_t first_operand);
  Status bind_f32_copy(const jit::RequantizedTensors& tensors, StepBase base);

  /// A convolution's result as kernels see it.
  struct ResultView {
    ConvolutionLayout layout = ConvolutionLayout::nchw;
    Dims extents;
  };

  /// The result of a convolution that an epilogue takes.
  struct FusedResult {
    int64_t channels = 0;
    bool sums_nothing = false;
    /// If its extents are not those of the function, or, of images that may be joined, need not be.
    std::optional<ResultView> view;
    bool may_join_images = false;
  };

  Result<FusedResult> fused_result(const jit::Nest& convolution);
  static std::optional<jit::EpilogueWalk> epilogue_over(const jit::Nest& nest, const Dims& extents,
                                                        const ResultView& view,
                                                        std::vector<Dims> strides);
  Result<bool> bind_fused(const jit::Nest& convolution);
  void add_epilogue_operands(LaneStep& result, const jit::Nest& nest, std::vector<Dims>& strides);
  Status bind_convolution_nest(const jit::Nest& nest);
  bool reads_pixels(const BoundEpilogue& epilogue) const;
  Status bind_convolution_into(const jit::Nest& nest, const OperandOrigin& y, bool joins_images,
                               BoundEpilogue* epilogue, std::span<const jit::TileEpilogue> tiles);
  std::vector<jit::TileEpilogue> tile_epilogues(const jit::Nest& nest, BoundEpilogue& bound);
  Result<ConvolutionTensors> add_tensors(const jit::Nest& nest, ConvolutionStep& step);
  Result<ConvolutionTensors> add_convolution_tensors(const jit::Nest& nest, ConvolutionStep& step);
  const Dims* extents_of(const Operation& operation, size_t operand) const;
  Result<ConvolutionGeometry> geometry_of(const Operation& operation) const;
  Status find_convolution(ConvolutionTensors& tensors, const jit::TileEpilogue* tile,
                          bool has_residual, ConvolutionStep& result);

  BoundState& bound_;
  const Compiled& compiled_;
  ValueOrigins origins_;
  NestBinding codes_;
  size_t at_ = 0;  ///< index of the nest that is bound
  /// An operand that is pooled, with its padding.
  struct Padded {
    TensorOrigin tensor;
    bool is_copy = false;  ///< else the nest that computes the operand writes it there
  };
  std::map<ValueId, Padded> padded_;  ///< by result of the pooling
  std::vector<bool> is_folded_;       ///< by nest: a convolution's kernels fold what it would fold
};

}  // namespace castor::detail
