// SPDX-License-Identifier: Apache-2.0
// Parts of tensors: mli_hlp_create_subtensor and mli_hlp_point_to_subtensor of
// castor/mli_helpers.h.
#include "castor/mli_helpers.h"
#include "runtime/mli/check.hpp"
#include "runtime/mli/tensor.hpp"

namespace castor::mli {

namespace {

using Asymmetric = decltype(mli_element_params::sa);

/// A range of indices along each dimension, and which dimensions go: their ranges have one index.
struct Part {
  uint32_t offset[MLI_MAX_RANK] = {};
  uint32_t size[MLI_MAX_RANK] = {};
  bool goes[MLI_MAX_RANK] = {};
};

/// What is wrong with the tensor that a part is taken of, or with the memory of the result.
mli_status check_tensors(const mli_tensor* in, const mli_tensor* out) {
  const mli_status status = check_layout(in);
  if (status == MLI_STATUS_TYPE_MISMATCH) return MLI_STATUS_NOT_SUPPORTED;
  if (status != MLI_STATUS_OK) return status;
  const bool has_slices = format_of(*in)->is_asymmetric && is_per_axis(*in);
  if (has_slices && !has_valid_containers(*in)) return MLI_STATUS_BAD_TENSOR;
  return out == nullptr ? MLI_STATUS_BAD_TENSOR : MLI_STATUS_OK;
}

/// Lets an array of parameters begin with another slice.
void skip_slices(mli_data_container& parameter, uint32_t slices, uint32_t bytes) {
  parameter.mem.pi8 += size_t{slices} * bytes;
  parameter.capacity -= slices * bytes;
}

/// The parameters of one slice become those of the whole tensor.
void keep_slice(mli_tensor& tensor, const FormatInfo& format, uint32_t slice) {
  const auto scale = static_cast<int16_t>(scale_of(tensor, format, slice));
  const auto frac_bits = static_cast<int8_t>(frac_bits_of(tensor, format, slice));
  const int16_t zero_point = zero_point_of(tensor, format, slice);
  Asymmetric& sa = tensor.el_params.sa;
  sa.scale = sa.scale_frac_bits = sa.zero_point = {};
  sa.scale.mem.i16 = scale;
  sa.scale_frac_bits.mem.i8 = frac_bits;
  sa.zero_point.mem.i16 = zero_point;
  sa.dim = -1;
}

/// Fits the parameters to a part whose dimension `axis`, their own, is `part_axis` now.
void cut_parameters(mli_tensor& tensor, const FormatInfo& format, const Part& part,
                    uint32_t part_axis) {
  Asymmetric& sa = tensor.el_params.sa;
  const uint32_t first = part.offset[sa.dim];
  if (part.goes[sa.dim]) return keep_slice(tensor, format, first);
  skip_slices(sa.scale, first, sizeof(int16_t));
  skip_slices(sa.zero_point, first, sizeof(int16_t));
  skip_slices(sa.scale_frac_bits, first, sizeof(int8_t));
  sa.dim = static_cast<int32_t>(part_axis);
}

/// The part of a checked tensor. Its capacity is what is left of the tensor's.
mli_tensor cut(const mli_tensor& in, const Part& part) {
  const FormatInfo& format = *format_of(in);
  mli_tensor out = {};
  out.data = in.data;
  out.el_type = in.el_type;
  out.el_params = in.el_params;
  uint64_t first = 0;
  uint32_t axis_of_parameters = 0;
  for (uint32_t axis = 0; axis < in.rank; ++axis) {
    first += uint64_t{part.offset[axis]} * static_cast<uint64_t>(in.mem_stride[axis]);
    if (part.goes[axis]) continue;
    if (static_cast<int32_t>(axis) == in.el_params.sa.dim) axis_of_parameters = out.rank;
    out.shape[out.rank] = part.size[axis];
    out.mem_stride[out.rank] = in.mem_stride[axis];
    ++out.rank;
  }
  if (in.rank > 0) {
    out.data.mem.pi8 += first * format.bytes;
    out.data.capacity -= static_cast<uint32_t>(first * format.bytes);
  }
  if (format.is_asymmetric && is_per_axis(in)) {
    cut_parameters(out, format, part, axis_of_parameters);
  }
  return out;
}

/// The part that the configuration describes, if the tensor has it.
bool find_part(const mli_tensor& in, const mli_sub_tensor_cfg& cfg, Part& part) {
  if (cfg.sub_tensor_rank > in.rank) return false;
  uint32_t to_go = in.rank - cfg.sub_tensor_rank;
  for (uint32_t axis = 0; axis < in.rank; ++axis) {
    const uint32_t offset = part.offset[axis] = cfg.offset[axis];
    const uint32_t size = part.size[axis] = cfg.size[axis];
    if (offset >= in.shape[axis] || size == 0 || size > in.shape[axis] - offset) return false;
    part.goes[axis] = to_go > 0 && size == 1;
    if (part.goes[axis]) --to_go;
  }
  return to_go == 0;
}

bool find_part(const mli_tensor& in, const mli_point_to_subtsr_cfg& cfg, Part& part) {
  if (cfg.coord_num == 0 || cfg.coord_num > in.rank) return false;
  const uint32_t last = cfg.coord_num - 1U;
  for (uint32_t axis = 0; axis < in.rank; ++axis) {
    part.offset[axis] = axis <= last ? cfg.start_coord[axis] : 0;
    part.size[axis] = axis < last ? 1 : axis == last ? cfg.first_out_dim_size : in.shape[axis];
    part.goes[axis] = axis < last;
    if (part.offset[axis] >= in.shape[axis]) return false;
  }
  return part.size[last] > 0 && part.size[last] <= in.shape[last] - part.offset[last];
}

bool is_dense(const mli_tensor& tensor) {
  uint64_t tight = 1;
  for (uint32_t axis = tensor.rank; axis-- > 0;) {
    if (static_cast<uint64_t>(tensor.mem_stride[axis]) != tight) return false;
    tight *= tensor.shape[axis];
  }
  return true;
}

}  // namespace

}  // namespace castor::mli

namespace mli = castor::mli;

extern "C" {

mli_status mli_hlp_create_subtensor(const mli_tensor* in, const mli_sub_tensor_cfg* cfg,
                                    mli_tensor* out) {
  const mli_status status = mli::check_tensors(in, out);
  if (status != MLI_STATUS_OK) return status;
  mli::Part part;
  if (cfg == nullptr || !mli::find_part(*in, *cfg, part)) return MLI_STATUS_BAD_FUNC_CFG;
  *out = mli::cut(*in, part);
  return MLI_STATUS_OK;
}

mli_status mli_hlp_point_to_subtensor(const mli_tensor* in, const mli_point_to_subtsr_cfg* cfg,
                                      mli_tensor* out) {
  const mli_status status = mli::check_tensors(in, out);
  if (status != MLI_STATUS_OK) return status;
  mli::Part part;
  if (cfg == nullptr || !mli::find_part(*in, *cfg, part)) return MLI_STATUS_BAD_FUNC_CFG;
  if (!mli::is_dense(*in)) return MLI_STATUS_INCOMPATEBLE_TENSORS;
  mli_tensor found = mli::cut(*in, part);
  found.data.capacity = mli_hlp_count_elem_num(&found, 0) * mli_hlp_tensor_element_size(&found);
  *out = found;
  return MLI_STATUS_OK;
}

}  // extern "C"
