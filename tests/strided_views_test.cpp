// SPDX-License-Identifier: Apache-2.0
// Views with strides and offsets: every combination of dense and strided operands, ranks 0 to 6,
// and every byte of the output's memory that is not an element stays as it was.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tests/support/conversions.hpp"
#include "tests/support/guarded_pages.hpp"

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
    int64_t rest = i;
    int64_t at = 0;
    for (int axis = extents.rank() - 1; axis >= 0; --axis) {
      at += rest % extents[axis] * strides[axis];
      rest /= extents[axis];
    }
    visit(static_cast<size_t>(at), static_cast<size_t>(i));
  }
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
    {ElementType::f32, ElementType::u8, {}},   {ElementType::u8, ElementType::f64, {}},
    {ElementType::f64, ElementType::i8, {}},   {ElementType::i16, ElementType::i16, {}},
    {ElementType::bf16, ElementType::f16, {}}, {ElementType::i64, ElementType::boolean, {}},
};

void check(const Runtime& runtime, const test::Conversion& conversion, const Case& row,
           int64_t offset) {
  const Layout source = layout(row.extents, row.source_order, row.source_gap);
  const Layout destination = layout(row.extents, row.destination_order, row.destination_gap);
  const size_t in_size = static_cast<size_t>(bits_of(conversion.from) / 8);
  const size_t out_size = static_cast<size_t>(bits_of(conversion.to) / 8);
  const size_t in_bytes = static_cast<size_t>(source.span + offset) * in_size;
  const size_t out_bytes = static_cast<size_t>(destination.span + offset) * out_size;
  test::GuardedPages in_pages(in_bytes);
  test::GuardedPages out_pages(out_bytes);
  std::byte* in = in_pages.at_end(in_bytes);
  std::byte* out = out_pages.at_end(out_bytes);
  out_pages.fill(std::byte{0xc5});

  const auto count = static_cast<size_t>(element_count(row.extents).value());
  const test::ExpectedConversion expected =
      test::expect(conversion, samples::random_patterns(conversion.from, count, 11));
  std::vector<std::byte> wanted(out, out + out_bytes);
  for_each_element(row.extents, source.strides, [&](size_t at, size_t i) {
    std::copy_n(&expected.input_bytes[i * in_size], in_size,
                in + (at + static_cast<size_t>(offset)) * in_size);
  });
  for_each_element(row.extents, destination.strides, [&](size_t at, size_t i) {
    std::copy_n(&expected.output_bytes[i * out_size], out_size,
                &wanted[(at + static_cast<size_t>(offset)) * out_size]);
  });

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
      for (const auto& [tier, runtime] : test::tier_runtimes()) {
        for (int64_t offset : {0, 3}) {
          check(runtime, conversion, row, offset);
          if (HasFatalFailure()) FAIL() << "tier " << name_of(tier);
        }
      }
    }
  }
}

TEST(StridedViews, EveryPairThroughStages) {
  const Case row = {{7, 45}, {0, 1}, 0, {1, 0}, 1};
  for (ElementType from : test::implemented_types()) {
    for (ElementType to : test::implemented_types()) {
      for (const auto& [tier, runtime] : test::tier_runtimes()) {
        check(runtime, {from, to, {}}, row, 0);
        if (HasFatalFailure()) FAIL() << "tier " << name_of(tier);
      }
    }
  }
}

}  // namespace
}  // namespace castor
