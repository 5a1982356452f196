// SPDX-License-Identifier: Apache-2.0
// The function that a graph of ONNX becomes, while its nodes are translated.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ir/builder.hpp"
#include "tests/support/onnx_elementwise_model.hpp"

namespace castor::test {

/// Two forms of the same function; both must give what ONNX expects.
struct OnnxForm {
  bool unknown_extents = false;       ///< every extent of a parameter is `?`
  bool bounds_as_attributes = false;  ///< Clip with known scalar bounds is `clamp`
};

/// A value of the function that is being built.
struct OnnxValue {
  ValueId id = no_value;
  ElementType element = ElementType::f32;
  std::optional<Dims> shape;  ///< known for the graph's inputs and for shapes that nodes fix
};

/// Collects the function's operations.
///
/// An input becomes a parameter where a node reads it as a tensor; shapes and axes that nodes take
/// as inputs are read from the data. The first thing that cannot be expressed is kept, and
/// everything after it is without effect.
class OnnxTranslation {
 public:
  OnnxTranslation(const OnnxGraphData& data, const OnnxForm& form);

  const OnnxForm& form() const { return form_; }
  FunctionBuilder& builder() { return builder_; }

  /// The tensor of that name.
  OnnxValue value(const std::string& name);
  /// Input `i` of a node, which must be there.
  OnnxValue input(const OnnxGraphNode& node, size_t i);
  /// What is known of a name without running the function: an input's data or a constant's.
  const OnnxTensor* data_of(const std::string& name) const;
  /// The known data as integers (i64).
  std::vector<int64_t> integers_of(const std::string& name);
  /// A scalar constant of a type.
  OnnxValue scalar(float number, ElementType element);
  OnnxValue constant(const OnnxTensor& tensor);

  OnnxValue unary(OpKind op, const OnnxValue& x);
  OnnxValue binary(OpKind op, const OnnxValue& a, const OnnxValue& b);
  OnnxValue select(const OnnxValue& condition, const OnnxValue& a, const OnnxValue& b);
  OnnxValue clamp(const OnnxValue& x, std::optional<double> lo, std::optional<double> hi);
  OnnxValue convert(const OnnxValue& x, ElementType to, const ConvertOptions& options = {});
  OnnxValue reshape(const OnnxValue& x, const Dims& target);
  OnnxValue broadcast(const OnnxValue& x, const Dims& target, BroadcastMode mode);
  /// The extents of a value, which must be known; none where they are not.
  Dims extents_of(const OnnxValue& x);

  void define(const std::string& name, const OnnxValue& value) { values_[name] = value; }
  void know(const std::string& name, const OnnxTensor& tensor) { constants_[name] = tensor; }
  void refuse(const std::string& reason);
  const std::optional<std::string>& refusal() const { return refusal_; }
  std::span<const std::string> parameters() const { return parameters_; }

 private:
  const OnnxGraphData& data_;
  OnnxForm form_;
  FunctionBuilder builder_;
  std::map<std::string, OnnxValue> values_;
  std::map<std::string, OnnxTensor> constants_;
  std::vector<std::string> parameters_;
  std::optional<std::string> refusal_;
};

}  // namespace castor::test
