// SPDX-License-Identifier: Apache-2.0
// The slots and structures that the plugin declares against ONNX Runtime's own header.
#include <gtest/gtest.h>
#include <onnxruntime_c_api.h>

#include <cstddef>

#include "runtime/onnxruntime/abi.hpp"

namespace castor {
namespace {

namespace abi = onnxruntime::abi;

#define EXPECT_SLOT(function) \
  EXPECT_EQ(abi::function.index, offsetof(::OrtApi, function) / sizeof(void*)) << #function
#define EXPECT_PROVIDER_SLOT(function) \
  EXPECT_EQ(abi::function.index, offsetof(::OrtEpApi, function) / sizeof(void*)) << #function
#define EXPECT_MEMBER(structure, member) \
  EXPECT_EQ(offsetof(abi::structure, member), offsetof(::structure, member)) << #structure #member

TEST(OnnxRuntimeAbi, Functions) {
  EXPECT_SLOT(CreateStatus);
  EXPECT_SLOT(GetErrorMessage);
  EXPECT_SLOT(ReleaseStatus);
  EXPECT_SLOT(GetTensorMutableData);
  EXPECT_SLOT(GetTensorData);
  EXPECT_SLOT(GetTensorTypeAndShape);
  EXPECT_SLOT(ReleaseTensorTypeAndShapeInfo);
  EXPECT_SLOT(GetTensorElementType);
  EXPECT_SLOT(GetDimensionsCount);
  EXPECT_SLOT(GetDimensions);
  EXPECT_SLOT(GetSymbolicDimensions);
  EXPECT_SLOT(CastTypeInfoToTensorInfo);
  EXPECT_SLOT(ReleaseValue);
  EXPECT_SLOT(KernelContext_GetInput);
  EXPECT_SLOT(KernelContext_GetOutput);
  EXPECT_SLOT(KernelContext_ParallelFor);
  EXPECT_SLOT(HasSessionConfigEntry);
  EXPECT_SLOT(GetSessionConfigEntry);
  EXPECT_SLOT(Logger_LogMessage);
  EXPECT_SLOT(Logger_GetLoggingSeverityLevel);
  EXPECT_SLOT(HardwareDevice_Type);
  EXPECT_SLOT(GetEpApi);
  EXPECT_SLOT(GetValueInfoName);
  EXPECT_SLOT(GetValueInfoTypeInfo);
  EXPECT_SLOT(ValueInfo_GetInitializerValue);
  EXPECT_SLOT(ValueInfo_IsGraphOutput);
  EXPECT_SLOT(ValueInfo_IsConstantInitializer);
  EXPECT_SLOT(Graph_GetNumNodes);
  EXPECT_SLOT(Graph_GetNodes);
  EXPECT_SLOT(Node_GetName);
  EXPECT_SLOT(Node_GetOperatorType);
  EXPECT_SLOT(Node_GetDomain);
  EXPECT_SLOT(Node_GetSinceVersion);
  EXPECT_SLOT(Node_GetNumInputs);
  EXPECT_SLOT(Node_GetInputs);
  EXPECT_SLOT(Node_GetNumOutputs);
  EXPECT_SLOT(Node_GetOutputs);
  EXPECT_SLOT(Node_GetNumImplicitInputs);
  EXPECT_SLOT(Node_GetImplicitInputs);
  EXPECT_SLOT(Node_GetNumAttributes);
  EXPECT_SLOT(Node_GetAttributes);
  EXPECT_SLOT(OpAttr_GetTensorAttributeAsOrtValue);
  EXPECT_SLOT(OpAttr_GetType);
  EXPECT_SLOT(OpAttr_GetName);
  EXPECT_SLOT(ReadOpAttr);
#if ORT_API_VERSION >= 24
  EXPECT_SLOT(TensorTypeAndShape_HasShape);
  EXPECT_SLOT(GetTensorElementTypeAndShapeDataReference);
#endif
  EXPECT_PROVIDER_SLOT(CreateEpDevice);
  EXPECT_PROVIDER_SLOT(EpGraphSupportInfo_AddNodesToFuse);
}

TEST(OnnxRuntimeAbi, Structures) {
  EXPECT_MEMBER(OrtNodeFusionOptions, drop_constant_initializers);
  EXPECT_EQ(sizeof(abi::OrtNodeFusionOptions), sizeof(::OrtNodeFusionOptions));
  EXPECT_MEMBER(OrtNodeComputeInfo, CreateState);
  EXPECT_MEMBER(OrtNodeComputeInfo, Compute);
  EXPECT_MEMBER(OrtNodeComputeInfo, ReleaseState);
  EXPECT_MEMBER(OrtEp, GetName);
  EXPECT_MEMBER(OrtEp, GetCapability);
  EXPECT_MEMBER(OrtEp, Compile);
  EXPECT_MEMBER(OrtEp, ReleaseNodeComputeInfos);
  EXPECT_GE(sizeof(abi::OrtEp), sizeof(::OrtEp));
  EXPECT_MEMBER(OrtEpFactory, GetName);
  EXPECT_MEMBER(OrtEpFactory, GetVendor);
  EXPECT_MEMBER(OrtEpFactory, GetSupportedDevices);
  EXPECT_MEMBER(OrtEpFactory, CreateEp);
  EXPECT_MEMBER(OrtEpFactory, ReleaseEp);
  EXPECT_MEMBER(OrtEpFactory, GetVendorId);
  EXPECT_MEMBER(OrtEpFactory, GetVersion);
  EXPECT_MEMBER(OrtEpFactory, ValidateCompiledModelCompatibilityInfo);
  EXPECT_MEMBER(OrtEpFactory, CreateAllocator);
  EXPECT_MEMBER(OrtEpFactory, ReleaseAllocator);
  EXPECT_MEMBER(OrtEpFactory, CreateDataTransfer);
  EXPECT_MEMBER(OrtEpFactory, IsStreamAware);
  EXPECT_MEMBER(OrtEpFactory, CreateSyncStreamForDevice);
  EXPECT_GE(sizeof(abi::OrtEpFactory), sizeof(::OrtEpFactory));
}

TEST(OnnxRuntimeAbi, Enumerations) {
  EXPECT_EQ(static_cast<int>(abi::ORT_FAIL), static_cast<int>(::ORT_FAIL));
  EXPECT_EQ(static_cast<int>(abi::ORT_VERBOSE), static_cast<int>(::ORT_LOGGING_LEVEL_VERBOSE));
  EXPECT_EQ(static_cast<int>(abi::ORT_WARNING), static_cast<int>(::ORT_LOGGING_LEVEL_WARNING));
  EXPECT_EQ(static_cast<int>(abi::OrtHardwareDeviceType_CPU),
            static_cast<int>(::OrtHardwareDeviceType_CPU));
  EXPECT_EQ(static_cast<int>(abi::OrtCompiledModelCompatibility_EP_NOT_APPLICABLE),
            static_cast<int>(::OrtCompiledModelCompatibility_EP_NOT_APPLICABLE));
  EXPECT_EQ(static_cast<int>(abi::ORT_OP_ATTR_INT), static_cast<int>(::ORT_OP_ATTR_INT));
  EXPECT_EQ(static_cast<int>(abi::ORT_OP_ATTR_INTS), static_cast<int>(::ORT_OP_ATTR_INTS));
  EXPECT_EQ(static_cast<int>(abi::ORT_OP_ATTR_FLOAT), static_cast<int>(::ORT_OP_ATTR_FLOAT));
  EXPECT_EQ(static_cast<int>(abi::ORT_OP_ATTR_FLOATS), static_cast<int>(::ORT_OP_ATTR_FLOATS));
  EXPECT_EQ(static_cast<int>(abi::ORT_OP_ATTR_STRING), static_cast<int>(::ORT_OP_ATTR_STRING));
  EXPECT_EQ(static_cast<int>(abi::ORT_OP_ATTR_TENSOR), static_cast<int>(::ORT_OP_ATTR_TENSOR));
}

}  // namespace
}  // namespace castor
