// SPDX-License-Identifier: Apache-2.0
// Structures, element types and status codes of the embARC MLI 2.0 library, binary compatible with
// its x86-64 build; for C11 and C++. Part of castor/mli.h.
//
// Sources: embARC MLI 2.0, "Data Structures", "Helper Functions Group"; its include/mli_types.h.
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The largest rank of a tensor.
#define MLI_MAX_RANK (4)

/// What became of a call. A conversion returns OK, BAD_TENSOR, SHAPE_MISMATCH,
/// INCOMPATEBLE_TENSORS, NOT_ENGH_MEM, SIZE_MISMATCH or TYPE_MISMATCH (see mli_hlp_convert_tensor),
/// and NOT_SUPPORTED where memory for a kernel was refused.
typedef enum mli_status {
  MLI_STATUS_OK = 0,
  MLI_STATUS_BAD_TENSOR = 1,
  MLI_STATUS_SHAPE_MISMATCH = 2,
  MLI_STATUS_INCOMPATEBLE_TENSORS = 3,  ///< so spelled in the library
  MLI_STATUS_BAD_FUNC_CFG = 4,
  MLI_STATUS_NOT_ENGH_MEM = 5,
  MLI_STATUS_NOT_SUPPORTED = 6,
  MLI_STATUS_SPEC_PARAM_MISMATCH = 7,
  MLI_STATUS_ARGUMENT_ERROR = 8,
  MLI_STATUS_LENGTH_ERROR = 9,
  MLI_STATUS_SIZE_MISMATCH = 10,
  MLI_STATUS_RANK_MISMATCH = 11,
  MLI_STATUS_TYPE_MISMATCH = 12,
  MLI_STATUS_MEM_BANK_MISMATCH = 13,
  MLI_STATUS_MISALIGNMENT_ERROR = 14,

  MLI_STATUS_LARGE_ENUM = 0x02000000  ///< keeps the type at four bytes
} mli_status;

/// What an element is: its container, and how it stands for a real number.
typedef enum mli_element_type {
  MLI_EL_FX_4 = 0x004,   ///< not supported
  MLI_EL_FX_8 = 0x008,   ///< int8_t x: x / 2^frac_bits
  MLI_EL_FX_16 = 0x010,  ///< int16_t x: x / 2^frac_bits
  MLI_EL_SA_8 = 0x108,   ///< int8_t x: (x - zero_point) * scale / 2^scale_frac_bits
  MLI_EL_SA_32 = 0x120,  ///< int32_t x: (x - zero_point) * scale / 2^scale_frac_bits
  MLI_EL_FP_16 = 0x210,  ///< not supported
  MLI_EL_FP_32 = 0x220,  ///< float

  MLI_EL_LARGE_ENUM = 0x02000000  ///< keeps the type at four bytes
} mli_element_type;

/// How wide the parameters of signed asymmetric elements are; there is one choice.
typedef enum mli_el_param_type {
  MLI_EL_PARAM_SC16_ZP16 = 0,           ///< scale and zero point of 16 bits
  MLI_EL_PARAM_LARGE_ENUM = 0x02000000  ///< keeps the type at four bytes
} mli_el_param_type;

/// An array, or a single value instead of the pointer to one.
typedef struct mli_data_container {
  uint32_t capacity;  ///< the array's bytes; 0 where `mem` holds a single value itself
  union {
    int32_t* pi32;
    int16_t* pi16;
    int8_t* pi8;
    float* pf32;
    int32_t i32;
    int16_t i16;
    int8_t i8;
    float f32;
  } mem;
} mli_data_container;

/// How the elements of a tensor stand for real numbers. fp32 has no parameters.
typedef union mli_element_params {
  /// MLI_EL_FX_8 and MLI_EL_FX_16.
  struct {
    int8_t frac_bits;  ///< -128 to 127
  } fx;
  /// MLI_EL_SA_8 and MLI_EL_SA_32. With dim < 0 the containers hold one value each, for the whole
  /// tensor, and their capacity is 0; else they point to shape[dim] values, one for each slice
  /// along that axis.
  struct {
    mli_el_param_type type;
    mli_data_container zero_point;       ///< i16 or pi16
    mli_data_container scale;            ///< i16 or pi16, 1 to 32767
    int32_t dim;                         ///< the axis of the parameters, or negative
    mli_data_container scale_frac_bits;  ///< i8 or pi8, -128 to 127
  } sa;
} mli_element_params;

/// A tensor of up to four dimensions; the last is the innermost. Entries of shape and mem_stride
/// from `rank` on mean nothing.
typedef struct mli_tensor {
  /// A pointer to the first element. Only a tensor of rank 0 may hold its element itself: it does
  /// where the capacity is 0.
  mli_data_container data;
  int32_t mem_stride[MLI_MAX_RANK];  ///< in elements, from one index of an axis to the next
  uint32_t shape[MLI_MAX_RANK];
  uint32_t rank;  ///< 0 to MLI_MAX_RANK
  mli_element_type el_type;
  mli_element_params el_params;
} mli_tensor;

/// What mli_hlp_create_subtensor cuts out of a tensor. Entries from the tensor's rank on mean
/// nothing.
typedef struct mli_sub_tensor_cfg {
  uint32_t offset[MLI_MAX_RANK];  ///< first index along each dimension
  uint32_t size[MLI_MAX_RANK];    ///< indices along each dimension
  uint32_t sub_tensor_rank;  ///< the result's rank: dimensions of size 1 go, the first ones first
} mli_sub_tensor_cfg;

/// What mli_hlp_point_to_subtensor cuts out of a dense tensor: one index along all dimensions but
/// the last of those that are named, a range of indices along that one, and all of the others.
typedef struct mli_point_to_subtsr_cfg {
  uint32_t start_coord[MLI_MAX_RANK];  ///< indices along the first `coord_num` dimensions
  uint8_t coord_num;                   ///< 1 to the tensor's rank
  uint8_t first_out_dim_size;          ///< indices along dimension coord_num - 1
} mli_point_to_subtsr_cfg;

// The binary layout of the library's x86-64 build.
static_assert(sizeof(mli_status) == 4, "mli_status");
static_assert(sizeof(mli_element_type) == 4, "mli_element_type");
static_assert(sizeof(mli_el_param_type) == 4, "mli_el_param_type");
static_assert(sizeof(mli_data_container) == 16, "mli_data_container");
static_assert(offsetof(mli_data_container, mem) == 8, "mli_data_container.mem");
static_assert(sizeof(mli_element_params) == 64, "mli_element_params");
static_assert(offsetof(mli_element_params, fx.frac_bits) == 0, "fx.frac_bits");
static_assert(offsetof(mli_element_params, sa.type) == 0, "sa.type");
static_assert(offsetof(mli_element_params, sa.zero_point) == 8, "sa.zero_point");
static_assert(offsetof(mli_element_params, sa.scale) == 24, "sa.scale");
static_assert(offsetof(mli_element_params, sa.dim) == 40, "sa.dim");
static_assert(offsetof(mli_element_params, sa.scale_frac_bits) == 48, "sa.scale_frac_bits");
static_assert(sizeof(mli_tensor) == 120, "mli_tensor");
static_assert(offsetof(mli_tensor, data) == 0, "mli_tensor.data");
static_assert(offsetof(mli_tensor, mem_stride) == 16, "mli_tensor.mem_stride");
static_assert(offsetof(mli_tensor, shape) == 32, "mli_tensor.shape");
static_assert(offsetof(mli_tensor, rank) == 48, "mli_tensor.rank");
static_assert(offsetof(mli_tensor, el_type) == 52, "mli_tensor.el_type");
static_assert(offsetof(mli_tensor, el_params) == 56, "mli_tensor.el_params");
static_assert(sizeof(mli_sub_tensor_cfg) == 36, "mli_sub_tensor_cfg");
static_assert(offsetof(mli_sub_tensor_cfg, size) == 16, "mli_sub_tensor_cfg.size");
static_assert(sizeof(mli_point_to_subtsr_cfg) == 20, "mli_point_to_subtsr_cfg");
static_assert(offsetof(mli_point_to_subtsr_cfg, coord_num) == 16, "coord_num");
static_assert(offsetof(mli_point_to_subtsr_cfg, first_out_dim_size) == 17, "first_out_dim_size");

#ifdef __cplusplus
}
#endif
