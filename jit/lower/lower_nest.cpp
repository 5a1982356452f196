// SPDX-License-Identifier: Apache-2.0
#include "jit/lower/lower_nest.hpp"

#include <algorithm>
#include <deque>
#include <forward_list>
#include <unordered_map>

#include "ir/shape/broadcast.hpp"
#include "ir/shape/look_up.hpp"
#include "ir/shape/pooling.hpp"
#include "ir/shape/reduction.hpp"
#include "ir/support/integer_math.hpp"
#include "ir/types/convert_options.hpp"
#include "ir/types/excess_precision.hpp"
#include "jit/lane/optimize.hpp"
#include "jit/lower/bounded_quotients.hpp"
#include "jit/lower/convert.hpp"
#include "jit/lower/elementwise.hpp"
#include "jit/lower/look_up.hpp"
#include "jit/lower/nibble_table.hpp"
#include "jit/lower/reduction.hpp"
#include "jit/lower/scaled_products.hpp"
#include "jit/lower/scaled_sums.hpp"
#include "jit/lower/small_values.hpp"

namespace castor::jit {

namespace {

/// A value, and for each of its axes the axis of the nest's iteration space, or -1, and how many
/// consecutive elements along that read one of its elements.
struct Placed {
  ValueId value;
  Dims axes;
  Dims blocks;
};

Dims each_along_itself(int rank) {
  Dims axes;
  for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

/// Lowers on demand, from the outputs back to values in memory. A value that is needed with
/// two access patterns, broadcast in different ways, is lowered for each.
class NestLowering {
 public:
  NestLowering(const FunctionFacts& facts, std::span<const NestOutput> outputs,
               const Target& target, Nest& nest)
      : facts_(facts),
        outputs_(outputs),
        function_(facts.function),
        nest_(nest),
        builder_(target, nest.program) {}

  void add_output(const NestOutput& output) {
    const Placed value = in_space(output.value);
    lower_up_to(value);
    const ElementType element = output.is_scratch() ? facts_.stored_element(output.value)
                                                    : function_.type_of(output.value).element;
    LaneTensor lanes = as_element(*find(value), element);
    const int sink = static_cast<int>(nest_.outputs.size());
    nest_.outputs.push_back(output);
    nest_.program.sinks.push_back({element});
    const Storable storable = lanes.as_storable();
    if (storable.narrowing == Narrowing::magnitude_code) {
      builder_.store_with_signs(sink, storable.lanes, storable.signs, storable.narrowing);
    } else if (encodes(storable.narrowing)) {
      builder_.store_encoded(sink, storable.lanes, storable.narrowing, storable.table);
    } else {
      builder_.store(sink, storable.lanes, storable.narrowing);
    }
  }

  /// Folds the operand of a reduction into its accumulators.
  void add_reduction(const Operation& operation) {
    const ValueId operand = operation.operands[0];
    const Placed placed = in_space(operand);
    lower_up_to(placed);
    builder_.set_origin(index_of(operation));
    LaneTensor lanes = as_element(*find(placed), function_.type_of(operand).element);
    const Reduction reduction(operation, function_.type_of(operand), builder_.target());
    const std::vector<Accumulator> accumulators = accumulators_of(reduction);
    const std::vector<LaneId> folded =
        lower_folded(builder_, reduction, lanes, facts_.signs(operand));
    for (size_t i = 0; i < accumulators.size(); ++i) {
      const int sink = static_cast<int>(nest_.program.sinks.size());
      nest_.program.sinks.push_back(
          {.element = accumulators[i].element, .fold = accumulators[i].fold});
      builder_.store(sink, folded[i], Narrowing::truncate);
    }
  }

  /// The whole nest as one table of wider elements, where that is the fastest way.
  bool lower_as_table(const NestOutput& output) {
    const Operation* operation = facts_.defining[output.value];
    if (is_in_memory(output.value) || operation->op != OpKind::convert) return false;
    const ValueId operand = operation->operands[0];
    if (!is_in_memory(operand) || facts_.immediate(operand)) return false;
    const ElementType from = function_.type_of(operand).element;
    if (facts_.stored_element(facts_.roots[operand]) != from) return false;  // it is stored wider
    const ElementType to = function_.type_of(output.value).element;
    const bool by_instruction = is_whole(from) && to == ElementType::f16;
    if (by_instruction && builder_.has_f16_lanes()) return false;
    const std::optional<StoreTable> table =
        store_table(from, to, canonical_options(from, to, convert_options(*operation)),
                    !builder_.looks_up_by_nibbles());
    if (!table || !is_fastest_as_table(*table, from)) return false;
    builder_.set_origin(index_of(*operation));
    LaneTensor bytes = source(in_space(operand));
    nest_.outputs.push_back(output);
    nest_.program.sinks.push_back({to});
    builder_.store_by_table(0, bytes.as_bits(), table->entries, table->look_up);
    return true;
  }

 private:
  struct Entry {
    Dims axes;
    Dims blocks;
    LaneTensor lanes;
  };

  /// Whether this nest reads the value from memory: not what it leaves there itself.
  bool is_in_memory(ValueId value) const {
    return facts_.in_memory[value] && std::ranges::none_of(outputs_, [&](const NestOutput& output) {
             return output.value == value && (output.is_scratch() || facts_.is_left(output));
           });
  }

  int rank_of(ValueId value) const {
    return static_cast<int>(function_.type_of(value).shape.size());
  }

  Placed in_space(ValueId value) const {
    return {value, each_along_itself(rank_of(value)), Dims::filled(rank_of(value), 1)};
  }

  /// AVX2 looks up wider elements by the halves of their codes. f8e5m2 is the upper half of an f16,
  /// for which there is an instruction.
  bool is_fastest_as_table(const StoreTable& table, ElementType from) const {
    if (builder_.has_look_up(table.entries.index_bits)) return true;
    if (table.look_up == Narrowing::look_up_i16) return false;
    const bool by_instruction =
        from == ElementType::f8e5m2 && table.look_up == Narrowing::look_up_upper_16;
    return builder_.looks_up_by_nibbles() && !by_instruction &&
           nibble_table(table.entries).has_value();
  }

  LaneTensor* find(const Placed& placed) {
    const auto found = lowered_.find(placed.value);
    if (found == lowered_.end()) return nullptr;
    for (Entry& entry : found->second) {
      if (entry.axes == placed.axes && entry.blocks == placed.blocks) return &entry.lanes;
    }
    return nullptr;
  }

  LaneTensor* keep(const Placed& placed, LaneTensor lanes) {
    return &lowered_[placed.value]
                .emplace_front(Entry{placed.axes, placed.blocks, std::move(lanes)})
                .lanes;
  }

  /// Where the operand is if the operation's result is there. Blocks of blocks are longer blocks.
  Placed operand_of(const Operation& operation, size_t index, const Placed& result) const {
    const ValueId operand = operation.operands[index];
    const Dims along = axes_along_result(operation, index, rank_of(operand), result.axes.rank());
    Dims axes;
    Dims blocks = blocks_along_result(operation, index, rank_of(operand), result.axes.rank());
    for (int i = 0; i < along.rank(); ++i) {
      const auto axis = static_cast<int>(along[i]);
      axes.push_back(axis < 0 ? -1 : result.axes[axis]);
      if (axis >= 0) blocks[i] = saturated_product(blocks[i], result.blocks[axis]);
    }
    return {operand, axes, blocks};
  }

  /// Lowers the cone that ends in `value`, its beginning first.
  void lower_up_to(const Placed& value) {
    std::vector<Placed> pending = {value};
    while (!pending.empty()) {
      const Placed next = pending.back();
      if (find(next) != nullptr) {
        pending.pop_back();
      } else if (is_in_memory(next.value)) {
        keep(next, read(next));
      } else if (facts_.owners[next.value] != no_value) {
        keep(next, read_reduced(next));
      } else if (!push_operands(next, pending)) {
        keep(next, lower(*facts_.defining[next.value], next));
      }
    }
  }

  /// Whether operands are missing; these are pending then, the first on top.
  bool push_operands(const Placed& result, std::vector<Placed>& pending) {
    const Operation& operation = *facts_.defining[result.value];
    const size_t before = pending.size();
    if (operation.op == OpKind::max_pool) return false;  // it is read tap by tap
    for (size_t i = operation.operands.size(); i-- > 0;) {
      if (is_table(operation, i)) continue;
      Placed operand = operand_of(operation, i, result);
      if (find(operand) == nullptr) pending.push_back(std::move(operand));
    }
    return pending.size() > before;
  }

  LaneTensor read(const Placed& placed) {
    const std::optional<uint64_t> bits = facts_.immediate(placed.value);
    if (bits) return immediate(function_.type_of(placed.value).element, *bits);
    LaneTensor loaded = source(placed);
    return as_element(loaded, facts_.stored_element(placed.value));
  }

  LaneTensor source(const Placed& placed) {
    // A reshape reads its operand as it is stored, which may be wider than its type.
    return source({placed.value, placed.axes, placed.blocks},
                  facts_.stored_element(facts_.roots[placed.value]));
  }

  LaneTensor source(NestInput input, ElementType element) {
    nest_.inputs.push_back(std::move(input));
    nest_.program.sources.push_back({element});
    return LaneTensor::from_source(builder_, element, static_cast<int>(nest_.inputs.size()) - 1);
  }

  /// The largest of all taps, each of which is a tensor that the nest reads.
  LaneTensor pooled(const Operation& operation, const Placed& result) {
    const ValueId operand = operation.operands[0];
    const PoolingTaps taps = pooling_taps(operation, rank_of(operand));
    const ElementType stored = facts_.stored_element(facts_.roots[operand]);
    std::vector<LaneTensor> elements;
    for (const Dims& begins : taps.begins) {
      NestInput input = {operand, result.axes, result.blocks};
      input.tap = {.result = result.value, .begins = begins, .steps = taps.steps};
      LaneTensor element = source(std::move(input), stored);
      elements.push_back(as_element(element, function_.type_of(operand).element));
    }
    return lower_largest(builder_, elements);
  }

  /// Completes a reduction, which has its elements in accumulators.
  LaneTensor read_reduced(const Placed& placed) {
    const Operation& operation = *facts_.defining[placed.value];
    const ValueId operand = operation.operands[0];
    const Reduction reduction(operation, function_.type_of(operand), builder_.target());
    std::vector<LaneTensor> accumulators;
    for (const Accumulator& each : accumulators_of(reduction)) {
      accumulators.push_back(
          source({placed.value, placed.axes, placed.blocks, static_cast<int>(accumulators.size())},
                 each.element));
    }
    builder_.set_origin(index_of(operation));
    return lower_reduced(builder_, reduction, facts_.signs(operand),
                         function_.type_of(placed.value).element, accumulators);
  }

  uint32_t index_of(const Operation& operation) const {
    return static_cast<uint32_t>(&operation - function_.operations.data());
  }

  LaneTensor immediate(ElementType element, uint64_t bits) {
    const LaneId lanes = builder_.constant(integer_lane(lane_bits_of(element)), bits);
    return LaneTensor::computed(builder_, element, {.lanes = lanes});
  }

  LaneTensor lower(const Operation& operation, const Placed& result) {
    builder_.set_origin(index_of(operation));
    if (operation.op == OpKind::max_pool) return pooled(operation, result);
    LaneTensor& first = *find(operand_of(operation, 0, result));
    const ElementType element = function_.type_of(result.value).element;
    if (operation.op == OpKind::convert) {
      if (is_whole(element) && is_float(first.element())) {
        first.holds_numbers_up_to(facts_.magnitude(operation.operands[0]));
      }
      return converted_to(first, operation, result.value);
    }
    if (operation.op == OpKind::look_up) return looked_up(operation, result, first);
    if (info(operation.op).family == OpFamily::movement) {
      return as_element(first, element);  // only its axes change
    }
    return computed(operation, result);
  }

  /// Whether a product that is converted to bf16 has nothing in its lower half: then NaNs, which
  /// come from types of few bits, have not either.
  bool is_exact_half(const LaneTensor& lanes, const Operation& conversion, ValueId result) const {
    const ValueId product = conversion.operands[0];
    const Operation* multiplies = facts_.defining[product];
    return function_.type_of(result).element == ElementType::bf16 &&
           lanes.element() == ElementType::f32 && convert_options(conversion) == ConvertOptions{} &&
           multiplies != nullptr && multiplies->op == OpKind::mul && !is_in_memory(product) &&
           facts_.significands.fits(product, ElementType::bf16);
  }

  /// Whether nothing in the lower half of an f32 counts, unless it is below bf16's normal numbers:
  /// so it is with products of bf16 and powers of two.
  bool is_short_product(const LaneTensor& lanes, ValueId product) const {
    const Operation* multiplies = facts_.defining[product];
    return lanes.element() == ElementType::f32 && multiplies != nullptr &&
           multiplies->op == OpKind::mul && !is_in_memory(product) &&
           facts_.significands.fits_normal(product, ElementType::bf16);
  }

  LaneTensor converted_to(LaneTensor& lanes, const Operation& conversion, ValueId result) {
    const ConvertOptions options = convert_options(conversion);
    if (const std::optional<SmallRange> range = facts_.rounded.range(result)) {
      if (auto ranged = convert_float_to_range(builder_, lanes, *range,
                                               facts_.rounded.slack(result), options.rounding)) {
        return *ranged;
      }
    }
    if (is_exact_half(lanes, conversion, result)) {
      return LaneTensor::computed(builder_, ElementType::bf16,
                                  {.lanes = lanes.as_f32(), .narrowing = Narrowing::high_half});
    }
    if (is_short_product(lanes, conversion.operands[0])) {
      const ElementType to = function_.type_of(result).element;
      const auto encoded = encode_high_half(builder_, lanes.as_f32(), to,
                                            canonical_options(ElementType::f32, to, options));
      if (encoded) return *encoded;
    }
    return converted(lanes, function_.type_of(result).element, options);
  }

  LaneTensor looked_up(const Operation& operation, const Placed& result, LaneTensor& codes) {
    const ValueId table = operation.operands[1];
    const ElementType element = function_.type_of(table).element;
    const Operation* definition = facts_.defining[table];
    if (definition != nullptr && definition->op == OpKind::constant && !look_up_axis(operation)) {
      auto entries = look_up_constant(builder_, codes, element, definition->data->bytes.data());
      if (entries) return *entries;
    }
    const int source = table_source(operand_of(operation, 1, result), bits_of(codes.element()));
    const ElementType stored = nest_.program.sources[static_cast<size_t>(source)].element;
    const LaneId entries = builder_.gather(source, codes.as_bits(), integer_lane(bits_of(stored)));
    LaneTensor lanes = LaneTensor::computed(builder_, stored, {.lanes = entries});
    return as_element(lanes, element);
  }

  /// The source of a table in memory: look-ups of the same one share it.
  int table_source(const Placed& table, int index_bits) {
    for (size_t k = 0; k < nest_.inputs.size(); ++k) {
      const NestInput& input = nest_.inputs[k];
      const bool is_same = input.value == table.value && input.axes == table.axes;
      if (is_same && nest_.is_table(k)) return static_cast<int>(k);
    }
    nest_.inputs.push_back({table.value, table.axes});
    nest_.program.sources.push_back({.element = facts_.stored_element(facts_.roots[table.value]),
                                     .index_bits = static_cast<uint8_t>(index_bits)});
    return static_cast<int>(nest_.inputs.size()) - 1;
  }

  /// 1 divided by a power of two that this nest widens from f8e8m0: 254 less the power's code is
  /// that of the reciprocal, and 255, which is NaN, modulo 256.
  std::optional<LaneTensor> reciprocal_of_power(const Operation& division, const Placed& result) {
    constexpr uint64_t one = 0x3f800000;
    const Placed divisor = operand_of(division, 1, result);
    const Operation* widens = facts_.defining[divisor.value];
    const bool is_widened = widens != nullptr && widens->op == OpKind::convert &&
                            !is_in_memory(divisor.value) &&
                            function_.type_of(divisor.value).element == ElementType::f32 &&
                            function_.type_of(widens->operands[0]).element == ElementType::f8e8m0;
    if (!is_widened || facts_.immediate(division.operands[0]) != one) return std::nullopt;
    LaneTensor& powers = *find(operand_of(*widens, 0, divisor));
    const LaneId codes = builder_.sub(builder_.constant(LaneType::i8, 254), powers.as_bits());
    LaneTensor reciprocals = LaneTensor::computed(builder_, ElementType::f8e8m0, {.lanes = codes});
    return converted(reciprocals, ElementType::f32, {});
  }

  /// The quotient of a sum of scaled integers as a multiply-add: see lower_scaled_sum.
  std::optional<LaneTensor> scaled_sum(const Operation& division, const Placed& result) {
    const std::optional<ScaledSumValues> found = find_scaled_sum(facts_, division);
    if (!found) return std::nullopt;
    const Placed sum = operand_of(division, 0, result);
    LaneId integers[2];
    for (size_t i = 0; i < 2; ++i) {
      const Placed product = operand_of(*found->addition, i, sum);
      LaneTensor* converted = find(operand_of(*found->multiplications[i], 0, product));
      if (converted == nullptr || converted->element() != ElementType::f32) return std::nullopt;
      integers[i] = converted->as_f32();
    }
    const std::optional<SumFactors> factors = sum_factors(found->sum);
    if (!factors) return std::nullopt;
    const LaneId lanes = lower_scaled_sum(builder_, integers[0], integers[1], *factors);
    LaneTensor quotient = LaneTensor::computed(builder_, ElementType::f32, {.lanes = lanes});
    quotient.holds_no_nan();
    return quotient;
  }

  LaneTensor computed(const Operation& operation, const Placed& result) {
    if (operation.op == OpKind::div) {
      if (auto reciprocal = reciprocal_of_power(operation, result)) return *reciprocal;
      if (auto sum = scaled_sum(operation, result)) return *sum;
    }
    const ValueId last = operation.operands.back();
    const ElementType own = function_.type_of(last).element;
    const bool wide = facts_.excess_precision && may_be_carried_wide(own);
    const ElementType type = wide ? ElementType::f32 : own;
    std::deque<LaneTensor> converted_operands;
    std::vector<LaneTensor*> operands;
    for (size_t i = 0; i < operation.operands.size(); ++i) {
      LaneTensor* operand = find(operand_of(operation, i, result));
      const bool condition = operation.op == OpKind::select && i == 0;
      if (!condition && operand->element() != type) {
        operand = &converted_operands.emplace_back(converted(*operand, type, {}));
      }
      operands.push_back(operand);
    }
    if (operation.op == OpKind::div && is_float(type) && facts_.rounded.is_small(result.value)) {
      return lower_small_quotient(builder_, operation, operands, type, facts_of(operation));
    }
    if (operation.op == OpKind::div && type == ElementType::f32 &&
        facts_.rounded.is_encoded(result.value)) {
      return lower_encoded_quotient(builder_, operation, operands);
    }
    if (operation.op == OpKind::mul && type == ElementType::f32 &&
        facts_.rounded.is_small(result.value) &&
        has_bounded_product(function_, facts_.defining, operation)) {
      return lower_bounded_product(builder_, operation, operands);
    }
    return lower_elementwise(builder_, operation, operands, type);
  }

  QuotientFacts facts_of(const Operation& division) const {
    return {.is_bounded = has_bounded_quotient(function_, facts_.defining, division),
            .is_short = facts_.significands.fits_normal(division.operands[0], ElementType::bf16)};
  }

  /// The lanes as that type, which they may be wider than under excess precision.
  LaneTensor as_element(LaneTensor& lanes, ElementType element) {
    return lanes.element() == element ? lanes : converted(lanes, element, {});
  }

  LaneTensor converted(LaneTensor& lanes, ElementType to, const ConvertOptions& options) {
    return lower_convert(builder_, lanes, to, canonical_options(lanes.element(), to, options));
  }

  const FunctionFacts& facts_;
  const std::span<const NestOutput> outputs_;
  const Function& function_;
  Nest& nest_;
  LaneBuilder builder_;
  /// By value, of this nest's alone: a function has many nests. Entries stay where they are.
  std::unordered_map<ValueId, std::forward_list<Entry>> lowered_;
};

}  // namespace

Nest lower_folds(const FunctionFacts& facts, std::span<const NestOutput> outputs,
                 const Target& target) {
  Nest nest;
  const Operation& first = *facts.defining[outputs.front().value];
  nest.space = first.operands[0];
  const auto rank = static_cast<int>(facts.function.type_of(nest.space).shape.size());
  nest.reduced = reduced_axes(first, rank);
  NestLowering lowering(facts, outputs, target, nest);
  for (const NestOutput& output : outputs) {
    nest.outputs.push_back(output);
    if (output.accumulator == 0) lowering.add_reduction(*facts.defining[output.value]);
  }
  optimize(nest.program, target);
  nest.program.code.shrink_to_fit();  // kernels keep it
  return nest;
}

Nest lower_nest(const FunctionFacts& facts, std::span<const NestOutput> outputs,
                const Target& target) {
  Nest nest;
  nest.space = outputs.front().value;
  NestLowering lowering(facts, outputs, target, nest);
  if (outputs.size() > 1 || !lowering.lower_as_table(outputs.front())) {
    for (const NestOutput& output : outputs) lowering.add_output(output);
    nest.program.scaled_codes = find_scaled_codes(facts, nest);
    nest.program.scaled_floats = find_scaled_floats(facts, nest);
    nest.program.divided_floats = find_divided_floats(facts, nest);
  }
  optimize(nest.program, target);
  nest.program.code.shrink_to_fit();  // kernels keep it
  return nest;
}

Nest nest_alone(const FunctionFacts& facts, const NestOutput& output) {
  const Operation& operation = *facts.defining[output.value];
  Nest nest;
  nest.space = output.value;
  const auto index = static_cast<uint32_t>(&operation - facts.function.operations.data());
  const bool convolves = info(operation.op).family == OpFamily::convolution;
  (convolves ? nest.convolution : nest.requantization) = index;
  for (ValueId operand : operation.operands) {
    if (operand == no_value) continue;
    const TensorType& type = facts.function.type_of(operand);
    nest.inputs.push_back({operand, each_along_itself(static_cast<int>(type.shape.size()))});
    nest.program.sources.push_back({type.element});
  }
  nest.outputs.push_back(output);
  nest.program.sinks.push_back({facts.function.type_of(output.value).element});
  return nest;
}

Nest copy_nest(ElementType element, ValueId value, int rank, const Target& target) {
  Nest nest;
  nest.space = value;
  nest.inputs.push_back({value, each_along_itself(rank)});
  nest.outputs.push_back({NestOutput::scratch, value});
  nest.program.sources.push_back({element});
  nest.program.sinks.push_back({element});
  LaneBuilder builder(target, nest.program);
  builder.store(0, LaneTensor::from_source(builder, element, 0).as_bits(), Narrowing::truncate);
  return nest;
}

}  // namespace castor::jit
