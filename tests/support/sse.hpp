// SPDX-License-Identifier: Apache-2.0
// The machine's floats by its own instructions, whose operands no compiler swaps or folds.
#pragma once

namespace castor::test {

// first = first op second, by the instruction of that name for f32 (ss) or f64 (sd).
#define SSE_OPERATION(name, instruction)                               \
  inline float name(float first, float second) {                       \
    asm volatile(instruction "ss %1, %0" : "+x"(first) : "x"(second)); \
    return first;                                                      \
  }                                                                    \
  inline double name(double first, double second) {                    \
    asm volatile(instruction "sd %1, %0" : "+x"(first) : "x"(second)); \
    return first;                                                      \
  }
SSE_OPERATION(sse_add, "add")
SSE_OPERATION(sse_sub, "sub")
SSE_OPERATION(sse_mul, "mul")
SSE_OPERATION(sse_div, "div")
SSE_OPERATION(sse_sqrt, "sqrt")  // the second operand's root
#undef SSE_OPERATION

}  // namespace castor::test
