// SPDX-License-Identifier: Apache-2.0
// A C11 program that converts between DLPack's tensors and castor's views, and runs on them.
#include <dlpack/dlpack.h>

#include "castor/dlpack.h"
#include "tests/support/c_checks.h"

static int64_t shape[] = {2, 3};
static int64_t transposed[] = {1, 2};

static DLTensor tensor_of(void* data, uint8_t code, uint8_t bits, int64_t* strides) {
  DLTensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.data = data;
  tensor.device.device_type = kDLCPU;
  tensor.ndim = 2;
  tensor.dtype.code = code;
  tensor.dtype.bits = bits;
  tensor.dtype.lanes = 1;
  tensor.shape = shape;
  tensor.strides = strides;
  return tensor;
}

/// A transposed tensor with an offset, and a dense one, as they are.
static void test_running_on_tensors(void) {
  unsigned char from[7] = {9, 1, 2, 3, 4, 5, 6};
  float to[6] = {0};
  DLTensor x = tensor_of(from, kDLUInt, 8, transposed);
  DLTensor y = tensor_of(to, kDLFloat, 32, NULL);
  x.byte_offset = 1;
  castor_view input;
  castor_view output;
  EXPECT_OK(castor_const_view_from_dlpack(&x, CASTOR_DLPACK_READ_ONLY, &input, &error));
  EXPECT_OK(castor_view_from_dlpack(&y, 0, &output, &error));
  EXPECT(input.data == from + 1 && input.element == CASTOR_U8 && input.bytes == 6);
  EXPECT(input.rank == 2 && input.shape == shape && input.strides == transposed);
  EXPECT(output.element == CASTOR_F32 && output.bytes == sizeof to && output.strides == NULL);
  castor_runtime* runtime = new_runtime();
  EXPECT_OK(castor_convert(runtime, &input, &output, NULL, &error));
  castor_runtime_destroy(runtime);
  EXPECT(to[0] == 1 && to[1] == 3 && to[2] == 5 && to[3] == 2 && to[4] == 4 && to[5] == 6);
}

static void test_tensors_of_views(void) {
  uint16_t data[16] = {0};
  castor_view view = view_of(data, CASTOR_BF16, shape, 2, sizeof data);
  castor_dlpack_dims dims;
  DLTensor tensor;
  memset(&tensor, 0x5a, sizeof tensor);
  view.offset = 3;
  EXPECT_OK(castor_view_to_dlpack(&view, &dims, &tensor, &error));
  EXPECT((unsigned char*)tensor.data + tensor.byte_offset == (unsigned char*)(data + 3));
  EXPECT(tensor.device.device_type == kDLCPU && tensor.device.device_id == 0 && tensor.ndim == 2);
  EXPECT(tensor.dtype.code == kDLBfloat && tensor.dtype.bits == 16 && tensor.dtype.lanes == 1);
  EXPECT(tensor.shape == dims.shape && tensor.strides == dims.strides);
  EXPECT(dims.shape[0] == 2 && dims.shape[1] == 3 && dims.strides[0] == 3 && dims.strides[1] == 1);

  castor_view again;
  EXPECT_OK(castor_view_from_dlpack(&tensor, 0, &again, &error));
  EXPECT(again.data == data + 3 && again.offset == 0 && again.bytes == 12);
  view.strides = transposed;
  EXPECT_OK(castor_view_to_dlpack(&view, &dims, &tensor, &error));
  EXPECT(dims.strides[0] == 1 && dims.strides[1] == 2);

  view.rank = 0;
  view.shape = NULL;
  view.strides = NULL;
  EXPECT_OK(castor_view_to_dlpack(&view, &dims, &tensor, &error));
  EXPECT(tensor.ndim == 0);
  EXPECT_OK(castor_view_from_dlpack(&tensor, 0, &again, &error));
  EXPECT(again.rank == 0 && again.bytes == 2);
}

static void test_refused_tensors(void) {
  float data[6] = {0};
  int64_t bad_strides[] = {3, 0};
  const DLTensor good = tensor_of(data, kDLFloat, 32, NULL);
  DLTensor rows[8];
  static const struct {
    castor_status status;
    const char* message;
  } expected[] = {{CASTOR_UNSUPPORTED, "on a device of type 2; expected 1 (CPU)"},
                  {CASTOR_UNSUPPORTED, "castor has no such element type"},
                  {CASTOR_UNSUPPORTED, "4 lanes; expected 1 lane"},
                  {CASTOR_INVALID_ARGUMENT, "17 dimensions; expected 0 to 16"},
                  {CASTOR_INVALID_ARGUMENT, "without a shape (null)"},
                  {CASTOR_INVALID_ARGUMENT, "stride 0 on axis 1"},
                  {CASTOR_INVALID_ARGUMENT, "without data (null)"},
                  {CASTOR_INVALID_ARGUMENT, "byte offset"}};
  for (size_t i = 0; i < 8; ++i) rows[i] = good;
  rows[0].device.device_type = kDLCUDA;
  rows[1].dtype.code = kDLComplex;
  rows[2].dtype.lanes = 4;
  rows[3].ndim = 17;
  rows[4].shape = NULL;
  rows[5].strides = bad_strides;
  rows[6].data = NULL;
  rows[7].byte_offset = UINT64_MAX;
  castor_view view;
  for (size_t i = 0; i < 8; ++i) {
    memset(&view, 0x5a, sizeof view);
    EXPECT_STATUS(castor_view_from_dlpack(&rows[i], 0, &view, &error), expected[i].status,
                  expected[i].message);
    EXPECT(view.data == NULL && view.element == CASTOR_NO_ELEMENT && view.bytes == 0);
    EXPECT(castor_const_view_from_dlpack(&rows[i], 0, &view, NULL) == expected[i].status);
  }
  EXPECT_STATUS(castor_view_from_dlpack(&good, CASTOR_DLPACK_READ_ONLY, &view, &error),
                CASTOR_INVALID_ARGUMENT, "read only");
  EXPECT(view.data == NULL);
  const DLTensor nibbles = tensor_of(data, kDLInt, 4, NULL);
  EXPECT_OK(castor_view_from_dlpack(&nibbles, 0, &view, &error));
  EXPECT(view.element == CASTOR_I4 && view.bytes == 3);
  EXPECT_STATUS(castor_view_from_dlpack(&nibbles, CASTOR_DLPACK_PADDED, &view, &error),
                CASTOR_UNSUPPORTED, "padded to a byte");
  EXPECT_STATUS(castor_view_from_dlpack(NULL, 0, &view, &error), CASTOR_INVALID_ARGUMENT,
                "no tensor (NULL)");
  EXPECT_STATUS(castor_const_view_from_dlpack(NULL, 0, &view, &error), CASTOR_INVALID_ARGUMENT,
                "no tensor (NULL)");
  EXPECT_STATUS(castor_view_from_dlpack(&good, 0, NULL, &error), CASTOR_INVALID_ARGUMENT,
                "no pointer for the view (NULL)");
}

static void test_refused_views(void) {
  unsigned char data[6] = {0};
  castor_dlpack_dims dims;
  castor_dlpack_fields fields;
  DLTensor tensor;
  castor_view view = view_of(data, CASTOR_NF4, shape, 2, sizeof data);
  memset(&tensor, 0x5a, sizeof tensor);
  memset(&dims, 0x5a, sizeof dims);
  EXPECT_STATUS(castor_view_to_dlpack(&view, &dims, &tensor, &error), CASTOR_UNSUPPORTED,
                "nf4 has no counterpart");
  view.element = CASTOR_U4;
  view.offset = 1;
  EXPECT_STATUS(castor_view_to_dlpack(&view, &dims, &tensor, &error), CASTOR_UNSUPPORTED,
                "inside a byte");
  view.offset = -2;
  EXPECT_STATUS(castor_view_to_dlpack(&view, &dims, &tensor, &error), CASTOR_INVALID_ARGUMENT,
                "offset -2; expected 0 or more");
  view.rank = 17;
  EXPECT_STATUS(castor_view_to_dlpack(&view, &dims, &tensor, &error), CASTOR_INVALID_ARGUMENT,
                "view: rank 17, expected 0 to 16");
  view.element = 77;
  EXPECT_STATUS(castor_view_to_dlpack(&view, &dims, &tensor, &error), CASTOR_INVALID_ARGUMENT,
                "view: element type 77");
  EXPECT(tensor.ndim == 0x5a5a5a5a && dims.shape[0] == 0x5a5a5a5a5a5a5a5a);
  EXPECT_STATUS(castor_dlpack_fields_of_view(NULL, &dims, &fields, &error), CASTOR_INVALID_ARGUMENT,
                "no view (NULL)");
  EXPECT_STATUS(castor_dlpack_fields_of_view(&view, NULL, &fields, &error), CASTOR_INVALID_ARGUMENT,
                "no dims (NULL)");
  EXPECT_STATUS(castor_dlpack_fields_of_view(&view, &dims, NULL, &error), CASTOR_INVALID_ARGUMENT,
                "no pointer for the tensor (NULL)");
}

static void test_versions(void) {
  EXPECT_OK(castor_check_dlpack_version(1, 0, &error));
  EXPECT_OK(castor_check_dlpack_version(1, 77, &error));
  EXPECT_STATUS(castor_check_dlpack_version(0, 8, &error), CASTOR_UNSUPPORTED,
                "version 0.8; expected 1.x");
  EXPECT_STATUS(castor_check_dlpack_version(2, 0, &error), CASTOR_UNSUPPORTED, "version 2.0");
}

int main(int argc, char** argv) {
  interprets = argc == 2 && strcmp(argv[1], "interpret") == 0;
  test_running_on_tensors();
  test_tensors_of_views();
  test_refused_tensors();
  test_refused_views();
  test_versions();
  return finished();
}
