// SPDX-License-Identifier: Apache-2.0
// The checks of a call's views: which bytes tensors take, in any storage layout, and which tensors
// share bytes.
#include "runtime/check/check_views.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <set>

#include "ir/types/storage.hpp"
#include "runtime/check/check_overlap.hpp"

namespace castor {
namespace {

std::byte memory[512];

BoundTensor bound(ElementType type, const Dims& shape, const Dims& strides = {}) {
  return std::move(bind_tensor("tensor", type, shape, strides, false)).value();
}

View view_of(const BoundTensor& tensor, void* data, int64_t offset, size_t bytes = 512) {
  return {data, tensor.element, tensor.shape, tensor.strides, offset, bytes};
}

/// A tensor that has room in `memory`.
struct Case {
  ElementType type;
  Dims shape;
  Dims strides;
  int64_t offset;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const ElementInfo& row : element_table) {
    for (int64_t count : {1, 2, 3, 5, 8, 9}) {
      for (int64_t stride : {1, 2, 3, 4, 8}) {
        for (int64_t offset = 0; offset < 9; ++offset) {
          all.push_back({row.type, {count}, {stride}, offset});
        }
      }
    }
  }
  return all;
}

/// The bytes touched by the definition of storage: those with bits of elements, of split groups all
/// three.
std::set<int64_t> bytes_touched(const Case& c) {
  std::set<int64_t> touched;
  for (int64_t i = 0; i < c.shape[0]; ++i) {
    for (int bit = 0; bit < bits_of(c.type); ++bit) {
      const int64_t byte = storage_bit(c.type, c.offset + i * c.strides[0], bit) / 8;
      touched.insert(byte);
      if (info(c.type).order != StorageOrder::split) continue;
      for (int64_t one = byte / 3 * 3; one < byte / 3 * 3 + 3; ++one) touched.insert(one);
    }
  }
  return touched;
}

TEST(CheckViews, FootprintsAreTheBytesThatHoldElements) {
  for (const Case& c : cases()) {
    const BoundTensor tensor = bound(c.type, c.shape, c.strides);
    const std::set<int64_t> touched = bytes_touched(c);
    const Footprint at = footprint(tensor, view_of(tensor, memory, c.offset));
    const auto base = reinterpret_cast<uintptr_t>(memory);
    ASSERT_EQ(at.begin - base, *touched.begin()) << name_of(c.type) << ' ' << c.offset;
    ASSERT_EQ(at.end - base, *touched.rbegin() + 1) << name_of(c.type) << ' ' << c.offset;
  }
}

TEST(CheckViews, AViewNeedsEveryByteOfItsElements) {
  for (const Case& c : cases()) {
    const BoundTensor tensor = bound(c.type, c.shape, c.strides);
    const auto needed = static_cast<size_t>(*bytes_touched(c).rbegin() + 1);
    ASSERT_TRUE(check_view(tensor, view_of(tensor, memory, c.offset, needed)).ok());
    ASSERT_FALSE(check_view(tensor, view_of(tensor, memory, c.offset, needed - 1)).ok())
        << name_of(c.type) << to_string(c.shape) << to_string(c.strides) << c.offset;
  }
}

TEST(CheckViews, MessagesCountBits) {
  const BoundTensor nibbles = bound(ElementType::u4, {2, 3}, {4, 1});
  const Status status = check_view(nibbles, view_of(nibbles, memory, 1, 3));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message,
            "tensor: 3 bytes available; shape [2, 3] with strides [4, 1] at offset 1 reaches "
            "element 7 of 4 bits each");
  const BoundTensor bits = bound(ElementType::u1, {9});
  EXPECT_NE(check_view(bits, view_of(bits, memory, 0, 1)).error().message.find("of 1 bit each"),
            std::string::npos);
  const Status far = check_view(bits, view_of(bits, memory, INT64_MAX));
  EXPECT_NE(far.error().message.find("reaches element 9223372036854775815"), std::string::npos)
      << far.error().message;
}

/// Whether two tensors share bytes, byte by byte: see also check_overlap_test.cpp.
bool overlap(const BoundTensor& a, const Footprint& at_a, const BoundTensor& b,
             const Footprint& at_b) {
  int64_t steps = max_overlap_steps;
  const Overlap found = find_overlap(a, at_a, b, at_b, steps);
  EXPECT_NE(found, Overlap::undecided);
  return found == Overlap::shared;
}

TEST(CheckViews, TensorsOverlapWhereTheyShareAByte) {
  const ElementType types[] = {ElementType::u1,           ElementType::u3,      ElementType::u4,
                               ElementType::u6,           ElementType::u8,      ElementType::f16,
                               ElementType::u2_msb_first, ElementType::u3_split};
  size_t apart_within = 0;
  for (ElementType type : types) {
    for (ElementType other : types) {
      for (int64_t stride : {8, 16, 24}) {
        for (int64_t offset = 0; offset < 24; offset += 3) {
          const Case a{type, {3}, {stride}, 1};
          const Case b{other, {3}, {stride * bits_of(type) / bits_of(other)}, offset};
          if (b.strides[0] * bits_of(other) != stride * bits_of(type) || b.strides[0] % 8 != 0) {
            continue;  // strides of another pitch, or not of whole bytes
          }
          const BoundTensor first = bound(a.type, a.shape, a.strides);
          const BoundTensor second = bound(b.type, b.shape, b.strides);
          const Footprint at = footprint(first, view_of(first, memory, a.offset));
          const Footprint to = footprint(second, view_of(second, memory, b.offset));
          std::set<int64_t> shared = bytes_touched(a);
          shared.merge(bytes_touched(b));
          const bool share = shared.size() < bytes_touched(a).size() + bytes_touched(b).size();
          const bool meet = at.begin < to.end && to.begin < at.end;
          ASSERT_EQ(overlap(first, at, second, to), share);
          ASSERT_EQ(overlap(second, to, first, at), share);
          apart_within += static_cast<size_t>(meet && !share);
        }
      }
    }
  }
  EXPECT_GT(apart_within, 20u);
}

/// Kernels read and write whole bytes: elements that are different bits of one byte meet.
TEST(CheckViews, EvenAndOddNibblesShareTheirBytes) {
  const BoundTensor nibbles = bound(ElementType::u4, {5}, {2});
  const BoundTensor wide_apart = bound(ElementType::u4, {5}, {4});
  const auto at = [](const BoundTensor& tensor, int64_t offset) {
    return footprint(tensor, view_of(tensor, memory, offset));
  };
  EXPECT_TRUE(overlap(nibbles, at(nibbles, 0), nibbles, at(nibbles, 1)));
  EXPECT_TRUE(overlap(wide_apart, at(wide_apart, 0), wide_apart, at(wide_apart, 1)));
  EXPECT_FALSE(overlap(wide_apart, at(wide_apart, 0), wide_apart, at(wide_apart, 2)));
  EXPECT_FALSE(overlap(wide_apart, at(wide_apart, 1), wide_apart, at(wide_apart, 3)));
}

TEST(CheckViews, InPlaceNeedsTheSameStorageOrder) {
  const auto same_pattern = [](ElementType a, ElementType b) {
    return same_access(bound(a, {9}), bound(b, {9}));
  };
  EXPECT_TRUE(same_pattern(ElementType::u4, ElementType::nf4));
  EXPECT_TRUE(same_pattern(ElementType::f32, ElementType::i32));
  EXPECT_FALSE(same_pattern(ElementType::u1, ElementType::u1_lsb_first));
  EXPECT_FALSE(same_pattern(ElementType::u2_msb_first, ElementType::i2));
  EXPECT_FALSE(same_pattern(ElementType::u6, ElementType::u6_split));
  EXPECT_FALSE(same_pattern(ElementType::u8, ElementType::u4));
}

TEST(CheckViews, DenseMeansTightOverAxesOfSeveralElements) {
  EXPECT_TRUE(is_dense(bound(ElementType::u4, {2, 3})));
  EXPECT_TRUE(is_dense(bound(ElementType::u4, {1, 3}, {77, 1})));
  EXPECT_TRUE(is_dense(bound(ElementType::u4, {}, {})));
  EXPECT_TRUE(is_dense(bound(ElementType::u4, {0, 3}, {5, 5})));
  EXPECT_FALSE(is_dense(bound(ElementType::u4, {2, 3}, {4, 1})));
  EXPECT_FALSE(is_dense(bound(ElementType::u4, {2, 3}, {1, 2})));
}

// Calls with many tensors.

/// `inputs` and `outputs` of four nibbles each, at distances of n bytes.
struct ManyTensors {
  std::vector<BoundTensor> inputs, outputs;
  std::vector<ConstView> sources;
  std::vector<View> destinations;
  InPlaceOrder order;

  /// Nothing may be in place: outputs are written before inputs are read.
  ManyTensors(size_t input_count, size_t output_count) : order(input_count, output_count) {
    for (size_t i = 0; i < input_count; ++i) order.read(2, i, true);
    for (size_t o = 0; o < output_count; ++o) order.write(1, o);
    for (size_t i = 0; i < input_count + output_count; ++i) {
      const bool is_output = i >= input_count;
      BoundTensor tensor = bound(ElementType::u4, {4});
      tensor.what =
          (is_output ? "output " : "input ") + std::to_string(is_output ? i - input_count : i);
      const View view = view_of(tensor, reinterpret_cast<void*>(0x10000 + 2 * i), 0, 2);
      if (is_output) {
        destinations.push_back(view);
        outputs.push_back(std::move(tensor));
      } else {
        sources.emplace_back(view);
        inputs.push_back(std::move(tensor));
      }
    }
  }
  Status check(bool& in_place) const {
    in_place = false;
    return check_overlap({inputs, outputs, order}, sources, destinations, {}, in_place);
  }
  std::string refusal() const {
    bool in_place = false;
    const Status status = check(in_place);
    return status ? "" : status.error().message.substr(0, status.error().message.find(';'));
  }
};

TEST(CheckOverlap, FewAndManyTensorsAreCheckedAlike) {
  for (size_t outputs : {3, 14, 15, 40}) {
    ManyTensors call(2, outputs);
    bool in_place = true;
    EXPECT_TRUE(call.check(in_place).ok());
    EXPECT_FALSE(in_place);
    call.destinations[2].data = call.destinations[1].data;  // the later output is named first
    EXPECT_EQ(call.refusal(), "output 2 overlaps output 1");
    call.destinations[1].offset = 1;  // and reaches into output 2's, with one nibble
    call.destinations[1].bytes = 3;
    EXPECT_EQ(call.refusal(), "output 2 overlaps output 1");
    call.destinations[0].data = const_cast<void*>(call.sources[1].data);
    EXPECT_EQ(call.refusal(), "output 0 overlaps input 1");
    call.order.first_write[0] = 2;
    call.destinations[2].data = reinterpret_cast<void*>(0x20000);
    call.destinations[1].offset = 0;
    EXPECT_TRUE(call.check(in_place).ok());
    EXPECT_TRUE(in_place);
    call.sources[1].offset = 1;  // the same byte, another nibble
    EXPECT_EQ(call.refusal(), "output 0 overlaps input 1");
  }
}

TEST(CheckOverlap, ManyTensorsTakeLittleTime) {
  const ManyTensors call(2, 60000);
  const auto begin = std::chrono::steady_clock::now();
  bool in_place = false;
  EXPECT_TRUE(call.check(in_place).ok());
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(taken.count(), 1.0);
}

TEST(CheckOverlap, TensorsWithoutElementsMeetNothing) {
  for (size_t outputs : {2, 30}) {
    ManyTensors call(1, outputs);
    call.outputs[1] = bound(ElementType::u4, {0});
    call.destinations[1] = view_of(call.outputs[1], call.destinations[0].data, 0, 2);
    EXPECT_EQ(call.refusal(), "");
  }
}

}  // namespace
}  // namespace castor
