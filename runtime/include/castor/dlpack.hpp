// SPDX-License-Identifier: Apache-2.0
// Views to and from DLPack tensors (DLPack 1.1, github.com/dmlc/dlpack).
//
// Header templates over the tensor's type, so that castor needs no DLPack header and any version of
// it does: include <dlpack/dlpack.h>, then
//
//   castor::Result<castor::View> x = castor::view_from_dlpack(tensor);       // a DLTensor
//   castor::DlpackDims dims;
//   castor::Status status = castor::to_dlpack(view, dims, tensor);
//
// Element types that have a counterpart: u8 to u64, i8 to i64, i2, i4, u2, u3, u4, u6 (integers of
// that width), f16, f32, f64, bf16, boolean, f8e4m3 (float8_e4m3fn), f8e4m3fnuz, f8e5m2,
// f8e5m2fnuz, f8e8m0 (float8_e8m0fnu), f6e2m3 (float6_e2m3fn), f6e3m2 (float6_e3m2fn),
// f4e2m1 (float4_e2m1fn), and u1.lsb_first (unsigned integers of one bit). Elements narrower than a
// byte are packed in DLPack's order, from the least significant bit of each byte on. These have
// none, and are refused: u1, whose first element is the most significant bit; nf4; and the older
// layouts u2.msb_first, u3.split and u6.split.
//
// Nothing is copied and nothing is owned: a view is good for as long as the tensor's memory, and a
// tensor for as long as the view's memory and its DlpackDims. All functions are thread safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ir/support/export.hpp"
#include "ir/support/result.hpp"
#include "ir/types/view.hpp"

namespace castor {

/// What a DLTensor consists of, whichever header defines it.
struct DlpackFields {
  void* data = nullptr;
  int32_t device_type = 0;  ///< DLDeviceType
  int32_t device_id = 0;
  int32_t rank = 0;
  uint8_t code = 0;  ///< DLDataTypeCode
  uint8_t bits = 0;
  uint16_t lanes = 1;
  const int64_t* shape = nullptr;
  const int64_t* strides = nullptr;  ///< in elements; null: dense and row-major
  uint64_t byte_offset = 0;
};

/// Flags of a DLManagedTensorVersioned.
inline constexpr uint64_t dlpack_read_only = 1;
inline constexpr uint64_t dlpack_padded = 4;  ///< elements narrower than a byte take a whole one

/// The tensor as a view of exactly the bytes that its elements reach. Errors, which say what was
/// found and what was expected (unsupported: castor has nothing like it; invalid_argument: it
/// cannot be): a device other than the CPU, an element type without a counterpart, lanes other than
/// 1, padded elements (by `flags`), more than max_rank dimensions, a negative extent, a stride of 0
/// or less along an extent above 1, no data or no shape where there is something, sizes beyond
/// 2^63 bytes.
CASTOR_API Result<View> view_of_dlpack_fields(const DlpackFields& fields, uint64_t flags);
/// The view as a tensor of the CPU, whose shape and strides are not set. Errors (unsupported): an
/// element type without a counterpart, an offset inside a byte; (invalid_argument): shape
/// and strides that differ in number, more than max_rank dimensions, a negative offset, a number
/// that is no element type.
CASTOR_API Result<DlpackFields> dlpack_fields_of_view(const View& view);

/// Memory for shape and strides of a tensor. The tensor points here.
struct DlpackDims {
  std::array<int64_t, max_rank> shape;
  std::array<int64_t, max_rank> strides;
};

namespace detail {

template <class Tensor>
DlpackFields dlpack_fields(const Tensor& tensor) {
  return {.data = tensor.data,
          .device_type = static_cast<int32_t>(tensor.device.device_type),
          .device_id = static_cast<int32_t>(tensor.device.device_id),
          .rank = static_cast<int32_t>(tensor.ndim),
          .code = tensor.dtype.code,
          .bits = tensor.dtype.bits,
          .lanes = tensor.dtype.lanes,
          .shape = tensor.shape,
          .strides = tensor.strides,
          .byte_offset = tensor.byte_offset};
}

CASTOR_API Status check_dlpack_version(uint32_t major, uint32_t minor);
CASTOR_API Error dlpack_is_read_only();

}  // namespace detail

/// A view to read a DLTensor. `flags` are those of the DLManagedTensorVersioned that it is part of.
template <class Tensor>
requires requires(const Tensor& tensor) { tensor.dtype; }
Result<ConstView> const_view_from_dlpack(const Tensor& tensor, uint64_t flags = 0) {
  Result<View> view = view_of_dlpack_fields(detail::dlpack_fields(tensor), flags);
  if (!view.ok()) return view.error();
  return ConstView(*view);
}

/// A view to read or write a DLTensor; read-only ones (by `flags`) are refused.
template <class Tensor>
requires requires(const Tensor& tensor) { tensor.dtype; }
Result<View> view_from_dlpack(const Tensor& tensor, uint64_t flags = 0) {
  if ((flags & dlpack_read_only) != 0) return detail::dlpack_is_read_only();
  return view_of_dlpack_fields(detail::dlpack_fields(tensor), flags);
}

/// The view of a DLManagedTensorVersioned, whose major version must be 1. It is not consumed: the
/// caller still owes the call of its deleter.
template <class Managed>
requires requires(const Managed& managed) {
  managed.dl_tensor;
  managed.version.major;
}
Result<ConstView> const_view_from_dlpack(const Managed& managed) {
  Status version = detail::check_dlpack_version(managed.version.major, managed.version.minor);
  if (!version.ok()) return version.error();
  return const_view_from_dlpack(managed.dl_tensor, managed.flags);
}
template <class Managed>
requires requires(const Managed& managed) {
  managed.dl_tensor;
  managed.version.major;
}
Result<View> view_from_dlpack(const Managed& managed) {
  Status version = detail::check_dlpack_version(managed.version.major, managed.version.minor);
  if (!version.ok()) return version.error();
  return view_from_dlpack(managed.dl_tensor, managed.flags);
}

/// Sets a DLTensor to what the view shows; its shape and strides are stored in `dims`. On a failure
/// nothing is written.
template <class Tensor>
Status to_dlpack(const View& view, DlpackDims& dims, Tensor& tensor) {
  Result<DlpackFields> fields = dlpack_fields_of_view(view);
  if (!fields.ok()) return fields.error();
  for (int axis = 0; axis < view.shape.rank(); ++axis) {
    dims.shape[static_cast<size_t>(axis)] = view.shape[axis];
    dims.strides[static_cast<size_t>(axis)] = view.strides[axis];
  }
  using DeviceType = std::remove_reference_t<decltype(tensor.device.device_type)>;
  tensor.data = fields->data;
  tensor.device.device_type = static_cast<DeviceType>(fields->device_type);
  tensor.device.device_id = fields->device_id;
  tensor.ndim = fields->rank;
  tensor.dtype.code = fields->code;
  tensor.dtype.bits = fields->bits;
  tensor.dtype.lanes = fields->lanes;
  tensor.shape = dims.shape.data();
  tensor.strides = dims.strides.data();
  tensor.byte_offset = fields->byte_offset;
  return {};
}

/// Sets a tensor to what a view of read-only memory shows. DLTensor cannot say so: a
/// DLManagedTensorVersioned that holds it needs the flag dlpack_read_only.
template <class Tensor>
Status to_dlpack(const ConstView& view, DlpackDims& dims, Tensor& tensor) {
  return to_dlpack(View(const_cast<void*>(view.data), view.element, view.shape, view.strides,
                        view.offset, view.bytes),
                   dims, tensor);
}

}  // namespace castor
