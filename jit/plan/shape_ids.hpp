// SPDX-License-Identifier: Apache-2.0
// Which values of a function surely have the same shape.
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/shape/broadcast.hpp"
#include "ir/shape/reduction.hpp"

namespace castor::jit {

/// An extent, or, from -1 downward, the number of an unknown. Equal numbers are equal extents.
using ExtentId = int64_t;
using ShapeId = std::vector<ExtentId>;

/// What is known of the extents of each value before the function is bound.
class ShapeIds {
 public:
  explicit ShapeIds(const Function& function) : function_(function), ids_(function.values.size()) {
    for (ValueId parameter : function.parameters) ids_[parameter] = declared(parameter);
    for (const Operation& operation : function.operations) {
      for (ValueId result : operation.results) ids_[result] = inferred(operation, result);
    }
  }

  const ShapeId& operator[](ValueId value) const { return ids_[value]; }

 private:
  ExtentId fresh() { return --last_; }

  ExtentId id_of(const Dim& dim) {
    if (dim.is_fixed()) return dim.extent;
    if (dim.name.empty()) return fresh();
    const auto [at, is_new] = names_.try_emplace(dim.name, 0);
    if (is_new) at->second = fresh();
    return at->second;
  }

  ShapeId declared(ValueId value) {
    ShapeId id;
    for (const Dim& dim : function_.type_of(value).shape) id.push_back(id_of(dim));
    return id;
  }

  /// An unnamed unknown is that of the operands, where they agree on it.
  ShapeId inferred(const Operation& operation, ValueId result) {
    const Shape& shape = function_.type_of(result).shape;
    if (operation.op == OpKind::look_up) return ids_[operation.operands[0]];
    const OpFamily family = info(operation.op).family;
    if (family == OpFamily::reduction) return reduced(operation);
    const bool follows = family == OpFamily::elementwise;
    ShapeId id;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const bool is_open = !shape[axis].is_fixed() && shape[axis].name.empty();
      id.push_back(is_open && follows ? agreed(operation, result, static_cast<int64_t>(axis))
                                      : id_of(shape[axis]));
    }
    return id;
  }

  /// The operand's, without the axes that are reduced.
  ShapeId reduced(const Operation& operation) const {
    const ShapeId& operand = ids_[operation.operands[0]];
    const std::vector<bool> reduced = reduced_axes(operation, static_cast<int>(operand.size()));
    const bool keeps = reduction_options(operation).value().keep_dims;
    ShapeId id;
    for (size_t axis = 0; axis < operand.size(); ++axis) {
      if (!reduced[axis]) id.push_back(operand[axis]);
      if (reduced[axis] && keeps) id.push_back(1);
    }
    return id;
  }

  ExtentId agreed(const Operation& operation, ValueId result, int64_t axis) {
    std::optional<ExtentId> common;
    for (size_t i = 0; i < operation.operands.size(); ++i) {
      const ShapeId& operand = ids_[operation.operands[i]];
      const Dims along =
          axes_along_result(operation, i, static_cast<int>(operand.size()),
                            static_cast<int>(function_.type_of(result).shape.size()));
      const Dims blocks =
          blocks_along_result(operation, i, static_cast<int>(operand.size()),
                              static_cast<int>(function_.type_of(result).shape.size()));
      for (int k = 0; k < along.rank(); ++k) {
        const ExtentId extent = operand[static_cast<size_t>(k)];
        if (along[k] != axis || extent == 1 || blocks[k] != 1) continue;
        if (common && *common != extent) return fresh();
        common = extent;
      }
    }
    return common ? *common : fresh();
  }

  const Function& function_;
  std::vector<ShapeId> ids_;
  std::map<std::string_view, ExtentId> names_;
  ExtentId last_ = 0;
};

}  // namespace castor::jit
