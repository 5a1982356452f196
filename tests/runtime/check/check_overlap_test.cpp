// SPDX-License-Identifier: Apache-2.0
// Overlap of strided tensors is decided exactly: against sets of all the bytes that small tensors
// touch, and of all sums of small terms; and in bounded time, whatever the strides.
#include "runtime/check/check_overlap.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <set>

#include "ir/types/storage.hpp"
#include "runtime/check/bounded_sum.hpp"
#include "runtime/check/strided_overlap.hpp"
#include "tests/support/element_types.hpp"

namespace castor {
namespace {

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }

 private:
  std::mt19937_64 engine_;
};

// Sums.

std::set<int64_t> all_sums(std::span<const BoundedTerm> terms) {
  std::set<int64_t> sums = {0};
  for (const BoundedTerm& term : terms) {
    std::set<int64_t> more;
    for (int64_t sum : sums) {
      for (int64_t x = 0; x <= term.max; ++x) more.insert(sum + x * term.coefficient);
    }
    sums = std::move(more);
  }
  return sums;
}

TEST(BoundedSum, ReachesWhatSomeFactorsGive) {
  Random random(1);
  size_t reached = 0, missed = 0;
  for (int round = 0; round < 100000; ++round) {
    std::vector<BoundedTerm> terms;
    const int64_t common = random.between(0, 3) == 0 ? random.between(2, 5) : 1;
    for (int64_t i = random.between(0, 4); i > 0; --i) {
      terms.push_back({common * random.between(1, 60), random.between(0, 5)});
    }
    const std::set<int64_t> sums = all_sums(terms);
    const int64_t low = random.between(-5, *sums.rbegin() + 5);
    const Interval target = {low, low + random.between(-1, 3)};
    const auto first = sums.lower_bound(target.low);
    const bool expected = first != sums.end() && *first <= target.high;
    int64_t steps = 1000;
    ASSERT_EQ(sum_reaches(terms, target, steps), expected ? Reachable::yes : Reachable::no)
        << "round " << round;
    ++(expected ? reached : missed);
  }
  EXPECT_GT(reached, 10000U);
  EXPECT_GT(missed, 10000U);
}

/// Two long axes of strides without a common divisor: trying factors would take 10^9 rounds. A sum
/// has one factor y below a, by the inverse of b modulo a.
TEST(BoundedSum, TwoTermsTakeNoSearch) {
  constexpr int64_t a = 1'000'000'007;
  constexpr int64_t b = 998'244'353;
  const BoundedTerm terms[] = {{a, 900'000'000}, {b, 900'000'000}};
  int64_t inverse = 1;
  for (int64_t power = b, left = a - 2; left > 0; left /= 2) {  // Fermat: a is a prime
    if (left % 2 == 1) inverse = inverse * power % a;
    power = power * power % a;
  }
  Random random(2);
  size_t reached = 0;
  constexpr int rounds = 20000;
  for (int round = 0; round < rounds; ++round) {
    const int64_t sum = random.between(0, (a + b) * 900'000'000);
    const int64_t y = sum % a * inverse % a;
    const int64_t x = (sum - b * y) / a;
    const bool expected = y <= 900'000'000 && b * y <= sum && x <= 900'000'000;
    int64_t steps = 10;
    ASSERT_EQ(sum_reaches(terms, {sum, sum}, steps), expected ? Reachable::yes : Reachable::no)
        << sum;
    reached += static_cast<size_t>(expected);
  }
  EXPECT_GT(reached, 2000U);
  EXPECT_LT(reached, rounds - 2000U);
}

// Tensors.

/// The bytes touched by definition: those of all units that have a part of an element.
std::set<int64_t> bytes_touched(const ElementOffsets& places) {
  std::set<int64_t> starts = {places.first_part};
  for (int axis = 0; axis < places.extents.rank(); ++axis) {
    std::set<int64_t> more;
    for (int64_t start : starts) {
      for (int64_t i = 0; i < places.extents[axis]; ++i) {
        more.insert(start + i * places.strides[axis]);
      }
    }
    starts = std::move(more);
  }
  constexpr int64_t far_ahead = 1000;  // units, so that none is negative
  std::set<int64_t> bytes;
  for (int64_t start : starts) {
    for (int64_t part = start; part < start + places.element_parts; ++part) {
      const int64_t unit = (part + far_ahead * places.unit_parts) / places.unit_parts - far_ahead;
      for (int64_t byte = 0; byte < places.unit_bytes; ++byte) {
        bytes.insert(static_cast<int64_t>(places.begin) + unit * places.unit_bytes + byte);
      }
    }
  }
  return bytes;
}

bool share(const std::set<int64_t>& a, const std::set<int64_t>& b) {
  return std::ranges::any_of(a, [&](int64_t byte) { return b.contains(byte); });
}

ElementOffsets any_places(Random& random) {
  ElementOffsets places;
  switch (random.between(0, 2)) {
    case 0: places.unit_bytes = random.between(1, 8); break;
    case 1:
      places.unit_parts = 8;
      places.element_parts = random.between(1, 7);
      break;
    default:
      places.unit_parts = random.between(0, 1) == 0 ? 4 : 8;
      places.unit_bytes = 3;
      break;
  }
  places.begin = static_cast<uintptr_t>(random.between(100000, 100040));
  places.first_part = random.between(0, places.unit_parts - 1);
  for (int64_t rank = random.between(0, 3); rank > 0; --rank) {
    places.extents.push_back(random.between(0, 9) == 0 ? random.between(0, 1)
                                                       : random.between(1, 5));
    places.strides.push_back(random.between(-12, 24) * random.between(1, 3));
  }
  return places;
}

TEST(FindOverlap, IsExactForInterleavedReversedAndRepeatedElements) {
  Random random(3);
  size_t within = 0, shared = 0;
  for (int round = 0; round < 60000; ++round) {
    const ElementOffsets a = any_places(random);
    const ElementOffsets b = any_places(random);
    const std::set<int64_t> of_a = bytes_touched(a);
    const std::set<int64_t> of_b = bytes_touched(b);
    const bool expected = share(of_a, of_b);
    int64_t steps = max_overlap_steps;
    ASSERT_EQ(find_overlap(a, b, steps), expected ? Overlap::shared : Overlap::apart)
        << "round " << round;
    int64_t steps_back = max_overlap_steps;
    ASSERT_EQ(find_overlap(b, a, steps_back), expected ? Overlap::shared : Overlap::apart)
        << "round " << round;
    const bool meet = !of_a.empty() && !of_b.empty() && *of_a.begin() <= *of_b.rbegin() &&
                      *of_b.begin() <= *of_a.rbegin();
    within += static_cast<size_t>(meet && !expected);
    shared += static_cast<size_t>(expected);
  }
  EXPECT_GT(within, 2000U);
  EXPECT_GT(shared, 10000U);
}

/// Parts of one array, as slices and steps give them: the search is never long.
TEST(FindOverlap, PartsOfOneArrayTakeFewSteps) {
  Random random(4);
  int64_t max_steps = 0;
  for (int round = 0; round < 50000; ++round) {
    Dims whole;
    for (int axis = 0; axis < 2 + round % 5; ++axis) whole.push_back(random.between(2, 40));
    const Dims strides = dense_strides(whole);
    const auto part = [&] {
      ElementOffsets places;
      places.begin = 1 << 20;
      places.unit_bytes = 4;
      for (int axis = 0; axis < whole.rank(); ++axis) {
        const int64_t first = random.between(0, whole[axis] - 1);
        const int64_t step = random.between(1, 3);
        places.begin += static_cast<uintptr_t>(4 * first * strides[axis]);
        places.extents.push_back(random.between(1, (whole[axis] - 1 - first) / step + 1));
        places.strides.push_back(step * strides[axis]);
      }
      return places;
    };
    int64_t steps = max_overlap_steps;
    ASSERT_NE(find_overlap(part(), part(), steps), Overlap::undecided) << "round " << round;
    max_steps = std::max(max_steps, max_overlap_steps - steps);
  }
  EXPECT_LT(max_steps, 1000);
  RecordProperty("steps", static_cast<int>(max_steps));
}

/// Axes of two elements at distances without a pattern: which sums of some of 30 numbers meet?
ElementOffsets without_pattern(Random& random, uintptr_t begin) {
  ElementOffsets places;
  places.begin = begin;
  for (int axis = 0; axis < 15; ++axis) {
    places.extents.push_back(2);
    places.strides.push_back(random.between(int64_t{1} << 40, int64_t{1} << 41));
  }
  return places;
}

/// Two arrays of six axes with nothing in common.
ElementOffsets with_any_padding(Random& random, uintptr_t begin) {
  ElementOffsets places;
  places.begin = begin;
  int64_t stride = 1;
  for (int axis = 0; axis < 6; ++axis) {
    stride += random.between(0, 7);
    places.strides.push_back(stride);
    places.extents.push_back(random.between(2, 1000));
    stride *= places.extents[axis];
    if (stride > (int64_t{1} << 47)) break;
  }
  return places;
}

TEST(FindOverlap, GivesUpAfterItsStepsInBoundedTime) {
  Random random(5);
  for (int round = 0; round < 3000; ++round) {
    const ElementOffsets a = with_any_padding(random, 1 << 20);
    const ElementOffsets b =
        with_any_padding(random, (1 << 20) + static_cast<uintptr_t>(random.between(0, 1000)));
    int64_t steps = max_overlap_steps;
    const Overlap found = find_overlap(a, b, steps);
    ASSERT_TRUE(found != Overlap::undecided || steps < 0) << round;
    ASSERT_GE(steps, -40) << round;
  }
  size_t undecided = 0;
  const auto begin = std::chrono::steady_clock::now();
  constexpr int rounds = 50;
  for (int round = 0; round < rounds; ++round) {
    const ElementOffsets a = without_pattern(random, uintptr_t{1} << 44);
    const ElementOffsets b = without_pattern(random, (uintptr_t{1} << 44) + 12345);
    int64_t steps = max_overlap_steps;
    const Overlap found = find_overlap(a, b, steps);
    EXPECT_GE(steps, -40);
    undecided += static_cast<size_t>(found == Overlap::undecided);
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  EXPECT_GT(undecided, 40U);
  EXPECT_LT(taken.count() / rounds, 0.05);
  RecordProperty("microseconds", static_cast<int>(taken.count() / rounds * 1e6));
}

TEST(FindOverlap, TensorsBeyondTheReachOfMemoryAreNotDecided) {
  ElementOffsets a;
  a.begin = 1 << 20;
  a.extents = {2};
  for (int64_t stride : {int64_t{1} << 59, INT64_MAX, INT64_MIN, -(int64_t{1} << 59)}) {
    a.strides = {stride};
    int64_t steps = max_overlap_steps;
    EXPECT_EQ(find_overlap(a, a, steps), Overlap::undecided);
  }
  a.extents = {1};  // a stride that nobody takes
  int64_t steps = max_overlap_steps;
  EXPECT_EQ(find_overlap(a, a, steps), Overlap::shared);
  a.strides = {INT64_MIN};
  EXPECT_EQ(find_overlap(a, a, steps), Overlap::shared);
  ElementOffsets far_away = a;
  far_away.begin = UINTPTR_MAX - 100;
  EXPECT_EQ(find_overlap(a, far_away, steps), Overlap::apart);
}

// Calls.

BoundTensor bound(ElementType type, const Dims& shape, const Dims& strides, bool is_output = true) {
  BoundTensor tensor = std::move(bind_tensor("", type, shape, strides, is_output)).value();
  tensor.what = is_output ? "output 0" : "input %x";
  return tensor;
}

struct Call {
  std::vector<BoundTensor> inputs, outputs;
  std::vector<ConstView> sources;
  std::vector<View> destinations;
  bool in_place = false;

  static void* address(int64_t byte) { return reinterpret_cast<void*>(0x100000 + byte); }
  void add_input(const BoundTensor& tensor, int64_t byte, int64_t offset = 0) {
    inputs.push_back(tensor);
    sources.emplace_back(address(byte), tensor.element, tensor.shape, tensor.strides, offset,
                         size_t{1} << 40);
  }
  void add_output(const BoundTensor& tensor, int64_t byte, int64_t offset = 0) {
    outputs.push_back(tensor);
    destinations.emplace_back(address(byte), tensor.element, tensor.shape, tensor.strides, offset,
                              size_t{1} << 40);
  }
  Status check() {
    const InPlaceOrder order(inputs.size(), outputs.size());  // nothing is read after a write
    in_place = false;
    return check_overlap({inputs, outputs, order}, sources, destinations, {}, in_place);
  }
  std::string refusal() {
    const Status status = check();
    return status ? "" : status.error().message;
  }
};

/// All bytes with bits of elements, of split groups all three.
std::set<int64_t> bytes_of(const BoundTensor& tensor, int64_t byte, int64_t offset) {
  std::set<int64_t> bytes;
  const int64_t count = tensor.count;
  for (int64_t i = 0; i < count; ++i) {
    int64_t left = i;
    int64_t element = offset;
    for (int axis = tensor.shape.rank() - 1; axis >= 0; --axis) {
      element += left % tensor.shape[axis] * tensor.strides[axis];
      left /= tensor.shape[axis];
    }
    for (int bit = 0; bit < bits_of(tensor.element); ++bit) {
      const int64_t at = storage_bit(tensor.element, element, bit) / 8;
      const bool split = info(tensor.element).order == StorageOrder::split;
      for (int64_t one = split ? at / 3 * 3 : at; one < (split ? at / 3 * 3 + 3 : at + 1); ++one) {
        bytes.insert(byte + one);
      }
    }
  }
  return bytes;
}

Dims any_strides(Random& random, const Dims& shape) {
  Dims strides = dense_strides(shape);
  int64_t wider = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    wider += random.between(0, 2) == 0 ? random.between(1, 7) : 0;
    strides[axis] = strides[axis] * wider;
  }
  return strides;
}

TEST(CheckOverlap, IsExactForEveryElementType) {
  Random random(6);
  const std::vector<ElementType> types = test::all_element_types();
  const auto any_type = [&] {
    return types[static_cast<size_t>(random.between(0, static_cast<int64_t>(types.size()) - 1))];
  };
  size_t accepted_within = 0;
  for (int round = 0; round < 30000; ++round) {
    const Dims shape = {random.between(1, 4), random.between(1, 5)};
    const BoundTensor in = bound(any_type(), shape, any_strides(random, shape), false);
    const BoundTensor out = bound(any_type(), shape, any_strides(random, shape));
    const int64_t in_byte = random.between(0, 24);
    const int64_t in_offset = random.between(0, 9);
    const int64_t out_offset = random.between(0, 9);
    Call call;
    call.add_input(in, in_byte, in_offset);
    call.add_output(out, 12, out_offset);
    const std::set<int64_t> read = bytes_of(in, in_byte, in_offset);
    const std::set<int64_t> written = bytes_of(out, 12, out_offset);
    const Status status = call.check();
    const bool is_apart = !share(read, written);
    ASSERT_EQ(status.ok() && !call.in_place, is_apart)
        << name_of(in.element) << to_string(in.strides) << " at byte " << in_byte << " offset "
        << in_offset << "; " << name_of(out.element) << to_string(out.strides) << " offset "
        << out_offset << " over " << to_string(shape);
    accepted_within += static_cast<size_t>(is_apart && *read.begin() < *written.rbegin() &&
                                           *written.begin() < *read.rbegin());
  }
  EXPECT_GT(accepted_within, 300U);
}

TEST(CheckOverlap, TheHalvesOfAMatrixAreApart) {
  for (int64_t distance : {0, 1, 3, 4, 5, 8, 12}) {
    Call call;
    call.add_input(bound(ElementType::u8, {2, 4}, {8, 1}, false), 0);
    call.add_output(bound(ElementType::i8, {2, 4}, {8, 1}), distance);
    const bool apart = distance == 4 || distance == 12;
    EXPECT_EQ(call.check().ok(), apart || distance == 0) << distance;
    EXPECT_EQ(call.in_place, distance == 0);
  }
}

/// Wider elements, other strides, and columns of three axes, which no common period decides.
TEST(CheckOverlap, DifferentStridesInterleave) {
  Call call;
  call.add_input(bound(ElementType::u16, {3, 2, 2}, {60, 20, 1}, false), 0);
  call.add_output(bound(ElementType::f32, {3, 2, 2}, {30, 10, 1}), 4);
  EXPECT_EQ(call.refusal(), "");
  call.destinations[0].data = Call::address(2);
  EXPECT_EQ(call.refusal().substr(0, 27), "output 0 overlaps input %x;");
}

TEST(CheckOverlap, HundredsOfOutputsInterleave) {
  Call call;
  constexpr int64_t columns = 300;
  for (int64_t i = 0; i < columns; ++i) {
    call.add_output(bound(ElementType::u8, {5, 3, 7}, {21 * columns, 7 * columns, columns}), i);
  }
  EXPECT_EQ(call.refusal(), "");
  call.destinations[7].data = Call::address(9);
  EXPECT_NE(call.refusal(), "");
}

/// More pairs than a call decides are refused, in the time of those that it does.
TEST(CheckOverlap, ThousandsOfOutputsThatInterleaveAreRefusedAtOnce) {
  Call call;
  constexpr int64_t columns = 2000;
  for (int64_t i = 0; i < columns; ++i) {
    call.add_output(bound(ElementType::u8, {5, 3, 7}, {21 * columns, 7 * columns, columns}), i);
  }
  const auto begin = std::chrono::steady_clock::now();
  const std::string message = call.refusal();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  EXPECT_NE(message.find("pairs of a call do not tell"), std::string::npos) << message;
  EXPECT_LT(taken.count(), 1);
}

TEST(CheckOverlap, WhatTakesTooLongIsRefusedAndSaysSo) {
  Random random(7);
  Dims shape, strides;
  for (int axis = 0; axis < max_rank; ++axis) {
    shape.push_back(2);
    strides.push_back(random.between(int64_t{1} << 40, int64_t{1} << 41));
  }
  Call call;
  call.add_input(bound(ElementType::u8, shape, strides, false), 0);
  for (int axis = 0; axis < max_rank; ++axis) {
    strides[axis] = (int64_t{1} << (24 + axis)) + random.between(0, 1 << 20);
  }
  std::sort(strides.begin(), strides.end());
  for (int64_t i = 0; i < 10; ++i) {
    call.add_output(bound(ElementType::u8, shape, strides), (int64_t{1} << 43) + i);
  }
  const auto begin = std::chrono::steady_clock::now();
  const std::string message = call.refusal();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  EXPECT_NE(message.find("output 0 may overlap input %x: their ranges of addresses meet"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("16384 steps for the 65536 pairs of a call do not tell"),
            std::string::npos)
      << message;
  EXPECT_LT(taken.count(), 0.1);  // one account for all pairs
}

}  // namespace
}  // namespace castor
