// SPDX-License-Identifier: Apache-2.0
// embARC MLI data conversion on x86-64, for C11 and C++: names, structures and status codes of the
// embARC MLI 2.0 library, binary compatible with its x86-64 build. A program written against that
// library links castor::mli instead and gets the same statuses and, by default, the same bits.
//
//   mli_tensor source = {0}, destination = {0};   // fill in data, shape, strides, type, parameters
//   mli_status status = mli_hlp_convert_tensor(&source, &destination);
//
// Sources: embARC MLI 2.0, "Data Structures", "Data Conversion Group" and "Utility Functions".
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "castor/export.h"

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
  MLI_EL_SA_32 = 0x120,  ///< int32_t x: likewise
  MLI_EL_FP_16 = 0x210,  ///< not supported
  MLI_EL_FP_32 = 0x220,  ///< float

  MLI_EL_LARGE_ENUM = 0x02000000  ///< keeps the type at four bytes
} mli_element_type;

/// How wide the parameters of signed asymmetric elements are; there is one choice.
typedef enum mli_el_param_type {
  MLI_EL_PARAM_SC16_ZP16 = 0,           ///< scale and zero point of 16 bits
  MLI_EL_PARAM_LARGE_ENUM = 0x02000000  ///< keeps the type at four bytes
} mli_el_param_type;

/// An array, or a single value in the place of the pointer to one.
typedef struct mli_data_container {
  uint32_t capacity;  ///< of the array, in bytes; 0 for the single value of a parameter
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
  mli_data_container data;  ///< pointer to the first element; at rank 0, the element itself
  int32_t mem_stride[MLI_MAX_RANK];  ///< in elements, from one index of an axis to the next
  uint32_t shape[MLI_MAX_RANK];
  uint32_t rank;  ///< 0 to MLI_MAX_RANK
  mli_element_type el_type;
  mli_element_params el_params;
} mli_tensor;

/// Writes the elements of `src`, converted to the type and parameters of `dst`, to the data of
/// `dst`; at rank 0, into `dst` itself. Nothing else is written, and nothing at all unless the
/// result is MLI_STATUS_OK.
///
/// Any two of MLI_EL_FX_8, FX_16, SA_8, SA_32 and FP_32. Strides may be unlike; those of the
/// innermost dimension are 1. In place (equal data pointers) where elements are equally wide and
/// strides are equal. How elements are computed: castor_mli_set_arithmetic.
///
/// Both tensors are checked in full, the source first. The first condition that holds decides:
///
/// | condition, of the source, then of the destination                     | status               |
/// |-----------------------------------------------------------------------|----------------------|
/// | tensor or, above rank 0, data pointer null                            | BAD_TENSOR           |
/// | any other element type                                                | TYPE_MISMATCH        |
/// | rank > 4, data capacity > 2^31 - 1                                    | BAD_TENSOR           |
/// | a stride <= 0, a dimension 0 or > 2^31 - 1                            | BAD_TENSOR           |
/// | a stride less than the next inner dimension times its stride          | BAD_TENSOR           |
/// | data capacity less than what the elements reach (at rank 0, one)      | NOT_ENGH_MEM         |
/// | sa: dim >= rank; a scale <= 0; per axis a parameter's pointer null or | BAD_TENSOR           |
/// | capacity short; per tensor a parameter's capacity not 0               |                      |
///
/// | condition, of both together                                           | status               |
/// |-----------------------------------------------------------------------|----------------------|
/// | ranks or shapes differ                                                | SHAPE_MISMATCH       |
/// | an innermost stride is not 1                                          | INCOMPATEBLE_TENSORS |
/// | same data pointer, but widths of elements or strides differ           | INCOMPATEBLE_TENSORS |
/// | the elements' memory overlaps in any other way                        | INCOMPATEBLE_TENSORS |
/// | sa to sa, both per axis, along different axes                         | SIZE_MISMATCH        |
/// | mli_hlp_convert_tensor_safx: either is FP_32                          | TYPE_MISMATCH        |
///
/// May be called from any thread, at the same time too, if no two calls share memory that one of
/// them writes.
CASTOR_API mli_status mli_hlp_convert_tensor(const mli_tensor* src, mli_tensor* dst);

/// As mli_hlp_convert_tensor, for the four integer types only.
CASTOR_API mli_status mli_hlp_convert_tensor_safx(const mli_tensor* src, mli_tensor* dst);

// The helpers below read one tensor; they may be called from any thread. They check no more than
// they need, and return 0 for a null pointer, an element type that is not supported, and an index
// out of range.

/// The product of the dimensions from `start_dim` on, modulo 2^32; 1 at rank 0, whatever start_dim
/// is; 0 if start_dim >= rank, or rank > MLI_MAX_RANK.
CASTOR_API uint32_t mli_hlp_count_elem_num(const mli_tensor* in, uint32_t start_dim);

/// Bytes of an element: 1, 2 or 4.
CASTOR_API uint32_t mli_hlp_tensor_element_size(const mli_tensor* in);

/// Fractional bits: of fx, of the slice `scale_idx` of sa (any index is good without an axis); 0 of
/// fp32.
CASTOR_API int32_t mli_hlp_tensor_scale_shift(const mli_tensor* in, uint32_t scale_idx);

/// The scale of slice `scale_idx` of sa (any index is good without an axis); 1 of fx and fp32.
CASTOR_API int32_t mli_hlp_tensor_scale(const mli_tensor* in, uint32_t scale_idx);

/// The zero point of slice `zero_idx` of sa (any index is good without an axis); 0 of fx and fp32.
CASTOR_API int16_t mli_hlp_tensor_zero_offset(const mli_tensor* in, uint32_t zero_idx);

// castor's own: what conversions compute.

/// How results are computed.
typedef enum castor_mli_arithmetic {
  /// The specification's formula on real numbers, rounded once, then saturated to the container. To
  /// fp32 it is rounded to nearest, ties to even. For everyone who does not simulate a device.
  CASTOR_MLI_EXACT = 0,
  /// Bit for bit the library's results, which approximate the ratio of two scales by a multiplier
  /// of 16 bits and use f32 operations to and from fp32. Inputs for which the library defines
  /// nothing saturate (fp32 beyond int32_t after scaling) or give the zero point (NaN).
  CASTOR_MLI_EMBARC = 1
} castor_mli_arithmetic;

/// How results in integers are rounded: the two build variants of the library. In embarc
/// arithmetic, conversions from fp32 do not depend on it.
typedef enum castor_mli_rounding {
  CASTOR_MLI_UP = 0,         ///< floor(v + 1/2)
  CASTOR_MLI_CONVERGENT = 1  ///< nearest, ties to even
} castor_mli_rounding;

/// Chooses arithmetic and rounding of all later conversions of this process. A call that runs at
/// the same time on another thread uses the old choice or the new one, never a mixture. Initially:
/// what castor was configured with (CASTOR_MLI_ARITHMETIC and CASTOR_MLI_ROUNDING), by default
/// embarc and up. Returns MLI_STATUS_ARGUMENT_ERROR, and changes nothing, for values not listed
/// above.
CASTOR_API mli_status castor_mli_set_arithmetic(castor_mli_arithmetic arithmetic,
                                                castor_mli_rounding rounding);

/// Tells the present choice; either pointer may be null.
CASTOR_API void castor_mli_get_arithmetic(castor_mli_arithmetic* arithmetic,
                                          castor_mli_rounding* rounding);

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

#ifdef __cplusplus
}
#endif
