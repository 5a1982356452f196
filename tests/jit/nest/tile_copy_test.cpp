// SPDX-License-Identifier: Apache-2.0
// The code that copies a tile between two orders of its axes: every element arrives, and with both
// tiles between pages that nobody may touch, no other byte is read or written.
#include <gtest/gtest.h>

#include <algorithm>

#include "jit/emit/tile_copy.hpp"
#include "jit/listing/listing.hpp"
#include "jit/memory/code_memory.hpp"
#include "tests/support/sample_bytes.hpp"
#include "tools/testing/guarded_pages.hpp"

namespace castor {
namespace {

TEST(TileCopy, AreOfTheLowestTier) {
  for (int bytes : {1, 2, 4, 8}) {
    const Result<jit::MachineCode> code = emit_kernel(jit::TileCopySpec{bytes}, {jit::Tier::avx2});
    ASSERT_TRUE(code.ok()) << code.error().message;
    const Status status = jit::check_features(*code, {jit::Tier::avx2});
    EXPECT_TRUE(status.ok()) << status.error().message;
    const Status hardened = jit::check_hardening(*code);
    EXPECT_TRUE(hardened.ok()) << hardened.error().message;
    EXPECT_LE(code->bytes.size(), 3072u);
  }
}

/// Code that may be called.
class Published {
 public:
  explicit Published(const jit::MachineCode& code)
      : memory_(jit::SystemCalls::real()), block_(memory_.publish(code).value()) {}
  template <class FunctionPointer>
  FunctionPointer as() const {
    return reinterpret_cast<FunctionPointer>(reinterpret_cast<uintptr_t>(block_.code()));
  }

 private:
  jit::CodeMemory memory_;
  jit::CodeBlock block_;
};

/// Steps in elements: from one to the next of a row, and from row to row.
struct Walk {
  int64_t step;
  int64_t row_step;
};

/// Copies of elements of that size.
class CopyCheck {
 public:
  explicit CopyCheck(int bytes)
      : bytes_(bytes), code_(emit_kernel(jit::TileCopySpec{bytes}, {jit::Tier::avx2}).value()) {}

  void check(int64_t columns, int64_t rows, const Walk& from, const Walk& to, bool at_end = true) {
    const auto span = [&](const Walk& walk) {
      const int64_t last = (columns - 1) * walk.step + (rows - 1) * walk.row_step;
      return static_cast<size_t>((last + 1) * bytes_);
    };
    std::byte* source = at_end ? source_.at_end(span(from)) : source_.at_begin();
    std::byte* destination = at_end ? destination_.at_end(span(to)) : destination_.at_begin();
    test::fill_with_samples({source, span(from)}, static_cast<uint64_t>(columns * 1000 + rows));
    std::fill_n(destination, span(to), std::byte{0xc5});
    std::vector<std::byte> wanted(span(to), std::byte{0xc5});
    for (int64_t j = 0; j < rows; ++j) {
      for (int64_t i = 0; i < columns; ++i) {
        std::copy_n(source + (i * from.step + j * from.row_step) * bytes_, bytes_,
                    wanted.data() + (i * to.step + j * to.row_step) * bytes_);
      }
    }
    const jit::TileCopy copy = {source,
                                from.step * bytes_,
                                from.row_step * bytes_,
                                destination,
                                to.step * bytes_,
                                to.row_step * bytes_,
                                columns,
                                rows};
    code_.as<jit::KernelFunction<jit::TileCopySpec>>()(&copy);
    ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), destination))
        << columns << " columns, " << rows << " rows of " << bytes_ << " bytes, steps " << from.step
        << ", " << from.row_step << " -> " << to.step << ", " << to.row_step;
  }

 private:
  int64_t bytes_;
  Published code_;
  test::GuardedPages source_{1 << 17};
  test::GuardedPages destination_{1 << 17};
};

TEST(TileCopy, TransposeEverySizeAndTouchNothingElse) {
  for (int bytes : {1, 2, 4, 8}) {
    CopyCheck copy(bytes);
    for (int64_t columns = 1; columns <= 67; ++columns) {
      for (int64_t rows = 1; rows <= 81; ++rows) {
        const int64_t gap = (columns + rows) % 3;
        copy.check(columns, rows, {rows + gap, 1}, {1, columns + gap}, rows % 2 == 0);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(TileCopy, CopyEveryDistanceAndTouchNothingElse) {
  for (int bytes : {1, 2, 4, 8}) {
    CopyCheck copy(bytes);
    for (int64_t columns = 1; columns <= 100; ++columns) {
      for (int64_t step = 1; step <= 6; ++step) {
        const int64_t rows = columns % 3 + 1;
        copy.check(columns, rows, {step, columns * step + 1}, {1, columns + 2});
        copy.check(columns, rows, {1, columns}, {step, columns * step});
        copy.check(columns, 1, {step, 0}, {2, 0});
        copy.check(rows, columns, {columns * step, step}, {1, rows});
        if (HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace castor
