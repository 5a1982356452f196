// SPDX-License-Identifier: Apache-2.0
// A convolution with constant weights for the C11 programs that test castor/castor.h: it takes
// scratch and packed weights, and is split into tasks. Include c_checks.h first.
#pragma once

#include <stdlib.h>

#include "tests/support/c_checks.h"

enum { conv_channels = 16, conv_outputs = 32, conv_in = 10, conv_out = 8 };

static const char conv_text[] =
    "func @c(%x: u8[?n, 16, 10, 10]) -> i32[?n, 32, 8, 8] {\n"
    "  %w = constant @w : i8[32, 16, 3, 3]\n  %y = conv_integer %x, %w\n  return %y\n}\n";

static const int64_t conv_x_shape[] = {1, conv_channels, conv_in, conv_in};
static const int64_t conv_y_shape[] = {1, conv_outputs, conv_out, conv_out};

/// Tensors of one image, what comes out, and views of them.
struct conv {
  signed char w[conv_outputs][conv_channels][3][3];
  unsigned char x[conv_channels][conv_in][conv_in];
  int32_t y[conv_outputs][conv_out][conv_out];
  int32_t expected[conv_outputs][conv_out][conv_out];
  castor_view input;
  castor_view output;
};

static inline struct conv* new_conv(void) {
  struct conv* conv = malloc(sizeof *conv);
  for (size_t i = 0; i < sizeof conv->w; ++i) (&conv->w[0][0][0][0])[i] = (signed char)(i * 13);
  for (size_t i = 0; i < sizeof conv->x; ++i) (&conv->x[0][0][0])[i] = (unsigned char)(i * 7);
  for (int o = 0; o < conv_outputs; ++o) {
    for (int at = 0; at < conv_out * conv_out; ++at) {
      int32_t sum = 0;
      for (int c = 0; c < conv_channels; ++c) {
        for (int k = 0; k < 9; ++k) {
          sum += conv->w[o][c][k / 3][k % 3] *
                 conv->x[c][at / conv_out + k / 3][at % conv_out + k % 3];
        }
      }
      conv->expected[o][at / conv_out][at % conv_out] = sum;
    }
  }
  conv->input = view_of(conv->x, CASTOR_U8, conv_x_shape, 4, sizeof conv->x);
  conv->output = view_of(conv->y, CASTOR_I32, conv_y_shape, 4, sizeof conv->y);
  return conv;
}

static inline castor_kernel* compiled_conv(const castor_runtime* runtime, const struct conv* conv) {
  const castor_named_constant w = {"w", conv->w, sizeof conv->w};
  const castor_parse_options options = {sizeof options, &w, 1, NULL};
  castor_function* function = NULL;
  castor_kernel* kernel = NULL;
  EXPECT_OK(castor_function_parse(conv_text, strlen(conv_text), NULL, &options, &function, &error));
  EXPECT_OK(castor_runtime_compile(runtime, function, &kernel, &error));
  castor_function_destroy(function);
  return kernel;
}

static inline castor_bound_kernel* bound_conv(const castor_kernel* kernel,
                                              const castor_bind_options* options) {
  const castor_extents shape = {conv_x_shape, 4};
  castor_bound_kernel* bound = NULL;
  EXPECT_OK(castor_kernel_bind(kernel, &shape, 1, NULL, 0, options, &bound, &error));
  return bound;
}

/// Runs it with outputs cleared before, and gives the status.
static inline castor_status run_conv(const castor_bound_kernel* bound, struct conv* conv,
                                     const castor_run_options* options) {
  memset(conv->y, 0x5a, sizeof conv->y);
  return castor_bound_kernel_run(bound, &conv->input, 1, &conv->output, 1, options, &error);
}
static inline int is_conv_right(const struct conv* conv) {
  return memcmp(conv->y, conv->expected, sizeof conv->y) == 0;
}
static inline int is_conv_untouched(const struct conv* conv) {
  const unsigned char* bytes = (const unsigned char*)conv->y;
  for (size_t i = 0; i < sizeof conv->y; ++i) {
    if (bytes[i] != 0x5a) return 0;
  }
  return 1;
}
