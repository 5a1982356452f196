// SPDX-License-Identifier: Apache-2.0
// Drawing elementwise chains after convolutions, and what keeps them apart from the convolution.
#include <algorithm>

#include "tools/fuzz/generate.hpp"
#include "tools/fuzz/generate_operations.hpp"

namespace castor::fuzz {

namespace {

constexpr size_t max_chain = 10;
/// Elements of an operand that may be a constant.
constexpr int64_t max_known = 64;

/// The extents of y; none where the convolution is refused.
Dims output_of(const DrawnConvolution& drawn) {
  Operation operation{.op = OpKind::conv_integer};
  operation.operands = {0, 1, no_value, no_value};
  operation.attributes = attributes_of(drawn.options);
  const auto geometry = convolution_geometry(operation, drawn.x, drawn.w, nullptr, nullptr);
  return geometry.ok() ? geometry->output_extents() : Dims{};
}

/// Axes of y by what they are for.
struct ResultAxes {
  int channel;
  int first_spatial;
  int last_spatial;
};

ResultAxes axes_of(const Dims& y, ConvolutionLayout layout) {
  const int rank = y.rank();
  if (layout == ConvolutionLayout::nhwc) return {rank - 1, 1, rank - 2};
  return {1, 2, rank - 1};
}

/// Whether a convolution can do as the cell asks.
bool suits(const EpilogueCell& cell, const DrawnConvolution& drawn, const Dims& y) {
  if (drawn.options.layout != cell.layout || element_count(y).value_or(0) == 0) return false;
  const ResultAxes axes = axes_of(y, cell.layout);
  const bool nhwc = cell.layout == ConvolutionLayout::nhwc;
  const int64_t channels = drawn.x[nhwc ? drawn.x.rank() - 1 : 1];
  if (channels == 0 || kind_of(drawn.options.group, channels) != cell.kind) return false;
  const int64_t row = y[nhwc ? axes.channel : axes.last_spatial];
  switch (cell.form) {
    case EpilogueForm::sub_byte: return row % storage_group == 0;
    case EpilogueForm::split_bytes: return row % 2 != 0 && row > 1;
    case EpilogueForm::partly_repeated:
      return axes.first_spatial < axes.last_spatial && y[axes.first_spatial] > 1 &&
             y[axes.last_spatial] > 1;
    case EpilogueForm::other_shape:
    case EpilogueForm::several_nests: return y.rank() < max_drawn_rank;
    case EpilogueForm::apart: return y[axes.channel] > 1 && y[axes.last_spatial] > 1;
    default: return true;
  }
}

/// A type whose elements have that size.
ElementType draw_width(Random& random, EpilogueForm form) {
  const size_t number = static_cast<size_t>(form);
  const int bytes = number == 0 ? 0 : 1 << (number - 1);
  while (true) {
    const ElementType type = draw_element(random);
    if (bits_of(type) / 8 == bytes) return type;
  }
}

}  // namespace

EpilogueCell draw_epilogue_cell(Random& random) {
  const bool is_fused = random.percent(70);
  const auto form =
      static_cast<EpilogueForm>(is_fused ? random.below(5) : 5 + random.below(epilogue_forms - 5));
  return {static_cast<ConvolutionKind>(random.below(3)),
          static_cast<ConvolutionLayout>(random.below(2)), form};
}

/// Extents of an operand: along nothing, channels, images or all; now and then only some pixels.
Dims OperationDrawer::draw_beside(const Dims& y, ConvolutionLayout layout, bool in_part) {
  const ResultAxes axes = axes_of(y, layout);
  Dims shape = Dims::filled(y.rank(), 1);
  if (in_part) {
    shape[axes.last_spatial] = y[axes.last_spatial];
    return shape;
  }
  switch (random_.below(10)) {
    case 0: return {};
    case 1: shape[0] = y[0]; break;
    case 2: shape[0] = y[0]; [[fallthrough]];
    case 3:
    case 4:
    case 5: shape[axes.channel] = y[axes.channel]; break;
    case 6:
      shape = y;
      shape[0] = 1;
      break;
    case 7:
      shape = y;
      shape[axes.channel] = 1;
      break;
    default: shape = y; break;
  }
  const bool drops_ones = random_.percent(50);
  const int64_t* first = shape.begin();
  while (drops_ones && first != shape.end() && *first == 1) ++first;
  return Dims(std::span(first, shape.end()));
}

/// Adds `length` operations on a value, with other operands from `beside`.
size_t OperationDrawer::draw_chain(size_t value, const std::vector<size_t>& beside, size_t length) {
  constexpr std::array binary = {OpKind::add, OpKind::mul, OpKind::sub,  OpKind::max,
                                 OpKind::min, OpKind::div, OpKind::prelu};
  constexpr std::array unary = {OpKind::relu, OpKind::abs, OpKind::neg, OpKind::sign};
  for (size_t i = 0; i < length; ++i) {
    const ElementType type = program_.element_of(value);
    const bool computes = admits(info(OpKind::add).types, type);
    const size_t kind = random_.below(100);
    bool is_added = false;
    if (!computes || kind < 25) {
      const ElementType to =
          i == 0 && random_.percent(70) ? ElementType::f32 : draw_element(random_);
      is_added = add(conversion(value, to, draw_options(random_, type, to)));
    } else if (kind < 70) {
      const size_t other = converted(random_.pick(beside), type);
      is_added = program_.element_of(other) == type &&
                 add({.op = random_.pick(binary), .operands = {value, other}});
    } else if (kind < 80) {
      is_added = draw_clamp(value);
    } else {
      is_added = add({.op = random_.pick(unary), .operands = {value}});
    }
    if (is_added) value = last();
  }
  return value;
}

void OperationDrawer::draw_epilogue(const EpilogueCell& cell) {
  DrawnConvolution drawn;
  Dims y;
  const auto has_room = [&] {  // also where no attempt gave a result that suits
    return y.rank() > 0 && element_count(y).value_or(INT64_MAX) <= max_elements;
  };
  for (int attempt = 0; attempt < 4000; ++attempt) {
    drawn = draw_convolution(random_, draw_image(random_));
    y = output_of(drawn);
    if (has_room() && suits(cell, drawn, y)) break;
  }
  space_ = drawn.x;
  const size_t x = add_input(random_.percent(50) ? ElementType::u8 : ElementType::i8, drawn.x);
  ConvolutionOperands given;
  if (random_.percent(40)) given.w = add_input(ElementType::i8, drawn.w);
  std::vector<size_t> beside;
  std::vector<Dims> known;  // shapes of constants, which come after all inputs
  const bool are_known = random_.percent(50);
  const size_t operands = 1 + random_.below(3);
  for (size_t i = 0; i < operands && has_room(); ++i) {
    const bool in_part = cell.form == EpilogueForm::partly_repeated && i == 0;
    const Dims shape = draw_beside(y, cell.layout, in_part);
    const bool may_be_known = !in_part && element_count(shape).value_or(max_known + 1) <= max_known;
    if (may_be_known && (are_known || random_.percent(20))) {
      known.push_back(shape);
    } else {
      beside.push_back(add_input(draw_element(random_), shape));
    }
  }
  for (const Dims& shape : known) {
    if (add_constant(ElementType::f32, shape)) beside.push_back(last());
  }
  if (!convolve(x, drawn, given) || beside.empty()) return;
  shape_epilogue(cell, last(), beside, [&] { return convolve(x, drawn, given); });
}

/// What follows the convolution, so that it has the cell's form.
void OperationDrawer::shape_epilogue(const EpilogueCell& cell, size_t y,
                                     const std::vector<size_t>& beside,
                                     const std::function<bool()>& convolve_again) {
  using enum EpilogueForm;
  space_ = program_.shape_of(y);
  Dims larger = {2};
  for (const int64_t extent : space_) larger.push_back(extent);
  const auto broadcast = [&](size_t value) {
    OperationSpec operation{.op = OpKind::broadcast, .operands = {value}};
    for (const int64_t extent : larger) {
      operation.target.push_back({AxisSpec::Kind::fixed, extent, 0});
    }
    return add(std::move(operation));
  };
  if (cell.form == is_result) return;
  if (cell.form == reshaped) {
    OperationSpec operation{.op = OpKind::reshape, .operands = {y}};
    const int64_t count = element_count(space_).value_or(0);
    operation.target.push_back({AxisSpec::Kind::fixed, count, 0});
    if (!add(std::move(operation))) return;
    y = last();
    draw_chain(y, {y}, 1 + random_.below(3));
    return;
  }
  if (cell.form == other_shape || cell.form == several_nests) {
    if (!broadcast(y)) return;
    const size_t all = last();
    if (cell.form == several_nests) draw_chain(y, {y}, 1);
    draw_chain(all, {all}, 1 + random_.below(2));
    return;
  }
  if (cell.form == other_convolution) {
    if (!convolve_again() || !add({.op = OpKind::add, .operands = {y, last()}})) return;
    y = last();
  }
  if (cell.form == partly_repeated) {
    const size_t part = converted(beside[0], ElementType::i32);
    if (add({.op = OpKind::add, .operands = {y, part}})) y = last();
  }
  const bool has_width = cell.form <= eight_bytes || cell.form == split_bytes;
  const size_t chain = random_.below(max_chain + 1);
  const size_t value = draw_chain(y, beside, chain);
  if (!has_width) {
    if (chain == 0) add({.op = OpKind::neg, .operands = {value}});
    return;
  }
  const EpilogueForm width = cell.form == split_bytes ? sub_byte : cell.form;
  const ElementType to = draw_width(random_, width);
  if (add(conversion(value, to, draw_options(random_, program_.element_of(value), to)))) {
    draw_range(last());
  }
}

/// At times the range of a value, which kernels fold as they store it.
void OperationDrawer::draw_range(size_t value) {
  const bool has_range = admits(info(OpKind::reduce_min).types, program_.element_of(value));
  if (!has_range || random_.percent(50)) return;
  for (const OpKind op : {OpKind::reduce_min, OpKind::reduce_max}) {
    if (random_.percent(80)) add({.op = op, .operands = {value}});
  }
}

}  // namespace castor::fuzz
