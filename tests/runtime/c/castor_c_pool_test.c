// SPDX-License-Identifier: Apache-2.0
// A C11 program that uses the thread pool of castor::threads, for a runtime and for a call.
#include "castor/thread_pool.h"

#include "tests/support/c_convolution.h"

static void test_pool(int32_t threads) {
  struct conv* conv = new_conv();
  castor_thread_pool* pool = NULL;
  EXPECT_OK(castor_thread_pool_create(threads, &pool, &error));
  const castor_executor* given = castor_thread_pool_executor(pool);
  EXPECT(given->struct_size == sizeof *given && given->wake_up_ns > 0 &&
         given->wake_up_ns < CASTOR_USUAL_WAKE_UP_NS);  // its threads spin
  EXPECT(given->tasks >= 1 && (threads == 0 || given->tasks <= threads));
  EXPECT(given->parallel_for != NULL && given->reserved == 0);
  castor_executor all_split = *given;
  all_split.wake_up_ns = -1;
  castor_runtime_options options = CASTOR_RUNTIME_OPTIONS;
  castor_runtime* runtime = NULL;
  options.interpret = interprets;
  options.executor = &all_split;
  EXPECT_OK(castor_runtime_create(&options, &runtime, &error));
  castor_kernel* kernel = compiled_conv(runtime, conv);
  castor_bound_kernel* bound = bound_conv(kernel, NULL);
  for (int i = 0; i < 20; ++i) {
    EXPECT_OK(run_conv(bound, conv, NULL));
    EXPECT(is_conv_right(conv));
  }
  castor_run_options of_run = CASTOR_RUN_OPTIONS;
  of_run.executor = given;
  EXPECT_OK(run_conv(bound, conv, &of_run));
  EXPECT(is_conv_right(conv));
  castor_bound_kernel_destroy(bound);
  castor_kernel_destroy(kernel);
  castor_runtime_destroy(runtime);
  castor_thread_pool_destroy(pool);
  free(conv);
}

struct marks {
  int count[100];
};
static void mark(void* context, int32_t index) { ++((struct marks*)context)->count[index]; }

/// Every task is run once.
static void test_parallel_for(void) {
  castor_thread_pool* pool = NULL;
  EXPECT_OK(castor_thread_pool_create(2, &pool, &error));
  const castor_executor* executor = castor_thread_pool_executor(pool);
  struct marks marks = {{0}};
  executor->parallel_for(executor->context, 100, mark, &marks);
  for (int i = 0; i < 100; ++i) EXPECT(marks.count[i] == 1);
  castor_thread_pool_destroy(pool);
}

static void test_refused_pools(void) {
  castor_thread_pool* pool = NULL;
  EXPECT_STATUS(castor_thread_pool_create(0, NULL, &error), CASTOR_INVALID_ARGUMENT, "NULL");
  EXPECT(castor_thread_pool_executor(NULL) == NULL);
  castor_thread_pool_destroy(NULL);
  EXPECT_STATUS(castor_thread_pool_create(-1, &pool, &error), CASTOR_INVALID_ARGUMENT,
                "a thread pool of -1 threads");
  EXPECT_STATUS(castor_thread_pool_create(257, &pool, &error), CASTOR_INVALID_ARGUMENT,
                "a thread pool of 257 threads");
  EXPECT(pool == NULL);
}

int main(int argc, char** argv) {
  interprets = argc == 2 && strcmp(argv[1], "interpret") == 0;
  test_refused_pools();
  test_pool(0);
  test_pool(1);
  test_pool(2);
  test_parallel_for();
  return finished();
}
