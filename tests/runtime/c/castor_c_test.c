// SPDX-License-Identifier: Apache-2.0
// A C11 program that knows castor/castor.h alone uses all of it, and checks statuses and values.
#include "castor/castor.h"

#include <math.h>
#include <stdlib.h>

#include "tests/support/c_checks.h"

static void test_version(void) {
  EXPECT_OK(castor_check_abi(CASTOR_ABI_VERSION, &error));
  EXPECT(castor_check_abi(CASTOR_ABI_VERSION, NULL) == CASTOR_OK);
  EXPECT_STATUS(castor_check_abi(CASTOR_ABI_VERSION + 1, &error), CASTOR_UNSUPPORTED,
                "compiled for ABI 2");
  EXPECT(castor_check_abi(0, NULL) == CASTOR_UNSUPPORTED);
  EXPECT(strchr(castor_version_string(), '.') != NULL);
}

static void test_runtime_options(void) {
  castor_runtime* runtime = NULL;
  castor_runtime_options options = CASTOR_RUNTIME_OPTIONS;
  EXPECT_STATUS(castor_runtime_create(NULL, NULL, &error), CASTOR_INVALID_ARGUMENT, "NULL");
  EXPECT(castor_runtime_create(NULL, NULL, NULL) == CASTOR_INVALID_ARGUMENT);

  options.tier = CASTOR_TIER_AMX + 1;
  EXPECT_STATUS(castor_runtime_create(&options, &runtime, &error), CASTOR_INVALID_ARGUMENT,
                "tier 8, expected 0 to 7");
  options.tier = -1;
  EXPECT_STATUS(castor_runtime_create(&options, &runtime, &error), CASTOR_INVALID_ARGUMENT,
                "tier -1");
  EXPECT(runtime == NULL);

  options.tier = CASTOR_TIER_AUTOMATIC;
  options.core = CASTOR_CORE_ZEN3 + 1;
  EXPECT_STATUS(castor_runtime_create(&options, &runtime, &error), CASTOR_INVALID_ARGUMENT,
                "core 6, expected 0 to 5");
  options.core = CASTOR_CORE_ZEN4;
  options.frame_pointers = 1;
  options.interpret = 1;
  options.cache_bytes = 1;
  EXPECT_OK(castor_runtime_create(&options, &runtime, &error));
  EXPECT(castor_runtime_tier(runtime) == CASTOR_TIER_NONE);
  castor_kernel* kernel = compiled(runtime, scale_text);
  EXPECT(castor_kernel_engine(kernel) == CASTOR_ENGINE_INTERPRETER);
  EXPECT(castor_kernel_tier(kernel) == CASTOR_TIER_NONE);
  EXPECT(strstr(castor_kernel_engine_reason(kernel), "asked to interpret") != NULL);
  castor_kernel_destroy(kernel);
  castor_runtime_destroy(runtime);
}

static void test_statistics(void) {
  castor_runtime* runtime = new_runtime();
  castor_kernel_destroy(compiled(runtime, scale_text));
  castor_kernel_destroy(compiled(runtime, scale_text));
  castor_statistics counters = CASTOR_STATISTICS;
  EXPECT_OK(castor_runtime_statistics(runtime, &counters, &error));
  EXPECT(counters.functions == 1 && counters.function_hits == 1);
  EXPECT(counters.function_misses == 1 && counters.function_evictions == 0);
  EXPECT(counters.function_compile_ns > 0 && counters.function_bytes > 0);
  EXPECT(counters.code_misses >= counters.codes && counters.code_evictions == 0);
  EXPECT((counters.code_bytes > 0) == (counters.codes > 0));
  EXPECT((counters.code_compile_ns > 0) == (counters.codes > 0));
  EXPECT(counters.codes >= 1 || castor_runtime_tier(runtime) == CASTOR_TIER_NONE);
  EXPECT(counters.struct_size == sizeof counters);

  struct {
    castor_statistics known;
    uint64_t later;
  } newer = {CASTOR_STATISTICS, 77};
  newer.known.struct_size = sizeof newer;
  EXPECT_OK(castor_runtime_statistics(runtime, &newer.known, &error));
  EXPECT(newer.later == 0 && newer.known.functions == 1);
  EXPECT(newer.known.struct_size == sizeof newer);

  counters.struct_size = 3;
  EXPECT_STATUS(castor_runtime_statistics(runtime, &counters, &error), CASTOR_INVALID_ARGUMENT,
                "struct_size of castor_statistics is 3");
  EXPECT_STATUS(castor_runtime_statistics(runtime, NULL, &error), CASTOR_INVALID_ARGUMENT,
                "no statistics (NULL)");
  EXPECT_STATUS(castor_runtime_statistics(NULL, &counters, &error), CASTOR_INVALID_ARGUMENT,
                "no runtime (NULL)");
  castor_runtime_destroy(runtime);
}

static void test_parsing(void) {
  castor_function* function = NULL;
  EXPECT_OK(
      castor_function_parse(scale_text, strlen(scale_text), "scale", NULL, &function, &error));
  EXPECT(strcmp(castor_function_name(function), "scale") == 0);
  EXPECT(castor_function_input_count(function) == 2);
  EXPECT(castor_function_output_count(function) == 2);
  EXPECT(strcmp(castor_function_input_name(function, 1), "s") == 0);
  EXPECT(strcmp(castor_function_output_name(function, 0), "h") == 0);
  const castor_tensor_type* x = castor_function_input_type(function, 0);
  EXPECT(x->element == CASTOR_U8 && x->rank == 2 && x->quantization == NULL);
  EXPECT(x->dims[0].extent == CASTOR_UNKNOWN && strcmp(x->dims[0].name, "n") == 0);
  EXPECT(x->dims[1].extent == 3 && x->dims[1].name == NULL);
  EXPECT(castor_function_output_type(function, 1)->element == CASTOR_I32);
  EXPECT(castor_function_input_name(function, 2) == NULL);
  EXPECT(castor_function_input_type(function, SIZE_MAX) == NULL);
  EXPECT(castor_function_output_name(function, 2) == NULL);
  EXPECT(castor_function_output_type(function, 2) == NULL);

  castor_text* text = NULL;
  EXPECT_OK(castor_function_print(function, &text, &error));
  EXPECT(strcmp(castor_text_data(text), strchr(scale_text, '\n') + 1) == 0);
  EXPECT(castor_text_length(text) == strlen(castor_text_data(text)));
  castor_text_destroy(text);
  EXPECT_STATUS(castor_function_print(NULL, &text, &error), CASTOR_INVALID_ARGUMENT,
                "no function (NULL)");
  EXPECT(text == NULL);
  EXPECT_STATUS(castor_function_print(function, NULL, &error), CASTOR_INVALID_ARGUMENT, "NULL");
  castor_function_destroy(function);
}

static void test_quantized_types(void) {
  static const char source[] =
      "func @q(%x: sa8<axis = 1, scale = [3, 4], frac = ?, zero_point = [1, -1]>[?, 2], %f: i8[2])"
      " -> fx8<frac = 7>[?, 2] {\n"
      "  %y = requantize %x, none, %f : fx8<frac = 7>\n"
      "  return %y\n}\n";
  castor_function* function = NULL;
  EXPECT_OK(castor_function_parse(source, strlen(source), NULL, NULL, &function, &error));
  const castor_tensor_type* x = castor_function_input_type(function, 0);
  EXPECT(x->element == CASTOR_I8 && x->quantization->format == CASTOR_SA8);
  EXPECT(x->quantization->axis == 1 && x->quantization->scale.count == 2);
  EXPECT(x->quantization->scale.values[1] == 4 && x->quantization->zero_point.values[1] == -1);
  EXPECT(x->quantization->frac.values == NULL && x->quantization->frac.count == 0);
  EXPECT(castor_function_input_type(function, 1)->quantization == NULL);
  EXPECT(castor_function_output_type(function, 0)->quantization->axis == CASTOR_PER_TENSOR);
  castor_function_destroy(function);
}

static void test_constants_by_name(void) {
  static const char source[] =
      "func @c() -> u8[2] {\n  %y = constant @table : u8[2]\n  return %y\n}\n";
  castor_named_constant constants[] = {{"other", NULL, 0}, {"table", "\x07\x09", 2}};
  castor_parse_options options = CASTOR_PARSE_OPTIONS;
  castor_function* function = NULL;
  EXPECT_STATUS(castor_function_parse(source, strlen(source), NULL, NULL, &function, &error),
                CASTOR_INVALID_ARGUMENT, "expected a constant that was given: there is none");
  EXPECT(error.line == 2 && error.column == 17);
  EXPECT(strncmp(error.message, "line 2, column 17: found '@table'", 33) == 0);
  options.constant_count = 1;
  EXPECT_STATUS(castor_function_parse(source, strlen(source), NULL, &options, &function, &error),
                CASTOR_INVALID_ARGUMENT, "no constants (NULL)");
  options.constants = constants;
  EXPECT_STATUS(castor_function_parse(source, strlen(source), NULL, &options, &function, &error),
                CASTOR_INVALID_ARGUMENT, "@other");
  options.constant_count = 2;
  constants[1].bytes = 1;
  EXPECT_STATUS(castor_function_parse(source, strlen(source), NULL, &options, &function, &error),
                CASTOR_INVALID_FUNCTION, "");
  constants[1].data = NULL;
  EXPECT_STATUS(castor_function_parse(source, strlen(source), NULL, &options, &function, &error),
                CASTOR_INVALID_ARGUMENT, "no data (NULL) for the 1 bytes of constant @table");
  constants[0].name = NULL;
  EXPECT_STATUS(castor_function_parse(source, strlen(source), NULL, &options, &function, &error),
                CASTOR_INVALID_ARGUMENT, "a constant has no name (NULL)");
  EXPECT(function == NULL);

  castor_named_constant good[] = {{"table", "\x07\x09", 2}};
  options.constants = good;
  options.constant_count = 1;
  EXPECT_OK(castor_function_parse(source, strlen(source), NULL, &options, &function, &error));
  castor_runtime* runtime = new_runtime();
  castor_kernel* kernel = NULL;
  castor_bound_kernel* bound = NULL;
  EXPECT_OK(castor_runtime_compile(runtime, function, &kernel, &error));
  EXPECT_OK(castor_kernel_bind(kernel, NULL, 0, NULL, 0, NULL, &bound, &error));
  unsigned char out[2] = {0};
  const int64_t shape[] = {2};
  const castor_view y = view_of(out, CASTOR_U8, shape, 1, sizeof out);
  EXPECT_OK(castor_bound_kernel_run(bound, NULL, 0, &y, 1, NULL, &error));
  EXPECT(out[0] == 7 && out[1] == 9);
  castor_bound_kernel_destroy(bound);
  castor_kernel_destroy(kernel);
  castor_runtime_destroy(runtime);
  castor_function_destroy(function);
}

static void test_building(void) {
  castor_builder* builder = NULL;
  castor_function* function = NULL;
  EXPECT_STATUS(castor_builder_create(NULL, &builder, &error), CASTOR_INVALID_ARGUMENT,
                "no name of the function (NULL)");
  EXPECT_STATUS(castor_builder_create("f", NULL, &error), CASTOR_INVALID_ARGUMENT, "NULL");
  EXPECT_OK(castor_builder_create("scale", &builder, &error));
  const castor_dim pixels[] = {{CASTOR_UNKNOWN, "n"}, {3, NULL}};
  const castor_tensor_type x_type = {CASTOR_U8, 2, pixels, NULL};
  const castor_tensor_type s_type = {CASTOR_F32, 1, pixels + 1, NULL};
  const castor_value x = castor_builder_input(builder, "x", &x_type);
  const castor_value s = castor_builder_input(builder, "s", &s_type);
  const castor_value f = castor_builder_convert(builder, x, CASTOR_F32, NULL, "f");
  const castor_value y = castor_builder_binary(builder, "mul", f, s, "y");
  castor_convert_options options = CASTOR_CONVERT_OPTIONS;
  options.rounding = CASTOR_ROUNDING_NEAREST_EVEN;
  castor_builder_output(builder, castor_builder_convert(builder, y, CASTOR_F16, NULL, "h"), NULL);
  castor_builder_output(builder, castor_builder_convert(builder, y, CASTOR_I32, &options, "i"),
                        NULL);
  EXPECT_STATUS(castor_builder_finish(NULL, &function, &error), CASTOR_INVALID_ARGUMENT,
                "no builder (NULL)");
  EXPECT_OK(castor_builder_finish(builder, &function, &error));
  castor_builder_destroy(builder);
  castor_text* text = NULL;
  EXPECT_OK(castor_function_print(function, &text, &error));
  EXPECT(strcmp(castor_text_data(text), strchr(scale_text, '\n') + 1) == 0);
  castor_text_destroy(text);
  castor_function_destroy(function);
}

static void test_running(void) {
  castor_bound_kernel* bound = bound_alone(2);
  EXPECT(castor_bound_kernel_output_count(bound) == 2);
  const castor_extents shape = castor_bound_kernel_output_shape(bound, 1);
  EXPECT(shape.rank == 2 && shape.values[0] == 2 && shape.values[1] == 3);
  EXPECT(castor_bound_kernel_output_shape(bound, 2).rank == -1);
  const int is_jit = castor_bound_kernel_engine(bound) == CASTOR_ENGINE_JIT;
  EXPECT((castor_bound_kernel_code_bytes(bound) > 0) == is_jit);
  EXPECT((castor_bound_kernel_tier(bound) != CASTOR_TIER_NONE) == is_jit);

  unsigned char pixels[6] = {0, 1, 2, 3, 5, 255};
  float scales[3] = {0.5f, 1.5f, -2.0f};
  uint16_t halves[6] = {0};
  int32_t integers[6] = {0};
  const castor_view inputs[] = {view_of(pixels, CASTOR_U8, shape.values, 2, sizeof pixels),
                                view_of(scales, CASTOR_F32, shape.values + 1, 1, sizeof scales)};
  const castor_view outputs[] = {view_of(halves, CASTOR_F16, shape.values, 2, sizeof halves),
                                 view_of(integers, CASTOR_I32, shape.values, 2, sizeof integers)};
  EXPECT_OK(castor_bound_kernel_run(bound, inputs, 2, outputs, 2, NULL, &error));
  EXPECT(halves[0] == 0 && halves[1] == 0x3e00 && halves[2] == 0xc400 && halves[5] == 0xdff8);
  EXPECT(integers[3] == 2 && integers[4] == 8 && integers[5] == -510);
  memset(integers, 0, sizeof integers);
  castor_run_options options = CASTOR_RUN_OPTIONS;
  options.stores = CASTOR_STORES_CACHED;
  EXPECT(castor_bound_kernel_run(bound, inputs, 2, outputs, 2, &options, NULL) == CASTOR_OK);
  EXPECT(integers[4] == 8);
  castor_bound_kernel_destroy(bound);
}

static void test_views(void) {
  castor_runtime* runtime = new_runtime();
  castor_kernel* kernel =
      compiled(runtime, "func @t(%x: u8[?n, ?m]) -> u8[?n, ?m] {\n  return %x\n}\n");
  const int64_t shape[] = {2, 3};
  const int64_t transposed[] = {1, 2};
  unsigned char from[7] = {9, 1, 2, 3, 4, 5, 6};
  unsigned char to[6] = {0};
  castor_view x = view_of(from, CASTOR_U8, shape, 2, sizeof from);
  x.strides = transposed;
  x.offset = 1;
  const castor_view y = view_of(to, CASTOR_U8, shape, 2, sizeof to);
  castor_bound_kernel* bound = NULL;
  EXPECT_OK(castor_kernel_bind_views(kernel, &x, 1, &y, 1, NULL, &bound, &error));
  EXPECT_OK(castor_bound_kernel_run(bound, &x, 1, &y, 1, NULL, &error));
  EXPECT(memcmp(to, "\1\3\5\2\4\6", 6) == 0);
  castor_bound_kernel_destroy(bound);

  const castor_extents extents = {shape, 2};
  const castor_extents strides[] = {{transposed, 2}, {NULL, 0}};  // the second is dense
  EXPECT_OK(castor_kernel_bind(kernel, &extents, 1, strides, 2, NULL, &bound, &error));
  memset(to, 0, sizeof to);
  EXPECT_OK(castor_bound_kernel_run(bound, &x, 1, &y, 1, NULL, &error));
  EXPECT(memcmp(to, "\1\3\5\2\4\6", 6) == 0);
  castor_bound_kernel_destroy(bound);
  castor_kernel_destroy(kernel);
  castor_runtime_destroy(runtime);
}

/// A change of one view of a call that is refused.
struct bad_view {
  int output;
  castor_view view;
  const char* message;
};

struct pool {
  int calls;
  int32_t tasks;
};

/// Runs tasks one after the other, the last one first.
static void backwards(void* context, int32_t count, void (*task)(void*, int32_t),
                      void* task_context) {
  struct pool* pool = context;
  ++pool->calls;
  pool->tasks += count;
  while (count > 0) task(task_context, --count);
}

static void test_executor(void) {
  static const char text[] =
      "func @c(%x: u8[1, 32, 30, 30], %w: i8[64, 32, 3, 3]) -> i32[1, 64, 28, 28] {\n"
      "  %y = conv_integer %x, %w\n  return %y\n}\n";
  enum { x_bytes = 32 * 30 * 30, w_bytes = 64 * 32 * 9, y_count = 64 * 28 * 28 };
  const int64_t x_shape[] = {1, 32, 30, 30};
  const int64_t w_shape[] = {64, 32, 3, 3};
  const int64_t y_shape[] = {1, 64, 28, 28};
  unsigned char* x = malloc(x_bytes);
  signed char* w = malloc(w_bytes);
  int32_t* alone = malloc(y_count * sizeof *alone);
  int32_t* shared = calloc(y_count, sizeof *shared);
  for (int i = 0; i < x_bytes; ++i) x[i] = (unsigned char)(i * 7);
  for (int i = 0; i < w_bytes; ++i) w[i] = (signed char)(i * 13);
  castor_runtime* runtime = new_runtime();
  castor_kernel* kernel = compiled(runtime, text);
  const castor_view inputs[] = {view_of(x, CASTOR_U8, x_shape, 4, x_bytes),
                                view_of(w, CASTOR_I8, w_shape, 4, w_bytes)};
  castor_view y = view_of(alone, CASTOR_I32, y_shape, 4, y_count * sizeof *alone);
  castor_bound_kernel* bound = NULL;
  EXPECT_OK(castor_kernel_bind_views(kernel, inputs, 2, &y, 1, NULL, &bound, &error));
  EXPECT_OK(castor_bound_kernel_run(bound, inputs, 2, &y, 1, NULL, &error));
  struct pool pool = {0, 0};
  const castor_executor executor = {sizeof executor, &pool, 4, 0, backwards, -1};
  castor_run_options options = CASTOR_RUN_OPTIONS;
  options.executor = &executor;
  y.data = shared;
  EXPECT_OK(castor_bound_kernel_run(bound, inputs, 2, &y, 1, &options, &error));
  EXPECT(memcmp(alone, shared, y_count * sizeof *alone) == 0);
  const int is_jit = castor_bound_kernel_engine(bound) == CASTOR_ENGINE_JIT;
  EXPECT(!is_jit || (pool.calls >= 1 && pool.tasks > 1 && pool.tasks <= 4 * pool.calls));
  castor_bound_kernel_destroy(bound);
  castor_kernel_destroy(kernel);
  castor_runtime_destroy(runtime);
  free(x);
  free(w);
  free(alone);
  free(shared);
}

static void test_convert(void) {
  castor_runtime* runtime = new_runtime();
  float in[6] = {0, 0.5f, 1.5f, 254.5f, 300, NAN};
  unsigned char out[6] = {0};
  const int64_t shape[] = {2, 3};
  castor_view x = view_of(in, CASTOR_F32, shape, 2, sizeof in);
  castor_view y = view_of(out, CASTOR_U8, shape, 2, sizeof out);
  EXPECT_OK(castor_convert(runtime, &x, &y, NULL, &error));
  EXPECT(memcmp(out, "\x00\x00\x01\xfe\xff\x00", 6) == 0);
  castor_convert_options options = CASTOR_CONVERT_OPTIONS;
  options.rounding = CASTOR_ROUNDING_UP;
  EXPECT_OK(castor_convert(runtime, &x, &y, &options, &error));
  EXPECT(memcmp(out, "\x00\x01\x02\xff\xff\x00", 6) == 0);

  memset(out, 7, sizeof out);
  options.rounding = CASTOR_ROUNDING_HALF_UP + 1;
  EXPECT_STATUS(castor_convert(runtime, &x, &y, &options, &error), CASTOR_INVALID_ARGUMENT,
                "rounding 7, expected 0 to 6");
  options.rounding = CASTOR_ROUNDING_BY_TYPE;
  options.overflow = -1;
  EXPECT_STATUS(castor_convert(runtime, &x, &y, &options, &error), CASTOR_INVALID_ARGUMENT,
                "overflow -1, expected 0 to 4");
  options.overflow = CASTOR_OVERFLOW_BY_TYPE;
  options.nan = 2;
  EXPECT_STATUS(castor_convert(runtime, &x, &y, &options, &error), CASTOR_INVALID_ARGUMENT,
                "nan 2, expected 0 to 1");
  options.nan = CASTOR_NAN_ZERO;
  EXPECT_STATUS(castor_convert(runtime, &x, &y, &options, &error), CASTOR_INVALID_FUNCTION, "nan");
  options.nan = CASTOR_NAN_BY_TYPE;
  options.reserved = 1;
  EXPECT_STATUS(castor_convert(runtime, &x, &y, &options, &error), CASTOR_INVALID_ARGUMENT,
                "reserved");
  options.struct_size = 7;
  EXPECT_STATUS(castor_convert(runtime, &x, &y, &options, &error), CASTOR_INVALID_ARGUMENT,
                "struct_size of castor_convert_options is 7");
  EXPECT_STATUS(castor_convert(NULL, &x, &y, NULL, &error), CASTOR_INVALID_ARGUMENT,
                "no runtime (NULL)");
  EXPECT_STATUS(castor_convert(runtime, NULL, &y, NULL, &error), CASTOR_INVALID_ARGUMENT,
                "no source (NULL)");
  EXPECT_STATUS(castor_convert(runtime, &x, NULL, NULL, &error), CASTOR_INVALID_ARGUMENT,
                "no destination (NULL)");
  y.bytes = 5;
  EXPECT_STATUS(castor_convert(runtime, &x, &y, NULL, &error), CASTOR_INVALID_ARGUMENT,
                "5 bytes available");
  y.rank = 1;
  EXPECT_STATUS(castor_convert(runtime, &x, &y, NULL, &error), CASTOR_INVALID_ARGUMENT, "");
  x.element = 99;
  EXPECT_STATUS(castor_convert(runtime, &x, &y, NULL, &error), CASTOR_INVALID_ARGUMENT,
                "source: element type 99");
  for (size_t i = 0; i < 6; ++i) EXPECT(out[i] == 7);
  castor_runtime_destroy(runtime);
}

int main(int argc, char** argv) {
  interprets = argc == 2 && strcmp(argv[1], "interpret") == 0;
  test_version();
  test_runtime_options();
  test_statistics();
  test_parsing();
  test_quantized_types();
  test_constants_by_name();
  test_building();
  test_running();
  test_views();
  test_executor();
  test_convert();
  return finished();
}
