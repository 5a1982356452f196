// SPDX-License-Identifier: Apache-2.0
// Sub-byte tensors whose rows begin and end anywhere: the code's results are the interpreter's on
// every tier, bits that belong to no element stay as they were, nothing beyond the tensors' bytes
// is touched, and no two tasks write one byte.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/interpreter/interpreter.hpp"
#include "ir/types/storage.hpp"
#include "tests/support/conversions.hpp"
#include "tests/support/element_types.hpp"
#include "tests/support/sample_bytes.hpp"
#include "tools/testing/executors.hpp"
#include "tools/testing/guarded_pages.hpp"

namespace castor {
namespace {

/// How a matrix is stored: elements and rows apart, or columns that are contiguous.
struct Layout {
  std::string_view name;
  int64_t element_step = 1;
  int64_t gap = 0;  ///< elements after each row, or column
  bool is_transposed = false;
};

constexpr Layout layouts[] = {
    {"dense"},
    {"rows with a gap", 1, 1},
    {"rows a few bytes apart", 1, 19},
    {"every second element", 2},
    {"every third element", 3, 2},
    {"every seventeenth element", 17},
    {"transposed", 1, 0, true},
    {"transposed with a gap", 1, 3, true},
};

/// How the f32 operand is broadcast to the matrix.
enum class Broadcast : uint8_t { none, column, row, transposed };
constexpr Broadcast broadcasts[] = {Broadcast::none, Broadcast::column, Broadcast::row,
                                    Broadcast::transposed};

/// What of the function is sub-byte.
enum class Part : uint8_t { source, destination, both, column };
constexpr Part parts[] = {Part::source, Part::destination, Part::both, Part::column};

constexpr int64_t offsets[] = {0, 1, 5, 8};

/// Around groups, tiles and periods.
const Dims sizes[] = {{1, 1},  {1, 700}, {40, 1},  {301, 2}, {130, 3}, {90, 5},
                      {67, 8}, {41, 17}, {33, 31}, {17, 33}, {15, 63}, {9, 65},
                      {8, 64}, {5, 255}, {4, 256}, {3, 257}, {2, 520}};

struct Tensor {
  ElementType element = ElementType::f32;
  Dims extents;
  Dims strides;
  int64_t offset = 0;

  size_t bytes() const {
    int64_t last = offset;
    for (int axis = 0; axis < extents.rank(); ++axis) last += (extents[axis] - 1) * strides[axis];
    return samples::storage_bytes(element, static_cast<size_t>(last + 1));
  }
};

Dims strides_of(const Dims& extents, const Layout& layout) {
  const int64_t step = layout.element_step;
  if (layout.is_transposed) return {step, step * extents[0] + layout.gap};
  return {step * extents[1] + layout.gap, step};
}

Tensor tensor(ElementType element, const Dims& extents, const Layout& layout, int64_t offset) {
  return {element, extents, strides_of(extents, layout), offset};
}

Tensor broadcast(const Dims& extents, Broadcast kind) {
  switch (kind) {
    case Broadcast::column: return tensor(ElementType::f32, {extents[0], 1}, layouts[0], 0);
    case Broadcast::row: return tensor(ElementType::f32, {1, extents[1]}, layouts[0], 0);
    case Broadcast::transposed: return tensor(ElementType::f32, extents, layouts[6], 0);
    default: return tensor(ElementType::f32, extents, layouts[0], 0);
  }
}

/// Two inputs and the output of a function.
struct Case {
  std::string name;
  std::array<Tensor, 3> tensors;

  std::string text() const {
    return fmt::format(
        "func @f(%x: {}[?, ?], %y: {}[?, ?]) -> ({}[?, ?]) {{\n"
        "  %a = convert %x : f32\n  %b = convert %y : f32\n  %s = sub %a, %b\n"
        "  %z = convert %s : {}\n  return %z\n}}\n",
        name_of(tensors[0].element), name_of(tensors[1].element), name_of(tensors[2].element),
        name_of(tensors[2].element));
  }
};

/// Tensors of one case between pages that nobody may touch.
class CaseCheck {
 public:
  CaseCheck(const Case& row, bool at_begin) : row_(row) {
    for (const Tensor& each : row.tensors) {
      pages_.push_back(std::make_unique<test::GuardedPages>(each.bytes()));
      test::GuardedPages& pages = *pages_.back();
      begins_.push_back(at_begin ? pages.at_begin() : pages.at_end(each.bytes()));
      test::fill_with_samples({begins_.back(), each.bytes()}, pages_.size());
    }
    // Most f32 samples would be far out of the range of codes.
    const Tensor& y = row.tensors[1];
    for (size_t i = 0; y.element == ElementType::f32 && i < y.bytes() / sizeof(float); ++i) {
      const float value = 0.5F * static_cast<float>(i % 13) - 1.5F;
      std::memcpy(begins_[1] + i * sizeof value, &value, sizeof value);
    }
  }

  void run() {
    const Result<FunctionPtr> function = parse_function(row_.text());
    ASSERT_TRUE(function.ok()) << function.error().to_string();
    for (const std::byte before : {std::byte{0x00}, std::byte{0xff}}) {
      fill_output(before);
      const Status interpreted = interpret(**function, inputs(), outputs());
      ASSERT_TRUE(interpreted.ok()) << interpreted.error().message;
      wanted_.assign(output().begin(), output().end());
      for (const auto& [tier, runtime] : test::tier_runtimes()) {
        SCOPED_TRACE(fmt::format("tier {}, {}", name_of(tier), row_.name));
        run_on(runtime, *function, before);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }

 private:
  void run_on(const Runtime& runtime, const FunctionPtr& function, std::byte before) {
    const Result<Kernel> kernel = runtime.compile(function);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    const Result<BoundKernel> bound = kernel->bind(inputs(), outputs());
    ASSERT_TRUE(bound.ok()) << bound.error().message;
    test::Watchful watchful(5, {output()});
    test::Backwards backwards(3);
    for (Executor* executor : {static_cast<Executor*>(nullptr), static_cast<Executor*>(&watchful),
                               static_cast<Executor*>(&backwards)}) {
      fill_output(before);
      const Status status = bound->run(inputs(), outputs(), {.executor = executor});
      ASSERT_TRUE(status.ok()) << status.error().message;
      const auto difference = std::ranges::mismatch(wanted_, output());
      ASSERT_TRUE(difference.in1 == wanted_.end())
          << "byte " << difference.in1 - wanted_.begin() << " of " << wanted_.size();
    }
    ASSERT_EQ(watchful.shared(), "");
  }

  std::span<std::byte> output() { return {begins_[2], row_.tensors[2].bytes()}; }
  void fill_output(std::byte value) { std::ranges::fill(output(), value); }

  std::vector<ConstView> inputs() {
    std::vector<ConstView> views;
    for (size_t i : {0, 1}) {
      const Tensor& each = row_.tensors[i];
      views.emplace_back(begins_[i], each.element, each.extents, each.strides, each.offset,
                         each.bytes());
    }
    return views;
  }
  std::vector<View> outputs() {
    const Tensor& each = row_.tensors[2];
    return {{begins_[2], each.element, each.extents, each.strides, each.offset, each.bytes()}};
  }

  const Case& row_;
  std::vector<std::unique_ptr<test::GuardedPages>> pages_;
  std::vector<std::byte*> begins_;
  std::vector<std::byte> wanted_;
};

Case make_case(ElementType element, Part part, const Dims& extents, const Layout& layout,
               const Layout& other, Broadcast kind, int64_t offset) {
  const bool reads = part == Part::source || part == Part::both;
  const bool writes = part == Part::destination || part == Part::both;
  const Tensor floats = tensor(ElementType::f32, extents, layouts[0], 0);
  Case row;
  row.name = fmt::format("{}{}, {}, {}, part {}, broadcast {}, offset {}", name_of(element),
                         to_string(extents), layout.name, other.name, static_cast<int>(part),
                         static_cast<int>(kind), offset);
  row.tensors[0] = reads ? tensor(element, extents, layout, offset) : floats;
  row.tensors[1] = part == Part::column ? tensor(element, {extents[0], 1}, layout, offset)
                                        : broadcast(extents, kind);
  row.tensors[2] = writes ? tensor(element, extents, other, offset) : floats;
  return row;
}

std::vector<ElementType> sub_byte_types() {
  std::vector<ElementType> types = test::all_element_types();
  std::erase_if(types, [](ElementType type) { return !is_sub_byte(type); });
  return types;
}

class SubByteViews : public testing::TestWithParam<ElementType> {};

/// Each layout of the source meets each size; each of these pairs meets some of everything else.
TEST_P(SubByteViews, AreTheInterpreters) {
  size_t turn = static_cast<size_t>(GetParam());
  const auto next = [&](const auto& table, size_t divisor) {
    return table[turn / divisor % std::size(table)];
  };
  for (const Layout& layout : layouts) {
    for (const Dims& extents : sizes) {
      for (const Part part : parts) {
        turn += 7;
        const Case row = make_case(GetParam(), part, extents, layout, next(layouts, 2),
                                   next(broadcasts, 3), next(offsets, 5));
        CaseCheck(row, turn % 2 == 0).run();
        if (HasFatalFailure()) return;
      }
    }
  }
}

/// Transposed matrices that are read block by block, whether rows of the result begin bytes or not.
TEST_P(SubByteViews, AreReadInBlocks) {
  for (const Dims& extents : {Dims{200, 176}, Dims{190, 181}}) {
    for (const Part part : {Part::source, Part::both}) {
      const Case row =
          make_case(GetParam(), part, extents, layouts[7], layouts[0], Broadcast::column, 1);
      CaseCheck(row, false).run();
      if (HasFatalFailure()) return;
    }
  }
}

/// Rows with gaps, of which copies are made, in tensors that exceed caches.
TEST_P(SubByteViews, OfLargeTensors) {
  for (const Part part : {Part::source, Part::destination}) {
    const Case row =
        make_case(GetParam(), part, {1100, 300}, layouts[1], layouts[1], Broadcast::none, 1);
    CaseCheck(row, false).run();
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SubByteViews, testing::ValuesIn(sub_byte_types()),
                         [](const auto& row) {
                           std::string name(name_of(row.param));
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace castor
