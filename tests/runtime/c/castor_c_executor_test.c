// SPDX-License-Identifier: Apache-2.0
// A C11 program that gives castor its own threads: to a runtime and to single calls, and executors
// that do not what they should.
#include "tests/support/c_convolution.h"

struct pool {
  int calls;
  int32_t tasks;
  int32_t left_out;  ///< tasks of each call that are never run
};

/// Runs tasks one after the other, the last one first.
static void backwards(void* context, int32_t count, void (*task)(void*, int32_t),
                      void* task_context) {
  struct pool* pool = context;
  ++pool->calls;
  pool->tasks += count;
  while (count > pool->left_out) task(task_context, --count);
}

static castor_runtime* runtime_with(const castor_executor* executor) {
  castor_runtime_options options = CASTOR_RUNTIME_OPTIONS;
  castor_runtime* runtime = NULL;
  options.interpret = interprets;
  options.executor = executor;
  EXPECT_OK(castor_runtime_create(&options, &runtime, &error));
  return runtime;
}

/// Used by kernels that outlive their runtime, and after the structure that named it has changed.
static void test_executor_of_a_runtime(void) {
  struct conv* conv = new_conv();
  struct pool pool = {0, 0, 0};
  castor_executor executor = {sizeof executor, &pool, 4, 0, backwards, -1};
  castor_runtime* runtime = runtime_with(&executor);
  memset(&executor, 0x5a, sizeof executor);
  castor_kernel* kernel = compiled_conv(runtime, conv);
  castor_runtime_destroy(runtime);
  castor_bound_kernel* bound = bound_conv(kernel, NULL);
  castor_kernel_destroy(kernel);
  EXPECT_OK(run_conv(bound, conv, NULL));
  EXPECT(is_conv_right(conv));
  const int is_jit = castor_bound_kernel_engine(bound) == CASTOR_ENGINE_JIT;
  EXPECT(is_jit ? pool.calls >= 1 && pool.tasks > pool.calls && pool.tasks <= 4 * pool.calls
                : pool.calls == 0);

  const int calls = pool.calls;
  const castor_executor serial = CASTOR_SERIAL_EXECUTOR;
  castor_run_options options = CASTOR_RUN_OPTIONS;
  options.executor = &serial;
  EXPECT_OK(run_conv(bound, conv, &options));
  EXPECT(is_conv_right(conv) && pool.calls == calls);

  struct pool other = {0, 0, 0};
  const castor_executor two = {sizeof two, &other, 2, 0, backwards, -1};
  options.executor = &two;
  EXPECT_OK(run_conv(bound, conv, &options));
  EXPECT(is_conv_right(conv) && pool.calls == calls && (other.calls > 0) == is_jit);
  EXPECT(other.tasks == 2 * other.calls);
  castor_bound_kernel_destroy(bound);
  free(conv);
}

/// How long waking takes decides what is split.
static void test_wake_up(void) {
  static const struct {
    int64_t wake_up_ns;
    int is_split;
  } rows[] = {{INT64_MIN, 1}, {-1, 1}, {1, 1}, {1000000000, 0}, {INT64_MAX, 0}};
  struct conv* conv = new_conv();
  castor_runtime* runtime = new_runtime();
  castor_kernel* kernel = compiled_conv(runtime, conv);
  castor_bound_kernel* bound = bound_conv(kernel, NULL);
  const int is_jit = castor_bound_kernel_engine(bound) == CASTOR_ENGINE_JIT;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    struct pool pool = {0, 0, 0};
    const castor_executor executor = {sizeof executor, &pool, 3, 0, backwards, rows[i].wake_up_ns};
    castor_run_options options = CASTOR_RUN_OPTIONS;
    options.executor = &executor;
    EXPECT_OK(run_conv(bound, conv, &options));
    EXPECT(is_conv_right(conv) && (pool.calls > 0) == (rows[i].is_split && is_jit));
  }
  castor_bound_kernel_destroy(bound);
  castor_kernel_destroy(kernel);
  castor_runtime_destroy(runtime);
  free(conv);
}

/// 0 stands for the usual time, which a call of less than a microsecond is not worth.
static void test_usual_wake_up(void) {
  struct pool pool = {0, 0, 0};
  const castor_executor executor = {sizeof executor, &pool, 4, 0, backwards, 0};
  castor_runtime* runtime = runtime_with(&executor);
  const int64_t shape[] = {1024};
  float from[1024] = {1};
  int32_t to[1024] = {0};
  const castor_view x = view_of(from, CASTOR_F32, shape, 1, sizeof from);
  const castor_view y = view_of(to, CASTOR_I32, shape, 1, sizeof to);
  EXPECT_OK(castor_convert(runtime, &x, &y, NULL, &error));
  EXPECT(to[0] == 1 && pool.calls == 0);
  castor_runtime_destroy(runtime);
  EXPECT(CASTOR_USUAL_WAKE_UP_NS == 40000);
}

static void test_tasks_left_out(void) {
  struct conv* conv = new_conv();
  struct pool pool = {0, 0, 1};
  const castor_executor executor = {sizeof executor, &pool, 4, 0, backwards, -1};
  castor_runtime* runtime = runtime_with(&executor);
  castor_kernel* kernel = compiled_conv(runtime, conv);
  castor_bound_kernel* bound = bound_conv(kernel, NULL);
  if (castor_bound_kernel_engine(bound) == CASTOR_ENGINE_JIT) {
    EXPECT_STATUS(run_conv(bound, conv, NULL), CASTOR_INVALID_ARGUMENT,
                  "not run each of its tasks once");
  } else {
    EXPECT_OK(run_conv(bound, conv, NULL));
  }
  pool.left_out = 0;
  EXPECT_OK(run_conv(bound, conv, NULL));
  EXPECT(is_conv_right(conv));
  castor_bound_kernel_destroy(bound);
  castor_kernel_destroy(kernel);
  castor_runtime_destroy(runtime);
  free(conv);
}

static void test_bad_executors_of_a_runtime(void) {
  castor_runtime_options options = CASTOR_RUNTIME_OPTIONS;
  castor_runtime* runtime = NULL;
  castor_executor executor = CASTOR_SERIAL_EXECUTOR;
  options.executor = &executor;
  executor.tasks = 0;
  EXPECT_STATUS(castor_runtime_create(&options, &runtime, &error), CASTOR_INVALID_ARGUMENT,
                "0 tasks of the executor, expected 1 or more");
  executor.tasks = 2;
  EXPECT_STATUS(castor_runtime_create(&options, &runtime, &error), CASTOR_INVALID_ARGUMENT,
                "no parallel_for of the executor (NULL)");
  executor.struct_size = 16;
  EXPECT_STATUS(castor_runtime_create(&options, &runtime, &error), CASTOR_INVALID_ARGUMENT,
                "struct_size of castor_executor is 16");
  EXPECT(runtime == NULL);
}

int main(int argc, char** argv) {
  interprets = argc == 2 && strcmp(argv[1], "interpret") == 0;
  test_executor_of_a_runtime();
  test_wake_up();
  test_usual_wake_up();
  test_tasks_left_out();
  test_bad_executors_of_a_runtime();
  return finished();
}
