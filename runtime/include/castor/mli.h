// SPDX-License-Identifier: Apache-2.0
// embARC MLI data conversion on x86-64, for C11 and C++: names, structures and status codes of the
// embARC MLI 2.0 library, binary compatible with its x86-64 build. A program written against that
// library links castor::mli instead and gets the same statuses and, by default, the same bits.
// Where checks differ: the tables below, and runtime/mli/README.md.
//
//   mli_tensor source = {0}, destination = {0};   // fill in data, shape, strides, type, parameters
//   mli_status status = mli_hlp_convert_tensor(&source, &destination);
//
// Sources: embARC MLI 2.0, "Data Structures", "Data Conversion Group" and "Utility Functions".
#pragma once

#include "castor/export.h"
#include "castor/mli_helpers.h"
#include "castor/mli_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Writes the elements of `src`, converted to the type and parameters of `dst`, to the data of
/// `dst`; at rank 0 and capacity 0, into `dst` itself. Nothing else is written, and nothing at all
/// unless the result is MLI_STATUS_OK.
///
/// Any two of MLI_EL_FX_8, FX_16, SA_8, SA_32 and FP_32. Strides may be unlike; those of the
/// innermost dimension are 1. In place (equal addresses) where elements are equally wide and
/// strides are equal; else the tensors may interleave, as the halves of a matrix do, but may share
/// no element, nor may the destination's elements be the parameters of either. How elements are
/// computed: castor_mli_set_arithmetic.
///
/// Both tensors are checked in full and always, the source first. The first condition that holds
/// decides. Rows with a star are castor's own; the library, which checks only if it is built to,
/// has the others in this order:
///
/// | condition, of the source, then of the destination                     | status               |
/// |-----------------------------------------------------------------------|----------------------|
/// | tensor null, or data pointer null where there is one                  | BAD_TENSOR           |
/// | any other element type *                                              | TYPE_MISMATCH        |
/// | rank > 4, data capacity > 2^31 - 1                                    | BAD_TENSOR           |
/// | a stride <= 0, a dimension 0 or > 2^31 - 1                            | BAD_TENSOR           |
/// | a stride less than the next inner dimension times its stride          | BAD_TENSOR           |
/// | data capacity less than what the elements reach (at rank 0, one,      | NOT_ENGH_MEM         |
/// | unless it is 0)                                                       |                      |
/// | * sa: dim >= rank; a scale <= 0; per axis a parameter's pointer null  | BAD_TENSOR           |
/// | or capacity short; per tensor a parameter's capacity not 0            |                      |
///
/// | condition, of both together                                           | status               |
/// |-----------------------------------------------------------------------|----------------------|
/// | ranks or shapes differ                                                | SHAPE_MISMATCH       |
/// | an innermost stride is not 1                                          | INCOMPATEBLE_TENSORS |
/// | same address, but widths of elements or strides differ (the library   | INCOMPATEBLE_TENSORS |
/// | compares addresses of equal element types only)                       |                      |
/// | elements share bytes in any other way, or strides are so irregular    | INCOMPATEBLE_TENSORS |
/// | that 16384 steps do not tell (see runtime/mli/README.md) *            |                      |
/// | sa to sa, both per axis, along different axes                         | SIZE_MISMATCH        |
/// | mli_hlp_convert_tensor_safx: either is FP_32                          | TYPE_MISMATCH        |
///
/// May be called from any thread, at the same time too, if no two calls share memory that one of
/// them writes.
CASTOR_API mli_status mli_hlp_convert_tensor(const mli_tensor* src, mli_tensor* dst);

/// As mli_hlp_convert_tensor, for the four integer types only.
CASTOR_API mli_status mli_hlp_convert_tensor_safx(const mli_tensor* src, mli_tensor* dst);

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

#ifdef __cplusplus
}
#endif
