// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/generate_directed.hpp"

#include "ir/op.hpp"
#include "tools/fuzz/generate.hpp"
#include "tools/fuzz/generate_operations.hpp"
#include "tools/fuzz/generate_requantize.hpp"
#include "tools/fuzz/planned_lanes.hpp"
#include "tools/fuzz/program_maker.hpp"

namespace castor::fuzz {

namespace {

constexpr ElementType unsigned_of(int bits) {
  return bits == 8    ? ElementType::u8
         : bits == 16 ? ElementType::u16
         : bits == 32 ? ElementType::u32
                      : ElementType::u64;
}

/// A start inside a byte.
int64_t draw_unaligned_offset(Random& random, ElementType type) {
  const int64_t whole = aligned_elements(type);
  return whole * random.between(0, 2) + random.between(1, whole - 1);
}

/// Makes the program that hits one cell. What the cell does not ask for is drawn as ever.
class DirectedProgram : ProgramMaker {
 public:
  explicit DirectedProgram(Random& random) : ProgramMaker(random) {}

  Program make(const Cell& cell) {
    switch (cell.group) {
      case CellGroup::conversions: make_conversion(conversion_cells()[cell.number]); break;
      case CellGroup::layouts: make_layout(layout_cell(cell.number)); break;
      case CellGroup::operations: make_operation(static_cast<OpKind>(cell.number)); break;
      case CellGroup::operation_types:
        make_operation_type(operation_type_cells()[cell.number]);
        break;
      case CellGroup::modes: make_mode(mode_cells()[cell.number]); break;
      case CellGroup::access: make_access(access_cell(cell.number)); break;
      case CellGroup::periods: make_periods(period_cell(cell.number)); break;
      case CellGroup::nests: make_nests(static_cast<NestCell>(cell.number)); break;
      case CellGroup::lanes: make_lanes(cell.number); break;
      case CellGroup::ranks: make_rank(static_cast<int>(cell.number)); break;
      case CellGroup::loops: make_loops(static_cast<int>(cell.number) + 1); break;
      case CellGroup::tails: make_tail(tail_cells()[cell.number]); break;
      case CellGroup::alignments: make_alignment(alignment_cell(cell.number)); break;
      case CellGroup::calls: return generate_call(random_, static_cast<CallCell>(cell.number));
      case CellGroup::epilogues: make_epilogue(epilogue_cell(cell.number)); break;
      case CellGroup::requantizations: {
        const RequantizeCell formats = requantize_cell(cell.number);
        make_requantization(draw_requantization_like(random_, &formats, nullptr));
        break;
      }
      case CellGroup::slices: {
        const SliceCell slices = slice_cell(cell.number);
        make_requantization(draw_requantization_like(random_, nullptr, &slices));
        break;
      }
    }
    draw_data(random_, program_, 20);
    return std::move(program_);
  }

 private:
  void make_conversion(const ConversionCell& cell) {
    convert_once(cell.from, cell.to, cell.options, {random_.between(1, 600)});
    place(random_.percent(50) ? StrideKind::dense : StrideKind::any);
  }

  void make_layout(const LayoutCell& cell) {
    const ElementType other = draw_element(random_);
    const ElementType from = cell.as_destination ? other : cell.layout;
    const ElementType to = cell.as_destination ? cell.layout : other;
    make_conversion({from, to, draw_options(random_, from, to)});
  }

  /// A conversion whose plan has such lanes on one of the tiers that have any.
  void make_lanes(size_t number) {
    std::vector<ConversionCell> reaching;
    for (const jit::TierInfo& row : jit::tier_table()) {
      const auto& conversion = reaching_conversions(row.tier)[number];
      if (conversion) reaching.push_back(*conversion);
    }
    if (reaching.empty()) return make_rank(1);
    const ConversionCell& reached = random_.pick(reaching);
    const Dims shape = {random_.between(1, 600)};
    convert_once(reached.from, reached.to, reached.options, shape);
    place(StrideKind::dense);
    for (Placement* place : {&program_.inputs[0].place, &program_.results[0].place}) {
      place->offset = 0;
    }
  }

  /// What a drawer has put into the program, with one result at least.
  void finish(OperationDrawer& drawer, StrideKind strides = StrideKind::any) {
    if (random_.percent(30)) drawer.draw_many(1 + random_.below(3));
    if (program_.inputs.empty()) drawer.add_input(draw_element(random_));
    if (program_.operations.empty()) drawer.draw(OpKind::convert);
    drawer.draw_results();
    place(random_.percent(50) ? StrideKind::dense : strides);
  }

  void make_operation(OpKind op) {
    make_operation_type({op, draw_element(random_, info(op).types)});
  }

  void make_operation_type(const OperationTypeCell& cell) {
    OperationDrawer drawer(random_, program_);
    drawer.draw_on(cell.op, cell.type);
    finish(drawer);
  }

  /// A program with an op that the cell stands for.
  void make_mode(const ModeCell& cell) {
    OperationDrawer drawer(random_, program_);
    OpKind op = cell.op;
    while (op == OpKind::add && random_.percent(50)) {
      op = static_cast<OpKind>(random_.below(op_count));
      const bool broadcasts = info(op).family == OpFamily::elementwise;
      if (!broadcasts || info(op).operands != 2 || info(op).results != 1) op = OpKind::add;
    }
    drawer.draw_mode(op, cell.mode);
    finish(drawer);
  }

  void make_nests(NestCell cell) {
    switch (cell) {
      case NestCell::transposed_tiles:
      case NestCell::strided_tiles:
      case NestCell::several_tiles: return make_tiles(cell);
      case NestCell::packed_tiles: return make_packed_tiles();
      case NestCell::row_table: return make_code_table(1, 8 * random_.between(9, 20));
      case NestCell::block_table: return make_code_table(9, 32);
      case NestCell::scaled_rows: return make_scaled_codes(1, random_.between(60, 300));
      case NestCell::scaled_blocks: return make_scaled_codes(16, 32);
      case NestCell::encoded_blocks: return make_encoded_blocks();
      case NestCell::divided_blocks: return make_divided_blocks();
      case NestCell::baked_period: return make_periods({true, 3});
      case NestCell::bound_bytes:
      case NestCell::called_bytes:
      case NestCell::bound_slices:
      case NestCell::called_slices: return make_slices(cell);
      default: break;
    }
    OperationDrawer drawer(random_, program_);
    drawer.draw_inputs();
    drawer.draw_many(6 + random_.below(12));
    if (random_.percent(70)) drawer.draw(OpKind::reshape);
    finish(drawer);
    if (cell == NestCell::excess_precision) program_.excess_precision = true;
  }

  void make_epilogue(const EpilogueCell& cell) {
    OperationDrawer drawer(random_, program_);
    drawer.draw_epilogue(cell);
    if (program_.operations.empty()) drawer.draw(OpKind::convert);
    drawer.draw_results();
    place(cell.form == EpilogueForm::apart ? StrideKind::spread : StrideKind::dense);
  }

  void make_requantization(const DrawnRequantization& drawn, StrideKind strides = StrideKind::any) {
    OperationDrawer drawer(random_, program_);
    drawer.draw_requantization(drawn);
    drawer.draw_results();
    place(random_.percent(50) ? StrideKind::dense : strides);
  }

  /// Between bytes with long runs, or from f32.
  void make_slices(NestCell cell) {
    const bool by_tables = cell == NestCell::bound_bytes || cell == NestCell::called_bytes;
    const bool in_types = cell == NestCell::bound_bytes || cell == NestCell::bound_slices;
    RequantizeCell formats = requantize_cell(random_.below(requantize_cell_count));
    formats.to = QuantizedFormat::sa8;
    formats.from.reset();
    if (by_tables) formats.from = QuantizedFormat::sa8;
    DrawnRequantization drawn = draw_requantization_like(random_, &formats, nullptr);
    draw_given(random_, drawn, in_types ? GivenIn::types : GivenIn::operands);
    drawn.from.axis = drawn.to.axis = Quantization::per_tensor;
    if (by_tables) {
      drawn.shape = {random_.between(4096, 4600)};
    } else {
      drawn.shape = {random_.between(1, 9), random_.between(1, 100)};
      drawn.to.axis = static_cast<int>(random_.below(2));
    }
    make_requantization(drawn, StrideKind::dense);
  }

  size_t add(ElementType type, const Dims& shape) {
    InputSpec input;
    input.element = type;
    for (int64_t extent : shape) input.axes.push_back({AxisSpec::Kind::any, extent, 0});
    add_input(program_, std::move(input));
    return program_.inputs.size() - 1;
  }

  /// An operand or a result with its elements apart, or contiguous along the other axis.
  void make_tiles(NestCell cell) {
    const bool are_several = cell == NestCell::several_tiles;
    const ElementType type = draw_element_of(random_, are_several ? 8 : 1 << random_.below(4));
    const Dims shape = are_several ? Dims{random_.between(34, 44), random_.between(129, 150)}
                                   : Dims{random_.between(2, 40), random_.between(2, 40)};
    add(type, shape);
    add(type, random_.percent(70) ? shape : Dims{shape[0], 1});
    operate({.op = OpKind::equal, .operands = {0, 1}});
    add_result(operate({.op = OpKind::select, .operands = {2, 0, 1}}));
    place(StrideKind::dense);
    Placement& asked = random_.percent(60) ? program_.inputs[0].place : program_.results[0].place;
    const bool is_strided = cell == NestCell::strided_tiles || (are_several && random_.percent(50));
    asked.strides = is_strided ? Dims{2 * shape[1], 2} : Dims{1, shape[0]};
  }

  /// Elements narrower than a byte, in short rows with gaps.
  void make_packed_tiles() {
    const ElementType element = draw_element_of(random_, 0);
    const ElementType other = draw_element(random_);
    const bool of_output = random_.percent(50);
    const Dims shape = {random_.between(40, 80), random_.between(7, 31)};
    convert_once(of_output ? other : element, of_output ? element : other, {}, shape);
    place(StrideKind::dense);
    Placement& asked = of_output ? program_.results[0].place : program_.inputs[0].place;
    asked.strides = {shape[1] + random_.between(1, 9), 1};
    asked.offset = random_.below(9);
  }

  /// Small codes in at least `min_rows` rows, and for each row a scale and a zero point.
  void make_code_table(int64_t min_rows, int64_t columns) {
    constexpr std::array codes = {ElementType::u1,  ElementType::u2,          ElementType::u4,
                                  ElementType::i2,  ElementType::i4,          ElementType::f4e2m1,
                                  ElementType::nf4, ElementType::u2_msb_first};
    constexpr std::array results = {ElementType::f16, ElementType::bf16, ElementType::f32,
                                    ElementType::i16, ElementType::u32};
    constexpr std::array ops = {OpKind::add, OpKind::sub, OpKind::mul, OpKind::min, OpKind::div};
    const ElementType to = random_.pick(results);
    const int64_t rows = min_rows + random_.between(0, 8);
    add(random_.pick(codes), {rows, columns});
    add(to, {rows, 1});
    add(to, {rows, 1});
    size_t value = operate(conversion(0, to));
    for (size_t operand : {size_t{1}, size_t{2}}) {
      value = operate({.op = random_.pick(ops), .operands = {value, operand}});
    }
    add_result(value);
    place(StrideKind::dense);
    program_.inputs[0].place.offset = random_.percent(70) ? 0 : program_.inputs[0].place.offset;
  }

  /// Small floats times scales, as emit/scaled_codes.hpp has them.
  void make_scaled_codes(int64_t min_rows, int64_t columns) {
    constexpr std::array codes = {ElementType::f8e4m3, ElementType::f8e5m2};
    const int64_t rows = min_rows + random_.between(0, 40);
    add(random_.pick(codes), {rows, columns});
    add(random_.percent(50) ? ElementType::f32 : ElementType::f8e8m0, {rows, 1});
    const size_t wide = operate(conversion(0, ElementType::f32));
    const size_t scale = operate(conversion(1, ElementType::f32));
    const size_t product = operate({.op = OpKind::mul, .operands = {wide, scale}});
    add_result(operate(conversion(product, ElementType::bf16)));
    place(StrideKind::dense);
  }

  /// bf16 times powers of two, as emit/power_codes.hpp has them.
  void make_encoded_blocks() {
    constexpr std::array types = {ElementType::f8e4m3, ElementType::f8e5m2, ElementType::f4e2m1};
    const BroadcastRule rule{.mode = BroadcastMode::blocked, .axes = {0}, .block = {32}};
    const int64_t blocks = 16 + random_.between(0, 40);
    add(ElementType::bf16, {blocks * rule.block[0]});
    add(ElementType::f8e8m0, {blocks});
    const size_t wide = operate(conversion(0, ElementType::f32));
    const size_t scale = operate(conversion(1, ElementType::f32));
    const size_t product = operate({.op = OpKind::mul,
                                    .operands = {wide, scale},
                                    .attributes = attributes_of(OpKind::mul, rule)});
    constexpr std::array overflows = {Overflow::saturate, Overflow::saturate,
                                      Overflow::saturate_finite};
    add_result(
        operate(conversion(product, random_.pick(types), {.overflow = random_.pick(overflows)})));
    place(StrideKind::dense);
  }

  /// bf16 over divisors, as emit/quotient_codes.hpp has them.
  void make_divided_blocks() {
    const BroadcastRule rule{.mode = BroadcastMode::blocked, .axes = {0}, .block = {16}};
    const int64_t blocks = 16 + random_.between(0, 40);
    add(ElementType::bf16, {blocks * rule.block[0]});
    add(ElementType::f32, {blocks});
    const size_t wide = operate(conversion(0, ElementType::f32));
    const size_t quotient = operate(
        {.op = OpKind::div, .operands = {wide, 1}, .attributes = attributes_of(OpKind::div, rule)});
    add_result(
        operate(conversion(quotient, ElementType::f4e2m1, {.overflow = Overflow::saturate})));
    place(StrideKind::dense);
  }

  void make_access(const AccessCell& cell) {
    const jit::Access access = cell.access;
    const bool is_plain = access == jit::Access::contiguous || access == jit::Access::bitwise;
    const bool is_table = access == jit::Access::table || access == jit::Access::tables;
    is_table ? make_table(cell) : is_plain ? make_strides(cell) : make_repeats(cell);
  }

  /// Codes along whose innermost axis there is one table, or each index has one.
  void make_table(const AccessCell& cell) {
    const ElementType codes = draw_element(random_, OperandClass::code);
    const ElementType element = draw_element_of(random_, cell.element_bytes);
    const int64_t columns = random_.between(2, 12);
    const bool is_each = cell.access == jit::Access::tables;
    const int64_t entries = int64_t{1} << bits_of(codes);
    add(codes, {random_.between(1, 9), columns});
    add(element, is_each ? Dims{columns, entries} : Dims{entries});
    OperationSpec operation{.op = OpKind::look_up, .operands = {0, 1}};
    if (is_each) operation.attributes.push_back({"axis", {int64_t{1}}});
    add_result(operate(std::move(operation)));
    place(StrideKind::dense);
  }

  void make_strides(const AccessCell& cell) {
    const ElementType element = draw_element_of(random_, cell.element_bytes);
    const ElementType other = draw_element(random_);
    convert_once(cell.of_output ? other : element, cell.of_output ? element : other, {},
                 {random_.between(2, 300)});
    place(StrideKind::dense);
    Placement& asked = cell.of_output ? program_.results[0].place : program_.inputs[0].place;
    const int64_t whole = aligned_elements(element);
    const bool is_dense = cell.access == jit::Access::contiguous;
    const bool begins_inside =
        cell.access == jit::Access::bitwise && whole > 1 && random_.percent(50);
    asked.strides = {is_dense || begins_inside ? 1 : random_.between(2, 5)};
    asked.offset =
        begins_inside ? draw_unaligned_offset(random_, element) : asked.offset / whole * whole;
  }

  void make_repeats(const AccessCell& cell) {
    const int64_t columns = random_.percent(70) ? random_.between(2, 8) : random_.between(2, 70);
    const ElementType element = draw_element_of(random_, cell.element_bytes);
    make_rows(element, columns, cell.access == jit::Access::periodic);
  }

  void make_periods(const PeriodCell& cell) {
    const int64_t columns = cell.length != 0 ? cell.length : random_.between(9, 40);
    make_rows(draw_element(random_, OperandClass::numeric), columns, !cell.repeated);
  }

  /// Many rows, and an operand that is a row or a column.
  void make_rows(ElementType element, int64_t columns, bool with_row) {
    const int64_t max = std::max<int64_t>(max_elements / columns, 128 / columns + 8);
    const int64_t rows = random_.between(128 / columns + 8, max);
    add(element, {rows, columns});
    add(element, with_row ? Dims{columns} : Dims{rows, 1});
    constexpr std::array ops = {OpKind::less, OpKind::max, OpKind::sub, OpKind::bitwise_xor};
    const OpKind op = random_.pick(ops);
    const OpKind valid = admits(info(op).types, element) ? op : OpKind::equal;
    add_result(operate({.op = valid, .operands = {0, 1}}));
    place(StrideKind::dense);
  }

  void make_rank(int rank) {
    convert_once(draw_shape(random_, rank, random_.between(1, 300)));
    place(StrideKind::any);
  }

  void make_loops(int loops) {
    Dims shape;
    for (int axis = 0; axis < loops; ++axis) shape.push_back(random_.between(2, 3));
    convert_once(shape);
    place(StrideKind::spread);
  }

  /// A copy, whose lanes are as wide as its elements; chunks depend on the tier, so that this may
  /// take several draws.
  void make_tail(const TailCell& cell) {
    int bits = (random_.percent(50) ? 512 : 256) / cell.lanes;
    if (bits < 8 || bits > 64) bits = bits < 8 ? 8 : 64;
    const int64_t chunks = random_.between(cell.remainder == 0 ? 1 : 0, 5);
    convert_once(unsigned_of(bits), unsigned_of(bits), {}, {cell.remainder + chunks * cell.lanes});
    place(StrideKind::dense);
  }

  void make_alignment(const AlignmentCell& cell) {
    convert_once({random_.between(1, 300)});
    place(StrideKind::dense);
    Placement& asked = cell.of_output ? program_.results[0].place : program_.inputs[0].place;
    asked.at_end = false;
    asked.hides_front = false;
    asked.shift = cell.misalignment;
    asked.offset = 0;
  }
};

}  // namespace

Program generate_for(Random& random, const Cell& cell) {
  return DirectedProgram(random).make(cell);
}

}  // namespace castor::fuzz
