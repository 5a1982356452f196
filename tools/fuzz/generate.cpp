// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/generate.hpp"

#include "ir/op.hpp"
#include "tools/fuzz/generate_function.hpp"
#include "tools/fuzz/planned_lanes.hpp"

namespace castor::fuzz {

namespace {

constexpr int number_bits = 16;  // of a cell, behind the topmost bit
constexpr int random_bits = 63 - number_bits;

constexpr ElementType unsigned_of(int bits) {
  return bits == 8    ? ElementType::u8
         : bits == 16 ? ElementType::u16
         : bits == 32 ? ElementType::u32
                      : ElementType::u64;
}

/// `bytes` is 0 for elements narrower than a byte.
ElementType draw_element_of(Random& random, int bytes) {
  while (true) {
    const ElementType type = draw_element(random);
    if (bits_of(type) / 8 == bytes) return type;
  }
}

ElementType draw_stored_alike(Random& random, ElementType like) {
  while (true) {
    const ElementType type = draw_element(random);
    if (are_stored_alike(type, like)) return type;
  }
}

/// A start inside a byte.
int64_t draw_unaligned_offset(Random& random, ElementType type) {
  const int64_t whole = aligned_elements(type);
  return whole * random.between(0, 2) + random.between(1, whole - 1);
}

BadCall::Kind bad_call_of(CallCell call) {
  switch (call) {
    case CallCell::refused_shape: return BadCall::Kind::shape;
    case CallCell::refused_bytes: return BadCall::Kind::bytes;
    case CallCell::refused_overlap: return BadCall::Kind::overlap;
    case CallCell::refused_null: return BadCall::Kind::null;
    default: return BadCall::Kind::none;
  }
}

/// Makes the program that hits one cell. What the cell does not ask for is drawn as ever.
class DirectedProgram {
 public:
  explicit DirectedProgram(Random& random) : random_(random) {}

  Program make(const Cell& cell) {
    switch (cell.group) {
      case CellGroup::conversions: make_conversion(conversion_cells()[cell.number]); break;
      case CellGroup::layouts: make_layout(layout_cell(cell.number)); break;
      case CellGroup::operations: make_operation(static_cast<OpKind>(cell.number)); break;
      case CellGroup::access: make_access(access_cell(cell.number)); break;
      case CellGroup::lanes: make_lanes(cell.number); break;
      case CellGroup::ranks: make_rank(static_cast<int>(cell.number)); break;
      case CellGroup::loops: make_loops(static_cast<int>(cell.number) + 1); break;
      case CellGroup::tails: make_tail(tail_cells()[cell.number]); break;
      case CellGroup::alignments: make_alignment(alignment_cell(cell.number)); break;
      case CellGroup::calls: make_call(static_cast<CallCell>(cell.number)); break;
    }
    draw_data(random_, program_);
    return std::move(program_);
  }

 private:
  /// One input that is converted once.
  void convert_once(ElementType from, ElementType to, const ConvertOptions& options) {
    program_.inputs.resize(1);
    program_.inputs[0].element = from;
    program_.conversions = {{0, to, options}};
    program_.results.resize(1);
    program_.results[0].value = 1;
  }
  void convert_once() {
    const ElementType from = draw_element(random_);
    const ElementType to = draw_element(random_);
    convert_once(from, to, draw_options(random_, from, to));
  }

  void set_shape(const Dims& shape) {
    for (InputSpec& input : program_.inputs) {
      input.axes.clear();
      for (int64_t extent : shape) input.axes.push_back({AxisSpec::Kind::any, extent, 0});
    }
  }

  void place(Walk walk) { draw_placements(random_, program_, walk); }

  void make_conversion(const ConversionCell& cell) {
    convert_once(cell.from, cell.to, cell.options);
    set_shape({random_.between(1, 600)});
    place(random_.percent(50) ? Walk::dense : Walk::any);
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
    const ConversionCell& conversion = random_.pick(reaching);
    convert_once(conversion.from, conversion.to, conversion.options);
    set_shape({random_.between(1, 600)});
    place(Walk::dense);
    for (Placement* place : {&program_.inputs[0].place, &program_.results[0].place}) {
      place->offset = 0;
    }
  }

  void make_operation(OpKind op) {
    convert_once();
    if (op == OpKind::constant) {
      program_.constants = {{ElementType::i32, {2}, {1, 2}}};
      program_.conversions[0] = {1, ElementType::f32, {}};
      program_.results[0].value = 2;
    }
    set_shape({random_.between(1, 70)});
    place(Walk::any);
  }

  void make_access(const AccessCell& cell) {
    convert_once();
    const ElementType element = draw_element_of(random_, cell.element_bytes);
    if (cell.position == 0) program_.inputs[0].element = element;
    program_.conversions[0].options = {};
    const size_t results = std::max<size_t>(cell.position, 1);
    for (size_t i = 1; i < results; ++i) {
      program_.conversions.push_back({0, i + 1 == results ? element : draw_element(random_), {}});
      program_.results.emplace_back().value = i + 1;
    }
    if (cell.position == 1) program_.conversions[0].to = element;
    set_shape({random_.between(2, 300)});
    place(Walk::dense);
    Placement& asked =
        cell.position == 0 ? program_.inputs[0].place : program_.results[cell.position - 1].place;
    const int64_t whole = aligned_elements(element);
    asked.strides = {cell.walking == Walking::strided ? random_.between(2, 5) : 1};
    asked.offset = cell.walking == Walking::unaligned_start
                       ? draw_unaligned_offset(random_, element)
                       : asked.offset / whole * whole;
  }

  void make_rank(int rank) {
    convert_once();
    set_shape(draw_shape(random_, rank, random_.between(1, 300)));
    place(Walk::any);
  }

  void make_loops(int loops) {
    convert_once();
    Dims shape;
    for (int axis = 0; axis < loops; ++axis) shape.push_back(random_.between(2, 3));
    set_shape(shape);
    place(Walk::spread);
  }

  /// A copy, whose lanes are as wide as its elements; chunks depend on the tier, so that this may
  /// take several draws.
  void make_tail(const TailCell& cell) {
    int bits = (random_.percent(50) ? 512 : 256) / cell.lanes;
    if (bits < 8 || bits > 64) bits = bits < 8 ? 8 : 64;
    convert_once(unsigned_of(bits), unsigned_of(bits), {});
    const int64_t chunks = random_.between(cell.remainder == 0 ? 1 : 0, 5);
    set_shape({cell.remainder + chunks * cell.lanes});
    place(Walk::dense);
  }

  void make_alignment(const AlignmentCell& cell) {
    convert_once();
    set_shape({random_.between(1, 300)});
    place(Walk::dense);
    Placement& asked = cell.of_output ? program_.results[0].place : program_.inputs[0].place;
    asked.at_end = false;
    asked.hides_front = false;
    asked.shift = cell.misalignment;
    asked.offset = 0;
  }

  void make_call(CallCell call) {
    convert_once();
    set_shape({call == CallCell::no_elements ? 0 : random_.between(1, 300)});
    if (call == CallCell::in_place) {
      const ElementType from = program_.inputs[0].element;
      program_.conversions[0] = {0, draw_stored_alike(random_, from), {}};
      program_.results[0].in_place_of = 0;
    } else if (call == CallCell::repeated_function || call == CallCell::repeated_code) {
      convert_once(ElementType::u8, ElementType::f32, {});  // the same each time
      program_.inputs[0].axes = {{AxisSpec::Kind::any, 9, 0}};
      if (call == CallCell::repeated_code) program_.results[0].declares_unknowns = true;
    } else if (call == CallCell::streaming) {
      return make_stream();
    } else if (call == CallCell::interleaved_outputs) {
      interleave_two();
    }
    place(Walk::dense);
    draw_bad_call(random_, program_, bad_call_of(call));
    if (call == CallCell::refused_overlap) make_overlap();
  }

  /// The result on the input, whose elements are wider or narrower.
  void make_overlap() {
    while (are_stored_alike(program_.inputs[0].element, program_.conversions[0].to)) {
      program_.conversions[0].to = draw_element(random_);
    }
    program_.conversions[0].options = {};
    program_.bad_call = {BadCall::Kind::overlap, 1, 0};
  }

  /// One input, converted to two types that are stored alike.
  void interleave_two() {
    const ElementType second = draw_stored_alike(random_, program_.conversions[0].to);
    program_.conversions.push_back({0, second, {}});
    program_.results.emplace_back().value = 2;
    interleave(program_, 0, 1);
  }

  /// Tensors that are large, aligned and dense; the wide types, to have fewer elements.
  void make_stream() {
    const ElementType from = draw_element_of(random_, 8);
    const ElementType to = draw_element_of(random_, random_.percent(50) ? 8 : 4);
    convert_once(from, to, {});
    const int64_t bytes = bits_of(from) / 8 + bits_of(to) / 8;
    set_shape({most_streamed_bytes / bytes + random_.between(1, 500)});
    place(Walk::dense);
    program_.streams = true;
    for (Placement* place : {&program_.inputs[0].place, &program_.results[0].place}) {
      place->offset = 0;
      place->at_end = false;
      place->hides_front = false;
      place->shift = place->shift / 8 * 8;
    }
  }

  Random& random_;
  Program program_;
};

constexpr std::array bad_call_kinds = {BadCall::Kind::shape, BadCall::Kind::bytes,
                                       BadCall::Kind::overlap, BadCall::Kind::null};

Program generate_random(Random& random) {
  Program program;
  draw_function(random, program);
  draw_shapes(random, program);
  draw_in_place(random, program);
  draw_interleaving(random, program, 10);
  draw_placements(random, program, random.percent(5) ? Walk::spread : Walk::any);
  draw_data(random, program);
  if (random.percent(4)) draw_bad_call(random, program, random.pick(bad_call_kinds));
  return program;
}

}  // namespace

uint64_t program_seed(uint64_t run_seed, uint64_t index) {
  return index == 0 ? run_seed : mix(mix(run_seed) + index) >> 1;
}

uint64_t directed_seed(size_t cell_index, uint64_t seed) {
  const uint64_t drawn = mix(seed) >> (64 - random_bits);
  return uint64_t{1} << 63 | static_cast<uint64_t>(cell_index) << random_bits | drawn;
}

Program generate(uint64_t seed) {
  Random random(seed);
  const size_t cell = seed >> random_bits & ((size_t{1} << number_bits) - 1);
  const bool is_directed = seed >> 63 != 0 && cell < cell_count();
  Program program =
      is_directed ? DirectedProgram(random).make(cell_at(cell)) : generate_random(random);
  program.seed = seed;
  return program;
}

}  // namespace castor::fuzz
