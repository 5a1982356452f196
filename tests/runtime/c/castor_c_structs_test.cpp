// SPDX-License-Identifier: Apache-2.0
// Structures of the C API that have grown: programs of older headers, of newer ones, and numbers
// that are no size.
#include <castor/castor.h>
#include <gtest/gtest.h>
#include <castor/dlpack.hpp>

#include <castor/castor.hpp>

#include <cstddef>

#include "runtime/c/structs.hpp"

namespace castor::c {
namespace {

struct First {
  size_t struct_size;
  uint64_t a;
};
struct Second {
  size_t struct_size;
  uint64_t a;
  uint64_t b;
};
struct Third {
  size_t struct_size;
  uint64_t a;
  uint64_t b;
  uint64_t c;
};

const Second& as_second(const void* given) { return *static_cast<const Second*>(given); }

Status read(const void* given, Second& fields) {
  return read_struct(&as_second(given), "second", fields, sizeof(First));
}

TEST(CastorCStructs, OlderProgramsLackFields) {
  const struct {
    First first = {sizeof(First), 7};
    uint64_t not_its_own = 9;
  } older;
  Second fields = {1, 2, 3};
  ASSERT_TRUE(read(&older, fields).ok());
  EXPECT_EQ(fields.a, 7u);
  EXPECT_EQ(fields.b, 0u);
}

TEST(CastorCStructs, NewerProgramsMaySetWhatIsKnown) {
  Third newer = {sizeof(Third), 7, 8, 0};
  Second fields = {};
  ASSERT_TRUE(read(&newer, fields).ok());
  EXPECT_EQ(fields.a, 7u);
  EXPECT_EQ(fields.b, 8u);
  newer.c = 1;
  const Status status = read(&newer, fields);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::unsupported);
  EXPECT_NE(status.error().message.find("byte 24 of second is set"), std::string::npos);
}

TEST(CastorCStructs, SizesBelowTheFirstVersionAndBeyondAllAreNone) {
  for (const size_t size : {size_t{0}, sizeof(First) - 1, size_t{4097}, SIZE_MAX}) {
    const Second given = {size, 1, 1};
    Second fields = {};
    const Status status = read(&given, fields);
    ASSERT_FALSE(status.ok()) << size;
    EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
  }
  Second fields = {1, 2, 3};
  ASSERT_TRUE(read_struct(static_cast<const Second*>(nullptr), "second", fields).ok());
  EXPECT_EQ(fields.a + fields.b, 0u);
}

Status fill(void* to) {
  return fill_struct(
      static_cast<Second*>(to), "second",
      [] {
        return Second{0, 5, 6};
      },
      sizeof(First));
}

TEST(CastorCStructs, AnswersFitWhatTheProgramHas) {
  struct {
    First first = {sizeof(First), 0};
    uint64_t not_its_own = 9;
  } older;
  ASSERT_TRUE(fill(&older).ok());
  EXPECT_EQ(older.first.a, 5u);
  EXPECT_EQ(older.first.struct_size, sizeof(First));
  EXPECT_EQ(older.not_its_own, 9u);
  Third newer = {sizeof(Third), 1, 1, 1};
  ASSERT_TRUE(fill(&newer).ok());
  EXPECT_EQ(newer.a, 5u);
  EXPECT_EQ(newer.b, 6u);
  EXPECT_EQ(newer.c, 0u);
  Second bad = {sizeof(First) - 1, 1, 1};
  ASSERT_FALSE(fill(&bad).ok());
  EXPECT_EQ(bad.a, 1u);
  EXPECT_FALSE(fill(nullptr).ok());
}

/// A field that is added must change sizeof: so none ends in bytes that belong to no field.
template <class Struct, class Last>
constexpr bool ends_with(Last Struct::*, size_t offset) {
  // NOLINTNEXTLINE(bugprone-sizeof-expression): of fields that are pointers, the pointer is meant.
  return offset + sizeof(Last) == sizeof(Struct);
}
#define ENDS_WITH(type, last) static_assert(ends_with(&type::last, offsetof(type, last)))
ENDS_WITH(castor_allocator, release);
ENDS_WITH(castor_bind_options, reserved);
ENDS_WITH(castor_convert_options, reserved);
ENDS_WITH(castor_executor, wake_up_ns);
ENDS_WITH(castor_memory_statistics, code_bytes);
ENDS_WITH(castor_observe_options, unwind);
ENDS_WITH(castor_operation, names);
ENDS_WITH(castor_packed_weights_options, bytes_limit);
ENDS_WITH(castor_compile_limits, nests);
ENDS_WITH(castor_parse_options, limits);
ENDS_WITH(castor_run_options, scratch_bytes);
ENDS_WITH(castor_runtime_options, frame_pointers);
ENDS_WITH(castor_statistics, code_bytes);
ENDS_WITH(castor_weight_statistics, hits);

/// One field in C for each in C++: who adds one there adds it here.
TEST(CastorCStructs, CountersAreThoseOfCpp) {
  EXPECT_EQ(sizeof(castor_statistics), sizeof(size_t) + sizeof(CacheStatistics));
  EXPECT_EQ(sizeof(castor_memory_statistics), sizeof(size_t) + sizeof(MemoryStatistics));
  EXPECT_EQ(sizeof(castor_weight_statistics), sizeof(size_t) + sizeof(PackedWeightsStatistics));
  EXPECT_EQ(CASTOR_SCRATCH_ALIGNMENT, scratch_alignment);
  EXPECT_EQ(CASTOR_USUAL_WAKE_UP_NS, Executor::usual_wake_up_ns);
  EXPECT_EQ(CASTOR_DLPACK_READ_ONLY, dlpack_read_only);
  EXPECT_EQ(CASTOR_DLPACK_PADDED, dlpack_padded);
  EXPECT_EQ(CASTOR_SCRATCH_OF_KERNEL, static_cast<int32_t>(ScratchOwner::kernel));
  EXPECT_EQ(CASTOR_SCRATCH_OF_CALLER, static_cast<int32_t>(ScratchOwner::caller));
  EXPECT_EQ(CASTOR_LOG_DEBUG, static_cast<int32_t>(LogLevel::debug) + 1);
  EXPECT_EQ(CASTOR_LOG_ERROR, static_cast<int32_t>(LogLevel::error) + 1);
}

}  // namespace
}  // namespace castor::c
