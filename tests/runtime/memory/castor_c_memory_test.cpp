// SPDX-License-Identifier: Apache-2.0
// The C API where any allocation is refused: at every one of them in turn, the call says so, leaves
// outputs and its other arguments as they were, leaks nothing, and succeeds when it is repeated.
#include <castor/castor.h>
#include <castor/listing.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/support/c_world.hpp"
#include "tests/support/counting_allocator.hpp"

namespace castor::test {
namespace {

/// A call, or a few, that undo what they do.
struct Step {
  const char* name;
  Ready ready;
  castor_status (*run)(World& world, castor_error* error);
  bool writes = false;  ///< the output
  long stride = 1;      ///< each stride-th allocation is refused, where there are thousands
};

const Step steps[] = {
    {"parse", Ready::runtime,
     [](World& world, castor_error* error) {
       castor_function* function = nullptr;
       const castor_status status = world.parse(error, &function);
       EXPECT_EQ(function != nullptr, status == CASTOR_OK);
       castor_function_destroy(function);
       return status;
     }},
    {"print", Ready::function,
     [](World& world, castor_error* error) {
       castor_text* text = nullptr;
       const castor_status status = castor_function_print(world.function, &text, error);
       EXPECT_EQ(castor_text_length(text) > 0, status == CASTOR_OK);
       castor_text_destroy(text);
       return status;
     }},
    {"compile_text", Ready::runtime,
     [](World& world, castor_error* error) {
       castor_kernel* kernel = nullptr;
       const castor_status status = castor_runtime_compile_text(
           world.runtime, world.row.text.data(), world.row.text.size(), nullptr, &kernel, error);
       EXPECT_EQ(kernel != nullptr, status == CASTOR_OK);
       if (status == CASTOR_OK && castor_runtime_tier(world.runtime) != CASTOR_TIER_NONE) {
         EXPECT_EQ(castor_kernel_engine(kernel), CASTOR_ENGINE_JIT)
             << castor_kernel_engine_reason(kernel);
       }
       castor_kernel_destroy(kernel);
       return status;
     }},
    {"compile", Ready::function,
     [](World& world, castor_error* error) {
       castor_kernel* kernel = nullptr;
       const castor_status status =
           castor_runtime_compile(world.runtime, world.function, &kernel, error);
       castor_kernel_destroy(kernel);
       return status;
     }},
    {"compile_again", Ready::kernel,
     [](World& world, castor_error* error) {
       castor_function* same = nullptr;
       castor_status status = world.parse(error, &same);
       if (status != CASTOR_OK) return status;
       castor_kernel* kernel = nullptr;
       status = castor_runtime_compile(world.runtime, same, &kernel, error);
       castor_kernel_destroy(kernel);
       castor_function_destroy(same);
       return status;
     }},
    {"bind", Ready::kernel,
     [](World& world, castor_error* error) {
       std::array<castor_extents, 4> shapes;
       for (size_t i = 0; i < world.inputs.size(); ++i) {
         shapes[i] = {world.inputs[i].shape, world.inputs[i].rank};
       }
       castor_bound_kernel* bound = nullptr;
       const castor_status status = castor_kernel_bind(
           world.kernel, shapes.data(), world.inputs.size(), nullptr, 0, nullptr, &bound, error);
       castor_bound_kernel_destroy(bound);
       return status;
     }},
    {"bind_views", Ready::kernel,
     [](World& world, castor_error* error) {
       castor_bound_kernel* bound = nullptr;
       const castor_status status = world.bind_views(error, &bound);
       castor_bound_kernel_destroy(bound);
       return status;
     }},
    {"bind_to_scratch_of_the_caller", Ready::kernel,
     [](World& world, castor_error* error) {
       castor_bind_options options = CASTOR_BIND_OPTIONS;
       options.scratch = CASTOR_SCRATCH_OF_CALLER;
       castor_bound_kernel* bound = nullptr;
       const castor_status status =
           castor_kernel_bind_views(world.kernel, world.inputs.data(), world.inputs.size(),
                                    &world.output, 1, &options, &bound, error);
       EXPECT_EQ(bound != nullptr, status == CASTOR_OK);
       castor_bound_kernel_destroy(bound);
       return status;
     }},
    {"ask", Ready::bound,
     [](World& world, castor_error* error) {
       castor_statistics statistics = CASTOR_STATISTICS;
       EXPECT_EQ(castor_bound_kernel_output_count(world.bound), 1u);
       EXPECT_EQ(castor_bound_kernel_output_shape(world.bound, 0).rank, world.output.rank);
       EXPECT_EQ(castor_bound_kernel_code_bytes(world.bound) > 0,
                 castor_bound_kernel_engine(world.bound) == CASTOR_ENGINE_JIT);
       EXPECT_EQ(castor_function_input_count(castor_kernel_function(world.kernel)),
                 world.inputs.size());
       EXPECT_EQ(std::string_view(castor_bound_kernel_engine_reason(world.bound)).empty(),
                 castor_bound_kernel_engine(world.bound) == CASTOR_ENGINE_JIT);
       EXPECT_LE(castor_bound_kernel_scratch_bytes(world.bound, 1),
                 castor_bound_kernel_scratch_bytes(world.bound, 3));
       castor_memory_statistics memory = CASTOR_MEMORY_STATISTICS;
       castor_status status = castor_runtime_memory(world.runtime, &memory, error);
       if (status != CASTOR_OK) return status;
       status = castor_runtime_observation(world.runtime, error);
       if (status != CASTOR_OK) return status;
       return castor_runtime_statistics(world.runtime, &statistics, error);
     }},
    {"run", Ready::bound,
     [](World& world, castor_error* error) { return world.run(nullptr, error); }, true},
    {"run_in_tasks", Ready::bound,
     [](World& world, castor_error* error) {
       castor_run_options options = CASTOR_RUN_OPTIONS;
       options.executor = &in_order;
       return world.run(&options, error);
     },
     true},
    {"listing", Ready::bound,
     [](World& world, castor_error* error) {
       castor_text* text = nullptr;
       const castor_status status = castor_bound_kernel_listing(world.bound, &text, error);
       castor_text_destroy(text);
       return status;
     },
     false, 97},
};

/// Checks one step with its first `count` allocations granted. Gives whether it succeeded.
bool succeeds_with(const FunctionRow& row, const Step& step, bool interpret, long count,
                   const std::vector<std::byte>& expected) {
  const long held_before = blocks_held;
  castor_status status = CASTOR_OK;
  {
    World world(row, step.ready, interpret);
    castor_error error;
    const long held = blocks_held;
    {
      const AllocationsFailAfter failing(count);
      status = step.run(world, &error);
    }
    EXPECT_EQ(error.status, status);
    if (status != CASTOR_OK) {
      EXPECT_EQ(status, CASTOR_OUT_OF_MEMORY) << error.message;
      EXPECT_TRUE(world.output_is_untouched());
      EXPECT_STRNE(error.message, "");
      EXPECT_LE(blocks_held, held + 128) << "more than the cache may keep";
      EXPECT_EQ(step.run(world, &error), CASTOR_OK) << error.message;
    }
    if (step.writes) {
      EXPECT_EQ(world.output_data, expected);
    } else {
      EXPECT_TRUE(world.output_is_untouched());
    }
  }
  EXPECT_EQ(blocks_held, held_before) << "leaked";
  return status == CASTOR_OK;
}

std::vector<std::byte> expected_output(const FunctionRow& row) {
  World world(row, Ready::bound, true);
  EXPECT_EQ(world.run(nullptr, nullptr), CASTOR_OK);
  EXPECT_FALSE(world.output_is_untouched());
  return world.output_data;
}

void check_every_allocation(const FunctionRow& row, const Step& step, bool interpret) {
  const std::vector<std::byte> expected = expected_output(row);
  for (long count = 0;; count += step.stride) {
    SCOPED_TRACE(fmt::format("{}, {}{}: {} allocations granted", row.name, step.name,
                             interpret ? ", interpreted" : "", count));
    const bool succeeded = succeeds_with(row, step, interpret, count, expected);
    if (testing::Test::HasFailure()) return;
    ASSERT_LT(count, 20000);
    if (succeeded && !allocation_failed) return;
  }
}

/// First, while nothing of the process is known yet.
TEST(CastorCMemory, OfARuntime) {
  for (long count = 0;; ++count) {
    const long held = blocks_held;
    castor_runtime* runtime = nullptr;
    castor_error error;
    castor_status status = CASTOR_OK;
    {
      const AllocationsFailAfter failing(count);
      status = castor_runtime_create(nullptr, &runtime, &error);
    }
    castor_runtime_destroy(runtime);
    if (status == CASTOR_OK && !allocation_failed) {
      ASSERT_GT(count, 3) << "a runtime takes memory";
      break;
    }
    ASSERT_EQ(status, CASTOR_OUT_OF_MEMORY) << count << ": " << error.message;
    ASSERT_EQ(runtime, nullptr);
    ASSERT_LE(blocks_held, held + 8) << "of what the process knows of its machine";
    ASSERT_LT(count, 1000);
  }
}

/// With scratch of the caller a run allocates nothing at all.
TEST(CastorCMemory, OfARunWithScratch) {
  for (const FunctionRow& row : functions()) {
    const std::vector<std::byte> expected = expected_output(row);
    World world(row, Ready::bound, false);
    if (castor_bound_kernel_engine(world.bound) != CASTOR_ENGINE_JIT) continue;
    for (const castor_executor* executor :
         {static_cast<const castor_executor*>(nullptr), &in_order}) {
      const size_t bytes =
          castor_bound_kernel_scratch_bytes(world.bound, executor == nullptr ? 1 : executor->tasks);
      void* const scratch = std::aligned_alloc(CASTOR_SCRATCH_ALIGNMENT, bytes + 64);
      castor_run_options options = CASTOR_RUN_OPTIONS;
      options.executor = executor;
      options.scratch = scratch;
      options.scratch_bytes = bytes + 64;
      std::ranges::fill(world.output_data, untouched);
      castor_error error;
      castor_status status = CASTOR_OK;
      {
        const AllocationsFailAfter failing(0);
        status = world.run(&options, &error);
      }
      std::free(scratch);
      EXPECT_EQ(status, CASTOR_OK) << row.name << ": " << error.message;
      EXPECT_FALSE(allocation_failed) << row.name;
      EXPECT_EQ(world.output_data, expected) << row.name;
    }
  }
}

class CastorCMemory : public testing::TestWithParam<size_t> {};

TEST_P(CastorCMemory, OfAStep) {
  for (const FunctionRow& row : functions()) {
    for (const bool interpret : {false, true}) {
      check_every_allocation(row, steps[GetParam()], interpret);
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(At, CastorCMemory, testing::Range(size_t{0}, std::size(steps)),
                         [](const auto& row) { return std::string(steps[row.param].name); });

}  // namespace
}  // namespace castor::test
