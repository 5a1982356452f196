// SPDX-License-Identifier: Apache-2.0
// Type inference, and binding of unknown extents.
#include "ir/infer.hpp"

#include <fmt/format.h>

#include <unordered_map>

namespace castor {

namespace {

Error mistake(OpKind op, std::string detail) {
  return {ErrorCode::invalid_function, fmt::format("{}: {}", name_of(op), detail)};
}

Status check_operands(const OpInfo& row, std::span<const TensorType* const> operand_types) {
  if (operand_types.size() != static_cast<size_t>(row.operands)) {
    return mistake(
        row.op, fmt::format("found {} operands, expected {}", operand_types.size(), row.operands));
  }
  for (size_t i = 0; i < operand_types.size(); ++i) {
    if (!operand_types[i]) {
      return mistake(row.op, fmt::format("operand {} is none, but it is not optional", i));
    }
  }
  return {};
}

Result<TensorType> as_written(OpKind op, const WrittenType& written) {
  if (!written.element || !written.shape) {
    return mistake(op, "the full type must be written, such as `: f32[2, 3]`");
  }
  return TensorType{*written.element, *written.shape};
}

Result<TensorType> element_as_named(OpKind op, const TensorType& operand,
                                    const WrittenType& written) {
  if (!written.element) {
    return mistake(op, "the destination's element type must be written, such as `: f16`");
  }
  return TensorType{*written.element, operand.shape};
}

/// Extents bound so far to the named unknowns, and the tensors that the extents came from.
class BoundNames {
 public:
  struct Place {
    int64_t extent;
    std::string_view kind;  ///< "parameter" or "result"
    size_t index;
    int axis;
  };

  /// Null if the name had no other extent, else the place of that extent.
  const Place* bind(const std::string& name, const Place& place) {
    const auto [found, fresh] = places_.try_emplace(name, place);
    return fresh || found->second.extent == place.extent ? nullptr : &found->second;
  }

 private:
  std::unordered_map<std::string_view, Place> places_;
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
    for (const Operation& operation : function_.operations) compute(operation);
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

  /// Extents of an operation's results, by its row's rule.
  void compute(const Operation& operation) {
    switch (info(operation.op).infer) {
      case InferRule::as_written: {
        const ValueId result = operation.results[0];
        for (const Dim& dim : function_.type_of(result).shape) {
          bound_.values[result].push_back(dim.extent);
        }
        return;
      }
      case InferRule::element_as_named:
        bound_.values[operation.results[0]] = bound_.values[operation.operands[0]];
        return;
    }
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
      const BoundNames::Place* other = names_.bind(dim.name, {extent, kind, index, axis});
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

Result<std::vector<TensorType>> infer_types(const Operation& operation,
                                            std::span<const TensorType* const> operand_types,
                                            const WrittenType& written) {
  const OpInfo& row = info(operation.op);
  if (Status status = check_operands(row, operand_types); !status) return status.error();
  const auto result = [&]() -> Result<TensorType> {
    switch (row.infer) {
      case InferRule::as_written: return as_written(row.op, written);
      case InferRule::element_as_named: return element_as_named(row.op, *operand_types[0], written);
    }
    return mistake(row.op, "its row has no rule of inference");
  }();
  if (!result) return result.error();
  return std::vector<TensorType>{*result};
}

Result<BoundShapes> bind_shapes(const Function& function, std::span<const Dims> parameters) {
  return Binder(function).run(parameters);
}

}  // namespace castor
