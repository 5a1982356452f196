// SPDX-License-Identifier: Apache-2.0
// Views with strides and offsets: every combination of dense and strided operands, ranks 0 to 6,
// and every byte of the output's memory that is not an element stays as it was.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tests/support/conversions.hpp"
#include "tools/testing/guarded_pages.hpp"

namespace castor {
namespace {

/// A layout over some extents: element strides and the number of elements that it spans.
struct Layout {
  Dims strides;
  int64_t span = 0;
};

/// Strides for the axes in that order (first the closest), each with a gap of up to `gap` units.
Layout layout(const Dims& extents, const std::vector<int>& order, int64_t gap) {
  Layout result;
  result.strides = Dims::filled(extents.rank(), 1);
  int64_t unit = 1 + gap;
  int64_t last = 0;
  for (int axis : order) {
    result.strides[axis] = unit;
    last += (extents[axis] - 1) * unit;
    unit = unit * extents[axis] + gap;
  }
  result.span = last + 1;
  return result;
}

/// Calls visit(element index within the layout, row-major index) for every element.
template <class Visit>
void for_each_element(const Dims& extents, const Dims& strides, Visit visit) {
  const int64_t count = element_count(extents).value();
  for (int64_t i = 0; i < count; ++i) {
    int64_t left = i;
    int64_t at = 0;
    for (int axis = extents.rank() - 1; axis >= 0; --axis) {
      at += left % extents[axis] * strides[axis];
      left /= extents[axis];
    }
    visit(static_cast<size_t>(at), static_cast<size_t>(i));
  }
}

bool is_dense(const Dims& extents, const Dims& strides) {
  const Dims dense = dense_strides(extents);
  for (int axis = 0; axis < extents.rank(); ++axis) {
    if (extents[axis] > 1 && strides[axis] != dense[axis]) return false;
  }
  return true;
}

struct Case {
  Dims extents;
  std::vector<int> source_order;
  int64_t source_gap;
  std::vector<int> destination_order;
  int64_t destination_gap;
};

const Case cases[] = {
    {{}, {}, 0, {}, 0},
    {{37}, {0}, 1, {0}, 0},
    {{200}, {0}, 0, {0}, 0},
    {{203}, {0}, 0, {0}, 0},
    {{6, 24}, {1, 0}, 8, {1, 0}, 0},
    {{6, 24}, {1, 0}, 0, {1, 0}, 8},
    {{37}, {0}, 0, {0}, 2},
    {{150}, {0}, 4, {0}, 1},
    {{5, 70}, {1, 0}, 0, {1, 0}, 3},
    {{5, 70}, {0, 1}, 0, {1, 0}, 0},
    {{5, 70}, {0, 1}, 0, {0, 1}, 0},
    {{3, 4, 33}, {2, 1, 0}, 0, {2, 0, 1}, 0},
    {{3, 1, 33, 1}, {2, 3, 1, 0}, 0, {3, 2, 1, 0}, 5},
    {{2, 3, 2, 3, 2, 19}, {5, 4, 3, 2, 1, 0}, 1, {5, 3, 4, 1, 2, 0}, 0},
    {{2, 3, 2, 3, 2, 19}, {0, 2, 4, 1, 3, 5}, 0, {0, 1, 2, 3, 4, 5}, 2},
};

const test::Conversion conversions[] = {
    {ElementType::f32, ElementType::u8, {}},
    {ElementType::u8, ElementType::f64, {}},
    {ElementType::f64, ElementType::i8, {}},
    {ElementType::i16, ElementType::i16, {}},
    {ElementType::bf16, ElementType::f16, {}},
    {ElementType::i64, ElementType::boolean, {}},
    {ElementType::u4, ElementType::f32, {}},
    {ElementType::f16, ElementType::i4, {}},
    {ElementType::u3, ElementType::u6, {}},
    {ElementType::u1, ElementType::f64, {}},
    {ElementType::f64, ElementType::u3, {}},
    {ElementType::nf4, ElementType::u1, {}},
    {ElementType::u6_split, ElementType::u3_split, {}},
    {ElementType::u2_msb_first, ElementType::u1_lsb_first, {}},
};

void check(const Runtime& runtime, const test::Conversion& conversion, const Case& row,
           int64_t offset) {
  const Layout source = layout(row.extents, row.source_order, row.source_gap);
  const Layout destination = layout(row.extents, row.destination_order, row.destination_gap);
  const size_t in_bytes =
      samples::storage_bytes(conversion.from, static_cast<size_t>(source.span + offset));
  const size_t out_bytes =
      samples::storage_bytes(conversion.to, static_cast<size_t>(destination.span + offset));
  test::GuardedPages in_pages(in_bytes);
  test::GuardedPages out_pages(out_bytes);
  std::byte* in = in_pages.at_end(in_bytes);
  std::byte* out = out_pages.at_end(out_bytes);
  out_pages.fill(std::byte{0xc5});
  std::fill_n(in, in_bytes, std::byte{0x3a});

  const auto count = static_cast<size_t>(element_count(row.extents).value());
  const test::ExpectedConversion expected =
      test::expect(conversion, samples::random_patterns(conversion.from, count, 11));
  for_each_element(row.extents, source.strides, [&](size_t at, size_t i) {
    samples::store_pattern({in, in_bytes}, conversion.from, at + static_cast<size_t>(offset),
                           expected.inputs[i]);
  });
  std::vector<std::byte> wanted(out, out + out_bytes);
  if (offset == 0 && is_dense(row.extents, destination.strides)) {
    wanted = expected.output_bytes;  // unused bits of the last byte are 0
  } else {
    for_each_element(row.extents, destination.strides, [&](size_t at, size_t i) {
      samples::store_pattern(wanted, conversion.to, at + static_cast<size_t>(offset),
                             expected.outputs[i]);
    });
  }

  const Status status =
      runtime.convert(ConstView(in, conversion.from, row.extents, source.strides, offset, in_bytes),
                      View(out, conversion.to, row.extents, destination.strides, offset, out_bytes),
                      conversion.options);
  ASSERT_TRUE(status.ok()) << status.error().message;
  ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), out))
      << conversion.name() << " over " << to_string(row.extents) << ", strides "
      << to_string(source.strides) << " -> " << to_string(destination.strides);
}

TEST(StridedViews, ConvertElementsAndNothingElse) {
  for (const test::Conversion& conversion : conversions) {
    for (const Case& row : cases) {
      for (const auto& [tier, runtime] : test::elementwise_tier_runtimes()) {
        for (int64_t offset : {0, 3, 8}) {
          check(runtime, conversion, row, offset);
          if (HasFatalFailure()) FAIL() << "tier " << name_of(tier);
        }
      }
    }
  }
}

TEST(StridedViews, EveryPairThroughStages) {
  const Case row = {{7, 45}, {0, 1}, 0, {1, 0}, 1};
  for (ElementType from : test::all_element_types()) {
    for (ElementType to : test::all_element_types()) {
      for (const auto& [tier, runtime] : test::elementwise_tier_runtimes()) {
        check(runtime, {from, to, {}}, row, 0);
        if (HasFatalFailure()) FAIL() << "tier " << name_of(tier);
      }
    }
  }
}

}  // namespace
}  // namespace castor
