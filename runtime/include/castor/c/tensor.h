// SPDX-License-Identifier: Apache-2.0
// Element types, tensor types and views of castor's C API. Include castor/castor.h.
#pragma once

#include <stdbool.h>

#include "castor/c/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Tensors have at most this many dimensions.
#define CASTOR_MAX_RANK 16

/// What the elements of a tensor are. The numbers never change.
typedef int32_t castor_element_type;
enum {
  CASTOR_NO_ELEMENT = 0,  ///< none is named; no tensor has it
  CASTOR_BOOLEAN = 1,     ///< a byte: 0 is false, any other reads as true, 1 is written
  CASTOR_U1 = 2,          ///< bits in bytes, the first element in the most significant bit
  CASTOR_U2 = 3,          ///< this and the other narrow ones: a stream of bits, from the least
  CASTOR_U3 = 4,          ///< significant bit of each byte on
  CASTOR_U4 = 5,
  CASTOR_U6 = 6,
  CASTOR_U8 = 7,
  CASTOR_U16 = 8,
  CASTOR_U32 = 9,
  CASTOR_U64 = 10,
  CASTOR_I2 = 11,
  CASTOR_I4 = 12,
  CASTOR_I8 = 13,
  CASTOR_I16 = 14,
  CASTOR_I32 = 15,
  CASTOR_I64 = 16,
  CASTOR_F4E2M1 = 17,
  CASTOR_F8E4M3 = 18,
  CASTOR_F8E4M3FNUZ = 19,
  CASTOR_F8E5M2 = 20,
  CASTOR_F8E5M2FNUZ = 21,
  CASTOR_F8E8M0 = 22,
  CASTOR_BF16 = 23,
  CASTOR_F16 = 24,
  CASTOR_F32 = 25,
  CASTOR_F64 = 26,
  CASTOR_NF4 = 27,
  // Types of the same values in older storage layouts of OpenVINO.
  CASTOR_U1_LSB_FIRST = 28,
  CASTOR_U2_MSB_FIRST = 29,
  CASTOR_U3_SPLIT = 30,
  CASTOR_U6_SPLIT = 31,
  // 6-bit floats of OCP MX; a stream of bits as CASTOR_U6.
  CASTOR_F6E2M3 = 32,
  CASTOR_F6E3M2 = 33
};

/// The name that texts have, e.g. "f32"; lives for ever. NULL for a number that is no type.
CASTOR_API const char* castor_element_name(castor_element_type type) CASTOR_NOEXCEPT;
/// The type of that name; CASTOR_NO_ELEMENT for any other text, and for NULL.
CASTOR_API castor_element_type castor_element_named(const char* name) CASTOR_NOEXCEPT;
/// Bits of an element, 1 to 64; 0 for a number that is no type.
CASTOR_API int32_t castor_element_bits(castor_element_type type) CASTOR_NOEXCEPT;

/// The extent of a dimension that is settled when a kernel is bound.
#define CASTOR_UNKNOWN INT64_C(-1)

/// One dimension of a tensor type.
typedef struct castor_dim {
  int64_t extent;  ///< 0 or more, or CASTOR_UNKNOWN
  const char*
      name;  ///< an unknown's name: equal names are equal extents; NULL or "" without a name
} castor_dim;

/// How integers stand for real numbers (embARC MLI): value = (x - zero_point) * scale / 2^frac.
typedef int32_t castor_quantized_format;
enum {
  CASTOR_FX8 = 1,   ///< in i8: frac alone, scale 1, zero point 0
  CASTOR_FX16 = 2,  ///< fixed point in i16
  CASTOR_SA8 = 3,   ///< in i8
  CASTOR_SA32 = 4   ///< in i32
};

/// One parameter for each slice of a tensor. values NULL: an operand gives it at run time (of
/// fixed point, which has no scale and zero point: there is none); then count is 0.
typedef struct castor_slices {
  const int32_t* values;
  size_t count;
} castor_slices;

#define CASTOR_PER_TENSOR (-1)

/// What the integers of a quantized tensor mean.
typedef struct castor_quantization {
  castor_quantized_format format;
  int32_t axis;         ///< axis of the slices, one for each index; CASTOR_PER_TENSOR: one slice
  castor_slices scale;  ///< each 1 to 32767
  castor_slices frac;   ///< each -128 to 127
  castor_slices zero_point;  ///< each -32768 to 32767
} castor_quantization;

/// The type of a value of a function. Owns nothing.
typedef struct castor_tensor_type {
  castor_element_type element;              ///< a quantized tensor's: i8, i16 or i32
  int32_t rank;                             ///< 0 to CASTOR_MAX_RANK
  const castor_dim* dims;                   ///< `rank` of them
  const castor_quantization* quantization;  ///< NULL: plain elements
} castor_tensor_type;

/// Numbers along the axes of a tensor: extents, or strides in elements. Owns nothing.
typedef struct castor_extents {
  const int64_t* values;  ///< `rank` of them
  int32_t rank;
} castor_extents;

/// A tensor in the caller's memory. The element at coordinates c is element
/// offset + sum(c[i] * strides[i]) of the array at `data`, of which `bytes` bytes may be touched.
/// Elements narrower than a byte are counted in the storage order of their type. Owns nothing.
typedef struct castor_view {
  void* data;  ///< an input's is only read
  castor_element_type element;
  int32_t rank;            ///< 0 to CASTOR_MAX_RANK
  const int64_t* shape;    ///< `rank` extents
  const int64_t* strides;  ///< `rank` strides, in elements; NULL: dense, the last axis innermost
  int64_t offset;          ///< in elements
  size_t bytes;            ///< available at `data`
} castor_view;

#ifdef __cplusplus
}  // extern "C"
#endif
