// SPDX-License-Identifier: Apache-2.0
// Tensors of model files.
#pragma once

#include <filesystem>

#include "runtime/onnx/graph.hpp"

namespace castor::onnx_file {

class TensorProto;

/// The tensor, known as `binding` in texts; its elements are in the message or, where `folder` is
/// given, may be in a file inside that folder. Refuses (invalid_argument) extents that are negative
/// or overflow, data of another size than the shape says, and files outside the folder; fails with
/// `unsupported` for element types that castor lacks and with `io` for files that cannot be read.
Result<onnx::Tensor> read_tensor(const TensorProto& tensor,
                                 const std::filesystem::path* folder = nullptr,
                                 std::string binding = {});

}  // namespace castor::onnx_file
