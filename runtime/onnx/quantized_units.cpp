// SPDX-License-Identifier: Apache-2.0
#include "runtime/onnx/quantized_units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace castor::onnx {

namespace {

/// One operator between DequantizeLinear and QuantizeLinear.
struct Pattern {
  std::string_view op_type;  ///< the operator of floats
  std::string_view fused;    ///< the operator of the unit
  std::string_view domain;
  /// The axis of w's scales, where there are several; a negative one counts from the end.
  int64_t w_axis;
  bool may_transpose;  ///< transB of w, which has two axes, changes that axis
};

constexpr Pattern patterns[] = {
    {"Conv", "QLinearConv", "", 0, false},
    {"MatMul", "QLinearMatMul", "", -1, false},
    {"Gemm", "QGemm", microsoft_domain, -1, true},
};

const Pattern* pattern_of(const Node& node) {
  const auto at = std::ranges::find(patterns, node.op_type, &Pattern::op_type);
  return at == std::end(patterns) || !node.domain.empty() ? nullptr : &*at;
}

/// Whether it is ONNX's own operator of that name: other domains have others of the same name.
bool is_op(const Node& node, std::string_view op_type) {
  return node.op_type == op_type && node.domain.empty();
}

/// ONNX Runtime's quantizer writes QuantizeLinear and DequantizeLinear into its own domain as well.
bool is_quantizing_op(const Node& node, std::string_view op_type) {
  return node.op_type == op_type && (node.domain.empty() || node.domain == microsoft_domain);
}

bool is_pool(const Node& node) { return is_op(node, "MaxPool"); }

bool is_byte(std::optional<ElementType> type) {
  return type == ElementType::u8 || type == ElementType::i8;
}

class Fuser {
 public:
  Fuser(Graph& graph, Remainder remainder)
      : graph_(graph), replaced_by_(graph.nodes.size()), gone_(graph.nodes.size()) {
    for (NodeIndex index = 0; index < graph.nodes.size(); ++index) {
      const bool is_left = remainder == Remainder::engine && has_shared_inputs(index);
      if (is_unit(index) && !is_left) centres_.push_back(index);
    }
  }

  /// The nodes of the new graph, in no order.
  std::vector<Node> fused() {
    for (const NodeIndex index : centres_) {
      const Pattern* pattern = pattern_of(graph_.nodes[index]);
      pattern != nullptr ? replace(*find_unit(index, *pattern), *pattern) : replace_pool(index);
    }
    std::vector<Node> nodes;
    for (NodeIndex index = 0; index < graph_.nodes.size(); ++index) {
      if (!gone_[index]) nodes.push_back(std::move(graph_.nodes[index]));
      for (Node& unit : replaced_by_[index]) nodes.push_back(std::move(unit));
    }
    return nodes;
  }

 private:
  struct Operand {
    NodeIndex dequantize = no_node;
    ValueIndex value = absent;
    ValueIndex scale = absent;
    ValueIndex zero_point = absent;
  };

  bool is_unit(NodeIndex index) const {
    const Pattern* pattern = pattern_of(node(index));
    if (pattern != nullptr) return find_unit(index, *pattern).has_value();
    return is_pool(node(index)) && is_pool_of_codes(index);
  }

  /// Whether a unit would read what a DequantizeLinear takes that is not its alone, and is no
  /// constant.
  bool has_shared_inputs(NodeIndex centre) const {
    for (size_t i = 0; i < node(centre).inputs.size(); ++i) {
      const auto from = dequantizer(node(centre), i);
      if (!from || constant(node(*from).inputs[0]) != nullptr) continue;
      const Value& real = value(node(*from).outputs[0]);
      if (real.is_output || real.consumers.size() > 1) return true;
    }
    return false;
  }

  const Node& node(NodeIndex index) const { return graph_.nodes[index]; }
  const Value& value(ValueIndex index) const { return graph_.values[index]; }

  bool has_one_output(NodeIndex index) const {
    return node(index).outputs.size() == 1 && node(index).has_output(0);
  }

  /// The DequantizeLinear whose output an input is.
  std::optional<NodeIndex> dequantizer(const Node& reader, size_t i) const {
    if (!reader.has_input(i)) return std::nullopt;
    const NodeIndex index = value(reader.inputs[i]).producer;
    const bool fits = index != no_node && is_quantizing_op(node(index), "DequantizeLinear") &&
                      has_one_output(index);
    return fits ? std::optional(index) : std::nullopt;
  }

  /// The one node that reads an output, if nothing else does.
  std::optional<NodeIndex> only_reader(NodeIndex index) const {
    if (!has_one_output(index)) return std::nullopt;
    const Value& output = value(node(index).outputs[0]);
    const bool is_only = !output.is_output && output.consumers.size() == 1;
    return is_only ? std::optional(output.consumers[0]) : std::nullopt;
  }

  std::optional<ElementType> element_of(ValueIndex index) const {
    const Value& at = value(index);
    if (at.constant) return at.constant->element;
    if (at.element || at.producer == no_node) return at.element;
    const Node& from = node(at.producer);
    if (!is_quantizing_op(from, "QuantizeLinear")) return std::nullopt;
    return type_of_codes(from);
  }

  /// What a QuantizeLinear says that it gives.
  std::optional<ElementType> type_of_codes(const Node& quantize) const {
    if (!quantize.has_input(2)) return quantized_type(quantize, std::nullopt);
    const auto zero_point = element_of(quantize.inputs[2]);
    return zero_point ? quantized_type(quantize, zero_point) : std::nullopt;
  }

  const Tensor* constant(ValueIndex index) const {
    return index != absent && value(index).constant ? &*value(index).constant : nullptr;
  }
  static bool is_single(const Tensor* tensor) {
    return tensor != nullptr && element_count(tensor->shape) == 1;
  }

  std::optional<Operand> operand(const Node& reader, size_t i) const {
    const auto index = dequantizer(reader, i);
    if (!index || node(*index).integer("block_size", 0) != 0) return std::nullopt;
    const Node& from = node(*index);
    if (!from.has_input(0) || !from.has_input(1)) return std::nullopt;
    return Operand{*index, from.inputs[0], from.inputs[1],
                   from.has_input(2) ? from.inputs[2] : absent};
  }

  /// An operand of 8 bits whose scale is one constant.
  std::optional<Operand> activation(const Node& reader, size_t i) const {
    const auto found = operand(reader, i);
    const bool fits =
        found && is_byte(element_of(found->value)) && is_single(constant(found->scale));
    return fits ? found : std::nullopt;
  }

  /// The same with one scale, or one along the axis of the pattern.
  std::optional<Operand> weights(const Node& reader, size_t i, const Pattern& pattern) const {
    const auto found = operand(reader, i);
    if (!found || !is_byte(element_of(found->value))) return std::nullopt;
    const Tensor* scale = constant(found->scale);
    if (is_single(scale)) return found;
    const bool is_transposed = pattern.may_transpose && reader.integer("transB", 0) != 0;
    const Tensor* w = constant(found->value);
    if (scale == nullptr || w == nullptr || scale->shape.rank() != 1) return std::nullopt;
    const int64_t rank = w->shape.rank();
    const auto from_start = [&](int64_t axis) { return axis < 0 ? axis + rank : axis; };
    const int64_t axis = from_start(is_transposed ? -2 : pattern.w_axis);
    const bool fits = rank >= 2 && from_start(node(found->dequantize).integer("axis", 1)) == axis;
    return fits ? found : std::nullopt;
  }

  static float number(const Tensor& tensor, int64_t i) {
    float result = 0;
    std::memcpy(&result, tensor.data->bytes.data() + static_cast<size_t>(i) * sizeof result,
                sizeof result);
    return result;
  }

  /// Whether the bias has the scale x_scale * w_scale and no zero point.
  bool has_scale_of_product(const Operand& bias, const Operand& x, const Operand& w) const {
    const Tensor* bias_scale = constant(bias.scale);
    const Tensor* x_scale = constant(x.scale);
    const Tensor* w_scale = constant(w.scale);
    for (const Tensor* scale : {bias_scale, x_scale, w_scale}) {
      if (scale == nullptr || scale->element != ElementType::f32) return false;
    }
    const int64_t count = *element_count(w_scale->shape);
    if (element_count(bias_scale->shape) != count) return false;
    if (count > 1 && rank_of(bias.value) != 1) return false;  // along which axis, then?
    for (int64_t i = 0; i < count; ++i) {
      const double product = double{number(*x_scale, 0)} * number(*w_scale, i);
      const double found = number(*bias_scale, i);
      if (!(std::fabs(found - product) <= product * 0x1p-20)) return false;
    }
    return is_zero(bias.zero_point);
  }

  /// 0 where it is unknown.
  size_t rank_of(ValueIndex index) const {
    const Value& at = value(index);
    if (at.constant) return static_cast<size_t>(at.constant->shape.rank());
    return at.shape ? at.shape->size() : 0;
  }

  bool is_zero(ValueIndex zero_point) const {
    if (zero_point == absent) return true;
    const Tensor* known = constant(zero_point);
    return known != nullptr && std::ranges::all_of(known->data->bytes, [](std::byte byte) {
             return byte == std::byte{0};
           });
  }

  /// A constant of one element that is all zeros.
  ValueIndex zero_of(ElementType type) {
    Value zero{.name = fmt::format("castor_zero_{}", graph_.values.size())};
    ConstantData data;
    data.bytes.resize(1);
    zero.element = type;
    zero.shape = Shape();
    zero.constant = Tensor{type, {}, std::make_shared<const ConstantData>(std::move(data))};
    graph_.values.push_back(std::move(zero));
    return static_cast<ValueIndex>(graph_.values.size() - 1);
  }
  ValueIndex zero_point_of(const Operand& operand) {
    return operand.zero_point != absent ? operand.zero_point : zero_of(*element_of(operand.value));
  }

  struct Unit {
    NodeIndex centre = no_node;
    Operand x{};
    Operand w{};
    std::optional<Operand> bias{};
    std::optional<NodeIndex> relu{};
    NodeIndex quantize = no_node;
  };

  std::optional<Unit> find_unit(NodeIndex centre, const Pattern& pattern) const {
    const Node& at = node(centre);
    Unit unit{.centre = centre};
    const auto x = activation(at, 0);
    const auto w = weights(at, 1, pattern);
    if (!x || !w) return std::nullopt;
    unit.x = *x;
    unit.w = *w;
    if (at.has_input(2)) {
      unit.bias = operand(at, 2);
      const bool fits = unit.bias && element_of(unit.bias->value) == ElementType::i32 &&
                        has_scale_of_product(*unit.bias, *x, *w);
      if (!fits) return std::nullopt;
    }
    const bool is_plain =
        at.number("alpha", 1) == 1 && at.number("beta", 1) == 1 && at.integer("transA", 0) == 0;
    auto reader = is_plain ? only_reader(centre) : std::nullopt;
    if (reader && is_op(node(*reader), "Relu")) {
      unit.relu = reader;
      reader = only_reader(*reader);
    }
    const NodeIndex last = unit.relu.value_or(centre);
    if (!reader || !is_quantizer(*reader, node(last).outputs[0])) return std::nullopt;
    // The zero point is the least code of what Relu gives only where larger numbers have larger
    // codes.
    if (unit.relu && !scale_of_codes(node(*reader).inputs[1])) return std::nullopt;
    unit.quantize = *reader;
    return unit;
  }

  /// Whether a node quantizes a value with one constant scale.
  bool is_quantizer(NodeIndex index, ValueIndex real) const {
    const Node& at = node(index);
    const bool is_whole = has_one_output(index) && at.has_input(0) && at.has_input(1);
    return is_whole && at.inputs[0] == real && is_quantizing_op(at, "QuantizeLinear") &&
           at.integer("block_size", 0) == 0 && is_single(constant(at.inputs[1])) &&
           is_byte(type_of_codes(at)) && element_of(at.outputs[0]) == type_of_codes(at);
  }

  void replace(const Unit& unit, const Pattern& pattern) {
    const Node quantize = node(unit.quantize);
    const ElementType type = *element_of(quantize.outputs[0]);
    const ValueIndex y_zero_point = quantize.has_input(2) ? quantize.inputs[2] : zero_of(type);
    Node fused = node(unit.centre);
    fused.op_type = pattern.fused;
    fused.domain = pattern.domain;
    fused.version = last_opset;      // that of the float operator may be older than any of these
    fused.attributes.erase("beta");  // it is 1, and QGemm has none
    std::vector<NodeIndex> dequantizers = {unit.x.dequantize, unit.w.dequantize};
    if (unit.bias) dequantizers.push_back(unit.bias->dequantize);
    std::vector<NodeIndex> taken = {unit.centre, unit.quantize};
    if (unit.relu) taken.push_back(*unit.relu);
    fused.origins = take_away(std::move(taken), dequantizers);
    fused.outputs = quantize.outputs;
    fused.inputs = {unit.x.value, unit.x.scale, zero_point_of(unit.x),
                    unit.w.value, unit.w.scale, zero_point_of(unit.w)};
    const ValueIndex bias = unit.bias ? unit.bias->value : absent;
    if (pattern.fused == "QGemm") fused.inputs.push_back(bias);
    fused.inputs.push_back(quantize.inputs[1]);
    fused.inputs.push_back(y_zero_point);
    if (pattern.fused == "QLinearConv") fused.inputs.push_back(bias);
    std::vector<Node>& made = replaced_by_[unit.quantize];
    if (unit.relu) made.push_back(relu_after(fused, y_zero_point, type));
    made.push_back(std::move(fused));
  }

  /// Relu of the real number is the maximum with the zero point of the code.
  Node relu_after(Node& fused, ValueIndex zero_point, ElementType type) {
    Node relu{.name = fused.name + "_relu", .op_type = "Max", .domain = "", .version = last_opset};
    graph_.values.push_back(
        {.name = fmt::format("castor_before_relu_{}", graph_.values.size()), .element = type});
    relu.outputs = fused.outputs;
    fused.outputs = {static_cast<ValueIndex>(graph_.values.size() - 1)};
    relu.inputs = {fused.outputs[0], zero_point};
    return relu;
  }

  bool is_pool_of_codes(NodeIndex pool) const {
    const auto x = activation(node(pool), 0);
    const auto quantize = only_reader(pool);
    return x && quantize && is_quantizer(*quantize, node(pool).outputs[0]) &&
           gives_codes_back(*x, node(*quantize));
  }

  /// The pool of the codes: that of the numbers, since a larger code is a larger number.
  void replace_pool(NodeIndex pool) {
    const auto x = activation(node(pool), 0);
    const auto quantize = only_reader(pool);
    Node fused = node(pool);
    fused.inputs = {x->value};
    fused.outputs = node(*quantize).outputs;
    fused.origins = take_away({pool, *quantize}, {x->dequantize});
    replaced_by_[*quantize].push_back(std::move(fused));
  }

  /// Whether quantizing gives back what has been dequantized: both have one type, scale and zero
  /// point. The number between them is the scale times the code less the zero point, rounded in
  /// f32; divided by the scale, it is nearest to that integer of at most 255.
  bool gives_codes_back(const Operand& x, const Node& quantize) const {
    const ElementType type = *element_of(x.value);
    const auto scale = scale_of_codes(x.scale);
    const auto zero = zero_code(x.zero_point, type);
    const ValueIndex zero_after = quantize.has_input(2) ? quantize.inputs[2] : absent;
    return element_of(quantize.outputs[0]) == type && scale && zero &&
           scale == scale_of_codes(quantize.inputs[1]) && zero == zero_code(zero_after, type) &&
           says_f32_or_nothing(node(x.dequantize), "output_dtype") &&
           says_f32_or_nothing(quantize, "precision");
  }

  static bool says_f32_or_nothing(const Node& at, std::string_view attribute) {
    const int64_t data_type = at.integer(attribute, 0);
    return data_type == 0 || element_type_of(data_type) == ElementType::f32;
  }

  /// A scale of f32, if it is positive and no code times it exceeds the largest f32.
  std::optional<float> scale_of_codes(ValueIndex index) const {
    constexpr float largest = std::numeric_limits<float>::max() / 255;
    const Tensor& tensor = *constant(index);
    if (tensor.element != ElementType::f32) return std::nullopt;
    const float scale = number(tensor, 0);
    return scale > 0 && scale <= largest ? std::optional(scale) : std::nullopt;
  }

  /// A zero point of that type, which has 8 bits.
  std::optional<std::byte> zero_code(ValueIndex zero_point, ElementType type) const {
    if (zero_point == absent) return std::byte{0};
    const Tensor* known = constant(zero_point);
    const bool fits = is_single(known) && known->element == type;
    return fits ? std::optional(known->data->bytes[0]) : std::nullopt;
  }

  /// Takes the nodes of a unit away, and gives them, but for those that dequantize for others as
  /// well.
  std::vector<NodeIndex> take_away(std::vector<NodeIndex> taken,
                                   const std::vector<NodeIndex>& dequantizers) {
    for (const NodeIndex index : taken) gone_[index] = true;
    for (const NodeIndex index : dequantizers) {
      if (gone_[index] || is_needed(index)) continue;
      gone_[index] = true;
      taken.push_back(index);
    }
    std::ranges::sort(taken);
    return taken;
  }
  bool is_needed(NodeIndex index) const {
    const Value& output = value(node(index).outputs[0]);
    return output.is_output ||
           std::ranges::any_of(output.consumers, [&](NodeIndex reader) { return !gone_[reader]; });
  }

  Graph& graph_;
  std::vector<std::vector<Node>> replaced_by_;
  std::vector<bool> gone_;          ///< nodes that units stand for
  std::vector<NodeIndex> centres_;  ///< in the middle of units
};

}  // namespace

bool may_be_fused(const Node& node) { return pattern_of(node) != nullptr || is_pool(node); }

Status fuse_quantized_units(Graph& graph, Remainder remainder) {
  graph.nodes = Fuser(graph, remainder).fused();
  return connect(graph);
}

}  // namespace castor::onnx
