// SPDX-License-Identifier: Apache-2.0
// Tensors in .npy files, element types that NumPy lacks included.
#pragma once

#include <string>
#include <vector>

#include "ir/types/view.hpp"
#include "tools/castor/npy.hpp"

namespace castor::tools {

/// The element type of the .npy file that holds tensors of `type`: the type itself where NumPy
/// has it, else unsigned integers of the same width holding the raw bits (bf16: u16, f8e4m3: u8).
/// Tensors of elements narrower than a byte travel as their bytes: u8, of one dimension.
ElementType carrier_of(ElementType type);

/// Reads the tensor that `path` holds or carries; `what` names its role in messages. The bytes of
/// elements narrower than a byte become a tensor of one dimension, with as many elements as they
/// hold; see give_shape.
Result<Array> read_tensor(const std::string& path, ElementType type, std::string_view what);

/// Gives the elements read from packed bytes a shape, which must take exactly these bytes.
Status give_shape(Array& array, const Dims& shape, std::string_view what);

/// Reads a tensor of exactly this type, whose dimensions are fixed, as dense bytes in C order.
Result<std::vector<std::byte>> read_dense(const std::string& path, const TensorType& type);

/// Memory for one dense tensor.
struct OutputTensor {
  ElementType element = ElementType::f32;
  Dims shape;
  std::vector<std::byte> bytes;

  View view() { return {bytes.data(), element, shape, bytes.size()}; }
};

/// Allocates; fails (invalid_argument) for a size that overflows.
Result<OutputTensor> make_output(ElementType type, const Dims& shape);

/// Writes the tensor, or its raw bits in the carrier's type, or its bytes.
Status write_tensor(const std::string& path, const OutputTensor& tensor);

}  // namespace castor::tools
