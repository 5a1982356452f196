// SPDX-License-Identifier: Apache-2.0
// What the C11 programs that test castor/castor.h share: checks that count failures, a function, a
// bound kernel. Include in the one source file of a program.
#pragma once

#include <stdio.h>
#include <string.h>

#include "castor/castor.h"

static int failures = 0;

static inline void expect(int right, const char* what, int line) {
  if (right) return;
  ++failures;
  fprintf(stderr, "line %d: %s\n", line, what);
}
#define EXPECT(condition) expect((condition), #condition, __LINE__)

/// Checks what a call returned and said: a part of the message, "" for none.
static inline void expect_status(castor_status found, castor_status expected,
                                 const castor_error* error, const char* part, int line) {
  const int right = found == expected && error->status == expected &&
                    (expected == CASTOR_OK ? error->message[0] == '\0' && error->line == 0
                                           : error->message[0] != '\0') &&
                    strstr(error->message, part) != NULL;
  if (right) return;
  ++failures;
  fprintf(stderr, "line %d: %s, expected %s: \"%s\", expected \"%s\"\n", line,
          castor_status_name(found), castor_status_name(expected), error->message, part);
}
/// `call` names `error` as its last argument, which was filled with something else before.
#define EXPECT_OK(call) EXPECT_STATUS(call, CASTOR_OK, "")
#define EXPECT_STATUS(call, expected, part)                      \
  do {                                                           \
    memset(&error, 0x5a, sizeof error);                          \
    const castor_status found_ = (call);                         \
    expect_status(found_, (expected), &error, (part), __LINE__); \
  } while (0)

static castor_error error;

static const char scale_text[] =
    "// two results\n"
    "func @scale(%x: u8[?n, 3], %s: f32[3]) -> (f16[?n, 3], i32[?n, 3]) {\n"
    "  %f = convert %x : f32\n"
    "  %y = mul %f, %s\n"
    "  %h = convert %y : f16\n"
    "  %i = convert %y {rounding = nearest_even} : i32\n"
    "  return %h, %i\n"
    "}\n";

/// Whether runtimes interpret: the programs' argument `interpret`.
static int interprets = 0;

static inline castor_runtime* new_runtime(void) {
  castor_runtime* runtime = NULL;
  castor_runtime_options options = CASTOR_RUNTIME_OPTIONS;
  options.interpret = interprets;
  EXPECT_OK(castor_runtime_create(interprets ? &options : NULL, &runtime, &error));
  return runtime;
}

static inline castor_kernel* compiled(const castor_runtime* runtime, const char* text) {
  castor_kernel* kernel = NULL;
  EXPECT_OK(castor_runtime_compile_text(runtime, text, strlen(text), NULL, &kernel, &error));
  return kernel;
}

static inline castor_view view_of(void* data, castor_element_type element, const int64_t* shape,
                                  int32_t rank, size_t bytes) {
  castor_view view = {0};
  view.data = data;
  view.element = element;
  view.rank = rank;
  view.shape = shape;
  view.bytes = bytes;
  return view;
}

static inline int finished(void) {
  if (failures == 0) puts("all right");
  return failures == 0 ? 0 : 1;
}

/// A kernel lives on without its function and runtime, a bound kernel without its kernel.
static inline castor_bound_kernel* bound_alone(int64_t n) {
  castor_runtime* runtime = new_runtime();
  castor_function* function = NULL;
  castor_kernel* kernel = NULL;
  castor_bound_kernel* bound = NULL;
  EXPECT_OK(castor_function_parse(scale_text, strlen(scale_text), NULL, NULL, &function, &error));
  EXPECT_OK(castor_runtime_compile(runtime, function, &kernel, &error));
  castor_function_destroy(function);
  EXPECT(castor_kernel_tier(kernel) == castor_runtime_tier(runtime));
  castor_runtime_destroy(runtime);
  EXPECT(strcmp(castor_function_name(castor_kernel_function(kernel)), "scale") == 0);
  const int64_t pixels[] = {n, 3};
  const castor_extents shapes[] = {{pixels, 2}, {pixels + 1, 1}};
  EXPECT_OK(castor_kernel_bind(kernel, shapes, 2, NULL, 0, NULL, &bound, &error));
  castor_kernel_destroy(kernel);
  return bound;
}
