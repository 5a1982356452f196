// SPDX-License-Identifier: Apache-2.0
// The element patterns that the other tests and `castor check` rely on: are the hard ones there?
#include "tools/testing/samples.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <set>

#include "ir/shape/shape.hpp"
#include "ir/types/storage.hpp"
#include "tools/castor/guarded_buffer.hpp"

namespace castor::samples {
namespace {

bool contains(const std::vector<uint64_t>& patterns, uint64_t pattern) {
  return std::binary_search(patterns.begin(), patterns.end(), pattern);
}

TEST(Samples, BoundariesAreAscendingUniqueAndInRange) {
  for (const ElementInfo& row : element_table) {
    const std::vector<uint64_t> patterns = boundary_patterns(row.type);
    EXPECT_TRUE(std::is_sorted(patterns.begin(), patterns.end())) << row.name;
    EXPECT_EQ(std::set(patterns.begin(), patterns.end()).size(), patterns.size()) << row.name;
    EXPECT_LE(patterns.back(), ~uint64_t{0} >> (64 - row.bits)) << row.name;
    if (row.bits <= 8) {
      EXPECT_EQ(patterns.size(), size_t{1} << row.bits) << row.name;
    }
  }
}

TEST(Samples, FloatBoundariesHoldTheHardValues) {
  const std::vector<uint64_t> f32 = boundary_patterns(ElementType::f32);
  const float values[] = {0.f,
                          0.5f,
                          1.5f,
                          2.5f,
                          254.5f,
                          255.5f,
                          -128.5f,
                          8388607.5f,
                          16777217.f,
                          65504.f,
                          65519.996f,
                          65520.f,
                          0x1p-25f,
                          0x1.8p-24f,
                          0x1p-149f,
                          0x1p-126f,
                          1.00390625f,
                          1.01171875f,
                          2147483648.f,
                          2147483520.f,
                          -2147483648.f,
                          0x1p63f,
                          0x1p64f,
                          0x1.fep127f,
                          0x1.ffp127f,
                          std::numeric_limits<float>::max(),
                          std::numeric_limits<float>::infinity(),
                          0x1.8p-127f,  // a midpoint of f8e8m0
                          0x1.8p126f,
                          0.03979014977812767f,  // a threshold of nf4
                          -0.8480964004993439f};
  for (float value : values) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    EXPECT_TRUE(contains(f32, bits)) << value;
    EXPECT_TRUE(contains(f32, bits ^ 0x80000000u)) << -value;
  }
  for (uint32_t nan : {0x7F800001u, 0x7FC00000u, 0xFFC00001u, 0x7FFFFFFFu, 0xFFBFFFFFu}) {
    EXPECT_TRUE(contains(f32, nan)) << std::hex << nan;
  }
  const std::vector<uint64_t> f64 = boundary_patterns(ElementType::f64);
  const double wide[] = {0x1p-1074, 0x1p-1022, 0x1p-150, 0x1.000001p0,   0x1.000001p-126,
                         0x1.002p0, 0x1.01p0,  65520.0,  2147483647.5,   4294967295.5,
                         0x1p63,    0x1p64,    254.5,    0x1.ffffffp127, 0x1.fffffffffffffp1023};
  for (double value : wide) {
    for (int64_t step : {-1, 0, 1}) {
      const uint64_t bits = std::bit_cast<uint64_t>(value) + static_cast<uint64_t>(step);
      EXPECT_TRUE(contains(f64, bits)) << value << " and " << step << " ulp";
    }
  }
}

TEST(Samples, IntegerBoundariesHoldLimitsAndMidpoints) {
  const std::vector<uint64_t> i64 = boundary_patterns(ElementType::i64);
  for (int64_t value :
       {int64_t{0}, int64_t{1}, int64_t{127}, int64_t{128}, int64_t{255}, int64_t{65520},
        int64_t{65519}, (int64_t{1} << 24) + 1, (int64_t{1} << 24) + 3, (int64_t{1} << 53) + 1,
        (int64_t{1} << 53) + 3, (int64_t{1} << 62) + (int64_t{1} << 38), INT64_MAX}) {
    EXPECT_TRUE(contains(i64, static_cast<uint64_t>(value))) << value;
    EXPECT_TRUE(contains(i64, uint64_t{0} - static_cast<uint64_t>(value))) << -value;
  }
  EXPECT_TRUE(contains(i64, static_cast<uint64_t>(INT64_MIN)));
  const std::vector<uint64_t> u32 = boundary_patterns(ElementType::u32);
  for (uint32_t value : {0u, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu, 0xFFFFFF80u, 0xFFFFFF7Fu}) {
    EXPECT_TRUE(contains(u32, value)) << value;
  }
}

TEST(Samples, RandomPatternsDependOnTypeAndSeedAlone) {
  for (const ElementInfo& row : element_table) {
    const std::vector<uint64_t> patterns = random_patterns(row.type, 1000, 7);
    EXPECT_EQ(patterns, random_patterns(row.type, 1000, 7)) << row.name;
    EXPECT_NE(patterns, random_patterns(row.type, 1000, 8)) << row.name;
    EXPECT_LE(*std::max_element(patterns.begin(), patterns.end()), ~uint64_t{0} >> (64 - row.bits));
    if (row.bits >= 16) {
      EXPECT_GT(std::set(patterns.begin(), patterns.end()).size(), 500u) << row.name;
    }
  }
}

TEST(Samples, PackAndLoadAgreeInEveryStorageOrder) {
  for (const ElementInfo& row : element_table) {
    const std::vector<uint64_t> patterns = random_patterns(row.type, 101, 3);
    const std::vector<std::byte> tensor = pack(row.type, patterns);
    const size_t groups = (101 * static_cast<size_t>(row.bits) + 23) / 24;  // groups of three bytes
    const bool split = row.order == StorageOrder::split;
    EXPECT_EQ(tensor.size(), split ? groups * 3 : (101 * static_cast<size_t>(row.bits) + 7) / 8)
        << row.name;
    for (size_t i = 0; i < patterns.size(); ++i) {
      ASSERT_EQ(load_pattern(tensor, row.type, i), patterns[i]) << row.name << ' ' << i;
    }
  }
  EXPECT_EQ(pack(ElementType::u1, std::vector<uint64_t>{1, 0, 0})[0], std::byte{0x80});
  EXPECT_EQ(pack(ElementType::u4, std::vector<uint64_t>{1, 2})[0], std::byte{0x21});
  EXPECT_EQ(pack(ElementType::u16, std::vector<uint64_t>{0x1234})[0], std::byte{0x34});
}

struct PackedBytes {
  ElementType type;
  std::vector<uint64_t> elements;
  std::vector<int> bytes;
};

/// Byte patterns that OpenVINO's and ONNX's own tests show, or that follow from their rules.
TEST(Samples, PackAsOpenVinoAndOnnxDo) {
  using enum ElementType;
  const std::vector<PackedBytes> rows = {
      {u1, {0, 0, 0, 1, 0, 1, 1, 0}, {0x16}},
      {u1, {1, 1, 1, 0, 0, 0, 0, 0, 1}, {0xE0, 0x80}},
      {u1_lsb_first, {0, 0, 0, 1, 0, 1, 1, 0}, {0x68}},
      {u2, {2, 1, 0, 3}, {0xC6}},
      {u2_msb_first, {2, 0, 1, 3}, {0x87}},
      {u2_msb_first, {2, 0, 1, 3, 1}, {0x87, 0x40}},
      {u3_split, {2, 3, 0, 1, 4, 5, 6, 7}, {0xB1, 0x1B, 0x0F}},
      {u3_split, {7}, {0xC0, 0x00, 0x80}},  // a whole group
      {u3, {2, 3, 0, 1, 4, 5, 6, 7}, {0x1A, 0xC2, 0xFA}},
      {u3, {7, 7, 7}, {0xFF, 0x01}},
      {u6_split, {2, 1, 0, 3, 18, 49, 35, 16}, {0x21, 0x03, 0x00, 0x21, 0x30, 0x79}},
      {u6_split, {63}, {0xF0, 0x00, 0xC0}},
      {u6, {2, 1, 0, 3, 18, 49, 35, 16}, {0x42, 0x00, 0x0C, 0x52, 0x3C, 0x42}},
      {u6, {63, 63}, {0xFF, 0x0F}},
      {u4, {1, 2, 3, 10}, {0x21, 0xA3}},
      {u4, {1, 2, 3}, {0x21, 0x03}},
      {i4, {1, 2, 3, 0xA}, {0x21, 0xA3}},
      {i2, {1, 2, 3, 0, 1, 2, 3}, {0x39, 0x39}},
      {nf4, {0, 2, 15}, {0x20, 0x0F}},
      {f4e2m1, {2, 0, 3, 4}, {0x02, 0x43}},
      {f6e2m3, {2, 1, 0, 3, 18, 49, 35, 16}, {0x42, 0x00, 0x0C, 0x52, 0x3C, 0x42}},
      {f6e3m2, {63, 63}, {0xFF, 0x0F}},
  };
  for (const PackedBytes& row : rows) {
    std::vector<std::byte> expected;
    for (int byte : row.bytes) expected.push_back(static_cast<std::byte>(byte));
    EXPECT_EQ(pack(row.type, row.elements), expected) << name_of(row.type);
    EXPECT_EQ(storage_bytes(row.type, row.elements.size()), expected.size()) << name_of(row.type);
    for (size_t i = 0; i < row.elements.size(); ++i) {
      EXPECT_EQ(load_pattern(expected, row.type, i), row.elements[i]) << name_of(row.type);
    }
  }
}

/// The generator above and castor's own rule put every bit at the same offset.
TEST(Samples, StoreWhereTheStorageRuleSays) {
  for (const ElementInfo& row : element_table) {
    if (row.bits >= 8) continue;
    constexpr size_t count = 50;
    const uint64_t all_ones = (uint64_t{1} << row.bits) - 1;
    EXPECT_EQ(byte_size(row.type, count), static_cast<int64_t>(storage_bytes(row.type, count)));
    for (size_t index = 0; index < count; ++index) {
      for (int bit = 0; bit < row.bits; ++bit) {
        std::vector<std::byte> tensor(storage_bytes(row.type, count));
        store_pattern(tensor, row.type, index, uint64_t{1} << bit);
        std::vector<std::byte> expected(tensor.size());
        const int64_t at = storage_bit(row.type, static_cast<int64_t>(index), bit);
        expected[static_cast<size_t>(at / 8)] = std::byte{1} << (at % 8);
        ASSERT_EQ(tensor, expected) << row.name << ", element " << index << ", bit " << bit;
        std::vector<std::byte> full(tensor.size(), std::byte{0xFF});
        store_pattern(full, row.type, index, all_ones - (uint64_t{1} << bit));
        full[static_cast<size_t>(at / 8)] |= std::byte{1} << (at % 8);
        ASSERT_EQ(full, std::vector(tensor.size(), std::byte{0xFF})) << row.name;
      }
    }
  }
}

TEST(GuardedBuffer, FindsEveryChangedByteOutside) {
  for (size_t misalignment : {size_t{0}, size_t{1}, size_t{63}}) {
    tools::GuardedBuffer buffer(10, misalignment);
    std::byte* data = buffer.data().data();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, misalignment);
    std::fill_n(data, 10, std::byte{0});
    EXPECT_EQ(buffer.damage(), std::nullopt);
    for (ptrdiff_t at : {-64, -1, 10, 73}) {
      data[at] ^= std::byte{0x10};
      EXPECT_EQ(buffer.damage(), at);
      data[at] ^= std::byte{0x10};
    }
  }
  tools::GuardedBuffer empty(0, 5);
  EXPECT_EQ(empty.damage(), std::nullopt);
  empty.data().data()[0] ^= std::byte{1};
  EXPECT_EQ(empty.damage(), 0);
}

}  // namespace
}  // namespace castor::samples
