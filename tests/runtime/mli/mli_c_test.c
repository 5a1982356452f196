// SPDX-License-Identifier: Apache-2.0
// A C11 program that knows castor/mli.h alone, as one written against embARC MLI does: it converts
// tensors and checks statuses and values. Returns 0 if everything is right.
#include "castor/mli.h"

#include <stdio.h>
#include <string.h>

static int failures = 0;

static void expect(int right, const char* what, int line) {
  if (right) return;
  ++failures;
  fprintf(stderr, "line %d: %s\n", line, what);
}
#define EXPECT(condition) expect((condition), #condition, __LINE__)

/// A dense tensor of rank 2.
static mli_tensor matrix(mli_element_type type, void* data, uint32_t rows, uint32_t columns) {
  mli_tensor tensor = {0};
  tensor.el_type = type;
  tensor.rank = 2;
  tensor.shape[0] = rows;
  tensor.shape[1] = columns;
  tensor.mem_stride[0] = (int32_t)columns;
  tensor.mem_stride[1] = 1;
  tensor.data.mem.pi8 = (int8_t*)data;
  tensor.data.capacity = rows * columns * mli_hlp_tensor_element_size(&tensor);
  return tensor;
}

static mli_tensor fx_matrix(mli_element_type type, int8_t frac_bits, void* data, uint32_t rows,
                            uint32_t columns) {
  mli_tensor tensor = matrix(type, data, rows, columns);
  tensor.el_params.fx.frac_bits = frac_bits;
  return tensor;
}

static mli_tensor sa_matrix(mli_element_type type, int16_t scale, int8_t frac_bits,
                            int16_t zero_point, void* data, uint32_t rows, uint32_t columns) {
  mli_tensor tensor = matrix(type, data, rows, columns);
  tensor.el_params.sa.dim = -1;
  tensor.el_params.sa.scale.mem.i16 = scale;
  tensor.el_params.sa.scale_frac_bits.mem.i8 = frac_bits;
  tensor.el_params.sa.zero_point.mem.i16 = zero_point;
  return tensor;
}

static void set_axis(mli_tensor* tensor, int32_t dim, int16_t* scales, int8_t* frac_bits,
                     int16_t* zero_points) {
  const uint32_t slices = tensor->shape[dim];
  tensor->el_params.sa.dim = dim;
  tensor->el_params.sa.scale.mem.pi16 = scales;
  tensor->el_params.sa.scale.capacity = slices * sizeof(int16_t);
  tensor->el_params.sa.scale_frac_bits.mem.pi8 = frac_bits;
  tensor->el_params.sa.scale_frac_bits.capacity = slices;
  tensor->el_params.sa.zero_point.mem.pi16 = zero_points;
  tensor->el_params.sa.zero_point.capacity = slices * sizeof(int16_t);
}

/// More fractional bits in a wider container, and back with saturation.
static void test_fixed_point(void) {
  int8_t narrow[6] = {-128, -1, 0, 1, 64, 127};
  int16_t wide[6];
  const int16_t widened[6] = {-32768, -256, 0, 256, 16384, 32512};
  mli_tensor source = fx_matrix(MLI_EL_FX_8, 7, narrow, 2, 3);
  mli_tensor destination = fx_matrix(MLI_EL_FX_16, 15, wide, 2, 3);
  EXPECT(mli_hlp_convert_tensor(&source, &destination) == MLI_STATUS_OK);
  EXPECT(memcmp(wide, widened, sizeof(wide)) == 0);

  int8_t back[6];
  const int8_t doubled[6] = {-128, -2, 0, 2, 127, 127};
  mli_tensor narrower = fx_matrix(MLI_EL_FX_8, 8, back, 2, 3);
  EXPECT(mli_hlp_convert_tensor_safx(&destination, &narrower) == MLI_STATUS_OK);
  EXPECT(memcmp(back, doubled, sizeof(back)) == 0);
}

/// Both roundings at ties.
static void test_rounding(void) {
  int16_t halves[6] = {-3, -2, -1, 1, 2, 3};
  int8_t rounded[6];
  const int8_t up[6] = {-1, -1, 0, 1, 1, 2};
  const int8_t convergent[6] = {-2, -1, 0, 0, 1, 2};
  mli_tensor source = fx_matrix(MLI_EL_FX_16, 1, halves, 1, 6);
  mli_tensor destination = fx_matrix(MLI_EL_FX_8, 0, rounded, 1, 6);
  for (int arithmetic = CASTOR_MLI_EXACT; arithmetic <= CASTOR_MLI_EMBARC; ++arithmetic) {
    const castor_mli_arithmetic chosen = (castor_mli_arithmetic)arithmetic;
    EXPECT(castor_mli_set_arithmetic(chosen, CASTOR_MLI_UP) == MLI_STATUS_OK);
    EXPECT(mli_hlp_convert_tensor(&source, &destination) == MLI_STATUS_OK);
    EXPECT(memcmp(rounded, up, sizeof(up)) == 0);
    EXPECT(castor_mli_set_arithmetic(chosen, CASTOR_MLI_CONVERGENT) == MLI_STATUS_OK);
    EXPECT(mli_hlp_convert_tensor(&source, &destination) == MLI_STATUS_OK);
    EXPECT(memcmp(rounded, convergent, sizeof(convergent)) == 0);
  }
}

/// Adding 1/2 in f32 carries the number below 1/2 over to 1; the real sum does not reach it.
static void test_arithmetic(void) {
  float below_half = 0x1.fffffep-2F;
  int8_t rounded = -1;
  mli_tensor source = matrix(MLI_EL_FP_32, &below_half, 1, 1);
  mli_tensor destination = fx_matrix(MLI_EL_FX_8, 0, &rounded, 1, 1);
  EXPECT(castor_mli_set_arithmetic(CASTOR_MLI_EMBARC, CASTOR_MLI_UP) == MLI_STATUS_OK);
  EXPECT(mli_hlp_convert_tensor(&source, &destination) == MLI_STATUS_OK);
  EXPECT(rounded == 1);
  EXPECT(castor_mli_set_arithmetic(CASTOR_MLI_EXACT, CASTOR_MLI_UP) == MLI_STATUS_OK);
  EXPECT(mli_hlp_convert_tensor(&source, &destination) == MLI_STATUS_OK);
  EXPECT(rounded == 0);
  EXPECT(castor_mli_set_arithmetic((castor_mli_arithmetic)2, CASTOR_MLI_UP) ==
         MLI_STATUS_ARGUMENT_ERROR);
  castor_mli_arithmetic arithmetic = CASTOR_MLI_EMBARC;
  castor_mli_rounding rounding = CASTOR_MLI_CONVERGENT;
  castor_mli_get_arithmetic(&arithmetic, &rounding);
  EXPECT(arithmetic == CASTOR_MLI_EXACT && rounding == CASTOR_MLI_UP);
}

/// Parameters along the inner axis, rows apart in memory; what is between stays.
static void test_per_axis_and_strides(void) {
  int8_t weights[2][4] = {{10, 10, 10, 77}, {-10, -10, 127, 77}};
  int16_t scales[3] = {1, 3, 16384};
  int8_t frac_bits[3] = {0, 1, 14};
  int16_t zero_points[3] = {0, 8, -1};
  float real[2][5] = {{7, 7, 7, 7, 7}, {7, 7, 7, 7, 7}};
  const float expected[2][5] = {{10, 3, 11, 7, 7}, {-10, -27, 128, 7, 7}};
  mli_tensor source = sa_matrix(MLI_EL_SA_8, 1, 0, 0, weights, 2, 3);
  source.mem_stride[0] = 4;
  source.data.capacity = sizeof(weights);
  set_axis(&source, 1, scales, frac_bits, zero_points);
  mli_tensor destination = matrix(MLI_EL_FP_32, real, 2, 3);
  destination.mem_stride[0] = 5;
  destination.data.capacity = sizeof(real);
  EXPECT(mli_hlp_convert_tensor(&source, &destination) == MLI_STATUS_OK);
  EXPECT(memcmp(real, expected, sizeof(real)) == 0);
  EXPECT(mli_hlp_tensor_scale(&source, 2) == 16384);
  EXPECT(mli_hlp_tensor_scale_shift(&source, 2) == 14);
  EXPECT(mli_hlp_tensor_zero_offset(&source, 2) == -1);
  EXPECT(mli_hlp_count_elem_num(&source, 0) == 6);
}

/// sa32 back to fp32's own memory, and values held in the tensor itself and through a pointer.
static void test_in_place_and_scalar(void) {
  union {
    float real[4];
    int32_t quantized[4];
  } shared = {{0.0F, 1.0F, -2.5F, 1000.0F}};
  const int32_t expected[4] = {5, 9, -5, 4005};
  mli_tensor source = matrix(MLI_EL_FP_32, &shared, 1, 4);
  mli_tensor destination = sa_matrix(MLI_EL_SA_32, 1, 2, 5, &shared, 1, 4);
  EXPECT(mli_hlp_convert_tensor(&source, &destination) == MLI_STATUS_OK);
  EXPECT(memcmp(shared.quantized, expected, sizeof(expected)) == 0);

  mli_tensor one = fx_matrix(MLI_EL_FX_8, 4, NULL, 0, 0);
  one.rank = 0;
  one.data.mem.i8 = 24;
  one.data.capacity = 0;
  mli_tensor other = matrix(MLI_EL_FP_32, NULL, 0, 0);
  other.rank = 0;
  EXPECT(mli_hlp_convert_tensor(&one, &other) == MLI_STATUS_OK);
  EXPECT(other.data.mem.f32 == 1.5F);

  float elsewhere = 0;
  other.data.mem.pf32 = &elsewhere;
  other.data.capacity = sizeof(elsewhere);
  EXPECT(mli_hlp_convert_tensor(&one, &other) == MLI_STATUS_OK);
  EXPECT(elsewhere == 1.5F);
}

/// The left half of a matrix into its right half.
static void test_halves(void) {
  int8_t both[2][8] = {{1, 2, 3, 4, 9, 9, 9, 9}, {5, 6, 7, 8, 9, 9, 9, 9}};
  const int8_t doubled[2][8] = {{1, 2, 3, 4, 2, 4, 6, 8}, {5, 6, 7, 8, 10, 12, 14, 16}};
  const mli_tensor whole = fx_matrix(MLI_EL_FX_8, 0, both, 2, 8);
  const mli_sub_tensor_cfg left = {{0, 0}, {2, 4}, 2};
  const mli_sub_tensor_cfg right = {{0, 4}, {2, 4}, 2};
  mli_tensor source, destination;
  EXPECT(mli_hlp_create_subtensor(&whole, &left, &source) == MLI_STATUS_OK);
  EXPECT(mli_hlp_create_subtensor(&whole, &right, &destination) == MLI_STATUS_OK);
  EXPECT(destination.data.mem.pi8 == &both[0][4] && destination.data.capacity == 12);
  EXPECT(destination.mem_stride[0] == 8 && destination.mem_stride[1] == 1);
  destination.el_params.fx.frac_bits = 1;
  EXPECT(mli_hlp_convert_tensor(&source, &destination) == MLI_STATUS_OK);
  EXPECT(memcmp(both, doubled, sizeof(both)) == 0);
  destination.data.mem.pi8 -= 1;
  EXPECT(mli_hlp_convert_tensor(&source, &destination) == MLI_STATUS_INCOMPATEBLE_TENSORS);
  EXPECT(memcmp(both, doubled, sizeof(both)) == 0);
}

/// Every helper is there, with the library's types.
static void test_helpers(void) {
  int16_t numbers[2][3] = {{0}};
  mli_tensor tensor = fx_matrix(MLI_EL_FX_16, 4, numbers, 2, 3);
  tensor.mem_stride[0] = tensor.mem_stride[1] = 0;
  mli_hlp_set_tensor_mem_strides(&tensor);
  EXPECT(tensor.mem_stride[0] == 3 && tensor.mem_stride[1] == 1);
  const mli_point_to_subtsr_cfg second_row = {{1, 1}, 2, 2};
  mli_tensor row;
  EXPECT(mli_hlp_point_to_subtensor(&tensor, &second_row, &row) == MLI_STATUS_OK);
  EXPECT(row.rank == 1 && row.shape[0] == 2 && row.data.mem.pi16 == &numbers[1][1]);
  EXPECT(row.data.capacity == 4 && row.mem_stride[0] == 1);
  const bool same = mli_hlp_tensor_data_ptr_cmp(&tensor, &row);
  EXPECT(!same && mli_hlp_tensor_data_ptr_cmp(&tensor, &tensor));
  const uint8_t bits[3] = {mli_hlp_accu_guard_bits_sa8_sa8(), mli_hlp_accu_guard_bits_fx16_fx16(),
                           mli_hlp_accu_guard_bits_fx16_fx8()};
  EXPECT(bits[0] == 16 && bits[1] == 32 && bits[2] == 8);
  EXPECT(strstr(mli_hlp_compile_options_string(), "ROUND_MODE=") != NULL);
  EXPECT(KRNL_D_DIM_HWC == 3 && FMAP_C_DIM_CHW == 0);
}

/// Each status that a conversion may return, and that nothing is written.
static void test_statuses(void) {
  int8_t input[6] = {1, 2, 3, 4, 5, 6};
  int32_t output[6] = {9, 9, 9, 9, 9, 9};
  int16_t scales[3] = {1, 1, 1};
  int16_t zero_points[3] = {0, 0, 0};
  int8_t frac_bits[3] = {0, 0, 0};
  const mli_tensor source = sa_matrix(MLI_EL_SA_8, 1, 0, 0, input, 2, 3);
  const mli_tensor good = sa_matrix(MLI_EL_SA_32, 1, 0, 0, output, 2, 3);
  mli_tensor bad = good;

  EXPECT(mli_hlp_convert_tensor(NULL, &bad) == MLI_STATUS_BAD_TENSOR);
  EXPECT(mli_hlp_convert_tensor(&source, NULL) == MLI_STATUS_BAD_TENSOR);
  bad.el_params.sa.scale.mem.i16 = 0;
  EXPECT(mli_hlp_convert_tensor(&source, &bad) == MLI_STATUS_BAD_TENSOR);
  bad = good;
  bad.el_type = MLI_EL_FP_16;
  EXPECT(mli_hlp_convert_tensor(&source, &bad) == MLI_STATUS_TYPE_MISMATCH);
  bad = good;
  bad.data.capacity -= 1;
  EXPECT(mli_hlp_convert_tensor(&source, &bad) == MLI_STATUS_NOT_ENGH_MEM);
  bad = good;
  bad.shape[1] = 2;
  EXPECT(mli_hlp_convert_tensor(&source, &bad) == MLI_STATUS_SHAPE_MISMATCH);
  bad = good;
  bad.data.mem.pi8 = input;
  EXPECT(mli_hlp_convert_tensor(&source, &bad) == MLI_STATUS_INCOMPATEBLE_TENSORS);
  bad = good;
  set_axis(&bad, 0, scales, frac_bits, zero_points);
  mli_tensor along_columns = source;
  set_axis(&along_columns, 1, scales, frac_bits, zero_points);
  EXPECT(mli_hlp_convert_tensor(&along_columns, &bad) == MLI_STATUS_SIZE_MISMATCH);
  bad = matrix(MLI_EL_FP_32, output, 2, 3);
  EXPECT(mli_hlp_convert_tensor_safx(&source, &bad) == MLI_STATUS_TYPE_MISMATCH);

  for (int i = 0; i < 6; ++i) EXPECT(output[i] == 9);
  bad = good;
  EXPECT(mli_hlp_convert_tensor_safx(&source, &bad) == MLI_STATUS_OK);
  for (int i = 0; i < 6; ++i) EXPECT(output[i] == input[i]);
}

int main(void) {
  test_fixed_point();
  test_rounding();
  test_arithmetic();
  test_per_axis_and_strides();
  test_in_place_and_scalar();
  test_halves();
  test_helpers();
  test_statuses();
  if (failures == 0) puts("all right");
  return failures == 0 ? 0 : 1;
}
