// SPDX-License-Identifier: Apache-2.0
// Copies of rows of sub-byte elements, element by element, between pages that nobody may touch.
#include "runtime/call/bit_rows.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "ir/types/elements.hpp"
#include "ir/types/storage.hpp"
#include "tests/support/element_types.hpp"
#include "tests/support/sample_bytes.hpp"
#include "tools/testing/guarded_pages.hpp"
#include "tools/testing/samples.hpp"

namespace castor::detail {
namespace {

struct RowShape {
  int64_t columns;
  int64_t gap;
  int64_t rows;
};

/// Rows within a byte, of one word of bits and around it, of several; neighbours, and pages apart.
constexpr RowShape row_shapes[] = {
    {1, 0, 9},   {1, 3, 20},   {2, 1, 33},   {3, 0, 8},     {5, 2, 100},     {8, 8, 11},
    {9, 1, 30},  {10, 3, 17},  {14, 0, 9},   {15, 5, 12},   {16, 1, 13},     {19, 4, 10},
    {31, 2, 70}, {56, 3, 9},   {57, 1, 9},   {64, 6, 5},    {65, 0, 3},      {127, 2, 4},
    {257, 2, 3}, {1000, 9, 2}, {1024, 1, 1}, {3, 40000, 5}, {100, 12345, 3},
};

size_t bytes_of(ElementType element, int64_t elements) {
  return samples::storage_bytes(element, static_cast<size_t>(elements));
}

/// A tensor with the rows, whose last element is its last.
class RowsCheck {
 public:
  RowsCheck(ElementType element, const RowShape& shape, int64_t first, bool at_begin)
      : element_(element),
        shape_(shape),
        step_(shape.columns + shape.gap),
        first_(first),
        bytes_(bytes_of(element, first + (shape.rows - 1) * step_ + shape.columns)),
        pages_(bytes_),
        data_(at_begin ? pages_.at_begin() : pages_.at_end(bytes_)) {
    test::fill_with_samples({data_, bytes_}, 1);
  }

  void gathers() {
    const int64_t count = shape_.rows * shape_.columns;
    const size_t copied = bytes_of(element_, count) + bit_rows_slack;
    test::GuardedPages pages(copied);
    std::byte* to = pages.at_end(copied);
    gather_bit_rows(rows(), to);
    for (int64_t i = 0; i < count; ++i) {
      ASSERT_EQ(read_element(to, element_, i), read_element(data_, element_, number(i))) << i;
    }
  }

  void scatters() {
    const int64_t count = shape_.rows * shape_.columns;
    std::vector<std::byte> from(bytes_of(element_, count) + bit_rows_slack);
    test::fill_with_samples(from, 2);
    std::vector<std::byte> wanted(data_, data_ + bytes_);
    for (int64_t i = 0; i < count; ++i) {
      write_element(wanted.data(), element_, number(i), read_element(from.data(), element_, i));
    }
    scatter_bit_rows(from.data(), rows());
    const auto difference = std::mismatch(wanted.begin(), wanted.end(), data_);
    ASSERT_TRUE(difference.first == wanted.end()) << "byte " << difference.first - wanted.begin();
  }

 private:
  int64_t number(int64_t i) const {
    return first_ + i / shape_.columns * step_ + i % shape_.columns;
  }
  BitRows rows() const { return {element_, data_, first_, step_, shape_.columns, shape_.rows}; }

  ElementType element_;
  RowShape shape_;
  int64_t step_;
  int64_t first_;
  size_t bytes_;
  test::GuardedPages pages_;
  std::byte* data_;
};

TEST(BitRows, AreCopied) {
  for (const ElementType element : test::all_element_types()) {
    if (!is_sub_byte(element) || !is_bit_string(element)) continue;
    for (const RowShape& shape : row_shapes) {
      for (const int64_t first : {0, 1, 5, 13}) {
        SCOPED_TRACE(fmt::format("{}, {} rows of {}, {} apart, from {}", name_of(element),
                                 shape.rows, shape.columns, shape.gap, first));
        RowsCheck(element, shape, first, false).gathers();
        RowsCheck(element, shape, first, true).gathers();
        RowsCheck(element, shape, first, false).scatters();
        RowsCheck(element, shape, first, true).scatters();
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

/// Where rows are pages apart, those between may be anybody's.
TEST(BitRows, TouchNoPageBetweenRows) {
  constexpr int64_t page = 4096;
  test::GuardedPages pages(4 * page);
  std::byte* const data = pages.at_begin();
  ASSERT_EQ(mprotect(data + page, 2 * page, PROT_NONE), 0);
  const BitRows rows = {ElementType::u4, data + page - 3, 1, 3 * 2 * page, 5, 2};
  std::array<std::byte, 5 + bit_rows_slack> copy = {};
  gather_bit_rows(rows, copy.data());
  scatter_bit_rows(copy.data(), rows);
}

}  // namespace
}  // namespace castor::detail
