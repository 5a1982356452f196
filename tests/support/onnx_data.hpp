// SPDX-License-Identifier: Apache-2.0
// Where ONNX's node tests may be: the directory that CASTOR_ONNX_NODE_DATA names, else
// shared/data/onnx-node beside the source directory; and that of Debian's libonnx-testdata.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>

namespace castor::test {

inline constexpr const char* debian_onnx_data = "/usr/share/libonnx-testdata/data/node";

/// Reasons to skip a test, for want of optional data.
inline constexpr const char* no_debian_onnx_data = "no data: libonnx-testdata is not installed";
inline constexpr const char* no_shared_onnx_data =
    "no data: CASTOR_ONNX_NODE_DATA is not set, and there is no " CASTOR_SHARED_ONNX_DATA;

struct OnnxData {
  std::filesystem::path folder;
  bool named = false;  ///< by the user: any part of ONNX's data
};

/// The named data, else the shared data, else nothing. Throws std::runtime_error where the
/// directory that the user names is not there: that is no reason to skip.
inline std::optional<OnnxData> named_or_shared_onnx_data() {
  if (const char* named = std::getenv("CASTOR_ONNX_NODE_DATA")) {
    if (std::filesystem::is_directory(named)) return OnnxData{named, true};
    throw std::runtime_error(std::string("CASTOR_ONNX_NODE_DATA names no directory: ") + named);
  }
  if (!std::filesystem::is_directory(CASTOR_SHARED_ONNX_DATA)) return std::nullopt;
  return OnnxData{CASTOR_SHARED_ONNX_DATA, false};
}

}  // namespace castor::test
