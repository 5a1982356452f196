// SPDX-License-Identifier: Apache-2.0
// Drawing programs for one way to be called: in place, past the caches, refused.
#include "tools/fuzz/generate.hpp"
#include "tools/fuzz/generate_operations.hpp"
#include "tools/fuzz/program_maker.hpp"

namespace castor::fuzz {

namespace {

BadCall::Kind bad_call_of(CallCell call) {
  switch (call) {
    case CallCell::refused_shape: return BadCall::Kind::shape;
    case CallCell::refused_bytes: return BadCall::Kind::bytes;
    case CallCell::refused_overlap: return BadCall::Kind::overlap;
    case CallCell::refused_null: return BadCall::Kind::null;
    case CallCell::refused_scale: return BadCall::Kind::scale;
    default: return BadCall::Kind::none;
  }
}

class DirectedCall : ProgramMaker {
 public:
  explicit DirectedCall(Random& random) : ProgramMaker(random) {}

  Program make(CallCell call) {
    make_call(call);
    draw_data(random_, program_, 20);
    return std::move(program_);
  }

 private:
  void make_call(CallCell call) {
    const Dims shape = {call == CallCell::no_elements ? 0 : random_.between(1, 300)};
    switch (call) {
      case CallCell::streaming: return make_stream();
      case CallCell::refused_extents: return make_misfit();
      case CallCell::refused_in_place: return make_early_overwrite();
      case CallCell::refused_overlap: return make_overlap(shape);
      case CallCell::in_place: make_in_place(shape); break;
      case CallCell::interleaved_outputs: interleave_two(shape); break;
      case CallCell::refused_scale: requantize_at_run_time(); break;
      case CallCell::repeated_function:
      case CallCell::repeated_code:
        convert_once(ElementType::u8, ElementType::f32, {}, {9});  // the same each time
        program_.results[0].declares_unknowns = call == CallCell::repeated_code;
        break;
      default: convert_once(shape); break;
    }
    place(StrideKind::dense);
    draw_bad_call(random_, program_, bad_call_of(call));
  }

  void make_in_place(const Dims& shape) {
    const ElementType from = draw_element(random_);
    convert_once(from, draw_stored_alike(random_, from), {}, shape);
    program_.results[0].in_place_of = 0;
  }

  /// The result on the input, whose elements are wider or narrower.
  void make_overlap(const Dims& shape) {
    const ElementType from = draw_element(random_);
    ElementType to = draw_element(random_);
    while (are_stored_alike(from, to)) to = draw_element(random_);
    convert_once(from, to, {}, shape);
    place(StrideKind::dense);
    program_.bad_call = {BadCall::Kind::overlap, 1, 0};
  }

  /// Two equal shapes, of which the call has one longer.
  void make_misfit() {
    for (int i = 0; i < 2; ++i) {
      InputSpec input;
      input.element = ElementType::f32;
      input.axes = {{AxisSpec::Kind::any, random_.between(2, 90), 0}};
      if (i == 1) input.axes = program_.inputs[0].axes;
      add_input(program_, std::move(input));
    }
    add_result(operate({.op = OpKind::add, .operands = {0, 1}}));
    place(StrideKind::dense);
    program_.bad_call = {BadCall::Kind::extents, random_.below(2), 0};
  }

  /// A result in place of an input that is broadcast in the same nest: x + x read with each row.
  void make_early_overwrite() {
    const int64_t rows = random_.between(2, 20);
    const int64_t columns = random_.between(2, 20);
    for (const Dims& shape : {Dims{rows, columns}, Dims{rows, 1}}) {
      InputSpec input;
      input.element = ElementType::i32;
      for (int64_t extent : shape) input.axes.push_back({AxisSpec::Kind::fixed, extent, 0});
      add_input(program_, std::move(input));
    }
    const size_t sum = operate({.op = OpKind::add, .operands = {0, 1}});
    add_result(operate({.op = OpKind::neg, .operands = {1}}));
    add_result(sum);
    program_.results[0].in_place_of = 1;
    place(StrideKind::dense);
  }

  void requantize_at_run_time() {
    constexpr SliceCell slices{SlicedSides::both, AxisPosition::outermost, GivenIn::operands};
    OperationDrawer drawer(random_, program_);
    drawer.draw_requantization(draw_requantization_like(random_, nullptr, &slices));
    drawer.draw_results();
  }

  /// One input, converted to two types that are stored alike.
  void interleave_two(const Dims& shape) {
    convert_once(shape);
    convert(draw_stored_alike(random_, program_.element_of(program_.results[0].value)));
    interleave(program_, 0, 1);
  }

  /// Tensors that are large, aligned and dense; the wide types, to have fewer elements.
  void make_stream() {
    const ElementType from = draw_element_of(random_, 8);
    const ElementType to = draw_element_of(random_, random_.percent(50) ? 8 : 4);
    const int64_t bytes = bits_of(from) / 8 + bits_of(to) / 8;
    convert_once(from, to, {}, {max_streamed_bytes / bytes + random_.between(1, 500)});
    place(StrideKind::dense);
    program_.streams = true;
    for (Placement* place : {&program_.inputs[0].place, &program_.results[0].place}) {
      place->offset = 0;
      place->at_end = false;
      place->hides_front = false;
      place->shift = place->shift / 8 * 8;
    }
  }
};

}  // namespace

Program generate_call(Random& random, CallCell call) { return DirectedCall(random).make(call); }

}  // namespace castor::fuzz
