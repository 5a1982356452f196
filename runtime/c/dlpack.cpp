// SPDX-License-Identifier: Apache-2.0
// DLPack tensors of the C API.
#include <castor/c/dlpack.h>

#include <algorithm>
#include <castor/dlpack.hpp>

#include "runtime/c/guard.hpp"
#include "runtime/c/tensor.hpp"

namespace castor::c {

namespace {

DlpackFields fields_of(const castor_dlpack_fields& fields) {
  return {.data = fields.data,
          .device_type = fields.device_type,
          .device_id = fields.device_id,
          .rank = fields.rank,
          .code = fields.code,
          .bits = fields.bits,
          .lanes = fields.lanes,
          .shape = fields.shape,
          .strides = fields.strides,
          .byte_offset = fields.byte_offset};
}

castor_dlpack_fields tensor_in_c(const DlpackFields& fields, const castor_dlpack_dims& dims) {
  return {fields.data, fields.device_type, fields.device_id, fields.rank,  fields.code,
          fields.bits, fields.lanes,       dims.shape,       dims.strides, fields.byte_offset};
}

castor_status make_view(const castor_dlpack_fields* fields, uint64_t flags, bool is_written,
                        castor_view* view, castor_error* error) noexcept {
  if (view != nullptr) *view = {};
  return guarded(error, [&]() -> Status {
    if (Status status = needed(fields, "tensor"); !status) return status;
    if (Status status = needed(view, "pointer for the view"); !status) return status;
    if (is_written && (flags & dlpack_read_only) != 0) return detail::dlpack_is_read_only();
    const Result<View> made = view_of_dlpack_fields(fields_of(*fields), flags);
    if (!made) return made.error();
    *view = {made->data,      to_c(made->element), fields->rank, fields->shape,
             fields->strides, made->offset,        made->bytes};
    return {};
  });
}

}  // namespace

}  // namespace castor::c

extern "C" {

castor_status castor_view_of_dlpack_fields(const castor_dlpack_fields* fields, uint64_t flags,
                                           castor_view* view, castor_error* error) noexcept {
  return castor::c::make_view(fields, flags, true, view, error);
}

castor_status castor_const_view_of_dlpack_fields(const castor_dlpack_fields* fields, uint64_t flags,
                                                 castor_view* view, castor_error* error) noexcept {
  return castor::c::make_view(fields, flags, false, view, error);
}

castor_status castor_dlpack_fields_of_view(const castor_view* view, castor_dlpack_dims* dims,
                                           castor_dlpack_fields* fields,
                                           castor_error* error) noexcept {
  using namespace castor;
  return c::guarded(error, [&]() -> Status {
    if (Status status = c::needed(view, "view"); !status) return status;
    if (Status status = c::needed(dims, "dims"); !status) return status;
    if (Status status = c::needed(fields, "pointer for the tensor"); !status) return status;
    View from;
    if (Status status = c::read_view(*view, {"view"}, from); !status) return status;
    const Result<DlpackFields> made = dlpack_fields_of_view(from);
    if (!made) return made.error();
    std::ranges::copy(from.shape, dims->shape);
    std::ranges::copy(from.strides, dims->strides);
    *fields = c::tensor_in_c(*made, *dims);
    return {};
  });
}

castor_status castor_check_dlpack_version(uint32_t major_version, uint32_t minor_version,
                                          castor_error* error) noexcept {
  return castor::c::guarded(error, [&]() -> castor::Status {
    return castor::detail::check_dlpack_version(major_version, minor_version);
  });
}

}  // extern "C"
