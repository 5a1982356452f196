// SPDX-License-Identifier: Apache-2.0
// A C11 program that uses castor/castor.h wrongly in every way: NULL, sizes, numbers and counts
// that do not fit. It checks statuses and messages, and that nothing was written.
#include "castor/castor.h"

#include "tests/support/c_checks.h"

static void test_destroying_nothing(void) {
  castor_text_destroy(NULL);
  castor_function_destroy(NULL);
  castor_builder_destroy(NULL);
  castor_kernel_destroy(NULL);
  castor_bound_kernel_destroy(NULL);
  castor_runtime_destroy(NULL);
  castor_packed_weights_destroy(NULL);
}

static void test_asking_nothing(void) {
  EXPECT(strcmp(castor_text_data(NULL), "") == 0 && castor_text_length(NULL) == 0);
  EXPECT(castor_function_name(NULL) == NULL);
  EXPECT(castor_function_input_count(NULL) == 0 && castor_function_output_count(NULL) == 0);
  EXPECT(castor_function_input_name(NULL, 0) == NULL);
  EXPECT(castor_function_output_name(NULL, 0) == NULL);
  EXPECT(castor_function_input_type(NULL, 0) == NULL);
  EXPECT(castor_function_output_type(NULL, 0) == NULL);
  EXPECT(castor_runtime_tier(NULL) == CASTOR_TIER_NONE);
  EXPECT(castor_kernel_function(NULL) == NULL);
  EXPECT(castor_kernel_engine(NULL) == CASTOR_ENGINE_NONE);
  EXPECT(strcmp(castor_kernel_engine_reason(NULL), "") == 0);
  EXPECT(castor_kernel_tier(NULL) == CASTOR_TIER_NONE);
  EXPECT(castor_bound_kernel_output_count(NULL) == 0);
  EXPECT(castor_bound_kernel_output_shape(NULL, 0).rank == -1);
  EXPECT(castor_bound_kernel_engine(NULL) == CASTOR_ENGINE_NONE);
  EXPECT(castor_bound_kernel_tier(NULL) == CASTOR_TIER_NONE);
  EXPECT(strcmp(castor_bound_kernel_engine_reason(NULL), "") == 0);
  EXPECT(castor_bound_kernel_code_bytes(NULL) == 0);
  EXPECT(castor_bound_kernel_scratch_bytes(NULL, 4) == 0);
  EXPECT(castor_builder_input(NULL, "x", NULL) == CASTOR_NO_VALUE);
  EXPECT(castor_builder_op(NULL, NULL) == CASTOR_NO_VALUE);
  EXPECT(castor_builder_unary(NULL, "relu", 0, NULL) == CASTOR_NO_VALUE);
  EXPECT(castor_builder_binary(NULL, "add", 0, 0, NULL) == CASTOR_NO_VALUE);
  EXPECT(castor_builder_constant(NULL, NULL, NULL, 0, NULL) == CASTOR_NO_VALUE);
  EXPECT(castor_builder_convert(NULL, 0, CASTOR_F16, NULL, NULL) == CASTOR_NO_VALUE);
  castor_builder_attribute(NULL, NULL);
  castor_builder_output(NULL, 0, NULL);
}

/// Structures of older and newer headers.
static void test_struct_sizes(void) {
  struct {
    castor_runtime_options options;
    uint64_t later;
  } newer = {CASTOR_RUNTIME_OPTIONS, 0};
  castor_runtime* runtime = NULL;
  newer.options.struct_size = sizeof newer;
  EXPECT_OK(castor_runtime_create(&newer.options, &runtime, &error));
  castor_runtime_destroy(runtime);
  newer.later = (uint64_t)1 << 40;
  EXPECT_STATUS(castor_runtime_create(&newer.options, &runtime, &error), CASTOR_UNSUPPORTED,
                "castor_runtime_options is set, of a field that castor");
  EXPECT(runtime == NULL);

  static const size_t bad_sizes[] = {0, 1, sizeof(size_t), 4097, SIZE_MAX};
  for (size_t i = 0; i < sizeof bad_sizes / sizeof *bad_sizes; ++i) {
    castor_runtime_options options = CASTOR_RUNTIME_OPTIONS;
    options.struct_size = bad_sizes[i];
    EXPECT_STATUS(castor_runtime_create(&options, &runtime, &error), CASTOR_INVALID_ARGUMENT,
                  "struct_size of castor_runtime_options is");
    castor_parse_options parse = CASTOR_PARSE_OPTIONS;
    castor_function* function = NULL;
    parse.struct_size = bad_sizes[i];
    EXPECT_STATUS(castor_function_parse("", 0, NULL, &parse, &function, &error),
                  CASTOR_INVALID_ARGUMENT, "struct_size of castor_parse_options is");
  }
}

/// Limits of texts and functions; structures of headers that have none.
static void test_limits(void) {
  static const char text[] =
      "func @f(%x: f32[2], %y: f32[3]) -> (f32[2], f32[3]) {\n"
      "  %a = neg %x\n  %b = neg %y\n  return %a, %b\n}\n";
  static const struct {
    castor_compile_limits limits;
    const char* message;
    int of_text;
  } rows[] = {
      {{sizeof(castor_compile_limits), 10, 0, 0, 0, 0}, "bytes of text, expected at most 10", 1},
      {{sizeof(castor_compile_limits), 0, 1, 0, 0, 0}, "found 2 operations, expected at most 1", 1},
      {{sizeof(castor_compile_limits), 0, 0, 3, 0, 0}, "found 4 values, expected at most 3", 1},
      {{sizeof(castor_compile_limits), 0, 0, 0, 4, 0}, "bytes of names, expected at most 4", 1},
      {{sizeof(castor_compile_limits), 0, 0, 0, 0, 1}, "found 2 nests, expected at most 1", 0},
  };
  castor_parse_options parse = CASTOR_PARSE_OPTIONS;
  castor_runtime_options options = CASTOR_RUNTIME_OPTIONS;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    castor_function* function = NULL;
    castor_runtime* runtime = NULL;
    castor_kernel* kernel = NULL;
    parse.limits = &rows[i].limits;
    options.limits = &rows[i].limits;
    const castor_status of_text =
        castor_function_parse(text, sizeof text - 1, NULL, &parse, &function, &error);
    EXPECT(of_text == (rows[i].of_text ? CASTOR_LIMIT_EXCEEDED : CASTOR_OK));
    EXPECT((function != NULL) == (of_text == CASTOR_OK));
    castor_function_destroy(function);
    EXPECT_OK(castor_runtime_create(&options, &runtime, &error));
    if (rows[i].of_text || castor_runtime_tier(runtime) != CASTOR_TIER_NONE) {
      EXPECT_STATUS(
          castor_runtime_compile_text(runtime, text, sizeof text - 1, NULL, &kernel, &error),
          CASTOR_LIMIT_EXCEEDED, rows[i].message);
      EXPECT(kernel == NULL);
    }
    parse.limits = NULL;
    EXPECT_OK(castor_function_parse(text, sizeof text - 1, NULL, &parse, &function, &error));
    if (i == 1) {
      EXPECT_STATUS(castor_runtime_compile(runtime, function, &kernel, &error),
                    CASTOR_LIMIT_EXCEEDED, rows[i].message);
    }
    castor_function_destroy(function);
    castor_runtime_destroy(runtime);
  }

  // Programs of headers without limits: what follows their structure is not looked at.
  castor_function* function = NULL;
  castor_runtime* runtime = NULL;
  castor_compile_limits limits = {0, 1, 1, 1, 1, 1};
  parse.limits = &limits;
  parse.struct_size = offsetof(castor_parse_options, limits);
  EXPECT_OK(castor_function_parse(text, sizeof text - 1, NULL, &parse, &function, &error));
  castor_function_destroy(function);
  options.limits = &limits;
  options.struct_size = offsetof(castor_runtime_options, limits);
  EXPECT_OK(castor_runtime_create(&options, &runtime, &error));
  castor_runtime_destroy(runtime);
  options.struct_size = sizeof options;
  EXPECT_STATUS(castor_runtime_create(&options, &runtime, &error), CASTOR_INVALID_ARGUMENT,
                "struct_size of castor_compile_limits is 0");
}

static void test_bad_texts(void) {
  castor_function* function = NULL;
  castor_runtime* runtime = new_runtime();
  castor_kernel* kernel = NULL;
  EXPECT_STATUS(castor_function_parse("func @f(%x: f33[2])", 19, NULL, NULL, &function, &error),
                CASTOR_INVALID_TEXT, "line 1, column 13: found 'f33'");
  EXPECT(error.line == 1 && error.column == 13);
  EXPECT_STATUS(castor_function_parse(NULL, 3, NULL, NULL, &function, &error),
                CASTOR_INVALID_ARGUMENT, "no text (NULL)");
  EXPECT_STATUS(castor_function_parse(NULL, 0, NULL, NULL, &function, &error), CASTOR_INVALID_TEXT,
                "found the end of the text");
  EXPECT_STATUS(castor_function_parse(scale_text, strlen(scale_text), "f", NULL, &function, &error),
                CASTOR_INVALID_ARGUMENT, "expected @f");
  EXPECT(castor_function_parse("x", 1, NULL, NULL, NULL, NULL) == CASTOR_INVALID_ARGUMENT);
  EXPECT_STATUS(castor_runtime_compile_text(runtime, "x", 1, NULL, &kernel, &error),
                CASTOR_INVALID_TEXT, "found 'x'");
  EXPECT_STATUS(castor_runtime_compile_text(runtime, NULL, 1, NULL, &kernel, &error),
                CASTOR_INVALID_ARGUMENT, "no text (NULL)");
  EXPECT_STATUS(castor_runtime_compile_text(NULL, "x", 1, NULL, &kernel, &error),
                CASTOR_INVALID_ARGUMENT, "no runtime (NULL)");
  EXPECT_STATUS(castor_runtime_compile(runtime, NULL, &kernel, &error), CASTOR_INVALID_ARGUMENT,
                "no function (NULL)");
  EXPECT(kernel == NULL && function == NULL);
  castor_runtime_destroy(runtime);
}

/// A message longer than its array is cut after a whole character.
static void test_long_messages(void) {
  for (size_t lead = 0; lead < 4; ++lead) {
    char name[4000];
    memset(name, 'x', lead);
    for (size_t i = lead; i + 3 < sizeof name; i += 3) memcpy(name + i, "\xe2\x82\xac", 3);
    name[lead + (sizeof name - lead - 4) / 3 * 3] = '\0';
    castor_builder* builder = NULL;
    castor_function* function = NULL;
    EXPECT_OK(castor_builder_create("f", &builder, &error));
    const castor_tensor_type scalar = {CASTOR_F32, 0, NULL, NULL};
    castor_builder_input(builder, name, &scalar);
    EXPECT_STATUS(castor_builder_finish(builder, &function, &error), CASTOR_INVALID_FUNCTION,
                  "...");
    const size_t length = strlen(error.message);
    EXPECT(length <= CASTOR_MESSAGE_BYTES - 1 && length >= CASTOR_MESSAGE_BYTES - 3);
    EXPECT(strcmp(error.message + length - 6, "\xe2\x82\xac...") == 0);
    castor_builder_destroy(builder);
  }
}

static void test_bad_binding(void) {
  castor_runtime* runtime = new_runtime();
  castor_kernel* kernel = compiled(runtime, scale_text);
  castor_bound_kernel* bound = (castor_bound_kernel*)kernel;
  const int64_t pixels[] = {2, 3, -1};
  castor_extents shapes[] = {{pixels, 2}, {pixels + 1, 1}};
  const castor_view view = {0};
  const castor_view views[2] = {{0}, {0}};
  EXPECT_STATUS(castor_kernel_bind(NULL, shapes, 2, NULL, 0, NULL, &bound, &error),
                CASTOR_INVALID_ARGUMENT, "no kernel (NULL)");
  EXPECT(bound == NULL);
  EXPECT_STATUS(castor_kernel_bind(kernel, NULL, 2, NULL, 0, NULL, &bound, &error),
                CASTOR_INVALID_ARGUMENT, "no shapes (NULL)");
  EXPECT_STATUS(castor_kernel_bind(kernel, shapes, 2, NULL, 4, NULL, &bound, &error),
                CASTOR_INVALID_ARGUMENT, "no strides (NULL)");
  EXPECT_STATUS(castor_kernel_bind(kernel, shapes, 2, NULL, 0, NULL, NULL, &error),
                CASTOR_INVALID_ARGUMENT, "no pointer for the handle");
  EXPECT_STATUS(castor_kernel_bind(kernel, shapes, 1, NULL, 0, NULL, &bound, &error),
                CASTOR_INVALID_ARGUMENT, "1 input shapes given; the function has 2");
  EXPECT_STATUS(castor_kernel_bind(kernel, shapes, 2, shapes, 2, NULL, &bound, &error),
                CASTOR_INVALID_ARGUMENT, "2 strides");
  shapes[1].values = pixels;
  EXPECT_STATUS(castor_kernel_bind(kernel, shapes, 2, NULL, 0, NULL, &bound, &error),
                CASTOR_INVALID_ARGUMENT, "");
  shapes[1].values = pixels + 2;
  EXPECT_STATUS(castor_kernel_bind(kernel, shapes, 2, NULL, 0, NULL, &bound, &error),
                CASTOR_INVALID_ARGUMENT, "");
  shapes[1].values = NULL;
  EXPECT_STATUS(castor_kernel_bind(kernel, shapes, 2, NULL, 0, NULL, &bound, &error),
                CASTOR_INVALID_ARGUMENT, "shape of input 1: no values (NULL) for rank 1");
  shapes[1].rank = 17;
  EXPECT_STATUS(castor_kernel_bind(kernel, shapes, 2, NULL, 0, NULL, &bound, &error),
                CASTOR_INVALID_ARGUMENT, "shape of input 1: rank 17, expected 0 to 16");
  EXPECT_STATUS(castor_kernel_bind_views(kernel, &view, 1, NULL, 0, NULL, &bound, &error),
                CASTOR_INVALID_ARGUMENT, "1 inputs given; the function has 2");
  EXPECT_STATUS(castor_kernel_bind_views(kernel, views, 2, views, 2, NULL, &bound, &error),
                CASTOR_INVALID_ARGUMENT, "input 0: element type 0, expected 1 to ");
  EXPECT_STATUS(castor_kernel_bind_views(NULL, &view, 1, NULL, 0, NULL, &bound, &error),
                CASTOR_INVALID_ARGUMENT, "no kernel (NULL)");
  EXPECT_STATUS(castor_kernel_bind_views(kernel, NULL, 1, NULL, 0, NULL, &bound, &error),
                CASTOR_INVALID_ARGUMENT, "no inputs (NULL)");
  EXPECT_STATUS(castor_kernel_bind_views(kernel, NULL, 0, NULL, 1, NULL, &bound, &error),
                CASTOR_INVALID_ARGUMENT, "no outputs (NULL)");
  castor_bind_options options = CASTOR_BIND_OPTIONS;
  options.scratch = CASTOR_SCRATCH_OF_CALLER + 1;
  EXPECT_STATUS(castor_kernel_bind(kernel, shapes, 2, NULL, 0, &options, &bound, &error),
                CASTOR_INVALID_ARGUMENT, "scratch 2 in castor_bind_options, expected 0 to 1");
  options.scratch = -1;
  EXPECT_STATUS(castor_kernel_bind_views(kernel, &view, 1, NULL, 0, &options, &bound, &error),
                CASTOR_INVALID_ARGUMENT, "scratch -1 in castor_bind_options");
  options.reserved = 1;
  EXPECT_STATUS(castor_kernel_bind(kernel, shapes, 2, NULL, 0, &options, &bound, &error),
                CASTOR_INVALID_ARGUMENT, "reserved is 1 in castor_bind_options, expected 0");
  options.struct_size = 8;
  EXPECT_STATUS(castor_kernel_bind_views(kernel, &view, 1, NULL, 0, &options, &bound, &error),
                CASTOR_INVALID_ARGUMENT, "struct_size of castor_bind_options is 8");
  EXPECT(bound == NULL);
  castor_kernel_destroy(kernel);
  castor_runtime_destroy(runtime);
}

/// A view of a call that is refused.
struct bad_view {
  int is_output;
  castor_view view;
  const char* message;
};

static void never(void* context, int32_t count, void (*task)(void*, int32_t), void* task_context) {
  (void)context;
  (void)count;
  (void)task;
  (void)task_context;
  EXPECT(!"called");
}

static void test_bad_runs(void) {
  castor_bound_kernel* bound = bound_alone(2);
  const int64_t shape[] = {2, 3};
  const int64_t other[] = {3, 2};
  const int64_t negative[] = {2, -3};
  const int64_t strides[] = {4, 1};
  unsigned char pixels[6] = {1, 2, 3, 4, 5, 6};
  float scales[3] = {1, 1, 1};
  uint16_t halves[6] = {0};
  int32_t integers[6] = {0};
  castor_view inputs[] = {view_of(pixels, CASTOR_U8, shape, 2, sizeof pixels),
                          view_of(scales, CASTOR_F32, shape + 1, 1, sizeof scales)};
  castor_view outputs[] = {view_of(halves, CASTOR_F16, shape, 2, sizeof halves),
                           view_of(integers, CASTOR_I32, shape, 2, sizeof integers)};
  struct bad_view rows[] = {
      {0, {NULL, CASTOR_U8, 2, shape, NULL, 0, 6}, "input %x: no data (null)"},
      {0, {pixels, CASTOR_I8, 2, shape, NULL, 0, 6}, "input %x: element type i8; expected u8"},
      {0, {pixels, 0, 2, shape, NULL, 0, 6}, "input 0: element type 0, expected 1 to "},
      {0, {pixels, INT32_MIN, 2, shape, NULL, 0, 6}, "input 0: element type -2147483648"},
      {0, {pixels, CASTOR_U8, -1, shape, NULL, 0, 6}, "input 0: rank -1, expected 0 to 16"},
      {0, {pixels, CASTOR_U8, 17, shape, NULL, 0, 6}, "input 0: rank 17"},
      {0, {pixels, CASTOR_U8, 1, shape, NULL, 0, 6}, "input %x: shape [2]; expected [2, 3]"},
      {0, {pixels, CASTOR_U8, 2, NULL, NULL, 0, 6}, "input 0: no shape (NULL) for rank 2"},
      {0, {pixels, CASTOR_U8, 2, other, NULL, 0, 6}, "shape [3, 2]; expected [2, 3], as bound"},
      {0, {pixels, CASTOR_U8, 2, negative, NULL, 0, 6}, "shape [2, -3], expected extents of 0 or"},
      {0, {pixels, CASTOR_U8, 2, shape, strides, 0, 6}, "strides [4, 1]; expected [3, 1]"},
      {0, {pixels, CASTOR_U8, 2, shape, NULL, -1, 6}, "offset -1; expected 0 or more"},
      {0, {pixels, CASTOR_U8, 2, shape, NULL, 1, 6}, "6 bytes available"},
      {0, {pixels, CASTOR_U8, 2, shape, NULL, INT64_MAX, 6}, "6 bytes available"},
      {0, {pixels, CASTOR_U8, 2, shape, NULL, 0, 5}, "5 bytes available"},
      {1, {integers, CASTOR_I32, 2, shape, NULL, 0, 23}, "23 bytes available"},
      {1, {NULL, CASTOR_I32, 2, shape, NULL, 0, 24}, "no data (null)"},
      {1, {halves, CASTOR_I32, 2, shape, NULL, 0, 24}, "overlap"},
      {1, {integers, 99, 2, shape, NULL, 0, 24}, "output 1: element type 99"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    castor_view* const place = rows[i].is_output ? outputs + 1 : inputs;
    const castor_view good = *place;
    *place = rows[i].view;
    EXPECT_STATUS(castor_bound_kernel_run(bound, inputs, 2, outputs, 2, NULL, &error),
                  CASTOR_INVALID_ARGUMENT, rows[i].message);
    *place = good;
  }

  EXPECT_STATUS(castor_bound_kernel_run(NULL, inputs, 2, outputs, 2, NULL, &error),
                CASTOR_INVALID_ARGUMENT, "no bound kernel (NULL)");
  EXPECT_STATUS(castor_bound_kernel_run(bound, NULL, 2, outputs, 2, NULL, &error),
                CASTOR_INVALID_ARGUMENT, "no input (NULL)");
  EXPECT_STATUS(castor_bound_kernel_run(bound, inputs, 2, NULL, 2, NULL, &error),
                CASTOR_INVALID_ARGUMENT, "no output (NULL)");
  EXPECT_STATUS(castor_bound_kernel_run(bound, inputs, 1, outputs, 2, NULL, &error),
                CASTOR_INVALID_ARGUMENT, "1 inputs given; the function has 2");
  EXPECT_STATUS(castor_bound_kernel_run(bound, inputs, 2, outputs, 0, NULL, &error),
                CASTOR_INVALID_ARGUMENT, "0 outputs given; the function has 2");
  castor_view many[20];
  for (size_t i = 0; i < 20; ++i) many[i] = inputs[0];
  EXPECT_STATUS(castor_bound_kernel_run(bound, many, 20, outputs, 2, NULL, &error),
                CASTOR_INVALID_ARGUMENT, "20 inputs given; the function has 2");

  castor_run_options options = CASTOR_RUN_OPTIONS;
  options.struct_size = 1;
  EXPECT_STATUS(castor_bound_kernel_run(bound, inputs, 2, outputs, 2, &options, &error),
                CASTOR_INVALID_ARGUMENT, "struct_size of castor_run_options is 1");
  options.struct_size = sizeof options;
  options.stores = 3;
  EXPECT_STATUS(castor_bound_kernel_run(bound, inputs, 2, outputs, 2, &options, &error),
                CASTOR_INVALID_ARGUMENT, "stores 3, expected 0 to 2");
  options.stores = CASTOR_STORES_AUTOMATIC;
  castor_executor executor = {sizeof executor, NULL, 0, 0, never, 0};
  options.executor = &executor;
  EXPECT_STATUS(castor_bound_kernel_run(bound, inputs, 2, outputs, 2, &options, &error),
                CASTOR_INVALID_ARGUMENT, "0 tasks of the executor, expected 1 or more");
  executor.tasks = 2;
  executor.reserved = 7;
  EXPECT_STATUS(castor_bound_kernel_run(bound, inputs, 2, outputs, 2, &options, &error),
                CASTOR_INVALID_ARGUMENT, "reserved is 7 in castor_executor, expected 0");
  executor.reserved = 0;
  executor.parallel_for = NULL;
  EXPECT_STATUS(castor_bound_kernel_run(bound, inputs, 2, outputs, 2, &options, &error),
                CASTOR_INVALID_ARGUMENT, "no parallel_for of the executor (NULL)");
  executor.struct_size = 0;
  EXPECT_STATUS(castor_bound_kernel_run(bound, inputs, 2, outputs, 2, &options, &error),
                CASTOR_INVALID_ARGUMENT, "struct_size of castor_executor is 0");
  options.executor = NULL;
  options.reserved = -1;
  EXPECT_STATUS(castor_bound_kernel_run(bound, inputs, 2, outputs, 2, &options, &error),
                CASTOR_INVALID_ARGUMENT, "reserved is -1 in castor_run_options, expected 0");
  options.reserved = 0;
  options.scratch_bytes = 64;
  EXPECT_STATUS(castor_bound_kernel_run(bound, inputs, 2, outputs, 2, &options, &error),
                CASTOR_INVALID_ARGUMENT, "no scratch (NULL) for its 64 bytes");
  for (size_t i = 0; i < 6; ++i) EXPECT(halves[i] == 0 && integers[i] == 0);
  castor_bound_kernel_destroy(bound);
}

int main(int argc, char** argv) {
  interprets = argc == 2 && strcmp(argv[1], "interpret") == 0;
  test_destroying_nothing();
  test_asking_nothing();
  test_struct_sizes();
  test_limits();
  test_bad_texts();
  test_long_messages();
  test_bad_binding();
  test_bad_runs();
  return finished();
}
