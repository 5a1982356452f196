// SPDX-License-Identifier: Apache-2.0
// The part of ONNX Runtime's C interface that the plugin uses, declared here so that it is built
// without ONNX Runtime. Tables of functions only ever grow, so a function is known by its slot;
// tests/runtime/onnxruntime compares the slots with the real header where there is one.
// Source: onnxruntime_c_api.h and onnxruntime_ep_c_api.h, versions 1.23 to 1.30.
#pragma once

#include <cstddef>
#include <cstdint>

namespace castor::onnxruntime::abi {

/// The newest version whose functions are used here, and the oldest that has plugins.
inline constexpr uint32_t newest_version = 24;
inline constexpr uint32_t oldest_version = 23;

// ---- Handles, all opaque.
struct OrtStatus;
struct OrtValue;
struct OrtGraph;
struct OrtNode;
struct OrtOpAttr;
struct OrtValueInfo;
struct OrtTypeInfo;
struct OrtTensorTypeAndShapeInfo;
struct OrtKernelContext;
struct OrtNodeComputeContext;
struct OrtSessionOptions;
struct OrtLogger;
struct OrtHardwareDevice;
struct OrtKeyValuePairs;
struct OrtEpDevice;
struct OrtEpGraphSupportInfo;
struct OrtAllocator;
struct OrtMemoryInfo;
struct OrtMemoryDevice;
struct OrtDataTransferImpl;
struct OrtSyncStreamImpl;

// ---- Enumerations, by the numbers that are used.
enum OrtErrorCode : int { ORT_FAIL = 1 };
enum OrtLoggingLevel : int { ORT_VERBOSE = 0, ORT_WARNING = 2 };
enum OrtHardwareDeviceType : int { OrtHardwareDeviceType_CPU = 0 };
enum OrtCompiledModelCompatibility : int { OrtCompiledModelCompatibility_EP_NOT_APPLICABLE = 0 };
enum OrtOpAttrType : int {
  ORT_OP_ATTR_INT = 1,
  ORT_OP_ATTR_INTS = 2,
  ORT_OP_ATTR_FLOAT = 3,
  ORT_OP_ATTR_FLOATS = 4,
  ORT_OP_ATTR_STRING = 5,
  ORT_OP_ATTR_TENSOR = 8,
};

// ---- Tables that ONNX Runtime hands out.
struct OrtApi {
  void* slots[1];  ///< as many as its version has
};
struct OrtEpApi {
  void* slots[1];
};
struct OrtApiBase {
  const OrtApi* (*GetApi)(uint32_t version);
  const char* (*GetVersionString)();
};

/// A function of such a table.
template <class Signature>
struct Slot {
  size_t index;
  uint32_t since = oldest_version;
};

template <class Result, class... Arguments>
auto at(const OrtApi* api, Slot<Result(Arguments...)> slot) {
  return reinterpret_cast<Result (*)(Arguments...)>(api->slots[slot.index]);
}
template <class Result, class... Arguments>
auto at(const OrtEpApi* api, Slot<Result(Arguments...)> slot) {
  return reinterpret_cast<Result (*)(Arguments...)>(api->slots[slot.index]);
}

// clang-format off
inline constexpr Slot<OrtStatus*(OrtErrorCode, const char*)> CreateStatus{0};
inline constexpr Slot<const char*(const OrtStatus*)> GetErrorMessage{2};
inline constexpr Slot<void(OrtStatus*)> ReleaseStatus{93};

inline constexpr Slot<OrtStatus*(OrtValue*, void**)> GetTensorMutableData{51};
inline constexpr Slot<OrtStatus*(const OrtValue*, const void**)> GetTensorData{378};
inline constexpr Slot<OrtStatus*(const OrtValue*, OrtTensorTypeAndShapeInfo**)> GetTensorTypeAndShape{65};
inline constexpr Slot<void(OrtTensorTypeAndShapeInfo*)> ReleaseTensorTypeAndShapeInfo{99};
inline constexpr Slot<OrtStatus*(const OrtTensorTypeAndShapeInfo*, int*)> GetTensorElementType{60};
inline constexpr Slot<OrtStatus*(const OrtTensorTypeAndShapeInfo*, size_t*)> GetDimensionsCount{61};
inline constexpr Slot<OrtStatus*(const OrtTensorTypeAndShapeInfo*, int64_t*, size_t)> GetDimensions{62};
inline constexpr Slot<OrtStatus*(const OrtTensorTypeAndShapeInfo*, const char**, size_t)> GetSymbolicDimensions{63};
inline constexpr Slot<OrtStatus*(const OrtTypeInfo*, const OrtTensorTypeAndShapeInfo**)> CastTypeInfoToTensorInfo{55};
inline constexpr Slot<bool(const OrtTensorTypeAndShapeInfo*)> TensorTypeAndShape_HasShape{390, 24};
inline constexpr Slot<OrtStatus*(const OrtValue*, int*, const int64_t**, size_t*)> GetTensorElementTypeAndShapeDataReference{414, 24};
inline constexpr Slot<void(OrtValue*)> ReleaseValue{96};

inline constexpr Slot<OrtStatus*(const OrtKernelContext*, size_t, const OrtValue**)> KernelContext_GetInput{90};
inline constexpr Slot<OrtStatus*(OrtKernelContext*, size_t, const int64_t*, size_t, OrtValue**)> KernelContext_GetOutput{91};
inline constexpr Slot<OrtStatus*(const OrtKernelContext*, void (*)(void*, size_t), size_t, size_t, void*)> KernelContext_ParallelFor{274};

inline constexpr Slot<OrtStatus*(const OrtSessionOptions*, const char*, int*)> HasSessionConfigEntry{237};
inline constexpr Slot<OrtStatus*(const OrtSessionOptions*, const char*, char*, size_t*)> GetSessionConfigEntry{238};
inline constexpr Slot<OrtStatus*(const OrtLogger*, OrtLoggingLevel, const char*, const char*, int, const char*)> Logger_LogMessage{247};
inline constexpr Slot<OrtStatus*(const OrtLogger*, OrtLoggingLevel*)> Logger_GetLoggingSeverityLevel{248};
inline constexpr Slot<OrtHardwareDeviceType(const OrtHardwareDevice*)> HardwareDevice_Type{307};
inline constexpr Slot<const OrtEpApi*()> GetEpApi{317};

inline constexpr Slot<OrtStatus*(const OrtValueInfo*, const char**)> GetValueInfoName{289};
inline constexpr Slot<OrtStatus*(const OrtValueInfo*, const OrtTypeInfo**)> GetValueInfoTypeInfo{290};
inline constexpr Slot<OrtStatus*(const OrtValueInfo*, const OrtValue**)> ValueInfo_GetInitializerValue{326};
inline constexpr Slot<OrtStatus*(const OrtValueInfo*, bool*)> ValueInfo_IsGraphOutput{330};
inline constexpr Slot<OrtStatus*(const OrtValueInfo*, bool*)> ValueInfo_IsConstantInitializer{331};

inline constexpr Slot<OrtStatus*(const OrtGraph*, size_t*)> Graph_GetNumNodes{344};
inline constexpr Slot<OrtStatus*(const OrtGraph*, const OrtNode**, size_t)> Graph_GetNodes{345};

inline constexpr Slot<OrtStatus*(const OrtNode*, const char**)> Node_GetName{349};
inline constexpr Slot<OrtStatus*(const OrtNode*, const char**)> Node_GetOperatorType{350};
inline constexpr Slot<OrtStatus*(const OrtNode*, const char**)> Node_GetDomain{351};
inline constexpr Slot<OrtStatus*(const OrtNode*, int*)> Node_GetSinceVersion{352};
inline constexpr Slot<OrtStatus*(const OrtNode*, size_t*)> Node_GetNumInputs{353};
inline constexpr Slot<OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t)> Node_GetInputs{354};
inline constexpr Slot<OrtStatus*(const OrtNode*, size_t*)> Node_GetNumOutputs{355};
inline constexpr Slot<OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t)> Node_GetOutputs{356};
inline constexpr Slot<OrtStatus*(const OrtNode*, size_t*)> Node_GetNumImplicitInputs{357};
inline constexpr Slot<OrtStatus*(const OrtNode*, const OrtValueInfo**, size_t)> Node_GetImplicitInputs{358};
inline constexpr Slot<OrtStatus*(const OrtNode*, size_t*)> Node_GetNumAttributes{359};
inline constexpr Slot<OrtStatus*(const OrtNode*, const OrtOpAttr**, size_t)> Node_GetAttributes{360};
inline constexpr Slot<OrtStatus*(const OrtOpAttr*, OrtValue**)> OpAttr_GetTensorAttributeAsOrtValue{362};
inline constexpr Slot<OrtStatus*(const OrtOpAttr*, int*)> OpAttr_GetType{363};
inline constexpr Slot<OrtStatus*(const OrtOpAttr*, const char**)> OpAttr_GetName{364};
inline constexpr Slot<OrtStatus*(const OrtOpAttr*, int, void*, size_t, size_t*)> ReadOpAttr{272};
// clang-format on

// ---- Structures of the plugin. ONNX Runtime reads the members of `ort_version_supported`.
struct OrtNodeFusionOptions {
  uint32_t ort_version_supported;
  bool drop_constant_initializers;
};

struct OrtNodeComputeInfo {
  uint32_t ort_version_supported;
  OrtStatus* (*CreateState)(OrtNodeComputeInfo*, OrtNodeComputeContext*, void** state);
  OrtStatus* (*Compute)(OrtNodeComputeInfo*, void* state, OrtKernelContext*);
  void (*ReleaseState)(OrtNodeComputeInfo*, void* state);
};

struct OrtEp {
  uint32_t ort_version_supported;
  const char* (*GetName)(const OrtEp*);
  OrtStatus* (*GetCapability)(OrtEp*, const OrtGraph*, OrtEpGraphSupportInfo*);
  OrtStatus* (*Compile)(OrtEp*, const OrtGraph** graphs, const OrtNode** fused_nodes, size_t count,
                        OrtNodeComputeInfo** infos, OrtNode** context_nodes);
  void (*ReleaseNodeComputeInfos)(OrtEp*, OrtNodeComputeInfo** infos, size_t count);
  void* unused[21];  ///< up to slot 25, of version 29; null: not implemented
};

struct OrtEpFactory {
  uint32_t ort_version_supported;
  const char* (*GetName)(const OrtEpFactory*);
  const char* (*GetVendor)(const OrtEpFactory*);
  OrtStatus* (*GetSupportedDevices)(OrtEpFactory*, const OrtHardwareDevice* const* devices,
                                    size_t count, OrtEpDevice** made, size_t max, size_t* found);
  OrtStatus* (*CreateEp)(OrtEpFactory*, const OrtHardwareDevice* const* devices,
                         const OrtKeyValuePairs* const* metadata, size_t count,
                         const OrtSessionOptions*, const OrtLogger*, OrtEp** made);
  void (*ReleaseEp)(OrtEpFactory*, OrtEp*);
  uint32_t (*GetVendorId)(const OrtEpFactory*);
  const char* (*GetVersion)(const OrtEpFactory*);
  OrtStatus* (*ValidateCompiledModelCompatibilityInfo)(OrtEpFactory*,
                                                       const OrtHardwareDevice* const* devices,
                                                       size_t count, const char* info,
                                                       OrtCompiledModelCompatibility* answer);
  OrtStatus* (*CreateAllocator)(OrtEpFactory*, const OrtMemoryInfo*, const OrtKeyValuePairs*,
                                OrtAllocator** made);
  void (*ReleaseAllocator)(OrtEpFactory*, OrtAllocator*);
  OrtStatus* (*CreateDataTransfer)(OrtEpFactory*, OrtDataTransferImpl** made);
  bool (*IsStreamAware)(const OrtEpFactory*);
  OrtStatus* (*CreateSyncStreamForDevice)(OrtEpFactory*, const OrtMemoryDevice*,
                                          const OrtKeyValuePairs*, OrtSyncStreamImpl** made);
  void* unused[7];  ///< up to slot 20, of version 28; null: not implemented
};

inline constexpr Slot<OrtStatus*(OrtEpFactory*, const OrtHardwareDevice*, const OrtKeyValuePairs*,
                                 const OrtKeyValuePairs*, OrtEpDevice**)>
    CreateEpDevice{0};
inline constexpr Slot<OrtStatus*(OrtEpGraphSupportInfo*, const OrtNode* const*, size_t,
                                 const OrtNodeFusionOptions*)>
    EpGraphSupportInfo_AddNodesToFuse{2};

}  // namespace castor::onnxruntime::abi
