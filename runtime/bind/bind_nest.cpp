// SPDX-License-Identifier: Apache-2.0
#include "runtime/bind/bind_nest.hpp"

#include <algorithm>

#include "ir/verify/requantize.hpp"
#include "jit/core/core_tuning.hpp"
#include "jit/plan/access_pattern.hpp"
#include "jit/plan/split_space.hpp"
#include "jit/requantize/plan.hpp"
#include "runtime/bind/bind_fold.hpp"
#include "runtime/bind/bind_matmul.hpp"
#include "runtime/bind/bind_row_blocks.hpp"
#include "runtime/bind/bound_state.hpp"
#include "runtime/bind/nest_binding.hpp"
#include "runtime/bind/value_origins.hpp"
#include "runtime/bind/work_estimate.hpp"
#include "runtime/cache/code_store.hpp"
#include "runtime/compiled.hpp"
#include "runtime/conv/convolution.hpp"
#include "runtime/conv/convolution_output.hpp"
#include "runtime/memory/runtime_memory.hpp"
#include "runtime/requantize/requantization.hpp"

namespace castor::detail {

namespace {

void add_operand(StepBase& step, const OperandOrigin& origin, ElementType element,
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
        codes_(compiled_, origins_.scratch(), repetitions) {}

  Status run() {
    bound_.steps.reserve(compiled_.nests.size());
    for (at_ = 0; at_ < compiled_.nests.size(); ++at_) {
      const jit::Nest& nest = compiled_.nests[at_];
      if (!nest.reduced.empty() || nest.program.folds()) {
        if (Status status = bind_folds(nest); !status) return status;
        continue;
      }
      if (element_count(origins_.extents_of(nest.space)).value_or(0) == 0) {
        bound_.steps.emplace_back(new_step<EmptyStep>());
        continue;
      }
      if (Status status = copy_what_is_not_dense(nest); !status) return status;
      const Result<bool> is_fused = bind_fused(nest);
      if (!is_fused.ok()) return is_fused.error();
      if (*is_fused) {
        origins_.count_reads_of(nest);
        origins_.count_reads_of(compiled_.nests[++at_]);
        continue;
      }
      Status status = nest.convolution      ? bind_convolution_nest(nest)
                      : nest.requantization ? bind_requantization_nest(nest)
                                            : bind_elementwise(nest);
      if (!status) return status;
      origins_.count_reads_of(nest);
    }
    bound_.scratch_bytes = origins_.scratch().bytes();
    return {};
  }

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

  /// Copies to scratch of tables that are not dense, and of what no strides can reshape.
  Status copy_what_is_not_dense(const jit::Nest& nest) {
    for (size_t k = 0; k < nest.inputs.size(); ++k) {
      const ValueId value = nest.inputs[k].value;
      const ValueId root = origins_.root_of(value);
      const bool any_strides = root == value && !nest.is_table(k);
      if (any_strides || origins_.has_scratch(root)) continue;
      const TensorOrigin origin = origins_.of_root(root, nest.element(k));
      if (is_readable(nest, k, origin)) continue;
      if (Status status = bind_copy(root, nest.element(k)); !status) return status;
    }
    return {};
  }

  /// Whether the nest can read its input where the root of the value is stored.
  bool is_readable(const jit::Nest& nest, size_t input, const TensorOrigin& root) const {
    const ValueId value = nest.inputs[input].value;
    if (nest.is_table(input)) return origins_.is_dense(value, root);
    return jit::reshaped_strides(root.extents, root.strides, origins_.extents_of(value))
        .has_value();
  }

  Status bind_copy(ValueId root, ElementType element) {
    const Dims& extents = origins_.extents_of(root);
    const jit::Nest nest = jit::copy_nest(element, root, extents.rank(), compiled_.target);
    const TensorOrigin from = origins_.of_root(root, element);
    const TensorOrigin to = origins_.in_scratch(root, element, extents);
    return bind_copy_step(nest, from, to);
  }

  /// A step that copies a tensor to another by the code of that nest.
  Status bind_copy_step(const jit::Nest& nest, const TensorOrigin& from, const TensorOrigin& to,
                        bool matches_space = true) {
    auto result = new_step<ElementwiseStep>();
    result.program = StepProgram::copy;
    add_operand(result, from.origin, nest.element(0), matches_space);
    add_operand(result, to.origin, nest.element(1), true);
    const std::vector<Dims> strides = {from.strides, to.strides};
    return bind_codes(nest, nullptr, to.extents, strides, std::move(result));
  }

  Status bind_elementwise(const jit::Nest& nest) {
    const Dims& space = origins_.extents_of(nest.space);
    jit::SplitSpace split(space);
    for (const jit::NestInput& input : nest.inputs) {
      split.admit(input, origins_.extents_of(input.value));
    }
    std::vector<Dims> strides;
    std::vector<size_t> copies;  // blocked inputs, expanded
    auto result = new_step<ElementwiseStep>();
    Status status = add_inputs(nest, split, result, strides, copies);
    if (!status) return status;
    add_outputs(result, nest, strides);
    for (size_t k = nest.inputs.size(); k < nest.operands(); ++k) {
      strides[k] = split.strides(strides[k]);
    }
    status = bind_codes(nest, likely(at_), split.extents(), strides, std::move(result));
    for (const size_t copy : copies) origins_.scratch().give_back(copy);
    return status;
  }

  /// Adds the inputs of the nest, and their strides over the split space. Where that has none for
  /// a blocked input, a copy is read, whose scratch is to be given back.
  Status add_inputs(const jit::Nest& nest, const jit::SplitSpace& split, LaneStep& result,
                    std::vector<Dims>& strides, std::vector<size_t>& copies) {
    for (size_t k = 0; k < nest.inputs.size(); ++k) {
      TensorOrigin tensor = tensor_of(nest, k);
      jit::NestInput input = nest.inputs[k];
      while (!split.has_strides(input, tensor.extents)) {
        if (Status status = expand_blocks(nest.element(k), tensor, input); !status) return status;
        copies.push_back(tensor.origin.offset);
      }
      strides.push_back(split.strides_of(input, tensor.extents, tensor.strides));
      add_operand(result, tensor.origin, nest.element(k), matches_space(nest, k));
    }
    return {};
  }

  /// A nest with accumulators; where these are empty, nothing is done.
  Status bind_folds(const jit::Nest& nest) {
    if (element_count(origins_.extents_of(nest.outputs[0].value)).value_or(0) == 0) {
      bound_.steps.emplace_back(new_step<EmptyStep>());
      return {};
    }
    if (Status status = copy_what_is_not_dense(nest); !status) return status;
    const auto copy = [&](const TensorOrigin& from, const TensorOrigin& to, ElementType element) {
      const int rank = to.extents.rank();
      return bind_copy_step(jit::copy_nest(element, 0, rank, compiled_.target), from, to, false);
    };
    const Dims& extents = origins_.extents_of(nest.space);
    const jit::SplitSpace space(extents);  // blocked inputs are copied
    ElementwiseStep inputs;
    FoldInputs read;
    std::vector<size_t> copies;
    Status status;
    if (element_count(extents).value_or(0) > 0) {
      status = add_inputs(nest, space, inputs, read.strides, copies);
    }
    if (!status) return status;
    read.operands = std::move(inputs.operands);
    FoldBinder binder(bound_, origins_, codes_, at_, copy);
    status = binder.bind(std::move(read), extents);
    for (const size_t each : copies) origins_.scratch().give_back(each);
    if (status) origins_.count_reads_of(nest);
    return status;
  }

  /// Copies a blocked input to scratch, with each element as often as a block reads it. `tensor`
  /// and `input` become the copy, and how it is read.
  Status expand_blocks(ElementType element, TensorOrigin& tensor, jit::NestInput& input) {
    const jit::ExpandedCopy copy = jit::expanded_copy(input, tensor.extents, tensor.strides);
    const int64_t count = element_count(copy.extents).value_or(0);
    const auto bytes = static_cast<size_t>(byte_size(element, count).value_or(0));
    const TensorOrigin to = {
        {.kind = OperandOrigin::Kind::scratch, .offset = origins_.scratch().take(bytes)},
        copy.space,
        dense_strides(copy.space)};
    const TensorOrigin from = {tensor.origin, copy.space, copy.strides};
    const int rank = copy.space.rank();
    const jit::Nest nest = jit::copy_nest(element, input.value, rank, compiled_.target);
    Status status = bind_copy_step(nest, from, to, false);
    tensor = {to.origin, copy.extents, dense_strides(copy.extents)};
    input = copy.input;
    return status;
  }

  /// Where an input of the nest is stored, and its strides over its own axes.
  TensorOrigin tensor_of(const jit::Nest& nest, size_t k) {
    const ValueId value = nest.inputs[k].value;
    const int accumulator = nest.inputs[k].accumulator;
    if (accumulator >= 0) return origins_.of_accumulator(value, accumulator, nest.element(k));
    const Dims& extents = origins_.extents_of(value);
    const ValueId root = origins_.root_of(value);
    TensorOrigin tensor = origins_.of_root(root, nest.element(k));
    if (root != value) {
      tensor.strides = *jit::reshaped_strides(tensor.extents, tensor.strides, extents);
      tensor.extents = extents;
    }
    return tensor;
  }

  /// Whether an input is the tensor of its origin, element by element.
  bool matches_space(const jit::Nest& nest, size_t k) const {
    const jit::NestInput& input = nest.inputs[k];
    return input.accumulator < 0 && origins_.root_of(input.value) == input.value &&
           input.is_identity() &&
           origins_.extents_of(input.value) == origins_.extents_of(nest.space);
  }

  /// Adds the operands of an epilogue, and their strides over its space; its source has none.
  void add_epilogue_operands(LaneStep& result, const jit::Nest& nest, std::vector<Dims>& strides) {
    const Dims& space = origins_.extents_of(nest.space);
    for (size_t k = 0; k < nest.inputs.size(); ++k) {
      if (k == nest.epilogue->source) {
        strides.emplace_back();
        add_operand(result, {.kind = OperandOrigin::Kind::scratch}, ElementType::i32, true);
        continue;
      }
      const TensorOrigin tensor = tensor_of(nest, k);
      const Dims& axes = nest.inputs[k].axes;
      strides.push_back(jit::strides_in_space(axes, tensor.extents, tensor.strides, space));
      add_operand(result, tensor.origin, nest.element(k), matches_space(nest, k));
    }
    add_outputs(result, nest, strides);
  }

  void add_outputs(LaneStep& result, const jit::Nest& nest, std::vector<Dims>& strides) {
    const Dims& space = origins_.extents_of(nest.space);
    for (size_t k = nest.inputs.size(); k < nest.operands(); ++k) {
      const TensorOrigin origin =
          origins_.of_output(nest.outputs[k - nest.inputs.size()], nest.element(k), space);
      strides.push_back(origin.strides);
      add_operand(result, origin.origin, nest.element(k), true);
    }
  }

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

  Result<FusedResult> fused_result(const jit::Nest& convolution) {
    const Operation& operation = compiled_.canonical->operations[*convolution.convolution];
    if (operation.op != OpKind::matmul_integer) {
      auto geometry = geometry_of(operation);
      if (!geometry.ok()) return geometry.error();
      FusedResult result = {geometry->out_channels, geometry->channels == 0, {}};
      if (result.sums_nothing) return result;
      const ConvolutionGeometry joined = jit::with_joined_images(*geometry);
      result.may_join_images = joined != *geometry;
      if (result.may_join_images) result.view = ResultView{joined.layout, joined.output_extents()};
      return result;
    }
    auto matmul = bind_matmul(operation, *compiled_.canonical, origins_);
    if (!matmul.ok()) return matmul.error();
    const ConvolutionGeometry& geometry = matmul->geometry;
    return FusedResult{geometry.out_channels, geometry.channels == 0,
                       ResultView{geometry.layout, matmul->result}};
  }

  /// How the nest takes a result that kernels see as `view`; `strides` are its operands' over these
  /// extents.
  static std::optional<jit::EpilogueWalk> epilogue_over(const jit::Nest& nest, const Dims& extents,
                                                        const ResultView& view,
                                                        std::vector<Dims> strides) {
    jit::Nest consumer = nest;
    consumer.epilogue->layout = view.layout;
    for (size_t k = 0; k < strides.size(); ++k) {
      if (k == nest.epilogue->source) continue;
      auto reshaped = jit::reshaped_strides(extents, strides[k], view.extents);
      if (!reshaped) return std::nullopt;
      strides[k] = *reshaped;
    }
    return jit::epilogue_walk(consumer, view.extents, strides);
  }

  /// Binds a convolution and the nest after it as one. False, and nothing is bound, where that is
  /// not planned, or the tensors' extents and strides do not allow it.
  Result<bool> bind_fused(const jit::Nest& convolution) {
    if (!convolution.fusion || !convolution.fusion->is_fused()) return false;
    const jit::Nest& nest = compiled_.nests[at_ + 1];
    const Dims& extents = origins_.extents_of(convolution.space);
    const Result<FusedResult> result = fused_result(convolution);
    if (!result.ok()) return result.error();
    if (origins_.extents_of(nest.space) != extents || result->sums_nothing) return false;
    if (Status status = copy_what_is_not_dense(nest); !status) return status.error();
    std::vector<Dims> strides;
    BoundEpilogue epilogue;
    epilogue.nest = at_ + 1;
    epilogue.first_output = nest.inputs.size();
    add_epilogue_operands(epilogue, nest, strides);
    std::optional<jit::EpilogueWalk> walk;
    if (result->view) walk = epilogue_over(nest, extents, *result->view, strides);
    const bool joins_images = walk && result->may_join_images;
    if (!walk && (!result->view || result->may_join_images)) {
      walk = jit::epilogue_walk(nest, extents, strides);
    }
    if (!walk) return false;
    epilogue.walk = std::move(*walk);
    epilogue.source = nest.epilogue->source;
    const std::optional<jit::TileEpilogue> tile =
        jit::tile_epilogue(nest, epilogue.walk, compiled_.target);
    epilogue.max_elements = compiled_.target.tuning().partition.max_epilogue_elements;
    const size_t slab = origins_.scratch().take(piece_bytes(epilogue, result->channels));
    Status status =
        bind_convolution_into(convolution, {.kind = OperandOrigin::Kind::scratch, .offset = slab},
                              joins_images, &epilogue, tile ? &*tile : nullptr);
    origins_.scratch().give_back(slab);
    if (!status) return status.error();
    return true;
  }

  /// An output that is not dense is copied afterwards.
  Status bind_convolution_nest(const jit::Nest& nest) {
    const TensorOrigin output =
        origins_.of_output(nest.outputs[0], ElementType::i32, origins_.extents_of(nest.space));
    const bool is_direct = origins_.is_dense(nest.space, output);
    const TensorOrigin to =
        is_direct ? output : origins_.in_scratch(nest.space, ElementType::i32, output.extents);
    if (Status status = bind_convolution_into(nest, to.origin, true, nullptr, nullptr); !status)
      return status;
    return is_direct ? Status() : copy_to(output, to, nest.space);
  }

  /// Whether an epilogue reads a tensor that differs from pixel to pixel, besides the sums.
  bool reads_pixels(const BoundEpilogue& epilogue) const {
    const jit::EpilogueWalk& walk = epilogue.walk;
    for (size_t k = 0; k < compiled_.nests[epilogue.nest].inputs.size(); ++k) {
      const auto& steps = walk.operands[k];
      const int64_t along_pixels = walk.rows_of_channels ? steps.row : steps.element;
      if (k != epilogue.source && along_pixels != 0) return true;
    }
    return false;
  }

  /// Convolutions take dense tensors: others are copied first. Whether images may be joined, the
  /// epilogue decides, which may be null; else y is where a slice is stored. `tile`: the same
  /// epilogue for kernels to apply, or null.
  Status bind_convolution_into(const jit::Nest& nest, const OperandOrigin& y, bool joins_images,
                               BoundEpilogue* epilogue, const jit::TileEpilogue* tile) {
    auto result = new_step<ConvolutionStep>();
    Result<ConvolutionTensors> tensors = add_tensors(nest, result);
    if (!tensors.ok()) return tensors.error();
    if (joins_images) tensors->geometry = jit::with_joined_images(tensors->geometry);
    add_operand(result, y, ElementType::i32, true);
    const bool has_residual = epilogue != nullptr && reads_pixels(*epilogue);
    if (Status status = find_convolution(*tensors, tile, has_residual, result); !status) {
      return status;
    }
    if (epilogue != nullptr) {
      if (!result.convolution->applies_epilogue) {
        const jit::Nest& consumer = compiled_.nests[at_ + 1];
        Status status =
            codes_.bind_epilogue(consumer, likely(at_ + 1), epilogue->walk.space, *epilogue);
        if (!status) return status;
      }
      epilogue->piece_offset = static_cast<ptrdiff_t>(y.offset - result.convolution->scratch);
      result.epilogue = std::make_shared<const BoundEpilogue>(std::move(*epilogue));
    }
    bound_.steps.emplace_back(std::move(result));
    for (const size_t copy : tensors->copies) origins_.scratch().give_back(copy);
    return {};
  }

  /// Adds what a convolution reads to its step.
  Result<ConvolutionTensors> add_tensors(const jit::Nest& nest, ConvolutionStep& step) {
    const Function& function = *compiled_.canonical;
    const Operation& operation = function.operations[*nest.convolution];
    if (operation.op != OpKind::matmul_integer) return add_convolution_tensors(nest, step);
    const auto matmul = bind_matmul(operation, function, origins_);
    if (!matmul.ok()) return matmul.error();
    const auto copy = [&](const TensorOrigin& from, const TensorOrigin& to, ElementType element) {
      const int rank = to.extents.rank();
      return bind_copy_step(jit::copy_nest(element, 0, rank, compiled_.target), from, to, false);
    };
    return add_matmul_tensors(operation, function, *matmul, origins_, copy, step);
  }

  /// All tensors may have any strides.
  Status bind_requantization_nest(const jit::Nest& nest) {
    const Function& function = *compiled_.canonical;
    const Operation& operation = function.operations[*nest.requantization];
    const Dims& extents = origins_.extents_of(nest.space);
    auto base = new_step<StepBase>();
    const ValueId x_root = origins_.root_of(operation.operands[0]);
    const TensorOrigin x = origins_.of_root(x_root, nest.element(0));
    add_operand(base, x.origin, nest.element(0), x_root == operation.operands[0]);
    const BoundSide from = bind_side(base, operation, operation.operands[0], source_parameter(0));
    const BoundSide to = bind_side(base, operation, operation.results[0], destination_parameter(0));
    const size_t last = nest.inputs.size();
    const TensorOrigin y = origins_.of_output(nest.outputs[0], nest.element(last), extents);
    add_operand(base, y.origin, nest.element(last), true);
    const jit::RequantizedTensors tensors = {
        extents, *jit::reshaped_strides(x.extents, x.strides, extents), y.strides,
        jit::requantize_axis(from.quantization, to.quantization)};
    const auto form = jit::requantize_form(function, operation);
    if (!form) return bind_f32_copy(tensors, std::move(base));
    Result<Step> step = bind_requantization(*form, from, to, tensors, compiled_, origins_.scratch(),
                                            std::move(base));
    if (!step.ok()) return step.error();
    bound_.steps.push_back(std::move(step).value());
    return {};
  }

  /// The quantization of a value, with operands for the parameters that are given at run time:
  /// parameters of the function and constants, where they are stored.
  BoundSide bind_side(StepBase& result, const Operation& operation, ValueId value,
                      size_t first_operand) {
    BoundSide side;
    side.quantization = compiled_.canonical->type_of(value).quantization;
    for (size_t r = 0; r < quantization_rules.size(); ++r) {
      const ValueId parameter = operation.operands[first_operand + r];
      if (parameter == no_value) continue;
      const ElementType element = quantization_rules[r].element;
      const TensorOrigin origin = origins_.of_root(parameter, element);
      side.operands[r] = static_cast<int>(result.operands.size());
      if (!origin.strides.empty()) side.strides[r] = origin.strides[0];
      add_operand(result, origin.origin, element, false);
    }
    return side;
  }

  Status bind_f32_copy(const jit::RequantizedTensors& tensors, StepBase base) {
    const jit::Nest nest =
        jit::copy_nest(ElementType::f32, 0, tensors.extents.rank(), compiled_.target);
    ElementwiseStep result;
    static_cast<StepBase&>(result) = std::move(base);
    result.program = StepProgram::copy;
    const std::vector<Dims> strides = {tensors.source_strides, tensors.destination_strides};
    return bind_codes(nest, nullptr, tensors.extents, strides, std::move(result));
  }

  /// A value that is read densely, copied first where it is not stored so.
  Status add_dense_operand(StepBase& result, ValueId value, ElementType element) {
    const ValueId root = origins_.root_of(value);
    if (!origins_.is_dense(value, origins_.of_root(root, element))) {
      if (Status status = bind_copy(root, element); !status) return status;
    }
    add_operand(result, origins_.of_root(root, element).origin, element, false);
    return {};
  }

  /// The operands of a `conv_integer`, in the order of its nest.
  Result<ConvolutionTensors> add_convolution_tensors(const jit::Nest& nest, ConvolutionStep& step) {
    const Operation& operation = compiled_.canonical->operations[*nest.convolution];
    ConvolutionTensors tensors;
    for (size_t k = 0; k < nest.inputs.size(); ++k) {
      const ValueId value = nest.inputs[k].value;
      Status status = add_dense_operand(step, value, nest.element(k));
      if (!status) return status.error();
      tensors.constants.push_back(step.operands.back().origin.constant);
      if (tensors.constants.back() == nullptr) continue;
      tensors.sharing.contents[k] = origins_.content_of(origins_.root_of(value)).words();
    }
    std::array<int, 4> numbers = {-1, -1, -1, -1};
    int next = 0;
    for (size_t i = 0; i < operation.operands.size(); ++i) {
      if (operation.operands[i] != no_value) numbers[i] = next++;
    }
    const Result<ConvolutionGeometry> geometry = geometry_of(operation);
    if (!geometry.ok()) return geometry.error();
    tensors.geometry = *geometry;
    const Dims* w_zero_points = extents_of(operation, 3);
    tensors.operands = {
        .x_is_signed = step.operands[0].element == ElementType::i8,
        .w_is_signed = step.operands[1].element == ElementType::i8,
        .x_zero_point = numbers[2],
        .w_zero_point = numbers[3],
        .zero_points_per_channel = w_zero_points && element_count(*w_zero_points).value_or(0) > 1};
    return tensors;
  }

  /// Extents of an operand; null where it is absent.
  const Dims* extents_of(const Operation& operation, size_t operand) const {
    if (operand >= operation.operands.size()) return nullptr;
    const ValueId value = operation.operands[operand];
    return value == no_value ? nullptr : &origins_.extents_of(value);
  }

  /// The geometry of a `conv_integer`.
  Result<ConvolutionGeometry> geometry_of(const Operation& operation) const {
    return convolution_geometry(operation, *extents_of(operation, 0), *extents_of(operation, 1),
                                extents_of(operation, 2), extents_of(operation, 3));
  }

  /// `tile`: what kernels may apply, or null.
  Status find_convolution(ConvolutionTensors& tensors, const jit::TileEpilogue* tile,
                          bool has_residual, ConvolutionStep& result) {
    tensors.sharing.store = compiled_.memory->weights.get();
    auto convolution = bind_convolution(
        tensors.geometry, tensors.operands, tensors.constants, bound_.target,
        compiled_.store->cache, origins_.scratch(),
        {.epilogue = tile, .has_residual = has_residual, .weights = tensors.sharing});
    if (!convolution.ok()) return convolution.error();
    result.convolution = std::move(convolution).value();
    if (!result.convolution->lower_tier_because.empty()) {
      bound_.target = result.convolution->target;
      bound_.lower_tier_because = result.convolution->lower_tier_because;
    }
    result.nanoseconds = convolution_ns(tensors.geometry, bound_.target);
    if (result.convolution->scratch_bytes > 0)
      origins_.scratch().give_back(result.convolution->scratch);
    return {};
  }

  /// Copies dense scratch to a tensor that is not dense; then the scratch is free.
  Status copy_to(const TensorOrigin& to, const TensorOrigin& from, ValueId value) {
    const jit::Nest nest =
        jit::copy_nest(ElementType::i32, value, to.extents.rank(), compiled_.target);
    Status status = bind_copy_step(nest, from, to);
    origins_.give_back(value);
    return status;
  }

  Status bind_codes(const jit::Nest& nest, const LikelyCode* likely, const Dims& extents,
                    std::span<const Dims> strides, ElementwiseStep result) {
    Status status = codes_.bind(nest, likely, extents, strides, result);
    if (!status) return status;
    bound_.steps.emplace_back(std::move(result));
    return {};
  }

  BoundState& bound_;
  const Compiled& compiled_;
  ValueOrigins origins_;
  NestBinding codes_;
  size_t at_ = 0;  ///< index of the nest that is bound
};

}  // namespace

Status bind_steps(BoundState& bound, BoundShapes shapes, int64_t repetitions) {
  return NestBinder(bound, std::move(shapes), repetitions).run();
}

Status bind_nests(BoundState& bound, std::span<const Dims> input_shapes, int64_t block_bytes) {
  const Compiled& compiled = *bound.kernel->compiled;
  if (!compiled.interpreted_because.empty()) return {};
  Result<BoundShapes> shapes = bind_shapes(*compiled.canonical, input_shapes);
  if (!shapes.ok()) return shapes.error();
  if (const auto blocks = plan_row_blocks(bound, *shapes, block_bytes)) {
    return bind_row_blocks(bound, *shapes, *blocks);
  }
  return bind_steps(bound, std::move(shapes).value(), 1);
}

}  // namespace castor::detail
