// SPDX-License-Identifier: Apache-2.0
// Model files.
#pragma once

#include <filesystem>
#include <string_view>

#include "runtime/onnx/graph.hpp"

namespace castor::onnx_file {

/// The graph of a model file, connected: opsets 10 to 25, functions inlined, external data read. An
/// initializer that is also an input counts as a constant. Bodies of If, Loop and Scan are not
/// read; what they use of the graph are inputs of their node.
///
/// Refuses files that are no model, or contradict themselves (invalid_argument, io); messages name
/// the node or the value.
Result<onnx::Graph> read_model(const std::filesystem::path& file);

/// Reads a serialised model, whose external data is in `folder`.
Result<onnx::Graph> parse_model(std::string_view serialised, const std::filesystem::path& folder);

}  // namespace castor::onnx_file
