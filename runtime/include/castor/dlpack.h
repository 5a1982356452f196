// SPDX-License-Identifier: Apache-2.0
// DLPack tensors as views of castor's C API, and back. Include DLPack's own header, of any version
// from 0.5 on, before this one:
//
//   #include <dlpack/dlpack.h>
//   #include <castor/dlpack.h>
//
//   castor_view x;
//   castor_status status = castor_view_from_dlpack(&tensor, 0, &x, &error);  // a DLTensor
//
// Of a DLManagedTensorVersioned hand over &managed->dl_tensor and managed->flags, and check
// managed->version by castor_check_dlpack_version. What castor/c/dlpack.h says of element types,
// ownership and errors holds here.
#pragma once

#ifndef DLPACK_DLPACK_H_
#error "include <dlpack/dlpack.h> before <castor/dlpack.h>"
#endif

#include "castor/c/dlpack.h"

#ifdef __cplusplus
extern "C" {
#endif

/// All that a tensor says, as castor's functions take it.
static inline castor_dlpack_fields castor_fields_of_dlpack(const DLTensor* tensor) {
  castor_dlpack_fields fields;
  fields.data = tensor->data;
  fields.device_type = (int32_t)tensor->device.device_type;
  fields.device_id = (int32_t)tensor->device.device_id;
  fields.rank = (int32_t)tensor->ndim;
  fields.code = tensor->dtype.code;
  fields.bits = tensor->dtype.bits;
  fields.lanes = tensor->dtype.lanes;
  fields.shape = tensor->shape;
  fields.strides = tensor->strides;
  fields.byte_offset = tensor->byte_offset;
  return fields;
}

/// A view to read or write a tensor; read-only ones (by `flags`) are refused. NULL for the tensor
/// is CASTOR_INVALID_ARGUMENT.
static inline castor_status castor_view_from_dlpack(const DLTensor* tensor, uint64_t flags,
                                                    castor_view* view, castor_error* error) {
  castor_dlpack_fields fields;
  if (tensor == NULL) return castor_view_of_dlpack_fields(NULL, flags, view, error);
  fields = castor_fields_of_dlpack(tensor);
  return castor_view_of_dlpack_fields(&fields, flags, view, error);
}
/// A view that is only read.
static inline castor_status castor_const_view_from_dlpack(const DLTensor* tensor, uint64_t flags,
                                                          castor_view* view, castor_error* error) {
  castor_dlpack_fields fields;
  if (tensor == NULL) return castor_const_view_of_dlpack_fields(NULL, flags, view, error);
  fields = castor_fields_of_dlpack(tensor);
  return castor_const_view_of_dlpack_fields(&fields, flags, view, error);
}

/// Sets a tensor to what the view shows; its shape and strides are stored in `dims`. On a failure
/// nothing is written. `tensor` must not be NULL.
static inline castor_status castor_view_to_dlpack(const castor_view* view, castor_dlpack_dims* dims,
                                                  DLTensor* tensor, castor_error* error) {
  castor_dlpack_fields fields;
  const castor_status status = castor_dlpack_fields_of_view(view, dims, &fields, error);
  if (status != CASTOR_OK) return status;
  tensor->data = fields.data;
  tensor->device.device_type = (DLDeviceType)fields.device_type;
  tensor->device.device_id = fields.device_id;
  tensor->ndim = fields.rank;
  tensor->dtype.code = fields.code;
  tensor->dtype.bits = fields.bits;
  tensor->dtype.lanes = fields.lanes;
  tensor->shape = dims->shape;
  tensor->strides = dims->strides;
  tensor->byte_offset = fields.byte_offset;
  return status;
}

#ifdef __cplusplus
}  // extern "C"
#endif
