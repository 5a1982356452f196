// SPDX-License-Identifier: Apache-2.0
// A host that looks like ONNX Runtime to the plugin: one model, whose calls can be made to fail.
//
// Handles are plain structures. Slots that the plugin has no business with end the process, so does
// a slot of a newer version than the one that was agreed on.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/onnxruntime/abi.hpp"

namespace castor::onnxruntime::abi {

struct OrtStatus {
  std::string message;
};
struct OrtTensorTypeAndShapeInfo {
  int type = 0;
  std::vector<int64_t> extents;
  std::vector<std::string> names;
};
struct OrtTypeInfo {
  OrtTensorTypeAndShapeInfo tensor;
};
struct OrtValue {
  OrtTensorTypeAndShapeInfo info;
  std::vector<std::byte> bytes;
};
struct OrtValueInfo {
  std::string name;
  OrtTypeInfo type;
  bool is_output = false;
  const OrtValue* constant = nullptr;
};
struct OrtOpAttr {
  std::string name;
  int type = 0;
  std::vector<int64_t> integers;
};
struct OrtNode {
  std::string name, op_type;
  std::vector<const OrtValueInfo*> inputs, outputs;
  std::vector<const OrtOpAttr*> attributes;
};
struct OrtGraph {
  std::vector<const OrtNode*> nodes;
};
struct OrtKernelContext {
  std::vector<const OrtValue*> inputs;
  std::vector<std::unique_ptr<OrtValue>> outputs;
};
struct OrtSessionOptions {
  std::map<std::string, std::string> entries;
};
struct OrtLogger {
  std::vector<std::string>* messages = nullptr;
};
struct OrtHardwareDevice {
  OrtHardwareDeviceType type = OrtHardwareDeviceType_CPU;
};
struct OrtEpDevice {
  OrtEpFactory* factory = nullptr;
};
struct OrtEpGraphSupportInfo {
  std::vector<std::vector<const OrtNode*>> groups;
};

}  // namespace castor::onnxruntime::abi

namespace castor::test {

/// The host of that version, such as "1.24.0", as CreateEpFactories gets it. One at a time.
const onnxruntime::abi::OrtApiBase* mock_onnxruntime(const char* version);

/// Lets the call of that number, counted from here on, fail; -1: none. Calls that give no status do
/// not count.
void fail_call(int number);
/// How many calls there were since then.
int counted_calls();
/// Statuses, tensors and type infos that the plugin has not released yet.
int unreleased();

}  // namespace castor::test
