// SPDX-License-Identifier: Apache-2.0
// Binding of unknown extents.
#include <fmt/format.h>

#include <array>
#include <unordered_map>

#include "ir/shape/broadcast.hpp"
#include "ir/shape/convolution.hpp"
#include "ir/shape/look_up.hpp"
#include "ir/shape/matmul.hpp"
#include "ir/shape/pooling.hpp"
#include "ir/shape/reduction.hpp"
#include "ir/shape/reshape.hpp"
#include "ir/verify/infer.hpp"
#include "ir/verify/requantize.hpp"

namespace castor {

namespace {

/// Extents bound so far to the named unknowns, and the tensors that the extents came from.
class BoundNames {
 public:
  struct Binding {
    int64_t extent;
    std::string_view kind;  ///< "parameter" or "result"
    size_t index;
    int axis;
  };

  /// Null if the name had no other extent, else where that extent was bound.
  const Binding* bind(const std::string& name, const Binding& binding) {
    const auto [found, fresh] = bindings_.try_emplace(name, binding);
    return fresh || found->second.extent == binding.extent ? nullptr : &found->second;
  }
  /// Where the name is bound, or null.
  const Binding* find(std::string_view name) const {
    const auto found = bindings_.find(name);
    return found == bindings_.end() ? nullptr : &found->second;
  }

 private:
  std::unordered_map<std::string_view, Binding> bindings_;
};

/// Binds the extents of one function; messages are made on failure only.
class Binder {
 public:
  explicit Binder(const Function& function) : function_(function) {
    bound_.values.resize(function.values.size());
  }

  Result<BoundShapes> run(std::span<const Dims> parameters) {
    if (parameters.size() != function_.parameters.size()) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("@{} has {} parameters, but {} shapes are given", function_.name,
                               function_.parameters.size(), parameters.size())};
    }
    if (Status status = bind_parameters(parameters); !status) return status.error();
    for (const Operation& operation : function_.operations) {
      if (Status status = compute(operation); !status) return status.error();
    }
    if (Status status = check_sizes(); !status) return status.error();
    if (Status status = check_results(); !status) return status.error();
    return std::move(bound_);
  }

 private:
  Status bind_parameters(std::span<const Dims> parameters) {
    for (size_t i = 0; i < parameters.size(); ++i) {
      const ValueId id = function_.parameters[i];
      Status status = match(function_.type_of(id), parameters[i], "parameter", i);
      if (!status) return status;
      bound_.values[id] = parameters[i];
    }
    return {};
  }

  /// Extents of an operation's results, by its row's rule. A mistake is the verifier's, in the
  /// same words, found late.
  Status compute(const Operation& operation) {
    for (size_t i = 0; i < operation.results.size(); ++i) {
      Result<Dims> extents = extents_of(operation, i);
      if (!extents) {
        return Error{ErrorCode::invalid_argument, extents.error().message, operation.where};
      }
      bound_.values[operation.results[i]] = *extents;
    }
    return {};
  }

  Result<Dims> extents_of(const Operation& operation, size_t result) const {
    switch (info(operation.op).infer) {
      case InferRule::as_written: return with_names(function_.type_of(operation.results[0]).shape);
      case InferRule::element_as_named: return operand(operation, 0);
      case InferRule::promoted: return operand(operation, result);
      case InferRule::broadcast: {
        const Result<BroadcastRule> rule = broadcast_rule(operation);
        if (!rule) return rule.error();
        return broadcast_to_target(*rule, operand(operation, 0), with_names(*operation.target));
      }
      case InferRule::reshaped:
        return reshaped(operand(operation, 0), with_names(*operation.target));
      case InferRule::looked_up: return look_up_extents(operation);
      case InferRule::convolution: return convolution_extents(operation);
      case InferRule::matmul: return matmul_extents(operation);
      case InferRule::requantized: return requantized_extents(operation);
      case InferRule::reduced: return reduced_extents(operation, operand(operation, 0));
      case InferRule::pooled: return pooled_extents(operation, operand(operation, 0));
      case InferRule::defined: return defined_extents(operation, result);
      case InferRule::elementwise:
      case InferRule::comparison:
      case InferRule::selection: break;
    }
    return broadcast_extents(operation);
  }

  Result<Dims> broadcast_extents(const Operation& operation) const {
    if (operation.operands.size() == 1) return operand(operation, 0);
    const Result<BroadcastRule> rule = broadcast_rule(operation);
    if (!rule) return rule.error();
    std::array<const Dims*, 3> extents{};
    const size_t count = operation.operands.size();
    for (size_t i = 0; i < count; ++i) extents[i] = &operand(operation, i);
    return broadcast_shapes(operation.op, *rule, std::span(extents).first(count));
  }

  Result<Dims> look_up_extents(const Operation& operation) const {
    const ElementType codes = function_.type_of(operation.operands[0]).element;
    Status status = check_look_up(operation, codes, operand(operation, 0), operand(operation, 1));
    if (!status) return status.error();
    return operand(operation, 0);
  }

  Result<Dims> convolution_extents(const Operation& operation) const {
    const Result<ConvolutionGeometry> geometry =
        convolution_geometry(operation, operand(operation, 0), operand(operation, 1),
                             optional_operand(operation, 2), optional_operand(operation, 3));
    if (!geometry) return geometry.error();
    return geometry->output_extents();
  }

  Result<Dims> matmul_extents(const Operation& operation) const {
    const Result<MatmulGeometry> geometry =
        matmul_geometry(operand(operation, 0), operand(operation, 1),
                        optional_operand(operation, 2), optional_operand(operation, 3));
    if (!geometry) return geometry.error();
    return geometry->output_extents();
  }

  Result<Dims> requantized_extents(const Operation& operation) const {
    std::array<const Dims*, requantize_operands> extents{};
    for (size_t i = 0; i < extents.size(); ++i) extents[i] = optional_operand(operation, i);
    const TensorType& from = function_.type_of(operation.operands[0]);
    const TensorType& to = function_.type_of(operation.results[0]);
    if (Status status = check_parameter_extents(from, to, extents); !status) return status.error();
    return *extents[0];
  }

  /// What the definition gives for operands of the extents that are bound.
  Result<Dims> defined_extents(const Operation& operation, size_t result) const {
    std::vector<TensorType> types;
    for (ValueId id : operation.operands) {
      if (id == no_value) continue;
      types.push_back({function_.type_of(id).element, to_shape(bound_.values[id])});
    }
    std::vector<const TensorType*> operands;
    size_t next = 0;
    for (ValueId id : operation.operands) {
      operands.push_back(id == no_value ? nullptr : &types[next++]);
    }
    const ElementType element = function_.type_of(operation.results[0]).element;
    const auto given = infer_types(operation, operands, {.element = element, .shape = {}});
    if (!given) return given.error();
    Dims extents;
    for (const Dim& dim : (*given)[result].shape) extents.push_back(dim.extent);
    return extents;
  }

  const Dims& operand(const Operation& operation, size_t index) const {
    return bound_.values[operation.operands[index]];
  }
  /// Null where the operand is absent.
  const Dims* optional_operand(const Operation& operation, size_t index) const {
    return operation.operands[index] == no_value ? nullptr : &operand(operation, index);
  }

  /// The extents of a written shape: its names are those of parameters, which are bound first.
  Dims with_names(const Shape& shape) const {
    Dims extents;
    for (const Dim& dim : shape) {
      const BoundNames::Binding* binding = dim.name.empty() ? nullptr : names_.find(dim.name);
      extents.push_back(binding ? binding->extent : dim.extent);
    }
    return extents;
  }

  Status check_sizes() const {
    for (size_t id = 0; id < bound_.values.size(); ++id) {
      const std::optional<int64_t> count = element_count(bound_.values[id]);
      const ElementType element = function_.values[id].type.element;
      if (count && byte_size(element, *count)) continue;
      return Error{ErrorCode::invalid_argument,
                   fmt::format("%{}: {}{} is too large: {} must not exceed 2^63 - 1",
                               function_.values[id].name, name_of(element),
                               to_string(bound_.values[id]), count ? "its bytes" : "its elements")};
    }
    return {};
  }

  Status check_results() {
    for (size_t i = 0; i < function_.results.size(); ++i) {
      const Dims& extents = bound_.values[function_.results[i]];
      Status status = match(function_.result_types[i], extents, "result", i);
      if (!status) return status;
    }
    return {};
  }

  /// Checks extents against a declared type and binds its named unknowns.
  Status match(const TensorType& declared, const Dims& extents, std::string_view kind,
               size_t index) {
    const Shape& shape = declared.shape;
    if (static_cast<size_t>(extents.rank()) != shape.size()) {
      return refused(
          kind, index,
          fmt::format("found {} of rank {}, expected rank {} as in {}", to_string(extents),
                      extents.rank(), shape.size(), to_string(declared)));
    }
    for (int axis = 0; axis < extents.rank(); ++axis) {
      const int64_t extent = extents[axis];
      const Dim& dim = shape[axis];
      if (extent < 0) return refused(kind, index, axis, extent, "an extent that is not negative");
      if (dim.is_fixed()) {
        if (extent == dim.extent) continue;
        return refused(kind, index, axis, extent,
                       fmt::format("{} as in {}", dim.extent, to_string(declared)));
      }
      if (dim.name.empty()) continue;
      const BoundNames::Binding* other = names_.bind(dim.name, {extent, kind, index, axis});
      if (!other) continue;
      return refused(kind, index, axis, extent,
                     fmt::format("{}, the extent of ?{} in {}, axis {}", other->extent, dim.name,
                                 tensor(other->kind, other->index), other->axis));
    }
    return {};
  }

  /// "parameter 0 (%x)".
  std::string tensor(std::string_view kind, size_t index) const {
    const auto& ids = kind == "parameter" ? function_.parameters : function_.results;
    return fmt::format("{} {} (%{})", kind, index, function_.values[ids[index]].name);
  }
  Status refused(std::string_view kind, size_t index, const std::string& detail) const {
    return Error{ErrorCode::invalid_argument, fmt::format("{}: {}", tensor(kind, index), detail)};
  }
  Status refused(std::string_view kind, size_t index, int axis, int64_t found,
                 const std::string& expected) const {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}, axis {}: found {}, expected {}", tensor(kind, index), axis, found,
                             expected)};
  }

  const Function& function_;
  BoundShapes bound_;
  BoundNames names_;
};

}  // namespace

Result<BoundShapes> bind_shapes(const Function& function, std::span<const Dims> parameters) {
  return Binder(function).run(parameters);
}

}  // namespace castor
