// SPDX-License-Identifier: Apache-2.0
#include "runtime/bind_nest.hpp"

#include <algorithm>
#include <map>

#include "ir/infer.hpp"
#include "jit/emit/chunk_plan.hpp"
#include "jit/operand_walk.hpp"
#include "runtime/bind_tiles.hpp"
#include "runtime/epilogue.hpp"
#include "runtime/scratch_plan.hpp"

namespace castor::detail {

namespace {

/// Tensors below this many bytes are never stored past the caches, and rows neither.
constexpr int64_t least_streaming_bytes = int64_t{1} << 20;
constexpr int64_t least_streaming_row_bytes = 1024;

/// A tensor that nests read or write.
struct Place {
  OperandOrigin origin;
  Dims extents;
  Dims strides;
};

/// The code of a nest in a form: what compiling made ahead, or from the cache.
Status find_code(const Compiled& compiled, const jit::Nest& nest, const LikelyCode* likely,
                 const jit::NestForm& form, NestCodePtr& code) {
  if (likely != nullptr && form == likely->form) {
    code = likely->code;
    return {};
  }
  Result<NestCodePtr> found = compiled.store->cache.get(nest, form, compiled.target);
  if (!found.ok()) return found.error();
  code = std::move(found).value();
  return {};
}

/// Which period the n-th element from a period's beginning lies in, for as many as chunks ask for.
std::vector<uint8_t> period_numbers(int64_t period) {
  constexpr int64_t longest_chunk = 64;
  std::vector<uint8_t> numbers;
  for (int64_t n = 0; n < period + 2 * longest_chunk; ++n) {
    numbers.push_back(static_cast<uint8_t>(n / period));
  }
  return numbers;
}

/// Binds the nests of one function, in the order in which they run.
class NestBinder {
 public:
  NestBinder(BoundState& bound, BoundShapes shapes)
      : bound_(bound),
        compiled_(*bound.kernel->compiled),
        function_(*compiled_.canonical),
        roots_(jit::reshape_roots(function_)),
        shapes_(std::move(shapes)) {
    for (const Operation& operation : function_.operations) {
      if (operation.op == OpKind::constant) constants_[operation.results[0]] = &operation;
    }
    count_reads();
  }

  Status run() {
    for (size_t n = 0; n < compiled_.nests.size(); ++n) {
      const jit::Nest& nest = compiled_.nests[n];
      const LikelyCode* likely = n < compiled_.likely.size() ? &compiled_.likely[n] : nullptr;
      if (element_count(shapes_.values[nest.space]).value_or(0) == 0) {
        bound_.nests.emplace_back();
        continue;
      }
      if (Status status = copy_for_reshapes(nest); !status) return status;
      if (nest.fusion && nest.fusion->is_fused()) {
        const LikelyCode* next =
            n + 1 < compiled_.likely.size() ? &compiled_.likely[n + 1] : nullptr;
        const Result<bool> is_fused = bind_fused(nest, compiled_.nests[n + 1], next);
        if (!is_fused.ok()) return is_fused.error();
        if (*is_fused) {
          for (size_t both : {n, n + 1}) count_reads_of(compiled_.nests[both]);
          ++n;
          continue;
        }
      }
      Status status = nest.convolution ? bind_convolution_nest(nest) : bind(nest, likely);
      if (!status) return status;
      count_reads_of(nest);
    }
    if (plan_.bytes() > 0) bound_.scratch = ScratchPool(plan_.bytes());
    return {};
  }

 private:
  ValueId root_of(ValueId value) const { return roots_[value]; }
  const Dims& extents_of(ValueId value) const { return shapes_.values[value]; }

  void count_reads() {
    for (const jit::Nest& nest : compiled_.nests) {
      for (const jit::NestInput& input : nest.inputs) ++reads_left_[root_of(input.value)];
    }
  }

  /// A read less is to come; behind the last one a value's scratch is free.
  void count_read(ValueId value) {
    if (--reads_left_[value] > 0) return;
    const auto place = scratch_.find(value);
    if (place == scratch_.end()) return;
    plan_.give_back(place->second);
    scratch_.erase(place);
  }

  void count_reads_of(const jit::Nest& nest) {
    for (const jit::NestInput& input : nest.inputs) count_read(root_of(input.value));
  }

  /// Dense tensors in scratch.
  Place in_scratch(ValueId value, ElementType element, const Dims& extents) {
    const auto [at, is_new] = scratch_.try_emplace(value, 0);
    if (is_new) {
      const int64_t count = element_count(extents).value_or(0);
      at->second = plan_.take(static_cast<size_t>(byte_size(element, count).value_or(0)));
    }
    return {{.kind = OperandOrigin::Kind::scratch, .offset = at->second},
            extents,
            dense_strides(extents)};
  }

  /// The tensor that a chain of reshapes begins with, as the caller or the function has it.
  Place root_place(ValueId root, ElementType element) {
    const auto& parameters = function_.parameters;
    const auto parameter = std::find(parameters.begin(), parameters.end(), root);
    if (scratch_.contains(root)) return in_scratch(root, element, extents_of(root));
    if (parameter != parameters.end()) {
      const auto index = static_cast<size_t>(parameter - parameters.begin());
      return {{.kind = OperandOrigin::Kind::input, .index = index},
              extents_of(root),
              bound_.inputs[index].strides};
    }
    const auto constant = constants_.find(root);
    if (constant == constants_.end()) return in_scratch(root, element, extents_of(root));
    return {
        {.kind = OperandOrigin::Kind::constant, .constant = constant->second->data->bytes.data()},
        extents_of(root),
        dense_strides(extents_of(root))};
  }

  /// Copies to scratch of what no strides can reshape.
  Status copy_for_reshapes(const jit::Nest& nest) {
    for (size_t k = 0; k < nest.inputs.size(); ++k) {
      const ValueId value = nest.inputs[k].value;
      const ValueId root = root_of(value);
      if (root == value || scratch_.contains(root)) continue;
      const Place place = root_place(root, nest.element(k));
      if (jit::reshaped_strides(place.extents, place.strides, extents_of(value))) continue;
      if (Status status = bind_copy(root, nest.element(k)); !status) return status;
    }
    return {};
  }

  Status bind_copy(ValueId root, ElementType element) {
    const Dims& extents = extents_of(root);
    const jit::Nest nest = jit::copy_nest(element, root, extents.rank(), compiled_.target);
    BoundNest result;
    const Place from = root_place(root, element);
    const Place to = in_scratch(root, element, extents);
    add_operand(result, from.origin, element, true);
    add_operand(result, to.origin, element, true);
    const std::vector<Dims> strides = {from.strides, to.strides};
    return bind_codes(nest, nullptr, extents, strides, std::move(result));
  }

  static void add_operand(BoundNest& nest, const OperandOrigin& origin, ElementType element,
                          bool walks_space) {
    nest.operands.push_back(origin);
    nest.elements.push_back(element);
    nest.walks_space.push_back(walks_space);
  }

  Status bind(const jit::Nest& nest, const LikelyCode* likely) {
    std::vector<Dims> strides;
    BoundNest result = operands_of(nest, strides);
    return bind_codes(nest, likely, extents_of(nest.space), strides, std::move(result));
  }

  /// The nest with its operands, whose strides over the space are appended. The source of an
  /// epilogue has none.
  BoundNest operands_of(const jit::Nest& nest, std::vector<Dims>& strides, bool fused = false) {
    const Dims& space = extents_of(nest.space);
    BoundNest result;
    for (size_t k = 0; k < nest.inputs.size(); ++k) {
      if (fused && k == nest.epilogue->source) {
        strides.emplace_back();
        add_operand(result, {.kind = OperandOrigin::Kind::scratch}, ElementType::i32, true);
        continue;
      }
      const jit::NestInput& input = nest.inputs[k];
      const Dims& extents = extents_of(input.value);
      const ValueId root = root_of(input.value);
      const Place place = root_place(root, nest.element(k));
      const Dims own = root == input.value
                           ? place.strides
                           : *jit::reshaped_strides(place.extents, place.strides, extents);
      strides.push_back(jit::strides_in_space(input.axes, extents, own, space));
      const bool walks_space = root == input.value && extents == space && is_identity(input.axes);
      add_operand(result, place.origin, nest.element(k), walks_space);
    }
    for (size_t k = nest.inputs.size(); k < nest.operands(); ++k) {
      const Place place =
          output_place(nest.outputs[k - nest.inputs.size()], nest.element(k), space);
      strides.push_back(place.strides);
      add_operand(result, place.origin, nest.element(k), true);
    }
    return result;
  }

  /// Binds a convolution and the nest behind it as one. False, and nothing is bound, where the
  /// tensors' extents and strides do not allow that.
  Result<bool> bind_fused(const jit::Nest& convolution, const jit::Nest& nest,
                          const LikelyCode* likely) {
    const Dims& extents = extents_of(convolution.space);
    const int64_t group_channels = extents_of(convolution.inputs[1].value)[1];
    if (extents_of(nest.space) != extents || group_channels == 0) return false;
    if (Status status = copy_for_reshapes(nest); !status) return status.error();
    std::vector<Dims> strides;
    BoundEpilogue epilogue;
    epilogue.nest = operands_of(nest, strides, true);
    auto walk = jit::epilogue_walk(nest, extents, strides);
    if (!walk) return false;
    epilogue.walk = std::move(*walk);
    epilogue.source = nest.epilogue->source;
    if (Status status = bind_epilogue_code(nest, likely, epilogue); !status) return status.error();
    const Dims& w = extents_of(convolution.inputs[1].value);
    const size_t piece = plan_.take(piece_bytes(w[0]));
    Status status = bind_convolution_into(
        convolution, {.kind = OperandOrigin::Kind::scratch, .offset = piece}, &epilogue);
    plan_.give_back(piece);
    if (!status) return status.error();
    return true;
  }

  Status bind_epilogue_code(const jit::Nest& nest, const LikelyCode* likely,
                            BoundEpilogue& epilogue) {
    BoundNest& result = epilogue.nest;
    const jit::IterationSpace& space = epilogue.walk.space;
    result.sub_byte = nest.has_sub_byte_operand();
    result.first_output = nest.inputs.size();
    result.first_base = jit::ArgumentLayout(nest.operands(), space.form.rank).base(0);
    if (Status status = bind_code(nest, likely, space, result, result.main); !status) return status;
    return bind_any_start(nest, space, result);
  }

  /// An output that is not dense is copied behind.
  Status bind_convolution_nest(const jit::Nest& nest) {
    const Place output = output_place(nest.outputs[0], ElementType::i32, extents_of(nest.space));
    const bool is_direct = is_dense(nest.space, output);
    const Place to = is_direct ? output : in_scratch(nest.space, ElementType::i32, output.extents);
    if (Status status = bind_convolution_into(nest, to.origin, nullptr); !status) return status;
    return is_direct ? Status() : copy_to(output, to, nest.space);
  }

  /// Convolutions take dense tensors: others are copied first. `epilogue` may be null; else y is
  /// where a piece lies.
  Status bind_convolution_into(const jit::Nest& nest, const OperandOrigin& y,
                               BoundEpilogue* epilogue) {
    BoundNest result;
    std::vector<const std::byte*> constants;
    for (size_t k = 0; k < nest.inputs.size(); ++k) {
      const ValueId value = nest.inputs[k].value;
      const ElementType element = nest.element(k);
      if (!is_dense(value, root_place(root_of(value), element))) {
        if (Status status = bind_copy(root_of(value), element); !status) return status;
      }
      const Place place = root_place(root_of(value), element);
      add_operand(result, place.origin, element, false);
      constants.push_back(place.origin.constant);
    }
    add_operand(result, y, ElementType::i32, true);
    if (Status status = find_convolution(nest, constants, result); !status) return status;
    if (epilogue != nullptr) {
      epilogue->piece_offset = static_cast<ptrdiff_t>(y.offset - result.convolution->scratch);
      result.epilogue = std::make_shared<const BoundEpilogue>(std::move(*epilogue));
    }
    bound_.nests.push_back(std::move(result));
    return {};
  }

  bool is_dense(ValueId value, const Place& place) const {
    if (element_count(place.extents).value_or(0) == 0) return true;
    const auto strides = jit::reshaped_strides(place.extents, place.strides, extents_of(value));
    const auto dense = jit::reshaped_strides(extents_of(value), dense_strides(extents_of(value)),
                                             extents_of(value));
    return strides == dense;
  }

  Status find_convolution(const jit::Nest& nest, std::span<const std::byte* const> constants,
                          BoundNest& result) {
    const Operation& operation = function_.operations[*nest.convolution];
    std::array<const Dims*, 4> extents = {};
    std::array<int, 4> numbers = {-1, -1, -1, -1};
    int next = 0;
    for (size_t i = 0; i < operation.operands.size(); ++i) {
      if (operation.operands[i] == no_value) continue;
      extents[i] = &extents_of(operation.operands[i]);
      numbers[i] = next++;
    }
    const Result<ConvolutionGeometry> geometry =
        convolution_geometry(operation, *extents[0], *extents[1], extents[2], extents[3]);
    if (!geometry.ok()) return geometry.error();
    const bool per_channel = extents[3] != nullptr && element_count(*extents[3]).value_or(0) > 1;
    auto convolution =
        bind_convolution(*geometry, result.elements, constants, numbers[2], numbers[3], per_channel,
                         compiled_.target, compiled_.store->cache, plan_);
    if (!convolution.ok()) return convolution.error();
    result.convolution = std::move(convolution).value();
    if (result.convolution->parts.end > 0) plan_.give_back(result.convolution->scratch);
    return {};
  }

  /// From dense scratch to a tensor that is not dense; then the scratch is free.
  Status copy_to(const Place& to, const Place& from, ValueId value) {
    const jit::Nest nest =
        jit::copy_nest(ElementType::i32, value, to.extents.rank(), compiled_.target);
    BoundNest result;
    add_operand(result, from.origin, ElementType::i32, true);
    add_operand(result, to.origin, ElementType::i32, true);
    const std::vector<Dims> strides = {from.strides, to.strides};
    Status status = bind_codes(nest, nullptr, to.extents, strides, std::move(result));
    plan_.give_back(from.origin.offset);
    scratch_.erase(value);
    return status;
  }

  static bool is_identity(const Dims& axes) {
    for (int axis = 0; axis < axes.rank(); ++axis) {
      if (axes[axis] != axis) return false;
    }
    return true;
  }

  Place output_place(const jit::NestOutput& output, ElementType element, const Dims& extents) {
    if (output.is_scratch()) return in_scratch(output.value, element, extents);
    return {{.kind = OperandOrigin::Kind::output, .index = output.result},
            extents,
            bound_.outputs[output.result].strides};
  }

  /// Picks the code for one nest and fills its argument blocks as far as binding can.
  Status bind_codes(const jit::Nest& nest, const LikelyCode* likely, const Dims& extents,
                    std::span<const Dims> strides, BoundNest result) {
    result.space = jit::nest_space(nest, extents, strides, compiled_.target);
    const jit::IterationSpace& space = result.space;
    result.sub_byte = nest.has_sub_byte_operand();
    result.first_output = nest.inputs.size();
    result.first_base = jit::ArgumentLayout(nest.operands(), space.form.rank).base(0);
    result.bytes = bytes_of(nest, extents, strides);
    if (const auto tiles = jit::plan_tiles(nest, space)) {
      return bind_tiles(nest, likely, *tiles, std::move(result));
    }
    plan_periods(nest, space, result);
    if (Status status = bind_code(nest, likely, space, result, result.main); !status) return status;
    if (Status status = bind_streaming(nest, space, result); !status) return status;
    if (Status status = bind_any_start(nest, space, result); !status) return status;
    for (const PeriodCopy& copy : result.periods) plan_.give_back(copy.offset);
    bound_.nests.push_back(std::move(result));
    return {};
  }

  /// The same where the nest is walked in tiles: code for one, and for the copies.
  Status bind_tiles(const jit::Nest& nest, const LikelyCode* likely, const jit::Tiles& tiles,
                    BoundNest result) {
    const jit::IterationSpace space = std::move(result.space);
    Result<TiledWalk> walk = bind_tiled_walk(nest, space, tiles, compiled_.store->cache, plan_);
    if (!walk.ok()) return walk.error();
    for (const BoundTileCopy& copy : walk->copies) plan_.give_back(copy.offset);
    result.space = tiles.space;
    result.first_base = jit::ArgumentLayout(nest.operands(), tiles.space.form.rank).base(0);
    if (Status status = bind_code(nest, likely, tiles.space, result, result.main); !status) {
      return status;
    }
    if (tiles_align(nest, space, tiles)) {
      if (Status status = bind_streaming(nest, tiles.space, result); !status) return status;
    }
    result.tiles = std::move(walk).value();
    bound_.nests.push_back(std::move(result));
    return {};
  }

  /// Whether every tile's outputs are as far from the alignment as the tensors'.
  static bool tiles_align(const jit::Nest& nest, const jit::IterationSpace& space,
                          const jit::Tiles& tiles) {
    const bool writes_copies = std::ranges::any_of(
        tiles.copies,
        [&](const jit::CopiedOperand& copy) { return copy.operand >= nest.inputs.size(); });
    const bool whole_lines = tiles.columns % jit::streaming_alignment == 0;
    const bool columns_align = whole_lines || tiles.columns == space.extents[0];
    return !writes_copies && columns_align && rows_align(nest, space, false);
  }

  /// Bytes that the operands have, each element counted once.
  static int64_t bytes_of(const jit::Nest& nest, const Dims& extents,
                          std::span<const Dims> strides) {
    int64_t bytes = 0;
    for (size_t k = 0; k < nest.operands(); ++k) {
      Dims own;
      for (int axis = 0; axis < extents.rank(); ++axis) {
        if (strides[k][axis] != 0) own.push_back(extents[axis]);
      }
      const std::optional<int64_t> count = element_count(own);
      const std::optional<int64_t> more = count ? byte_size(nest.element(k), *count) : std::nullopt;
      if (!more || __builtin_add_overflow(bytes, *more, &bytes)) return INT64_MAX;
    }
    return bytes;
  }

  /// Places for the copies of periods.
  void plan_periods(const jit::Nest& nest, const jit::IterationSpace& space, BoundNest& result) {
    if (!space.form.has_periods()) return;
    const jit::ChunkPlan chunks = jit::plan_chunks(nest, space.form, compiled_.target);
    const int64_t length = space.period + int64_t{chunks.lanes} * std::max(chunks.chunks, 1);
    for (size_t k = 0; k < nest.inputs.size(); ++k) {
      if (space.form.access[k] != jit::Access::periodic) continue;
      PeriodCopy copy;
      copy.operand = k;
      copy.element = nest.element(k);
      copy.length = length;
      copy.extents = space.period_extents;
      copy.strides = Dims(std::span(space.period_strides[k])
                              .first(static_cast<size_t>(space.period_extents.rank())));
      const int bytes = jit::lane_bits_of(copy.element) / 8;
      copy.offset = plan_.take(static_cast<size_t>(length * bytes));
      result.periods.push_back(copy);
    }
    if (space.form.has(jit::Access::repeated)) result.period_numbers = period_numbers(space.period);
  }

  /// The code of a nest in a form, with its argument block.
  Status bind_code(const jit::Nest& nest, const LikelyCode* likely,
                   const jit::IterationSpace& space, const BoundNest& result, BoundCode& code) {
    if (Status status = find_code(compiled_, nest, likely, space.form, code.code); !status) {
      return status;
    }
    code.arguments = jit::pack_arguments(nest.storage(), space);
    code.access = space.form.access;
    const jit::ArgumentLayout layout(nest.operands(), space.form.rank);
    code.arguments[layout.period_numbers()] =
        static_cast<int64_t>(reinterpret_cast<uintptr_t>(result.period_numbers.data()));
    return {};
  }

  bool can_stream(const jit::Nest& nest, const jit::IterationSpace& space,
                  const BoundNest& result) const {
    if (result.bytes < least_streaming_bytes || !jit::has_whole_chunks(space.form)) return false;
    const bool is_dense = space.form == jit::NestForm::dense(nest.operands());
    const bool by_table = jit::plan_chunks(nest, space.form, compiled_.target).table_operand >= 0;
    if (nest.has_sub_byte_operand() && !is_dense && !by_table) return false;
    return rows_align(nest, space, by_table) &&
           std::ranges::any_of(nest.program.sinks, [&](const jit::LanePort& sink) {
             return jit::has_streaming_stores(compiled_.target, sink.element);
           });
  }

  /// Whether rows are long (a table needs no long ones), and their outputs all equally far from the
  /// alignment.
  static bool rows_align(const jit::Nest& nest, const jit::IterationSpace& space, bool by_table) {
    if (space.form.rank == 1) return true;
    for (size_t k = nest.inputs.size(); k < nest.operands(); ++k) {
      const int64_t bytes = bits_of(nest.element(k)) / 8;
      if (!by_table && space.extents[0] * bytes < least_streaming_row_bytes) return false;
      const bool all_alike = by_table || nest.outputs.size() > 1;
      for (int axis = 1; axis < space.form.rank && all_alike; ++axis) {
        const int64_t step = space.strides[k][static_cast<size_t>(axis)] * bytes;
        if (step % jit::streaming_alignment != 0) return false;
      }
    }
    return true;
  }

  /// Code with streaming stores, where the tensors are large enough to profit.
  Status bind_streaming(const jit::Nest& nest, const jit::IterationSpace& space,
                        BoundNest& result) const {
    if (!can_stream(nest, space, result)) return {};
    jit::NestForm form = space.form;
    form.stores = jit::Stores::streaming;
    form.baked_period = 0;  // after the elements in front of the alignment a period may be anywhere
    return find_code(compiled_, nest, nullptr, form, result.streaming);
  }

  /// Code for sub-byte operands that begin at any element, where the main code cannot take them.
  Status bind_any_start(const jit::Nest& nest, jit::IterationSpace space, BoundNest& result) {
    const jit::NestForm form = jit::bitwise_form(space.form, nest.storage());
    if (form == space.form) return {};
    space.form = form;
    return bind_code(nest, nullptr, space, result, result.any_start);
  }

  BoundState& bound_;
  const Compiled& compiled_;
  const Function& function_;
  const std::vector<ValueId> roots_;
  const BoundShapes shapes_;
  std::map<ValueId, const Operation*> constants_;
  std::map<ValueId, int> reads_left_;  // by the value that a chain of reshapes begins with
  std::map<ValueId, size_t> scratch_;  // offsets of tensors
  ScratchPlan plan_;
};

}  // namespace

Status bind_nests(BoundState& bound, std::span<const Dims> input_shapes) {
  const Compiled& compiled = *bound.kernel->compiled;
  if (!compiled.interpreted_because.empty()) return {};
  Result<BoundShapes> shapes = bind_shapes(*compiled.canonical, input_shapes);
  if (!shapes.ok()) return shapes.error();
  return NestBinder(bound, std::move(shapes).value()).run();
}

}  // namespace castor::detail
