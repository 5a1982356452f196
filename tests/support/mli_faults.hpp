// SPDX-License-Identifier: Apache-2.0
// Every condition under which a conversion of embARC MLI tensors is refused.
#pragma once

#include "tests/support/mli_tensors.hpp"

namespace castor::test::mli {

struct TensorRow {
  const char* name;
  int stage;  ///< in which order conditions are looked at
  mli_status status;
  void (*spoil)(mli_tensor& tensor);
};

inline constexpr TensorRow tensor_rows[] = {
    {"no data", 0, MLI_STATUS_BAD_TENSOR, [](mli_tensor& t) { t.data.mem.pi8 = nullptr; }},

    {"fx4", 1, MLI_STATUS_TYPE_MISMATCH, [](mli_tensor& t) { t.el_type = MLI_EL_FX_4; }},
    {"fp16", 1, MLI_STATUS_TYPE_MISMATCH, [](mli_tensor& t) { t.el_type = MLI_EL_FP_16; }},
    {"type 0", 1, MLI_STATUS_TYPE_MISMATCH, [](mli_tensor& t) { set_type(t, 0); }},
    {"type 9", 1, MLI_STATUS_TYPE_MISMATCH, [](mli_tensor& t) { set_type(t, 9); }},
    {"type all ones", 1, MLI_STATUS_TYPE_MISMATCH, [](mli_tensor& t) { set_type(t, UINT32_MAX); }},

    {"rank 5", 2, MLI_STATUS_BAD_TENSOR, [](mli_tensor& t) { t.rank = 5; }},
    {"rank all ones", 2, MLI_STATUS_BAD_TENSOR, [](mli_tensor& t) { t.rank = UINT32_MAX; }},
    {"capacity 2^31", 2, MLI_STATUS_BAD_TENSOR,
     [](mli_tensor& t) { t.data.capacity = uint32_t{1} << 31; }},

    {"outer stride 0", 3, MLI_STATUS_BAD_TENSOR, [](mli_tensor& t) { t.mem_stride[0] = 0; }},
    {"middle stride -4", 3, MLI_STATUS_BAD_TENSOR, [](mli_tensor& t) { t.mem_stride[1] = -4; }},
    {"inner stride 0", 3, MLI_STATUS_BAD_TENSOR, [](mli_tensor& t) { t.mem_stride[2] = 0; }},
    {"least stride", 3, MLI_STATUS_BAD_TENSOR, [](mli_tensor& t) { t.mem_stride[2] = INT32_MIN; }},
    {"dimension 0", 3, MLI_STATUS_BAD_TENSOR, [](mli_tensor& t) { t.shape[0] = 0; }},
    {"inner dimension 0", 3, MLI_STATUS_BAD_TENSOR, [](mli_tensor& t) { t.shape[2] = 0; }},
    {"dimension 2^31", 3, MLI_STATUS_BAD_TENSOR,
     [](mli_tensor& t) { t.shape[1] = uint32_t{1} << 31; }},
    {"dimension all ones", 3, MLI_STATUS_BAD_TENSOR,
     [](mli_tensor& t) { t.shape[0] = UINT32_MAX; }},

    {"outer stride too small", 4, MLI_STATUS_BAD_TENSOR,
     [](mli_tensor& t) { t.mem_stride[0] = 11; }},
    {"middle stride too small", 4, MLI_STATUS_BAD_TENSOR,
     [](mli_tensor& t) { t.mem_stride[1] = 3; }},
    {"inner span of 2^62 elements", 4, MLI_STATUS_BAD_TENSOR,  // 1 modulo 2^32
     [](mli_tensor& t) {
       t.shape[1] = t.shape[2] = largest;
       t.mem_stride[1] = largest;
     }},

    {"capacity short by one", 5, MLI_STATUS_NOT_ENGH_MEM,
     [](mli_tensor& t) { t.data.capacity = 23; }},
    {"capacity 0", 5, MLI_STATUS_NOT_ENGH_MEM, [](mli_tensor& t) { t.data.capacity = 0; }},
    {"strided beyond the capacity", 5, MLI_STATUS_NOT_ENGH_MEM,
     [](mli_tensor& t) { t.mem_stride[0] = 13; }},
    {"2^62 elements", 5, MLI_STATUS_NOT_ENGH_MEM,
     [](mli_tensor& t) {
       t.shape[0] = largest;
       t.mem_stride[0] = largest;
       t.data.capacity = largest;
     }},

    {"axis 3 of rank 3", 6, MLI_STATUS_BAD_TENSOR, [](mli_tensor& t) { t.el_params.sa.dim = 3; }},
    {"largest axis", 6, MLI_STATUS_BAD_TENSOR, [](mli_tensor& t) { t.el_params.sa.dim = largest; }},
    {"no scales", 6, MLI_STATUS_BAD_TENSOR,
     [](mli_tensor& t) { t.el_params.sa.scale.mem.pi16 = nullptr; }},
    {"no zero points", 6, MLI_STATUS_BAD_TENSOR,
     [](mli_tensor& t) { t.el_params.sa.zero_point.mem.pi16 = nullptr; }},
    {"no fractional bits", 6, MLI_STATUS_BAD_TENSOR,
     [](mli_tensor& t) { t.el_params.sa.scale_frac_bits.mem.pi8 = nullptr; }},
    {"scales short", 6, MLI_STATUS_BAD_TENSOR,
     [](mli_tensor& t) { t.el_params.sa.scale.capacity = 5; }},
    {"zero points short", 6, MLI_STATUS_BAD_TENSOR,
     [](mli_tensor& t) { t.el_params.sa.zero_point.capacity = 5; }},
    {"fractional bits short", 6, MLI_STATUS_BAD_TENSOR,
     [](mli_tensor& t) { t.el_params.sa.scale_frac_bits.capacity = 2; }},
    {"scale 0", 6, MLI_STATUS_BAD_TENSOR,
     [](mli_tensor& t) {
       static std::array<int16_t, 3> values = {1, 1, 0};
       t.el_params.sa.scale.mem.pi16 = values.data();
     }},
    {"least scale", 6, MLI_STATUS_BAD_TENSOR,
     [](mli_tensor& t) {
       static std::array<int16_t, 3> values = {INT16_MIN, 1, 1};
       t.el_params.sa.scale.mem.pi16 = values.data();
     }},
    {"scale 0 for all", 6, MLI_STATUS_BAD_TENSOR,
     [](mli_tensor& t) {
       quantize_per_tensor(t);
       t.el_params.sa.scale.mem.i16 = 0;
     }},
    {"scale -1 for all", 6, MLI_STATUS_BAD_TENSOR,
     [](mli_tensor& t) {
       quantize_per_tensor(t);
       t.el_params.sa.scale.mem.i16 = -1;
     }},
    {"one scale with a capacity", 6, MLI_STATUS_BAD_TENSOR,
     [](mli_tensor& t) {
       quantize_per_tensor(t);
       t.el_params.sa.scale.capacity = 2;
     }},
    {"one zero point with a capacity", 6, MLI_STATUS_BAD_TENSOR,
     [](mli_tensor& t) {
       quantize_per_tensor(t);
       t.el_params.sa.zero_point.capacity = 2;
     }},
    {"one number of fractional bits with a capacity", 6, MLI_STATUS_BAD_TENSOR,
     [](mli_tensor& t) {
       quantize_per_tensor(t);
       t.el_params.sa.scale_frac_bits.capacity = 1;
     }},
};

struct PairRow {
  const char* name;
  int stage;
  mli_status status;
  void (*spoil)(mli_tensor& source, mli_tensor& destination);
};

inline constexpr PairRow pair_rows[] = {
    {"ranks differ", 0, MLI_STATUS_SHAPE_MISMATCH,
     [](mli_tensor& /*source*/, mli_tensor& d) { d.rank = 2; }},
    {"the source is a scalar", 0, MLI_STATUS_SHAPE_MISMATCH,
     [](mli_tensor& s, mli_tensor& /*destination*/) {
       s.rank = 0;
       quantize_per_tensor(s);
     }},
    {"outer dimensions differ", 0, MLI_STATUS_SHAPE_MISMATCH,
     [](mli_tensor& /*source*/, mli_tensor& d) { d.shape[0] = 1; }},
    {"inner dimensions differ", 0, MLI_STATUS_SHAPE_MISMATCH,
     [](mli_tensor& s, mli_tensor& /*destination*/) { s.shape[2] = 3; }},

    {"innermost stride 2 of the source", 1, MLI_STATUS_INCOMPATEBLE_TENSORS,
     [](mli_tensor& s, mli_tensor& /*destination*/) { widen_innermost_stride(s); }},
    {"innermost stride 2 of the destination", 1, MLI_STATUS_INCOMPATEBLE_TENSORS,
     [](mli_tensor& /*source*/, mli_tensor& d) { widen_innermost_stride(d); }},

    {"in place, wider elements", 2, MLI_STATUS_INCOMPATEBLE_TENSORS,
     [](mli_tensor& s, mli_tensor& d) {
       retype(d, MLI_EL_SA_32, 4);
       place(d, s, 0);
     }},
    {"in place, other strides", 2, MLI_STATUS_INCOMPATEBLE_TENSORS,
     [](mli_tensor& s, mli_tensor& d) {
       d.mem_stride[0] = 13;
       d.data.capacity = 25;
       place(d, s, 0);
     }},
    {"one byte ahead", 2, MLI_STATUS_INCOMPATEBLE_TENSORS,
     [](mli_tensor& s, mli_tensor& d) { place(d, s, 1); }},
    {"the last byte shared", 2, MLI_STATUS_INCOMPATEBLE_TENSORS,
     [](mli_tensor& s, mli_tensor& d) { place(d, s, 23); }},
    {"the first byte shared", 2, MLI_STATUS_INCOMPATEBLE_TENSORS,
     [](mli_tensor& s, mli_tensor& d) { place(s, d, 23); }},
    {"one byte into the source's second half", 2, MLI_STATUS_INCOMPATEBLE_TENSORS,
     [](mli_tensor& s, mli_tensor& d) {
       s.mem_stride[0] = d.mem_stride[0] = 24;
       s.data.capacity = d.data.capacity = 36;
       place(d, s, 13);
     }},
    {"one byte into the source's first half", 2, MLI_STATUS_INCOMPATEBLE_TENSORS,
     [](mli_tensor& s, mli_tensor& d) {
       s.mem_stride[0] = d.mem_stride[0] = 24;
       s.data.capacity = d.data.capacity = 36;
       place(d, s, 11);
     }},

    {"other axes", 3, MLI_STATUS_SIZE_MISMATCH,
     [](mli_tensor& s, mli_tensor& /*destination*/) { s.el_params.sa.dim = 0; }},
};

}  // namespace castor::test::mli
