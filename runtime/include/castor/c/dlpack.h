// SPDX-License-Identifier: Apache-2.0
// Views to and from DLPack tensors (DLPack 1.1) in castor's C API, field by field, so that castor
// needs no DLPack header. Programs that have one include castor/dlpack.h, which takes a DLTensor.
//
// Element types that have a counterpart: U8 to U64, I8 to I64, I2, I4, U2, U3, U4, U6 (integers of
// that width), F16, F32, F64, BF16, BOOLEAN, F8E4M3 (float8_e4m3fn), F8E4M3FNUZ, F8E5M2,
// F8E5M2FNUZ, F8E8M0 (float8_e8m0fnu), F6E2M3 (float6_e2m3fn), F6E3M2 (float6_e3m2fn),
// F4E2M1 (float4_e2m1fn), and U1_LSB_FIRST (unsigned integers of one bit). Elements narrower than a
// byte are packed in DLPack's order, from the least significant bit of each byte on. The others
// have none, and are refused.
//
// Nothing is copied and nothing is owned: a view is good for as long as the tensor's memory and its
// shape and strides, a tensor for as long as the view's memory and its castor_dlpack_dims. All
// functions are thread safe.
#pragma once

#include "castor/c/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Flags of a DLManagedTensorVersioned.
#define CASTOR_DLPACK_READ_ONLY UINT64_C(1)
#define CASTOR_DLPACK_PADDED UINT64_C(4)  ///< elements narrower than a byte take a whole one

/// What a DLTensor consists of, whichever header defines it.
typedef struct castor_dlpack_fields {
  void* data;
  int32_t device_type;  ///< DLDeviceType
  int32_t device_id;
  int32_t rank;
  uint8_t code;  ///< DLDataTypeCode
  uint8_t bits;
  uint16_t lanes;
  const int64_t* shape;
  const int64_t* strides;  ///< in elements; NULL: dense and row-major
  uint64_t byte_offset;
} castor_dlpack_fields;

/// Memory for shape and strides of a tensor. The tensor points here.
typedef struct castor_dlpack_dims {
  int64_t shape[CASTOR_MAX_RANK];
  int64_t strides[CASTOR_MAX_RANK];
} castor_dlpack_dims;

/// The tensor as a view, to read or write, of exactly the bytes that its elements reach; shape and
/// strides stay the tensor's. `flags` are those of the DLManagedTensorVersioned that it is part of,
/// or 0. Errors, which say what was found and what was expected (CASTOR_UNSUPPORTED: castor has
/// nothing like it; CASTOR_INVALID_ARGUMENT: it cannot be): a device other than the CPU, an element
/// type without a counterpart, lanes other than 1, padded elements, a tensor that is read only,
/// more than CASTOR_MAX_RANK dimensions, a negative extent, a stride of 0 or less along an extent
/// above 1, no data or no shape where there is something, sizes beyond 2^63 bytes. On a failure
/// *view is all zeros.
CASTOR_API castor_status castor_view_of_dlpack_fields(const castor_dlpack_fields* fields,
                                                      uint64_t flags, castor_view* view,
                                                      castor_error* error) CASTOR_NOEXCEPT;
/// As castor_view_of_dlpack_fields, for a view that is only read; so the tensor may be read only.
CASTOR_API castor_status castor_const_view_of_dlpack_fields(const castor_dlpack_fields* fields,
                                                            uint64_t flags, castor_view* view,
                                                            castor_error* error) CASTOR_NOEXCEPT;
/// The view as a tensor of the CPU, whose shape and strides are stored in `dims`. DLPack cannot say
/// that memory is only read but by CASTOR_DLPACK_READ_ONLY of a DLManagedTensorVersioned. Errors
/// (CASTOR_UNSUPPORTED): an element type without a counterpart, an offset inside a byte;
/// (CASTOR_INVALID_ARGUMENT): a view that cannot be, or a negative offset. On a failure nothing is
/// written.
CASTOR_API castor_status castor_dlpack_fields_of_view(const castor_view* view,
                                                      castor_dlpack_dims* dims,
                                                      castor_dlpack_fields* fields,
                                                      castor_error* error) CASTOR_NOEXCEPT;
/// Whether the tensor of a DLManagedTensorVersioned of that version can be taken: its major version
/// must be 1, else CASTOR_UNSUPPORTED. The tensor is not consumed: the caller still owes the call
/// of its deleter.
CASTOR_API castor_status castor_check_dlpack_version(uint32_t major_version, uint32_t minor_version,
                                                     castor_error* error) CASTOR_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif
