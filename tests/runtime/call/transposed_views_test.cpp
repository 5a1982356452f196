// SPDX-License-Identifier: Apache-2.0
// Functions on transposed, permuted and strided views: the code's results are the interpreter's,
// with every tensor between pages that nobody may touch, and every byte of an output's memory that
// is not an element stays as it was.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>

#include "ir/interpreter/interpreter.hpp"
#include "runtime/bind/bound_state.hpp"
#include "runtime/state_access.hpp"
#include "tests/support/conversions.hpp"
#include "tests/support/sample_bytes.hpp"
#include "tools/testing/guarded_pages.hpp"

namespace castor {
namespace {

/// The first step. Throws where that is of another kind.
const detail::ElementwiseStep& step_of(const BoundKernel& bound) {
  return std::get<detail::ElementwiseStep>(detail::StateAccess::of(bound).steps.front());
}

/// A tensor of a case: its layout, and where its memory begins.
struct Tensor {
  ElementType element = ElementType::f32;
  Dims extents;
  Dims strides;
  int64_t offset = 0;

  size_t bytes() const {
    int64_t last = offset;
    for (int axis = 0; axis < extents.rank(); ++axis) last += (extents[axis] - 1) * strides[axis];
    return static_cast<size_t>((last + 1) * bits_of(element) / 8);
  }
};

/// Strides for the axes in that order (first the closest), with a gap of that many elements between
/// elements and between rows.
Dims strides_in_order(const Dims& extents, const std::vector<int>& order, int64_t gap = 0) {
  Dims strides = Dims::filled(extents.rank(), 1);
  int64_t unit = 1 + gap;
  for (int axis : order) {
    strides[axis] = unit;
    unit = unit * extents[axis] + gap;
  }
  return strides;
}

/// A function with its tensors, inputs first, and one output.
struct Case {
  std::string text;
  std::vector<Tensor> tensors;
  bool in_place = false;  ///< in the first input's memory
  StorePolicy stores = StorePolicy::automatic;
};

std::string text_of(const Case& row) {
  std::string text = row.text;
  for (const Tensor& tensor : row.tensors) {
    text += fmt::format("  {} {} strides {} offset {}\n", name_of(tensor.element),
                        to_string(tensor.extents), to_string(tensor.strides), tensor.offset);
  }
  return text;
}

/// Runs a case on every tier.
class CaseCheck {
 public:
  explicit CaseCheck(const Case& row) : row_(row) {
    for (const Tensor& tensor : row.tensors) {
      pages_.push_back(std::make_unique<test::GuardedPages>(tensor.bytes()));
      begins_.push_back(pages_.back()->at_end(tensor.bytes()));
      test::fill_with_samples({begins_.back(), tensor.bytes()}, pages_.size());
    }
    before_.assign(output(), output() + output_tensor().bytes());
  }

  void run() {
    const Result<FunctionPtr> function = parse_function(row_.text);
    ASSERT_TRUE(function.ok()) << function.error().to_string();
    const Status interpreted = interpret(**function, inputs(), outputs());
    ASSERT_TRUE(interpreted.ok()) << interpreted.error().message;
    const std::vector<std::byte> wanted(output(), output() + before_.size());
    for (const auto& [tier, runtime] : test::elementwise_tier_runtimes()) {
      std::copy(before_.begin(), before_.end(), output());
      std::vector<ConstView> in = inputs();
      if (row_.in_place) in[0].data = output();
      const Result<Kernel> kernel = runtime.compile(*function);
      ASSERT_TRUE(kernel.ok()) << kernel.error().message;
      const Result<BoundKernel> bound = kernel->bind(in, outputs());
      ASSERT_TRUE(bound.ok()) << bound.error().message;
      const Status status = bound->run(in, outputs(), {.stores = row_.stores});
      ASSERT_TRUE(status.ok()) << status.error().message;
      const auto difference = std::mismatch(wanted.begin(), wanted.end(), output());
      ASSERT_TRUE(difference.first == wanted.end())
          << name_of(tier) << ", byte " << difference.first - wanted.begin() << " of\n"
          << text_of(row_);
    }
  }

 private:
  const Tensor& output_tensor() const { return row_.tensors.back(); }
  std::byte* output() { return begins_.back(); }

  std::vector<ConstView> inputs() {
    std::vector<ConstView> views;
    for (size_t i = 0; i + 1 < row_.tensors.size(); ++i) {
      const Tensor& tensor = row_.tensors[i];
      views.emplace_back(begins_[i], tensor.element, tensor.extents, tensor.strides, tensor.offset,
                         tensor.bytes());
    }
    if (row_.in_place) std::copy_n(before_.begin(), before_.size(), begins_[0]);
    return views;
  }

  std::vector<View> outputs() {
    const Tensor& tensor = output_tensor();
    return {
        {output(), tensor.element, tensor.extents, tensor.strides, tensor.offset, tensor.bytes()}};
  }

  const Case& row_;
  std::vector<std::unique_ptr<test::GuardedPages>> pages_;
  std::vector<std::byte*> begins_;
  std::vector<std::byte> before_;
};

void check(const Case& row) { CaseCheck(row).run(); }

std::string unknown_shape(int rank) {
  std::string text = "[";
  for (int axis = 0; axis < rank; ++axis) text += axis > 0 ? ", ?" : "?";
  return text + "]";
}

/// A function of two parameters: z = x + y in the type of z, each converted.
std::string sum_of(ElementType x, ElementType y, ElementType z, int rank) {
  const std::string shape = unknown_shape(rank);
  return fmt::format(
      "func @sum(%x: {0}{3}, %y: {1}{3}) -> ({2}{3}) {{\n  %a = convert %x : {2}\n"
      "  %b = convert %y : {2}\n  %z = add %a, %b\n  return %z\n}}\n",
      name_of(x), name_of(y), name_of(z), shape);
}

/// Adds a dense and a transposed tensor.
Case transposed_sum(ElementType x, ElementType y, ElementType z, const Dims& extents) {
  std::vector<int> order(static_cast<size_t>(extents.rank()));
  std::iota(order.begin(), order.end(), 0);
  const Dims dense = dense_strides(extents);
  return {
      sum_of(x, y, z, extents.rank()),
      {{x, extents, dense}, {y, extents, strides_in_order(extents, order)}, {z, extents, dense}}};
}

constexpr int64_t sizes[] = {1, 7, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 200};

TEST(TransposedViews, EveryElementSizeAroundBlocksAndTiles) {
  using enum ElementType;
  for (ElementType element : {u8, i16, f32, f64}) {
    for (size_t i = 0; i < std::size(sizes); ++i) {
      for (size_t j = i % 2; j < std::size(sizes); j += 2) {
        check(transposed_sum(element, element, element, {sizes[i], sizes[j]}));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(TransposedViews, LongerThanTiles) {
  using enum ElementType;
  for (ElementType element : {boolean, u8, bf16, f32, i64}) {
    const ElementType sum = element == boolean ? u8 : element;
    check(transposed_sum(sum, element, sum, {3, 5000}));
    check(transposed_sum(sum, element, sum, {5000, 3}));
    check(transposed_sum(sum, element, sum, {70, 530}));
    if (HasFatalFailure()) return;
  }
}

TEST(TransposedViews, MixedElementSizes) {
  using enum ElementType;
  const ElementType types[] = {u8, f16, i32, f64};
  for (ElementType x : types) {
    for (ElementType y : types) {
      for (ElementType z : {f32, i16}) {
        check(transposed_sum(x, y, z, {33, 140}));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(TransposedViews, BothInputs) {
  using enum ElementType;
  for (ElementType x : {u8, f32}) {
    for (ElementType y : {u8, i16, f64}) {
      Case row = transposed_sum(x, y, f32, {150, 67});
      row.tensors[0].strides = strides_in_order({150, 67}, {0, 1}, 0);
      row.tensors[1].offset = 5;
      check(row);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(TransposedViews, TransposedOutput) {
  using enum ElementType;
  for (int64_t gap : {0, 1}) {
    Case row = transposed_sum(f32, u8, f32, {37, 150});
    row.tensors[1].strides = dense_strides({37, 150});
    row.tensors[2].strides = strides_in_order({37, 150}, {0, 1}, gap);
    check(row);
    if (HasFatalFailure()) return;
  }
}

/// The first output is transposed against the second.
TEST(TransposedViews, OutputsOfBothOrders) {
  const Dims extents = {40, 75};
  const Dims dense = dense_strides(extents);
  const Dims transposed = strides_in_order(extents, {0, 1});
  const Result<FunctionPtr> function = parse_function(
      "func @f(%x: i16[?a, ?b], %y: f64[?a, ?b]) -> (f64[?a, ?b], f64[?a, ?b]) {\n"
      "  %c = convert %x : f64\n  %p = add %c, %y\n  %q = sub %c, %y\n  return %p, %q\n}\n");
  ASSERT_TRUE(function.ok()) << function.error().to_string();
  constexpr size_t count = 3000;
  test::GuardedPages x(count * 2), y(count * 8), p(count * 8), q(count * 8);
  test::fill_with_samples({x.at_end(count * 2), count * 2}, 1);
  test::fill_with_samples({y.at_end(count * 8), count * 8}, 2);
  const std::vector<ConstView> inputs = {
      {x.at_end(count * 2), ElementType::i16, extents, dense, 0, count * 2},
      {y.at_end(count * 8), ElementType::f64, extents, transposed, 0, count * 8}};
  const std::vector<View> outputs = {
      {p.at_end(count * 8), ElementType::f64, extents, transposed, 0, count * 8},
      {q.at_end(count * 8), ElementType::f64, extents, dense, 0, count * 8}};
  ASSERT_TRUE(interpret(**function, inputs, outputs).ok());
  const std::vector<std::byte> wanted_p(p.at_end(count * 8), p.at_end(0));
  const std::vector<std::byte> wanted_q(q.at_end(count * 8), q.at_end(0));
  for (const auto& [tier, runtime] : test::elementwise_tier_runtimes()) {
    p.fill(std::byte{0xc5});
    q.fill(std::byte{0xc5});
    const BoundKernel bound = *runtime.compile(*function)->bind(inputs, outputs);
    ASSERT_TRUE(bound.run(inputs, outputs).ok());
    const auto& copies = step_of(bound).tiles->copies;
    EXPECT_TRUE(std::ranges::any_of(copies, &detail::BoundTileCopy::is_output));
    EXPECT_TRUE(std::equal(wanted_p.begin(), wanted_p.end(), p.at_end(count * 8)));
    EXPECT_TRUE(std::equal(wanted_q.begin(), wanted_q.end(), q.at_end(count * 8)));
  }
}

TEST(TransposedViews, ShortRowsWithGaps) {
  using enum ElementType;
  for (ElementType element : {u8, f16, f32, f64}) {
    for (int64_t columns = 2; columns <= 7; ++columns) {
      const Dims extents = {391, columns};
      const Dims gapped = {columns + 2, 1};
      Case row = transposed_sum(element, element, element, extents);
      row.tensors[1].strides = gapped;
      check(row);
      row.tensors[0] = {element, {1, columns}, {columns, 1}};
      check(row);
      row.tensors[0] = {element, {391, 1}, {3, 1}};
      check(row);
      row.tensors[2].strides = gapped;
      check(row);
      if (HasFatalFailure()) return;
    }
  }
}

/// Every order of the axes of an input, against every order of the output's.
void check_orders(const Dims& extents, int64_t gap) {
  std::vector<int> source(static_cast<size_t>(extents.rank()));
  std::iota(source.begin(), source.end(), 0);
  const std::vector<int> first = source;
  do {
    std::vector<int> destination = first;
    do {
      Case row = transposed_sum(ElementType::u8, ElementType::f32, ElementType::f32, extents);
      row.tensors[1].strides = strides_in_order(extents, source);
      row.tensors[1].offset = 3;
      row.tensors[2].strides = strides_in_order(extents, destination, gap);
      check(row);
      if (testing::Test::HasFatalFailure()) return;
    } while (std::next_permutation(destination.begin(), destination.end()));
  } while (std::next_permutation(source.begin(), source.end()));
}

TEST(TransposedViews, PermutedAxes) {
  check_orders({9, 17, 33}, 0);
  check_orders({2, 70, 3}, 1);
  check_orders({300, 2, 2}, 0);
  check_orders({3, 5, 400}, 0);
}

TEST(TransposedViews, PlanarAndInterleavedImages) {
  using enum ElementType;
  const Dims extents = {2, 3, 33, 20};
  for (ElementType element : {u8, f16, f32}) {
    for (const auto& order : {std::vector{1, 3, 2, 0}, std::vector{3, 2, 0, 1}}) {
      Case row = transposed_sum(element, element, f32, extents);
      row.tensors[1].strides = strides_in_order(extents, order);
      check(row);
      std::swap(row.tensors[1].strides, row.tensors[2].strides);
      check(row);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(TransposedViews, BesideBroadcasts) {
  const std::string text = R"(func @f(%x: f32[?a, ?b], %r: f32[1, ?b], %c: u8[?a, 1], %s: f32[1, 1],
        %k: f32[?n, ?a, ?b]) -> (f32[?n, ?a, ?b]) {
  %u = add %x, %r
  %d = convert %c : f32
  %v = mul %u, %d
  %w = max %v, %s
  %z = sub %w, %k
  return %z
}
)";
  for (const Dims& extents : {Dims{3, 20, 150}, Dims{2, 7, 9}, Dims{1, 65, 40}}) {
    const int64_t a = extents[1];
    const int64_t b = extents[2];
    Case row = {text,
                {{ElementType::f32, {a, b}, {1, a + 2}},
                 {ElementType::f32, {1, b}, {b, 1}},
                 {ElementType::u8, {a, 1}, {1, 1}},
                 {ElementType::f32, {1, 1}, {1, 1}},
                 {ElementType::f32, extents, dense_strides(extents)},
                 {ElementType::f32, extents, dense_strides(extents)}}};
    check(row);
    row.tensors[4].strides = {a * b, 1, a};
    check(row);
    if (HasFatalFailure()) return;
  }
}

TEST(TransposedViews, InPlaceOfTheDenseInput) {
  for (ElementType element : {ElementType::u8, ElementType::f32, ElementType::f64}) {
    Case row = transposed_sum(element, element, element, {70, 300});
    row.in_place = true;
    check(row);
    if (HasFatalFailure()) return;
  }
}

TEST(TransposedViews, EveryOtherElement) {
  using enum ElementType;
  for (ElementType element : {u8, f16, f32, f64}) {
    for (int64_t stride : {2, 3, 4, 5, 100}) {
      for (int64_t size : {1, 2, 3, 5, 16, 31, 64, 65, 200, 391}) {
        Case row = transposed_sum(element, element, element, {size});
        row.tensors[1].strides = {stride};
        check(row);
        row.tensors[2].strides = {stride};
        check(row);
        row.tensors[1].strides = {1};
        check(row);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(TransposedViews, StridedRows) {
  using enum ElementType;
  for (ElementType x : {u8, i16, f32, i64}) {
    for (ElementType z : {u8, f16, i32, f64}) {
      Case row = transposed_sum(x, x, z, {5, 83});
      row.tensors[0].strides = strides_in_order({5, 83}, {1, 0}, 1);
      row.tensors[1].strides = strides_in_order({5, 83}, {0, 1}, 2);
      check(row);
      row.tensors[2].strides = strides_in_order({5, 83}, {1, 0}, 2);
      check(row);
      if (HasFatalFailure()) return;
    }
  }
}

/// Streamed rows of tiles, from outputs at any element.
TEST(TransposedViews, AreStreamed) {
  const Dims extents = {530, 700};
  for (int64_t offset : {0, 1, 13}) {
    Case row = transposed_sum(ElementType::f32, ElementType::f32, ElementType::f32, extents);
    row.tensors[2].offset = offset;
    row.stores = StorePolicy::streaming;
    check(row);
    if (HasFatalFailure()) return;
  }
  Case strided = transposed_sum(ElementType::f64, ElementType::f32, ElementType::f32, {700'000});
  strided.tensors[0].strides = {2};
  strided.stores = StorePolicy::streaming;
  check(strided);
  const Runtime& runtime = test::elementwise_tier_runtimes().back().second;
  const Kernel kernel =
      *runtime.compile(sum_of(ElementType::f32, ElementType::f32, ElementType::f32, 2));
  const Dims dense = dense_strides(extents);
  const std::vector<Dims> strides = {dense, {1, extents[0]}, dense};
  const BoundKernel bound = *kernel.bind(std::vector<Dims>(2, extents), strides);
  EXPECT_NE(step_of(bound).streaming, nullptr);
}

}  // namespace
}  // namespace castor
