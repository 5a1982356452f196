// SPDX-License-Identifier: Apache-2.0
#include "runtime/bind/bind_matmul.hpp"

#include <algorithm>

#include "jit/plan/access_pattern.hpp"
#include "runtime/bind/transpose_bytes.hpp"

namespace castor::detail {

namespace {

/// Operands of `matmul_integer`; zero points follow in the same order.
constexpr size_t operand_a = 0;
constexpr size_t operand_b = 1;

/// What the content of a constant is called that is packed transposed.
constexpr uint64_t transposed_content = 0x7472616e73706f73;

bool is_dense(const TensorOrigin& tensor) {
  const Dims dense = dense_strides(tensor.extents);
  return jit::reshaped_strides(tensor.extents, tensor.strides, tensor.extents) ==
         jit::reshaped_strides(tensor.extents, dense, tensor.extents);
}

/// A value of a nest that reshaped strides can say.
TensorOrigin tensor_of(ValueId value, const Function& function, ValueOrigins& origins) {
  const ValueId root = origins.root_of(value);
  TensorOrigin tensor = origins.of_root(root, function.type_of(value).element);
  const Dims& extents = origins.extents_of(value);
  if (root == value) return tensor;
  tensor.strides = *jit::reshaped_strides(tensor.extents, tensor.strides, extents);
  tensor.extents = extents;
  return tensor;
}

/// The tensor repeated along axes of extent 1 of its own, and along leading ones that it lacks.
TensorOrigin broadcast(const TensorOrigin& tensor, const Dims& extents) {
  TensorOrigin result = {tensor.origin, extents, Dims::filled(extents.rank(), 0)};
  const int missing = extents.rank() - tensor.extents.rank();
  for (int axis = std::max(missing, 0); axis < extents.rank(); ++axis) {
    if (tensor.extents[axis - missing] == 1) continue;
    result.strides[axis] = tensor.strides[axis - missing];
  }
  return result;
}

/// With the last two axes exchanged; of rank 1, as a column.
TensorOrigin transposed(TensorOrigin matrix) {
  if (matrix.extents.rank() == 1)
    return {matrix.origin, {1, matrix.extents[0]}, {0, matrix.strides[0]}};
  const int last = matrix.extents.rank() - 1;
  std::swap(matrix.extents[last], matrix.extents[last - 1]);
  std::swap(matrix.strides[last], matrix.strides[last - 1]);
  return matrix;
}

/// Whether b, and its zero points where it has some, are constants with elements.
bool is_packed_ahead(const Operation& matmul, const Function& function, ValueOrigins& origins) {
  const auto is_constant = [&](ValueId value) {
    return tensor_of(value, function, origins).origin.constant != nullptr;
  };
  const ValueId zero_point = matmul.operands[operand_b + 2];
  return is_constant(matmul.operands[operand_b]) &&
         (zero_point == no_value || is_constant(zero_point));
}

/// Adds the operands of one product's convolution to a step.
class MatmulTensors {
 public:
  MatmulTensors(const Operation& matmul, const Function& function,
                const jit::MatmulConvolution& convolution, ValueOrigins& origins,
                const BindTensorCopy& copy, ConvolutionStep& step)
      : matmul_(matmul),
        function_(function),
        convolution_(convolution),
        origins_(origins),
        copy_(copy),
        step_(step),
        image_(convolution.image == jit::MatmulImage::a ? operand_a : operand_b) {}

  Result<ConvolutionTensors> run() {
    tensors_.geometry = convolution_.geometry;
    Status status = add_matrix(image_);
    if (status) status = image_ == operand_a ? add_transposed_b() : add_matrix(operand_a);
    if (status) status = add_image_zero_point();
    if (status) status = add_weight_zero_points();
    if (!status) return status.error();
    tensors_.operands.x_is_signed = step_.operands[0].element == ElementType::i8;
    tensors_.operands.w_is_signed = step_.operands[1].element == ElementType::i8;
    return std::move(tensors_);
  }

 private:
  size_t weights() const { return 1 - image_; }
  ValueId zero_point_of(size_t operand) const { return matmul_.operands[operand + 2]; }
  ElementType element_of(ValueId value) const { return function_.type_of(value).element; }
  TensorOrigin tensor_of(ValueId value) { return detail::tensor_of(value, function_, origins_); }

  /// An operand of the step that is read from where it is stored.
  void add(ValueId value, const TensorOrigin& tensor) {
    const size_t number = step_.operands.size();
    step_.operands.push_back({tensor.origin, element_of(value), false});
    tensors_.constants.push_back(tensor.origin.constant);
    if (tensor.origin.constant == nullptr) return;
    tensors_.sharing.contents[number] = origins_.content_of(origins_.root_of(value)).words();
  }

  /// An operand of the step that is stored densely, or copied.
  Status add_dense(ValueId value, const TensorOrigin& tensor) {
    if (is_dense(tensor)) {
      add(value, tensor);
      return {};
    }
    const int64_t bytes = element_count(tensor.extents).value_or(0);
    const size_t offset = origins_.scratch().take(static_cast<size_t>(bytes));
    tensors_.copies.push_back(offset);
    const TensorOrigin to = {{.kind = OperandOrigin::Kind::scratch, .offset = offset},
                             tensor.extents,
                             dense_strides(tensor.extents)};
    add(value, to);
    return copy_(tensor, to, element_of(value));
  }

  /// a or b as it is, with the batches that the convolution reads.
  Status add_matrix(size_t operand) {
    const ValueId value = matmul_.operands[operand];
    TensorOrigin tensor = tensor_of(value);
    const Dims& batch = operand == operand_a ? convolution_.a_batch : convolution_.b_batch;
    const int rank = tensor.extents.rank();
    if (rank < 2) return add_dense(value, tensor);
    Dims extents = batch;
    extents.push_back(tensor.extents[rank - 2]);
    extents.push_back(tensor.extents[rank - 1]);
    return add_dense(value, broadcast(tensor, extents));
  }

  /// The weights are b, transposed: a constant is when its packed weights are made.
  Status add_transposed_b() {
    const ValueId value = matmul_.operands[operand_b];
    const TensorOrigin b = tensor_of(value);
    const TensorOrigin weights = transposed(b);
    if (is_dense(weights) || !is_packed_ahead(matmul_, function_, origins_)) {
      return add_dense(value, weights);
    }
    add(value, b);
    const ConvolutionGeometry& geometry = tensors_.geometry;
    tensors_.transposed.resize(static_cast<size_t>(geometry.channels * geometry.out_channels));
    transpose_bytes(b.origin.constant, geometry.channels, geometry.out_channels,
                    tensors_.transposed.data());
    tensors_.constants.back() = tensors_.transposed.data();
    (*tensors_.sharing.contents[1])[0] ^= transposed_content;
    return {};
  }

  Status add_image_zero_point() {
    const ValueId value = zero_point_of(image_);
    if (value == no_value) return {};
    tensors_.operands.x_zero_point = static_cast<int>(step_.operands.size());
    add(value, tensor_of(value));
    return {};
  }

  /// One, or one for each output channel.
  Status add_weight_zero_points() {
    const ValueId value = zero_point_of(weights());
    if (value == no_value) return {};
    tensors_.operands.w_zero_point = static_cast<int>(step_.operands.size());
    TensorOrigin tensor = tensor_of(value);
    if (element_count(tensor.extents).value_or(0) == 1) {
      add(value, tensor);
      return {};
    }
    tensors_.operands.zero_points_per_channel = true;
    if (weights() == operand_a) return add_dense(value, by_row(tensor));
    return add_dense(value, tensor);
  }

  /// Zero points of a as [batch.., M], for every batch that the convolution has of a.
  TensorOrigin by_row(TensorOrigin tensor) const {
    if (tensor.extents.rank() > 1) {  // [D.., M, 1]
      const int last = tensor.extents.rank() - 1;
      const auto without_last = [&](const Dims& all) {
        return Dims(std::span(all.begin(), static_cast<size_t>(last)));
      };
      tensor = {tensor.origin, without_last(tensor.extents), without_last(tensor.strides)};
    }
    Dims extents = convolution_.a_batch;
    const Dims& a = origins_.extents_of(matmul_.operands[operand_a]);
    extents.push_back(a.rank() == 1 ? 1 : a[a.rank() - 2]);
    return broadcast(tensor, extents);
  }

  const Operation& matmul_;
  const Function& function_;
  const jit::MatmulConvolution& convolution_;
  ValueOrigins& origins_;
  const BindTensorCopy& copy_;
  ConvolutionStep& step_;
  const size_t image_;
  ConvolutionTensors tensors_;
};

}  // namespace

Result<jit::MatmulConvolution> bind_matmul(const Operation& matmul, const Function& function,
                                           ValueOrigins& origins, const jit::Target& target) {
  const auto extents = [&](size_t operand) {
    const ValueId value = matmul.operands[operand];
    return value == no_value ? nullptr : &origins.extents_of(value);
  };
  const Result<MatmulGeometry> geometry =
      matmul_geometry(*extents(0), *extents(1), extents(2), extents(3));
  if (!geometry.ok()) return geometry.error();
  const TensorOrigin b = tensor_of(matmul.operands[operand_b], function, origins);
  const jit::MatmulStorage storage = {.b_is_constant = is_packed_ahead(matmul, function, origins),
                                      .b_is_transposed = is_dense(transposed(b)) && !is_dense(b)};
  if (auto by_image = matmul_by_image(*geometry, storage, target)) return *std::move(by_image);
  if (auto convolution = jit::matmul_convolution(*geometry, storage)) {
    return *std::move(convolution);
  }
  return Error{ErrorCode::internal, "matmul_integer: no convolution takes its zero points"};
}

Result<ConvolutionTensors> add_matmul_tensors(const Operation& matmul, const Function& function,
                                              const jit::MatmulConvolution& convolution,
                                              ValueOrigins& origins, const BindTensorCopy& copy,
                                              ConvolutionStep& step) {
  return MatmulTensors(matmul, function, convolution, origins, copy, step).run();
}

}  // namespace castor::detail
