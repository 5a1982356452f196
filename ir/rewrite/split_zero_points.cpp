// SPDX-License-Identifier: Apache-2.0
#include "ir/rewrite/split_zero_points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "ir/rewrite/rebuild.hpp"

namespace castor {

namespace {

/// Operands of `matmul_integer`.
enum Operand : size_t { a, b, a_zero_point, b_zero_point };

bool is_one(const Dim& dim) { return dim.is_fixed() && dim.extent == 1; }

bool is_open(const Dim& dim) { return !dim.is_fixed() && dim.name.empty(); }

/// Whether an operand's zero points are one element for sure, or absent.
bool has_one_zero_point(const Function& function, const Operation& matmul, Operand operand) {
  const ValueId zero_point = matmul.operands[operand + 2];
  if (zero_point == no_value) return true;
  if (function.type_of(matmul.operands[operand]).shape.size() == 1) return true;
  return std::ranges::all_of(function.type_of(zero_point).shape, is_one);
}

/// Names for unknown extents of a function, unlike those that it has.
class FreshNames {
 public:
  explicit FreshNames(const Function& function) {
    for (const Value& value : function.values) {
      for (const Dim& dim : value.type.shape) taken_.insert(dim.name);
    }
  }

  std::string next() {
    std::string name;
    do {
      name = fmt::format("d{}", count_++);
    } while (taken_.contains(name));
    return name;
  }

 private:
  std::unordered_set<std::string> taken_;
  size_t count_ = 0;
};

bool is_single_matrix(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end() - std::min<ptrdiff_t>(std::ssize(shape), 2),
                     is_one);
}

/// Copies one function with its products split.
class Splitter {
 public:
  explicit Splitter(const Function& function)
      : function_(function),
        builder_(function.name),
        ids_(detail::append_parameters(builder_, function)) {}

  Result<FunctionPtr> run() {
    for (const Operation& operation : function_.operations) {
      const bool stays = operation.op != OpKind::matmul_integer ||
                         one_convolution_suffices(function_, operation) || !split(operation);
      if (stays) detail::append_copy(builder_, function_, operation, ids_);
    }
    return detail::finish_copy(builder_, function_, ids_);
  }

 private:
  const Shape& shape_of(const Operation& matmul, Operand operand) const {
    return function_.type_of(matmul.operands[operand]).shape;
  }

  /// K, as a target of `broadcast` may say it; else open.
  Dim depth_of(const Operation& matmul) const {
    const Shape& of_a = shape_of(matmul, a);
    const Shape& of_b = shape_of(matmul, b);
    const Dim& depth = of_a.back();
    return is_open(depth) ? of_b[of_b.size() - 2] : depth;
  }

  /// False, and nothing is added, where the types do not say enough.
  bool split(const Operation& matmul) {
    const Dim depth = depth_of(matmul);
    Shape zeros = shape_of(matmul, b_zero_point);
    const bool drops_axis = shape_of(matmul, a).size() == 1 && zeros.size() > 1;
    if (drops_axis) zeros.erase(zeros.end() - 2);  // y has none for the row of a
    if (is_open(depth) || (drops_axis && std::ranges::count_if(zeros, is_open) > 1)) return false;

    const ValueId left = ids_[matmul.operands[a]];
    const ValueId right = ids_[matmul.operands[b]];
    const ValueId left_zero =
        matmul.operands[a_zero_point] == no_value ? no_value : ids_[matmul.operands[a_zero_point]];
    constexpr std::byte one[] = {std::byte{1}};
    const ValueId ones =
        builder_.broadcast(builder_.constant({ElementType::u8, {}}, one), {depth, Dim(1)});
    // Before the product itself: of two convolutions that feed one nest, the later is fused.
    const ValueId sums = builder_.matmul_integer(left, ones, left_zero);
    const ValueId product = builder_.matmul_integer(left, right, left_zero);
    ValueId zero_points = builder_.convert(ids_[matmul.operands[b_zero_point]], ElementType::i32);
    if (drops_axis) zero_points = builder_.reshape(zero_points, zeros);
    const ValueId correction = builder_.binary(OpKind::mul, zero_points, sums);
    const ValueId y = matmul.results[0];
    const std::string names[] = {function_.values[y].name};
    ids_[y] = builder_.append(
        {.op = OpKind::sub, .operands = {product, correction}, .where = matmul.where}, {}, names);
    return true;
  }

  const Function& function_;
  FunctionBuilder builder_;
  detail::CopiedIds ids_;
};

/// The function with a name for each unknown extent of a parameter, so that targets can say it.
Result<FunctionPtr> with_named_extents(const Function& function) {
  FunctionBuilder builder(function.name);
  FreshNames names(function);
  detail::CopiedIds ids(function.values.size(), no_value);
  for (ValueId id : function.parameters) {
    TensorType type = function.type_of(id);
    for (Dim& dim : type.shape) {
      if (is_open(dim)) dim = Dim::named(names.next());
    }
    ids[id] = builder.parameter(function.values[id].name, std::move(type));
  }
  for (const Operation& operation : function.operations) {
    detail::append_copy(builder, function, operation, ids);
  }
  return detail::finish_copy(builder, function, ids);
}

/// The first product that is no single convolution, or null.
const Operation* find_unsplit(const Function& function) {
  const auto found = std::ranges::find_if(function.operations, [&](const Operation& operation) {
    return operation.op == OpKind::matmul_integer && !one_convolution_suffices(function, operation);
  });
  return found == function.operations.end() ? nullptr : &*found;
}

}  // namespace

bool one_convolution_suffices(const Function& function, const Operation& matmul) {
  if (has_one_zero_point(function, matmul, b)) return true;
  return has_one_zero_point(function, matmul, a) &&
         is_single_matrix(function.type_of(matmul.operands[b]).shape);
}

FunctionPtr split_zero_points(const FunctionPtr& function) {
  if (find_unsplit(*function) == nullptr) return function;
  const Result<FunctionPtr> named = with_named_extents(*function);
  const Result<FunctionPtr> split = named ? Splitter(**named).run() : named;
  return split ? *split : function;
}

std::string reason_not_split(const Function& function) {
  const Operation* matmul = find_unsplit(function);
  if (matmul == nullptr) return {};
  return fmt::format(
      "%{} = matmul_integer: zero points of b by column, with zero points of a by row or a b of "
      "several batches, need extents that are numbers or a parameter's, found a {} and b {}",
      function.values[matmul->results[0]].name,
      to_string(function.type_of(matmul->operands[a]).shape),
      to_string(function.type_of(matmul->operands[b]).shape));
}

}  // namespace castor
