// SPDX-License-Identifier: Apache-2.0
// Building, converting and refusing through the C API where any allocation is refused.
#include <castor/castor.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string_view>

#include "tests/support/counting_allocator.hpp"

namespace castor::test {
namespace {

/// Calls that need no function; each gives what it returned, and undoes what it did.
struct CallRow {
  const char* name;
  castor_status expected;
  castor_status (*call)(const castor_runtime* runtime, castor_error* error);
};

castor_status build(const castor_runtime*, castor_error* error) {
  castor_builder* builder = nullptr;
  castor_status status = castor_builder_create("a_function_with_a_long_name", &builder, error);
  if (status != CASTOR_OK) return status;
  static constexpr castor_dim dims[] = {{CASTOR_UNKNOWN, "an_unknown_with_a_name"}, {2, nullptr}};
  static constexpr int32_t numbers[] = {3, 4};
  static constexpr castor_quantization quantization = {
      CASTOR_SA8, 1, {numbers, 2}, {numbers, 2}, {nullptr, 0}};
  static constexpr castor_tensor_type x_type = {CASTOR_I8, 2, dims, &quantization};
  static constexpr castor_tensor_type z_type = {CASTOR_I16, 1, dims + 1, nullptr};
  static constexpr castor_tensor_type c_type = {CASTOR_F32, 1, dims + 1, nullptr};
  static constexpr castor_tensor_type f32 = {CASTOR_F32, CASTOR_NO_RANK, nullptr, nullptr};
  static constexpr float numbers_of_c[] = {1, 2};
  const castor_value x = castor_builder_input(builder, "a_tensor_with_a_long_name", &x_type);
  const castor_value z = castor_builder_input(builder, nullptr, &z_type);
  const castor_value operands[] = {x, CASTOR_NO_VALUE, CASTOR_NO_VALUE, z};
  const castor_attribute exact = castor_identifier_attribute("arithmetic", "exact");
  castor_operation operation = {};
  operation.struct_size = sizeof operation;
  operation.op = "requantize";
  operation.operands = operands;
  operation.operand_count = std::size(operands);
  operation.attributes = &exact;
  operation.attribute_count = 1;
  operation.type = &f32;
  const castor_value f = castor_builder_op(builder, &operation);
  const castor_value c = castor_builder_constant(builder, &c_type, numbers_of_c, 8, "c");
  const castor_value y = castor_builder_unary(
      builder, "relu", castor_builder_binary(builder, "mul", f, c, nullptr), nullptr);
  castor_convert_options options = CASTOR_CONVERT_OPTIONS;
  options.rounding = CASTOR_ROUNDING_HALF_UP;
  castor_builder_output(builder, castor_builder_convert(builder, y, CASTOR_U8, &options, "result"),
                        nullptr);
  const castor_attribute allow = castor_identifier_attribute("excess_precision", "allow");
  castor_builder_attribute(builder, &allow);
  castor_function* function = nullptr;
  status = castor_builder_finish(builder, &function, error);
  castor_builder_destroy(builder);
  castor_function_destroy(function);
  return status;
}

float source[6] = {0, 1.5F, -2.5F, 300, 7, 8};
unsigned char destination[6];
constexpr int64_t three_by_two[] = {3, 2};
const castor_view from = {source, CASTOR_F32, 2, three_by_two, nullptr, 0, sizeof source};
const castor_view to = {destination, CASTOR_U8, 2, three_by_two, nullptr, 0, sizeof destination};

void log_nothing(void*, castor_log_level, const char*, size_t) {}

void run_in_order(void*, int32_t count, void (*task)(void*, int32_t), void* context) {
  for (int32_t i = 0; i < count; ++i) task(context, i);
}

/// A runtime with an executor, packed weights and a log, which compiles and converts.
castor_status make_runtime(decltype(castor_observe_options::log) log, castor_error* error) {
  castor_packed_weights* weights = nullptr;
  castor_status status = castor_packed_weights_create(nullptr, &weights, error);
  if (status != CASTOR_OK) return status;
  const castor_executor executor = {sizeof executor, nullptr, 2, 0, run_in_order, -1};
  castor_observe_options observe = CASTOR_OBSERVE_OPTIONS;
  observe.log = log;
  observe.log_level = CASTOR_LOG_DEBUG;
  observe.perf_map_directory = "/a_directory_that_is_not_used_since_there_is_no_perf_map";
  castor_runtime_options options = CASTOR_RUNTIME_OPTIONS;
  options.executor = &executor;
  options.packed_weights = weights;
  options.observe = &observe;
  castor_runtime* made = nullptr;
  status = castor_runtime_create(&options, &made, error);
  EXPECT_EQ(made != nullptr, status == CASTOR_OK);
  if (status == CASTOR_OK) status = castor_convert(made, &from, &to, nullptr, error);
  castor_runtime_destroy(made);
  castor_packed_weights_destroy(weights);
  return status;
}

const CallRow call_rows[] = {
    {"build", CASTOR_OK, build},
    {"convert", CASTOR_OK,
     [](const castor_runtime* runtime, castor_error* error) {
       castor_convert_options options = CASTOR_CONVERT_OPTIONS;
       options.rounding = CASTOR_ROUNDING_NEAREST_EVEN;
       return castor_convert(runtime, &from, &to, &options, error);
     }},
    {"constants by name", CASTOR_OK,
     [](const castor_runtime*, castor_error* error) {
       static constexpr std::string_view text =
           "func @f() -> u8[40] {\n  %y = constant @a_table_with_a_long_name : u8[40]\n"
           "  return %y\n}\n";
       static constexpr unsigned char data[40] = {};
       const castor_named_constant constant = {"a_table_with_a_long_name", data, 40};
       const castor_parse_options options = {sizeof options, &constant, 1, nullptr};
       castor_function* function = nullptr;
       const castor_status status =
           castor_function_parse(text.data(), text.size(), nullptr, &options, &function, error);
       castor_function_destroy(function);
       return status;
     }},
    {"refused text", CASTOR_INVALID_TEXT,
     [](const castor_runtime* runtime, castor_error* error) {
       castor_kernel* kernel = nullptr;
       return castor_runtime_compile_text(runtime, "func @f(%x: f33[2])", 19, nullptr, &kernel,
                                          error);
     }},
    {"refused view", CASTOR_INVALID_ARGUMENT,
     [](const castor_runtime* runtime, castor_error* error) {
       castor_view short_one = to;
       short_one.bytes = 5;
       return castor_convert(runtime, &from, &short_one, nullptr, error);
     }},
    {"refused options", CASTOR_INVALID_ARGUMENT,
     [](const castor_runtime*, castor_error* error) {
       castor_runtime_options options = CASTOR_RUNTIME_OPTIONS;
       castor_runtime* made = nullptr;
       options.tier = 77;
       return castor_runtime_create(&options, &made, error);
     }},
    {"packed weights", CASTOR_OK,
     [](const castor_runtime*, castor_error* error) {
       castor_packed_weights_options options = CASTOR_PACKED_WEIGHTS_OPTIONS;
       options.bytes_limit = 4096;
       castor_packed_weights* weights = nullptr;
       castor_weight_statistics statistics = CASTOR_WEIGHT_STATISTICS;
       castor_status status = castor_packed_weights_create(&options, &weights, error);
       EXPECT_EQ(weights != nullptr, status == CASTOR_OK);
       if (status != CASTOR_OK) return status;
       status = castor_packed_weights_statistics(weights, &statistics, error);
       castor_packed_weights_destroy(weights);
       return status;
     }},
    {"runtime with all options", CASTOR_OK,
     [](const castor_runtime*, castor_error* error) { return make_runtime(log_nothing, error); }},
    {"refused executor", CASTOR_INVALID_ARGUMENT,
     [](const castor_runtime*, castor_error* error) {
       castor_runtime_options options = CASTOR_RUNTIME_OPTIONS;
       castor_executor executor = CASTOR_SERIAL_EXECUTOR;
       castor_runtime* made = nullptr;
       executor.tasks = -1;
       options.executor = &executor;
       return castor_runtime_create(&options, &made, error);
     }},
    {"DLPack", CASTOR_OK,
     [](const castor_runtime*, castor_error* error) {
       castor_dlpack_dims dims;
       castor_dlpack_fields fields;
       castor_view view;
       const castor_status status = castor_dlpack_fields_of_view(&from, &dims, &fields, error);
       return status == CASTOR_OK ? castor_view_of_dlpack_fields(&fields, 0, &view, error) : status;
     }},
    {"refused DLPack tensor", CASTOR_INVALID_ARGUMENT,
     [](const castor_runtime*, castor_error* error) {
       castor_dlpack_fields fields = {};
       castor_view view;
       return castor_view_of_dlpack_fields(&fields, CASTOR_DLPACK_READ_ONLY, &view, error);
     }},
    {"refused DLPack version", CASTOR_UNSUPPORTED,
     [](const castor_runtime*, castor_error* error) {
       return castor_check_dlpack_version(77, 7, error);
     }},
    {"refused ABI", CASTOR_UNSUPPORTED,
     [](const castor_runtime*, castor_error* error) { return castor_check_abi(77, error); }},
};

TEST(CastorCMemoryCalls, OfEveryCall) {
  castor_runtime* first = nullptr;  // finds out what the process keeps of its machine
  ASSERT_EQ(castor_runtime_create(nullptr, &first, nullptr), CASTOR_OK);
  castor_runtime_destroy(first);
  for (const CallRow& row : call_rows) {
    for (long count = 0;; ++count) {
      SCOPED_TRACE(fmt::format("{}: {} allocations granted", row.name, count));
      const long held = blocks_held;
      castor_runtime* runtime = nullptr;
      ASSERT_EQ(castor_runtime_create(nullptr, &runtime, nullptr), CASTOR_OK);
      std::memset(destination, 0x5a, sizeof destination);
      castor_error error;
      castor_status status = CASTOR_OK;
      {
        const AllocationsFailAfter failing(count);
        status = row.call(runtime, &error);
      }
      ASSERT_EQ(error.status, status);
      ASSERT_TRUE(status == row.expected || status == CASTOR_OUT_OF_MEMORY) << error.message;
      if (status != CASTOR_OK) {
        for (const unsigned char byte : destination) ASSERT_EQ(byte, 0x5a);
        ASSERT_EQ(row.call(runtime, &error), row.expected) << error.message;
      }
      castor_runtime_destroy(runtime);
      ASSERT_EQ(blocks_held, held) << "leaked";
      if (status == row.expected && !allocation_failed) break;
      ASSERT_LT(count, 20000);
    }
  }
}

}  // namespace
}  // namespace castor::test
