// SPDX-License-Identifier: Apache-2.0
// A C11 program that gives castor its own memory: allocators, also such that refuse, scratch of
// runs, packed weights that runtimes share, and bounds of what is held.
#include "tests/support/c_convolution.h"

/// What went through an allocator, and whether it refuses.
struct heap {
  size_t blocks;
  size_t bytes;
  size_t calls;
  size_t bad_alignments;  ///< that were asked for
  int refuses;
  int is_crooked;  ///< gives blocks that are not aligned
};

static void* take(void* context, size_t bytes, size_t alignment) {
  struct heap* heap = context;
  ++heap->calls;
  heap->bad_alignments += alignment != CASTOR_SCRATCH_ALIGNMENT || bytes == 0;
  if (heap->refuses) return NULL;
  unsigned char* block = aligned_alloc(alignment, (bytes / alignment + 2) * alignment);
  ++heap->blocks;
  heap->bytes += bytes;
  return heap->is_crooked ? block + 8 : block;
}

static void give_back(void* context, void* pointer, size_t bytes) {
  struct heap* heap = context;
  --heap->blocks;
  heap->bytes -= bytes;
  free((unsigned char*)pointer - (heap->is_crooked ? 8 : 0));
}

static castor_runtime* runtime_of(const castor_allocator* allocator,
                                  const castor_packed_weights* weights) {
  castor_runtime_options options = CASTOR_RUNTIME_OPTIONS;
  castor_runtime* runtime = NULL;
  options.interpret = interprets;
  options.allocator = allocator;
  options.packed_weights = weights;
  EXPECT_OK(castor_runtime_create(&options, &runtime, &error));
  return runtime;
}

static castor_memory_statistics memory_of(const castor_runtime* runtime) {
  castor_memory_statistics memory = CASTOR_MEMORY_STATISTICS;
  EXPECT_OK(castor_runtime_memory(runtime, &memory, &error));
  return memory;
}

static castor_weight_statistics weights_of(const castor_packed_weights* weights) {
  castor_weight_statistics statistics = CASTOR_WEIGHT_STATISTICS;
  EXPECT_OK(castor_packed_weights_statistics(weights, &statistics, &error));
  return statistics;
}

/// Scratch and packed weights come from the allocator, and go back when their users die.
static void test_allocator(void) {
  struct conv* conv = new_conv();
  struct heap heap = {0};
  castor_allocator allocator = {sizeof allocator, &heap, take, give_back};
  castor_runtime* runtime = runtime_of(&allocator, NULL);
  memset(&allocator, 0x5a, sizeof allocator);  // it was copied
  castor_kernel* kernel = compiled_conv(runtime, conv);
  EXPECT(heap.calls == 0);
  castor_bound_kernel* bound = bound_conv(kernel, NULL);
  EXPECT_OK(run_conv(bound, conv, NULL));
  EXPECT(is_conv_right(conv));
  const castor_memory_statistics memory = memory_of(runtime);
  EXPECT(memory.scratch_bytes + memory.packed_weight_bytes == heap.bytes);
  const int is_jit = castor_bound_kernel_engine(bound) == CASTOR_ENGINE_JIT;
  EXPECT((memory.scratch_bytes > 0) == is_jit && (memory.packed_weight_bytes > 0) == is_jit);
  EXPECT((memory.code_bytes > 0) == is_jit && memory.code_bytes % 4096 == 0);
  EXPECT((heap.blocks >= 2) == is_jit && heap.bad_alignments == 0);
  castor_runtime_destroy(runtime);
  castor_kernel_destroy(kernel);
  EXPECT((heap.blocks >= 2) == is_jit);
  castor_bound_kernel_destroy(bound);
  EXPECT(heap.blocks == 0 && heap.bytes == 0);
  free(conv);
}

/// An allocator that returns NULL, or blocks that are not aligned, when a kernel is bound.
static void test_refusing_allocator(void) {
  static const struct {
    int is_crooked;
    castor_status expected;
    const char* message;
  } rows[] = {{0, CASTOR_OUT_OF_MEMORY, "the allocator returned null for"},
              {1, CASTOR_INVALID_ARGUMENT, "8 above a multiple of 64"}};
  struct conv* conv = new_conv();
  const castor_extents shape = {conv_x_shape, 4};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    struct heap heap = {0};
    const castor_allocator allocator = {sizeof allocator, &heap, take, give_back};
    castor_runtime* runtime = runtime_of(&allocator, NULL);
    castor_kernel* kernel = compiled_conv(runtime, conv);
    castor_bound_kernel* bound = NULL;
    heap.refuses = !rows[i].is_crooked;
    heap.is_crooked = rows[i].is_crooked;
    if (castor_kernel_engine(kernel) == CASTOR_ENGINE_JIT) {
      EXPECT_STATUS(castor_kernel_bind(kernel, &shape, 1, NULL, 0, NULL, &bound, &error),
                    rows[i].expected, rows[i].message);
      EXPECT(bound == NULL && heap.calls == 1 && heap.blocks == 0);
    }
    heap.refuses = heap.is_crooked = 0;
    bound = bound_conv(kernel, NULL);
    EXPECT_OK(run_conv(bound, conv, NULL));
    EXPECT(is_conv_right(conv));
    castor_bound_kernel_destroy(bound);
    castor_kernel_destroy(kernel);
    castor_runtime_destroy(runtime);
    EXPECT(heap.blocks == 0 && heap.bytes == 0);
  }
  free(conv);
}

static void run_tasks(void* context, int32_t count, void (*task)(void*, int32_t),
                      void* task_context) {
  (void)context;
  for (int32_t i = 0; i < count; ++i) task(task_context, i);
}

/// Runs that must allocate for their tasks say so, and touch no output.
static void test_refusal_in_a_run(void) {
  struct conv* conv = new_conv();
  struct heap heap = {0};
  const castor_allocator allocator = {sizeof allocator, &heap, take, give_back};
  const castor_executor executor = {sizeof executor, NULL, 4, 0, run_tasks, -1};
  castor_runtime* runtime = runtime_of(&allocator, NULL);
  castor_kernel* kernel = compiled_conv(runtime, conv);
  castor_bound_kernel* bound = bound_conv(kernel, NULL);
  castor_run_options options = CASTOR_RUN_OPTIONS;
  options.executor = &executor;
  heap.refuses = 1;
  if (castor_bound_kernel_engine(bound) == CASTOR_ENGINE_JIT) {
    EXPECT_STATUS(run_conv(bound, conv, &options), CASTOR_OUT_OF_MEMORY,
                  "the allocator returned null for");
    EXPECT(is_conv_untouched(conv));
  }
  heap.refuses = 0;
  EXPECT_OK(run_conv(bound, conv, &options));
  EXPECT(is_conv_right(conv));
  castor_bound_kernel_destroy(bound);
  castor_kernel_destroy(kernel);
  castor_runtime_destroy(runtime);
  EXPECT(heap.blocks == 0);
  free(conv);
}

static void test_bad_allocators(void) {
  struct heap heap = {0};
  castor_allocator allocator = {sizeof allocator, &heap, take, NULL};
  castor_runtime_options options = CASTOR_RUNTIME_OPTIONS;
  castor_packed_weights_options of_weights = CASTOR_PACKED_WEIGHTS_OPTIONS;
  castor_runtime* runtime = NULL;
  castor_packed_weights* weights = NULL;
  options.allocator = of_weights.allocator = &allocator;
  EXPECT_STATUS(castor_runtime_create(&options, &runtime, &error), CASTOR_INVALID_ARGUMENT,
                "release is null and allocate is not");
  EXPECT_STATUS(castor_packed_weights_create(&of_weights, &weights, &error),
                CASTOR_INVALID_ARGUMENT, "release is null and allocate is not");
  allocator.allocate = NULL;
  allocator.release = give_back;
  EXPECT_STATUS(castor_runtime_create(&options, &runtime, &error), CASTOR_INVALID_ARGUMENT,
                "allocate is null and release is not");
  allocator.struct_size = 0;
  EXPECT_STATUS(castor_runtime_create(&options, &runtime, &error), CASTOR_INVALID_ARGUMENT,
                "struct_size of castor_allocator is 0");
  EXPECT_STATUS(castor_packed_weights_create(&of_weights, &weights, &error),
                CASTOR_INVALID_ARGUMENT, "struct_size of castor_allocator is 0");
  of_weights.struct_size = 1;
  EXPECT_STATUS(castor_packed_weights_create(&of_weights, &weights, &error),
                CASTOR_INVALID_ARGUMENT, "struct_size of castor_packed_weights_options is 1");
  EXPECT_STATUS(castor_packed_weights_create(NULL, NULL, &error), CASTOR_INVALID_ARGUMENT, "NULL");
  EXPECT(runtime == NULL && weights == NULL && heap.calls == 0);
  const castor_allocator none = CASTOR_ALLOCATOR;
  options.allocator = &none;
  EXPECT_OK(castor_runtime_create(&options, &runtime, &error));
  castor_runtime_destroy(runtime);
}

/// Two runtimes pack once; the handle may go before them.
static void test_packed_weights(void) {
  struct conv* conv = new_conv();
  struct heap heap = {0};
  const castor_allocator allocator = {sizeof allocator, &heap, take, give_back};
  castor_packed_weights_options options = CASTOR_PACKED_WEIGHTS_OPTIONS;
  castor_packed_weights* weights = NULL;
  options.allocator = &allocator;
  EXPECT_OK(castor_packed_weights_create(&options, &weights, &error));
  castor_runtime* runtimes[] = {runtime_of(NULL, weights), runtime_of(NULL, weights)};
  castor_bound_kernel* bound[2];
  for (int i = 0; i < 2; ++i) {
    castor_kernel* kernel = compiled_conv(runtimes[i], conv);
    bound[i] = bound_conv(kernel, NULL);
    castor_kernel_destroy(kernel);
  }
  const castor_weight_statistics both = weights_of(weights);
  if (castor_bound_kernel_engine(bound[0]) == CASTOR_ENGINE_JIT) {
    EXPECT(both.entries == 1 && both.packs == 1 && both.hits == 1);
    EXPECT(both.bytes >= sizeof conv->w && both.bytes == heap.bytes);
    EXPECT(memory_of(runtimes[1]).packed_weight_bytes == both.bytes);
  } else {
    EXPECT(both.entries == 0 && both.bytes == 0 && both.packs == 0 && both.hits == 0);
  }
  castor_bound_kernel_destroy(bound[0]);
  EXPECT(weights_of(weights).entries == both.entries);
  castor_packed_weights_destroy(weights);
  castor_runtime_destroy(runtimes[0]);
  castor_runtime_destroy(runtimes[1]);
  EXPECT_OK(run_conv(bound[1], conv, NULL));
  EXPECT(is_conv_right(conv));
  castor_bound_kernel_destroy(bound[1]);
  EXPECT(heap.blocks == 0);
  free(conv);
}

static void test_limit_of_packed_weights(void) {
  struct conv* conv = new_conv();
  castor_packed_weights_options options = CASTOR_PACKED_WEIGHTS_OPTIONS;
  castor_packed_weights* weights = NULL;
  options.bytes_limit = 1000;
  EXPECT_OK(castor_packed_weights_create(&options, &weights, &error));
  castor_runtime* runtime = runtime_of(NULL, weights);
  castor_kernel* kernel = compiled_conv(runtime, conv);
  const castor_extents shape = {conv_x_shape, 4};
  castor_bound_kernel* bound = NULL;
  if (castor_kernel_engine(kernel) == CASTOR_ENGINE_JIT) {
    EXPECT_STATUS(castor_kernel_bind(kernel, &shape, 1, NULL, 0, NULL, &bound, &error),
                  CASTOR_OUT_OF_MEMORY, "1000");
  }
  EXPECT(bound == NULL && weights_of(weights).entries == 0);
  castor_weight_statistics statistics = CASTOR_WEIGHT_STATISTICS;
  EXPECT_STATUS(castor_packed_weights_statistics(NULL, &statistics, &error),
                CASTOR_INVALID_ARGUMENT, "no packed weights (NULL)");
  EXPECT_STATUS(castor_packed_weights_statistics(weights, NULL, &error), CASTOR_INVALID_ARGUMENT,
                "no statistics (NULL)");
  statistics.struct_size = 8;
  EXPECT_STATUS(castor_packed_weights_statistics(weights, &statistics, &error),
                CASTOR_INVALID_ARGUMENT, "struct_size of castor_weight_statistics is 8");
  castor_memory_statistics memory = CASTOR_MEMORY_STATISTICS;
  EXPECT_STATUS(castor_runtime_memory(NULL, &memory, &error), CASTOR_INVALID_ARGUMENT,
                "no runtime (NULL)");
  EXPECT_STATUS(castor_runtime_memory(runtime, NULL, &error), CASTOR_INVALID_ARGUMENT,
                "no statistics (NULL)");
  memory.struct_size = 5000;
  EXPECT_STATUS(castor_runtime_memory(runtime, &memory, &error), CASTOR_INVALID_ARGUMENT,
                "struct_size of castor_memory_statistics is 5000");
  castor_kernel_destroy(kernel);
  castor_runtime_destroy(runtime);
  castor_packed_weights_destroy(weights);
  free(conv);
}

/// A kernel that keeps no scratch runs with the caller's, and asks the allocator for nothing.
static void test_scratch_of_runs(void) {
  struct conv* conv = new_conv();
  struct heap heap = {0};
  const castor_allocator allocator = {sizeof allocator, &heap, take, give_back};
  const castor_executor executor = {sizeof executor, NULL, 3, 0, run_tasks, -1};
  castor_packed_weights* weights = NULL;
  EXPECT_OK(castor_packed_weights_create(NULL, &weights, &error));
  castor_runtime* runtime = runtime_of(&allocator, weights);
  castor_kernel* kernel = compiled_conv(runtime, conv);
  castor_bind_options by_caller = CASTOR_BIND_OPTIONS;
  by_caller.scratch = CASTOR_SCRATCH_OF_CALLER;
  castor_bound_kernel* bound = NULL;
  EXPECT_OK(castor_kernel_bind_views(kernel, &conv->input, 1, &conv->output, 1, &by_caller, &bound,
                                     &error));
  const size_t of_one = castor_bound_kernel_scratch_bytes(bound, 1);
  const size_t of_three = castor_bound_kernel_scratch_bytes(bound, 3);
  EXPECT(of_one % CASTOR_SCRATCH_ALIGNMENT == 0 && of_three == 3 * of_one);
  EXPECT(castor_bound_kernel_scratch_bytes(bound, -7) == of_one);
  const int is_jit = castor_bound_kernel_engine(bound) == CASTOR_ENGINE_JIT;
  EXPECT((of_one > 0) == is_jit);
  EXPECT((castor_bound_kernel_engine_reason(bound)[0] == '\0') == is_jit);
  unsigned char* scratch = aligned_alloc(CASTOR_SCRATCH_ALIGNMENT, of_three + 64);
  castor_run_options options = CASTOR_RUN_OPTIONS;
  if (is_jit) {
    EXPECT_STATUS(run_conv(bound, conv, NULL), CASTOR_INVALID_ARGUMENT, "no scratch; expected");
    options.scratch = scratch;
    options.scratch_bytes = of_one - 1;
    EXPECT_STATUS(run_conv(bound, conv, &options), CASTOR_INVALID_ARGUMENT, "scratch of ");
    options.scratch = scratch + 8;
    options.scratch_bytes = of_one;
    EXPECT_STATUS(run_conv(bound, conv, &options), CASTOR_INVALID_ARGUMENT, "8 above a multiple");
    options.scratch = scratch;
    options.executor = &executor;
    EXPECT_STATUS(run_conv(bound, conv, &options), CASTOR_INVALID_ARGUMENT, "for 3 tasks");
    EXPECT(is_conv_untouched(conv));
  }
  memset(scratch, 0xa5, of_three + 64);
  options.scratch = scratch;
  options.scratch_bytes = of_three;
  options.executor = &executor;
  EXPECT_OK(run_conv(bound, conv, &options));
  EXPECT(is_conv_right(conv));
  options.executor = NULL;
  options.scratch_bytes = of_one;
  EXPECT_OK(run_conv(bound, conv, &options));
  EXPECT(is_conv_right(conv));
  for (size_t i = 0; i < 64; ++i) EXPECT(scratch[of_three + i] == 0xa5);
  EXPECT(heap.calls == 0 && memory_of(runtime).scratch_bytes == 0);
  castor_bound_kernel_destroy(bound);
  castor_kernel_destroy(kernel);
  castor_runtime_destroy(runtime);
  castor_packed_weights_destroy(weights);
  free(scratch);
  free(conv);
}

/// Bounds of executable memory and of the cache.
static void test_limits_of_a_runtime(void) {
  struct conv* conv = new_conv();
  castor_runtime_options options = CASTOR_RUNTIME_OPTIONS;
  castor_runtime* runtime = NULL;
  options.interpret = interprets;
  options.code_bytes_limit = 1;
  EXPECT_OK(castor_runtime_create(&options, &runtime, &error));
  castor_kernel* kernel = compiled_conv(runtime, conv);
  castor_bound_kernel* bound = bound_conv(kernel, NULL);
  EXPECT(castor_bound_kernel_engine(bound) == CASTOR_ENGINE_INTERPRETER);
  const char* const why = castor_bound_kernel_engine_reason(bound);
  EXPECT(strstr(why, interprets ? "asked to" : "limit") != NULL);
  EXPECT(memory_of(runtime).code_bytes == 0);
  EXPECT_OK(run_conv(bound, conv, NULL));
  EXPECT(is_conv_right(conv));
  castor_bound_kernel_destroy(bound);
  castor_kernel_destroy(kernel);
  castor_runtime_destroy(runtime);

  options.code_bytes_limit = 0;
  for (size_t bytes = 0; bytes <= 1; ++bytes) {
    options.cache_bytes = bytes;
    EXPECT_OK(castor_runtime_create(&options, &runtime, &error));
    castor_kernel_destroy(compiled_conv(runtime, conv));
    castor_kernel_destroy(compiled_conv(runtime, conv));
    castor_statistics counters = CASTOR_STATISTICS;
    EXPECT_OK(castor_runtime_statistics(runtime, &counters, &error));
    EXPECT(counters.functions == 1 + bytes && counters.function_misses == 1 + bytes);
    EXPECT(counters.function_hits == 1 - bytes);
    EXPECT((counters.function_bytes == 0) == (bytes == 1));
    castor_runtime_destroy(runtime);
  }
  free(conv);
}

int main(int argc, char** argv) {
  interprets = argc == 2 && strcmp(argv[1], "interpret") == 0;
  test_allocator();
  test_refusing_allocator();
  test_refusal_in_a_run();
  test_bad_allocators();
  test_packed_weights();
  test_limit_of_packed_weights();
  test_scratch_of_runs();
  test_limits_of_a_runtime();
  return finished();
}
