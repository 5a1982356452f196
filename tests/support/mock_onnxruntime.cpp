// SPDX-License-Identifier: Apache-2.0
#include "tests/support/mock_onnxruntime.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace castor::test {

namespace {

using namespace onnxruntime::abi;

int calls = 0;
int failing_call = -1;
int live = 0;
uint32_t served_version = 0;

OrtStatus* made(const std::string& message) {
  ++live;
  return new OrtStatus{message};
}

/// A status where this call is the one that fails.
OrtStatus* fault() { return calls++ == failing_call ? made("fault") : nullptr; }

/// Gives `value` through `out`, or fails.
template <class Out, class Value>
OrtStatus* give(Out* out, Value value) {
  if (OrtStatus* status = fault()) return status;
  *out = value;
  return nullptr;
}

template <class List, class Out>
OrtStatus* give_list(const List& list, Out* out, size_t count) {
  if (OrtStatus* status = fault()) return status;
  if (count < list.size()) return made("too little room");
  std::copy(list.begin(), list.end(), out);
  return nullptr;
}

[[noreturn]] void trap() {
  std::fputs("the plugin called a slot that it has no business with\n", stderr);
  std::abort();
}

constexpr size_t slots = 430;
std::array<void*, slots> api;
std::array<void*, 80> provider_api;

template <class Table, class Signature, class Function>
void set(Table& table, Slot<Signature> slot, Function function) {
  if (slot.since > served_version) return;
  Signature* typed = function;
  table[slot.index] = reinterpret_cast<void*>(typed);
}

OrtStatus* get_output(OrtKernelContext* context, size_t index, const int64_t* extents, size_t rank,
                      OrtValue** out) {
  if (OrtStatus* status = fault()) return status;
  OrtValue& value = *context->outputs[index];
  value.info.extents.assign(extents, extents + rank);
  size_t count = 1;
  for (size_t axis = 0; axis < rank; ++axis) count *= static_cast<size_t>(extents[axis]);
  value.bytes.assign(count * (value.info.type == 2 ? 1 : 4), std::byte{0xa5});
  *out = &value;
  return nullptr;
}

OrtStatus* parallel_for(const OrtKernelContext*, void (*task)(void*, size_t), size_t count, size_t,
                        void* user) {
  if (OrtStatus* status = fault()) return status;
  for (size_t i = count; i-- > 0;) task(user, i);  // any order will do
  return nullptr;
}

OrtStatus* read_attribute(const OrtOpAttr* attribute, int, void* data, size_t size, size_t* out) {
  if (OrtStatus* status = fault()) return status;
  *out = attribute->integers.size() * sizeof(int64_t);
  if (size < *out) return made("too small");
  std::memcpy(data, attribute->integers.data(), *out);
  return nullptr;
}

OrtStatus* get_entry(const OrtSessionOptions* options, const char* key, char* out, size_t* size) {
  if (OrtStatus* status = fault()) return status;
  const std::string& value = options->entries.at(key);
  if (out != nullptr) std::memcpy(out, value.c_str(), value.size() + 1);
  *size = value.size() + 1;
  return nullptr;
}

void fill_values() {
  set(api, CreateStatus, [](OrtErrorCode, const char* message) { return made(message); });
  set(api, GetErrorMessage, [](const OrtStatus* status) { return status->message.c_str(); });
  set(api, ReleaseStatus, [](OrtStatus* status) {
    --live;
    delete status;
  });
  set(api, GetTensorMutableData, [](OrtValue* value, void** out) {
    return give(out, static_cast<void*>(value->bytes.data()));
  });
  set(api, GetTensorData, [](const OrtValue* value, const void** out) {
    return give(out, static_cast<const void*>(value->bytes.data()));
  });
  set(api, GetTensorTypeAndShape, [](const OrtValue* value, OrtTensorTypeAndShapeInfo** out) {
    if (OrtStatus* status = fault()) return status;
    ++live;
    *out = new OrtTensorTypeAndShapeInfo(value->info);
    return static_cast<OrtStatus*>(nullptr);
  });
  set(api, ReleaseTensorTypeAndShapeInfo, [](OrtTensorTypeAndShapeInfo* info) {
    --live;
    delete info;
  });
  set(api, GetTensorElementType,
      [](const OrtTensorTypeAndShapeInfo* info, int* out) { return give(out, info->type); });
  set(api, GetDimensionsCount, [](const OrtTensorTypeAndShapeInfo* info, size_t* out) {
    return give(out, info->extents.size());
  });
  set(api, GetDimensions, [](const OrtTensorTypeAndShapeInfo* info, int64_t* out, size_t count) {
    return give_list(info->extents, out, count);
  });
  set(api, GetSymbolicDimensions,
      [](const OrtTensorTypeAndShapeInfo* info, const char** out, size_t count) {
        if (OrtStatus* status = fault()) return status;
        for (size_t i = 0; i < count; ++i) {
          out[i] = i < info->names.size() ? info->names[i].c_str() : "";
        }
        return static_cast<OrtStatus*>(nullptr);
      });
  set(api, CastTypeInfoToTensorInfo,
      [](const OrtTypeInfo* info, const OrtTensorTypeAndShapeInfo** out) {
        return give(out, &info->tensor);
      });
  set(api, TensorTypeAndShape_HasShape, [](const OrtTensorTypeAndShapeInfo*) { return true; });
  set(api, GetTensorElementTypeAndShapeDataReference,
      [](const OrtValue* value, int* type, const int64_t** extents, size_t* rank) {
        if (OrtStatus* status = fault()) return status;
        *type = value->info.type;
        *extents = value->info.extents.data();
        *rank = value->info.extents.size();
        return static_cast<OrtStatus*>(nullptr);
      });
  set(api, KernelContext_GetInput,
      [](const OrtKernelContext* context, size_t i, const OrtValue** out) {
        return give(out, context->inputs[i]);
      });
  set(api, KernelContext_GetOutput, get_output);
  set(api, KernelContext_ParallelFor, parallel_for);
}

void fill_graph() {
  set(api, GetValueInfoName,
      [](const OrtValueInfo* value, const char** out) { return give(out, value->name.c_str()); });
  set(api, GetValueInfoTypeInfo,
      [](const OrtValueInfo* value, const OrtTypeInfo** out) { return give(out, &value->type); });
  set(api, ValueInfo_GetInitializerValue,
      [](const OrtValueInfo* value, const OrtValue** out) { return give(out, value->constant); });
  set(api, ValueInfo_IsGraphOutput,
      [](const OrtValueInfo* value, bool* out) { return give(out, value->is_output); });
  set(api, ValueInfo_IsConstantInitializer,
      [](const OrtValueInfo* value, bool* out) { return give(out, value->constant != nullptr); });
  set(api, Graph_GetNumNodes,
      [](const OrtGraph* graph, size_t* out) { return give(out, graph->nodes.size()); });
  set(api, Graph_GetNodes, [](const OrtGraph* graph, const OrtNode** out, size_t count) {
    return give_list(graph->nodes, out, count);
  });
  set(api, Node_GetName,
      [](const OrtNode* node, const char** out) { return give(out, node->name.c_str()); });
  set(api, Node_GetOperatorType,
      [](const OrtNode* node, const char** out) { return give(out, node->op_type.c_str()); });
  set(api, Node_GetDomain, [](const OrtNode*, const char** out) { return give(out, ""); });
  set(api, Node_GetSinceVersion, [](const OrtNode*, int* out) { return give(out, 13); });
  set(api, Node_GetNumInputs,
      [](const OrtNode* node, size_t* out) { return give(out, node->inputs.size()); });
  set(api, Node_GetInputs, [](const OrtNode* node, const OrtValueInfo** out, size_t count) {
    return give_list(node->inputs, out, count);
  });
  set(api, Node_GetNumOutputs,
      [](const OrtNode* node, size_t* out) { return give(out, node->outputs.size()); });
  set(api, Node_GetOutputs, [](const OrtNode* node, const OrtValueInfo** out, size_t count) {
    return give_list(node->outputs, out, count);
  });
  set(api, Node_GetNumImplicitInputs,
      [](const OrtNode*, size_t* out) { return give(out, size_t{0}); });
  set(api, Node_GetImplicitInputs,
      [](const OrtNode*, const OrtValueInfo**, size_t) { return fault(); });
  set(api, Node_GetNumAttributes,
      [](const OrtNode* node, size_t* out) { return give(out, node->attributes.size()); });
  set(api, Node_GetAttributes, [](const OrtNode* node, const OrtOpAttr** out, size_t count) {
    return give_list(node->attributes, out, count);
  });
  set(api, OpAttr_GetType,
      [](const OrtOpAttr* attribute, int* out) { return give(out, attribute->type); });
  set(api, OpAttr_GetName, [](const OrtOpAttr* attribute, const char** out) {
    return give(out, attribute->name.c_str());
  });
  set(api, ReadOpAttr, read_attribute);
}

void fill_session() {
  set(api, HasSessionConfigEntry, [](const OrtSessionOptions* options, const char* key, int* out) {
    return give(out, static_cast<int>(options->entries.count(key)));
  });
  set(api, GetSessionConfigEntry, get_entry);
  set(api, Logger_GetLoggingSeverityLevel,
      [](const OrtLogger*, OrtLoggingLevel* out) { return give(out, ORT_VERBOSE); });
  set(api, Logger_LogMessage,
      [](const OrtLogger* logger, OrtLoggingLevel, const char* message, const char*, int,
         const char*) {
        if (OrtStatus* status = fault()) return status;
        logger->messages->push_back(message);
        return static_cast<OrtStatus*>(nullptr);
      });
  set(api, HardwareDevice_Type, [](const OrtHardwareDevice* device) { return device->type; });
  set(api, GetEpApi, [] { return reinterpret_cast<const OrtEpApi*>(provider_api.data()); });
  set(provider_api, CreateEpDevice,
      [](OrtEpFactory* factory, const OrtHardwareDevice*, const OrtKeyValuePairs*,
         const OrtKeyValuePairs*, OrtEpDevice** out) {
        if (OrtStatus* status = fault()) return status;
        *out = new OrtEpDevice{factory};
        return static_cast<OrtStatus*>(nullptr);
      });
  set(provider_api, EpGraphSupportInfo_AddNodesToFuse,
      [](OrtEpGraphSupportInfo* info, const OrtNode* const* nodes, size_t count,
         const OrtNodeFusionOptions*) {
        if (OrtStatus* status = fault()) return status;
        info->groups.emplace_back(nodes, nodes + count);
        return static_cast<OrtStatus*>(nullptr);
      });
}

std::string version_text;

/// The first version's table has always been there; it is a part of those that came after it.
const OrtApi* get_api(uint32_t version) {
  unsigned minor = 0;
  std::sscanf(version_text.c_str(), "1.%u", &minor);
  if (version > minor && version != 1) return nullptr;
  if (version == 1 && served_version != 0) return reinterpret_cast<const OrtApi*>(api.data());
  served_version = std::max(version, oldest_version);
  api.fill(reinterpret_cast<void*>(&trap));
  provider_api.fill(reinterpret_cast<void*>(&trap));
  fill_values();
  fill_graph();
  fill_session();
  return reinterpret_cast<const OrtApi*>(api.data());
}

}  // namespace

const OrtApiBase* mock_onnxruntime(const char* version) {
  static const OrtApiBase base = {get_api, [] { return version_text.c_str(); }};
  version_text = version;
  return &base;
}

void fail_call(int number) {
  failing_call = number;
  calls = 0;
}
int counted_calls() { return calls; }
int unreleased() { return live; }

}  // namespace castor::test
