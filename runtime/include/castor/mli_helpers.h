// SPDX-License-Identifier: Apache-2.0
// The helper functions of the embARC MLI 2.0 library; for C11 and C++. Part of castor/mli.h.
//
// All of them may be called from any thread, and at the same time where none writes a structure
// that another one is given. They check what they need, whatever the tensor's fields hold.
//
// Sources: embARC MLI 2.0, "Helper Functions Group"; its include/api/mli_helpers_api.h.
#pragma once

#include <stdbool.h>

#include "castor/export.h"
#include "castor/mli_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Dimensions of tensors by the names of their layouts: of features (FMAP), and of weights (KRNL) of
// convolutions, of depthwise convolutions (DW) and of recurrent layers (RNN).
#define FMAP_C_DIM_CHW 0
#define FMAP_H_DIM_CHW 1
#define FMAP_W_DIM_CHW 2
#define FMAP_H_DIM_HWC 0
#define FMAP_W_DIM_HWC 1
#define FMAP_C_DIM_HWC 2
#define KRNL_C_DIM_CHW 0
#define KRNL_D_DIM_CHW 1
#define KRNL_H_DIM_CHW 2
#define KRNL_W_DIM_CHW 3
#define KRNL_C_DIM_HWC 0
#define KRNL_H_DIM_HWC 1
#define KRNL_W_DIM_HWC 2
#define KRNL_D_DIM_HWC 3
#define KRNL_H_DIM_HWCN 0
#define KRNL_W_DIM_HWCN 1
#define KRNL_D_DIM_HWCN 2
#define KRNL_C_DIM_HWCN 3
#define KRNL_DW_H_DIM_HW1N 0
#define KRNL_DW_W_DIM_HW1N 1
#define KRNL_DW_D_DIM_HW1N 2
#define KRNL_DW_N_DIM_HW1N 3
#define KRNL_RNN_W_IN_ELEMS_DIM 1
#define KRNL_RNN_W_OUT_ELEMS_DIM 2

// Reading a tensor. These return 0 for a null pointer, an element type that is not supported, and
// an index out of range.

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

/// Whether two tensors of one element type, neither of rank 0, have the same data pointer.
CASTOR_API bool mli_hlp_tensor_data_ptr_cmp(const mli_tensor* in1, const mli_tensor* in2);

// Describing tensors. No element is touched.

/// Sets mem_stride to those of a dense tensor of the shape, modulo 2^32. Does nothing for a null
/// pointer and for a rank of 0 or more than MLI_MAX_RANK.
CASTOR_API void mli_hlp_set_tensor_mem_strides(mli_tensor* in);

/// Makes `out` the part of `in` that `cfg` describes: data (pointer and capacity) begin at its
/// first element; shape, mem_stride, rank, el_type and el_params are set, entries from the rank on
/// are 0. Dimensions of size 1, the first ones first, go until the rank is cfg->sub_tensor_rank.
/// `out` may be `in`.
///
/// Parameters along an axis begin with the part's first slice; if the axis itself goes, its one
/// slice's parameters become those of the whole tensor (the library leaves pointers there). FP_32
/// is cut like the others (the library answers NOT_SUPPORTED).
///
/// Where the result is not MLI_STATUS_OK, `out` is untouched. The first condition that holds
/// decides; the one with a star is castor's own, as are too few dimensions of size 1:
///
/// | condition                                                             | status               |
/// |-----------------------------------------------------------------------|----------------------|
/// | element type of `in` not supported                                    | NOT_SUPPORTED        |
/// | `in` has another fault that mli_hlp_convert_tensor refuses a source   | as there             |
/// | for, parameters left out                                              |                      |
/// | * sa per axis: dim >= rank, an array null or its capacity short       | BAD_TENSOR           |
/// | `out` null                                                            | BAD_TENSOR           |
/// | `cfg` null; sub_tensor_rank > rank; an offset >= its dimension; an    | BAD_FUNC_CFG         |
/// | offset + size > its dimension; too few dimensions of size 1           |                      |
CASTOR_API mli_status mli_hlp_create_subtensor(const mli_tensor* in, const mli_sub_tensor_cfg* cfg,
                                               mli_tensor* out);

/// As mli_hlp_create_subtensor, in the library's older way, for a dense `in`. The capacity is that
/// of the part. What a mem_stride of `out` was before means nothing (the library refuses a part of
/// two and more dimensions for it).
///
/// Where the result is not MLI_STATUS_OK, `out` is untouched. `in` and `out` are refused as by
/// mli_hlp_create_subtensor, and then:
///
/// | condition                                                             | status               |
/// |-----------------------------------------------------------------------|----------------------|
/// | `cfg` null; coord_num 0 or > rank; a coordinate >= its dimension; the | BAD_FUNC_CFG         |
/// | last one + first_out_dim_size > its dimension                         |                      |
/// | `in` not dense                                                        | INCOMPATEBLE_TENSORS |
CASTOR_API mli_status mli_hlp_point_to_subtensor(const mli_tensor* in,
                                                 const mli_point_to_subtsr_cfg* cfg,
                                                 mli_tensor* out);

// About the library.

/// Bits of an accumulator beyond those of one product: of the library's x86-64 build, whose
/// accumulators have 32 bits, or 64 of fx16 with fx16 (its builds for a device have less).
CASTOR_API uint8_t mli_hlp_accu_guard_bits_sa8_sa8(void);    ///< 16
CASTOR_API uint8_t mli_hlp_accu_guard_bits_fx16_fx16(void);  ///< 32
CASTOR_API uint8_t mli_hlp_accu_guard_bits_fx16_fx8(void);   ///< 8

/// The options that a build of the library with these results has, in its words, such as
/// " MLI_BUILD_REFERENCE=ON ROUND_MODE=UP MLI_DEBUG_MODE=DBG_MODE_RET_CODES": ROUND_MODE is the
/// present rounding (see castor_mli_set_arithmetic), and MLI_BUILD_REFERENCE is OFF in exact
/// arithmetic, which no build of the library has. A constant; never freed.
CASTOR_API const char* mli_hlp_compile_options_string(void);

#ifdef __cplusplus
}
#endif
