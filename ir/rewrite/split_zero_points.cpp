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
    for (const Value& value : function.values) take(value.type);
    for (const TensorType& type : function.result_types) take(type);
  }

  std::string next() {
    std::string name;
    do {
      name = fmt::format("d{}", count_++);
    } while (taken_.contains(name));
    return name;
  }

 private:
  void take(const TensorType& type) {
    for (const Dim& dim : type.shape) taken_.insert(dim.name);
  }

  std::unordered_set<std::string> taken_;
  size_t count_ = 0;
};

bool is_single_matrix(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end() - std::min<ptrdiff_t>(std::ssize(shape), 2),
                     is_one);
}

/// By value, the constant that it is, or null.
using Constants = std::vector<const Operation*>;

Constants constants_of(const Function& function) {
  Constants constants(function.values.size(), nullptr);
  for (const Operation& operation : function.operations) {
    if (operation.op == OpKind::constant) constants[operation.results[0]] = &operation;
  }
  return constants;
}

/// Whether sums of columns of b less their zero points are known.
bool knows_column_sums(const Function& function, const Constants& constants,
                       const Operation& matmul) {
  const ValueId zero_point = matmul.operands[b_zero_point];
  const Shape& shape = function.type_of(matmul.operands[b]).shape;
  return shape.size() > 1 && is_single_matrix(shape) && constants[matmul.operands[b]] &&
         (zero_point == no_value || constants[zero_point]);
}

/// How a product is written as one without some of its zero points and a correction.
enum class Split : uint8_t {
  none,
  by_row_sums,     ///< without those of b
  by_column_sums,  ///< without those of a
};

Split split_of(const Function& function, const Constants& constants, const Operation& operation) {
  if (operation.op != OpKind::matmul_integer) return Split::none;
  if (!has_one_zero_point(function, operation, a) &&
      knows_column_sums(function, constants, operation)) {
    return Split::by_column_sums;
  }
  return one_convolution_suffices(function, operation) ? Split::none : Split::by_row_sums;
}

/// The element of a constant of bytes as a number modulo 2^32.
uint32_t number_of(const Operation& constant, ElementType type, size_t index) {
  const auto byte = static_cast<uint8_t>(constant.data->bytes[index]);
  return type == ElementType::i8 ? static_cast<uint32_t>(static_cast<int8_t>(byte)) : byte;
}

/// By column of a b that is known, the sum over k of b - b_zero_point modulo 2^32.
std::vector<uint32_t> column_sums(const Function& function, const Constants& constants,
                                  const Operation& matmul) {
  const TensorType& type = function.type_of(matmul.operands[b]);
  const Operation& matrix = *constants[matmul.operands[b]];
  const auto rows = static_cast<size_t>(type.shape[type.shape.size() - 2].extent);
  const auto columns = static_cast<size_t>(type.shape.back().extent);
  std::vector<uint32_t> sums(columns);
  for (size_t k = 0; k < rows; ++k) {
    for (size_t n = 0; n < columns; ++n) {
      sums[n] += number_of(matrix, type.element, k * columns + n);
    }
  }
  if (matmul.operands[b_zero_point] == no_value) return sums;
  const Operation& zero_points = *constants[matmul.operands[b_zero_point]];
  const bool is_one = zero_points.data->bytes.size() == 1;
  for (size_t n = 0; n < columns; ++n) {
    sums[n] -= static_cast<uint32_t>(rows) * number_of(zero_points, type.element, is_one ? 0 : n);
  }
  return sums;
}

/// Copies one function with its products split.
class Splitter {
 public:
  explicit Splitter(const Function& function)
      : function_(function),
        constants_(constants_of(function)),
        builder_(function.name),
        ids_(detail::append_parameters(builder_, function)) {}

  Result<FunctionPtr> run() {
    for (const Operation& operation : function_.operations) {
      if (!split(operation)) detail::append_copy(builder_, function_, operation, ids_);
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

  /// The builder's id of an operand that may be absent.
  ValueId operand(const Operation& matmul, Operand number) const {
    const ValueId value = matmul.operands[number];
    return value == no_value ? no_value : ids_[value];
  }

  bool split(const Operation& operation) {
    switch (split_of(function_, constants_, operation)) {
      case Split::by_row_sums: return split_by_row_sums(operation);
      case Split::by_column_sums: split_by_column_sums(operation); return true;
      case Split::none: break;
    }
    return false;
  }

  /// The result is the product less its correction.
  void finish(const Operation& matmul, ValueId product, ValueId correction) {
    const ValueId y = matmul.results[0];
    const std::string names[] = {function_.values[y].name};
    ids_[y] = builder_.append(
        {.op = OpKind::sub, .operands = {product, correction}, .where = matmul.where}, {}, names);
  }

  /// Zero points of a in i32, as [.., M, 1]. A reshape has them stored, so that kernels can
  /// broadcast them from memory.
  ValueId row_zero_points(const Operation& matmul) {
    Shape shape = shape_of(matmul, a_zero_point);
    const ValueId zeros = builder_.convert(operand(matmul, a_zero_point), ElementType::i32);
    if (shape.size() == 1) return builder_.reshape(zeros, {shape[0], Dim(1)});
    if (std::ranges::count_if(shape, is_open) > 1) return zeros;
    return builder_.reshape(builder_.reshape(zeros, {Dim::any()}), std::move(shape));
  }

  void split_by_column_sums(const Operation& matmul) {
    const std::vector<uint32_t> sums = column_sums(function_, constants_, matmul);
    const ValueId product = builder_.matmul_integer(operand(matmul, a), operand(matmul, b),
                                                    no_value, operand(matmul, b_zero_point));
    const ValueId sums_of_b =
        builder_.constant({ElementType::i32, {Dim(sums.size())}}, std::as_bytes(std::span(sums)));
    finish(matmul, product, builder_.binary(OpKind::mul, row_zero_points(matmul), sums_of_b));
  }

  /// Sums of rows of a less its zero points, as a product with ones.
  ValueId multiplied_rows(const Operation& matmul, const Dim& depth) {
    constexpr std::byte one[] = {std::byte{1}};
    const ValueId ones =
        builder_.broadcast(builder_.constant({ElementType::u8, {}}, one), {depth, Dim(1)});
    return builder_.matmul_integer(operand(matmul, a), ones, operand(matmul, a_zero_point));
  }

  /// The same where no shape can say how many ones there are.
  ValueId added_rows(const Operation& matmul) {
    ValueId numbers = builder_.convert(operand(matmul, a), ElementType::i32);
    if (operand(matmul, a_zero_point) != no_value) {
      ValueId zeros = row_zero_points(matmul);
      if (shape_of(matmul, a).size() == 1) zeros = builder_.reshape(zeros, {Dim(1)});
      numbers = builder_.binary(OpKind::sub, numbers, zeros);
    }
    return builder_.reduce(OpKind::reduce_sum, numbers, {.axes = {{-1}}, .keep_dims = true});
  }

  /// False, and nothing is added, where the types do not say enough.
  bool split_by_row_sums(const Operation& matmul) {
    const Dim depth = depth_of(matmul);
    Shape zeros = shape_of(matmul, b_zero_point);
    const bool drops_axis = shape_of(matmul, a).size() == 1 && zeros.size() > 1;
    if (drops_axis) zeros.erase(zeros.end() - 2);  // y has none for the row of a
    if (drops_axis && std::ranges::count_if(zeros, is_open) > 1) return false;

    const ValueId left = operand(matmul, a);
    const ValueId left_zero = operand(matmul, a_zero_point);
    // Before the product itself: of two convolutions that feed one nest, the later is fused.
    const ValueId sums = is_open(depth) ? added_rows(matmul) : multiplied_rows(matmul, depth);
    const ValueId product = builder_.matmul_integer(left, operand(matmul, b), left_zero);
    ValueId zero_points = builder_.convert(operand(matmul, b_zero_point), ElementType::i32);
    if (drops_axis) zero_points = builder_.reshape(zero_points, zeros);
    finish(matmul, product, builder_.binary(OpKind::mul, zero_points, sums));
    return true;
  }

  const Function& function_;
  const Constants constants_;
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

bool has_products(const Function& function) {
  return std::ranges::any_of(function.operations, [](const Operation& operation) {
    return operation.op == OpKind::matmul_integer;
  });
}

/// The first product that is no single convolution, or null.
const Operation* find_unsplit(const Function& function) {
  const auto found = std::ranges::find_if(function.operations, [&](const Operation& operation) {
    return operation.op == OpKind::matmul_integer && !one_convolution_suffices(function, operation);
  });
  return found == function.operations.end() ? nullptr : &*found;
}

/// The function with its products split, or null where none is.
FunctionPtr split_once(const Function& function) {
  if (!has_products(function)) return nullptr;
  const Constants constants = constants_of(function);
  const bool changes = std::ranges::any_of(function.operations, [&](const Operation& operation) {
    return split_of(function, constants, operation) != Split::none;
  });
  if (!changes) return nullptr;
  const Result<FunctionPtr> named = with_named_extents(function);
  const Result<FunctionPtr> split = named ? Splitter(**named).run() : named;
  const bool is_split = split && (*split)->operations.size() > function.operations.size();
  return is_split ? *split : nullptr;
}

}  // namespace

bool one_convolution_suffices(const Function& function, const Operation& matmul) {
  if (has_one_zero_point(function, matmul, b)) return true;
  return has_one_zero_point(function, matmul, a) &&
         is_single_matrix(function.type_of(matmul.operands[b]).shape);
}

FunctionPtr split_zero_points(const FunctionPtr& function) {
  // A product without the zero points of its b may know its column sums: it is split once more.
  FunctionPtr split = function;
  while (const FunctionPtr next = split_once(*split)) split = next;
  return split;
}

std::string reason_not_split(const Function& function) {
  const Operation* matmul = find_unsplit(function);
  if (matmul == nullptr) return {};
  return fmt::format(
      "%{} = matmul_integer: zero points of b by column and matrix, with a vector a, need extents "
      "that are numbers or have names, but for one of them; found a {} and b {}",
      function.values[matmul->results[0]].name,
      to_string(function.type_of(matmul->operands[a]).shape),
      to_string(function.type_of(matmul->operands[b]).shape));
}

}  // namespace castor
