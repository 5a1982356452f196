// SPDX-License-Identifier: Apache-2.0
// Calls whose inputs and outputs interleave in one buffer without sharing a byte, on every tier and
// in the interpreter, by one task and by several: the elements are those of a call with buffers of
// its own, and every byte between them stays as it was.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "ir/types/storage.hpp"
#include "tests/support/conversions.hpp"
#include "tests/support/sample_bytes.hpp"
#include "tools/testing/executors.hpp"
#include "tools/testing/guarded_pages.hpp"
#include "tools/testing/thread_per_task.hpp"

namespace castor {
namespace {

using enum ElementType;

/// One tensor of a call, in the buffer that all share.
struct Placed {
  ElementType element;
  Dims strides;
  int64_t byte = 0;    ///< the buffer's byte at which the view begins
  int64_t offset = 0;  ///< in elements
};

/// Tensors of one shape that share no byte, inputs first.
struct Layout {
  Dims shape;
  std::vector<Placed> inputs;
  std::vector<Placed> outputs;
};

/// Calls visit(element index from the view's beginning) for each element in row-major order.
template <class Visit>
void for_each_element(const Dims& shape, const Placed& tensor, const Visit& visit) {
  const int64_t count = element_count(shape).value();
  for (int64_t i = 0; i < count; ++i) {
    int64_t left = i;
    int64_t at = tensor.offset;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      at += left % shape[axis] * tensor.strides[axis];
      left /= shape[axis];
    }
    visit(static_cast<size_t>(at));
  }
}

/// One past the last byte of the tensor.
size_t end_of(const Dims& shape, const Placed& tensor) {
  size_t last = 0;
  for_each_element(shape, tensor, [&](size_t at) { last = std::max(last, at); });
  return static_cast<size_t>(tensor.byte) + samples::storage_bytes(tensor.element, last + 1);
}

/// Bytes of the buffer with bits of elements, of split groups all three.
std::set<int64_t> bytes_touched(const Dims& shape, const Placed& tensor) {
  const bool is_split = info(tensor.element).order == StorageOrder::split;
  std::set<int64_t> bytes;
  for_each_element(shape, tensor, [&](size_t at) {
    for (int bit = 0; bit < bits_of(tensor.element); ++bit) {
      const int64_t byte = storage_bit(tensor.element, static_cast<int64_t>(at), bit) / 8;
      const int64_t first = is_split ? byte / 3 * 3 : byte;
      for (int64_t i = first; i < first + (is_split ? 3 : 1); ++i) bytes.insert(tensor.byte + i);
    }
  });
  return bytes;
}

size_t buffer_bytes(const Layout& layout) {
  size_t bytes = 0;
  for (const Placed& tensor : layout.inputs) bytes = std::max(bytes, end_of(layout.shape, tensor));
  for (const Placed& tensor : layout.outputs) bytes = std::max(bytes, end_of(layout.shape, tensor));
  return bytes;
}

/// The tensor's part of the buffer.
std::span<std::byte> bytes_of(std::span<std::byte> buffer, const Placed& tensor) {
  return buffer.subspan(static_cast<size_t>(tensor.byte));
}

View view_of(std::span<std::byte> buffer, const Layout& layout, const Placed& tensor) {
  const std::span<std::byte> bytes = bytes_of(buffer, tensor);
  return {bytes.data(),  tensor.element,
          layout.shape,  tensor.strides,
          tensor.offset, end_of(layout.shape, tensor) - static_cast<size_t>(tensor.byte)};
}

/// A function of parameters and results of those types: result o is parameter o % inputs,
/// converted.
FunctionPtr conversions(const Layout& layout) {
  FunctionBuilder builder("convert");
  std::vector<ValueId> parameters;
  const Shape shape(static_cast<size_t>(layout.shape.rank()), Dim::any());
  for (const Placed& input : layout.inputs) {
    parameters.push_back(builder.parameter("", {input.element, shape}));
  }
  for (size_t o = 0; o < layout.outputs.size(); ++o) {
    builder.result(builder.convert(parameters[o % parameters.size()], layout.outputs[o].element));
  }
  return std::move(builder.finish()).value();
}

/// The last byte's unused bits become 0 in a dense output that begins at element 0.
bool clears_unused_bits(const Dims& shape, const Placed& output) {
  const Dims dense = dense_strides(shape);
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] > 1 && output.strides[axis] != dense[axis]) return false;
  }
  return output.offset == 0;
}

/// What the buffer must be after the call: each output's elements computed one by one.
std::vector<std::byte> expected_buffer(const Layout& layout, std::span<const std::byte> before) {
  std::vector<std::byte> source(before.begin(), before.end());
  std::vector<std::byte> expected = source;
  for (size_t o = 0; o < layout.outputs.size(); ++o) {
    const Placed& from = layout.inputs[o % layout.inputs.size()];
    const Placed& to = layout.outputs[o];
    std::vector<uint64_t> patterns;
    for_each_element(layout.shape, from, [&](size_t at) {
      const uint64_t in = samples::load_pattern(bytes_of(source, from), from.element, at);
      patterns.push_back(numerics::convert(in, from.element, to.element, {}));
    });
    if (clears_unused_bits(layout.shape, to)) {
      const size_t bytes = end_of(layout.shape, to) - static_cast<size_t>(to.byte);
      std::ranges::fill(bytes_of(expected, to).first(bytes), std::byte{0});
    }
    size_t i = 0;
    for_each_element(layout.shape, to, [&](size_t at) {
      samples::store_pattern(bytes_of(expected, to), to.element, at, patterns[i++]);
    });
  }
  return expected;
}

std::string in_words(const Layout& layout) {
  std::string words = to_string(layout.shape);
  for (const auto* tensors : {&layout.inputs, &layout.outputs}) {
    words += tensors == &layout.inputs ? ":" : " ->";
    for (const Placed& tensor : *tensors) {
      words += fmt::format(" {}{} at byte {} + {}", name_of(tensor.element),
                           to_string(tensor.strides), tensor.byte, tensor.offset);
    }
  }
  return words;
}

/// Runs the call in a buffer between guard pages, and compares all of it.
void check(const BoundKernel& kernel, const Layout& layout, Executor* executor,
           const std::string& what) {
  const size_t size = buffer_bytes(layout);
  test::GuardedPages pages(size);
  const std::span<std::byte> buffer(pages.at_end(size), size);
  test::fill_with_samples(buffer, 11);
  const std::vector<std::byte> expected = expected_buffer(layout, buffer);
  std::vector<ConstView> inputs;
  std::vector<View> outputs;
  for (const Placed& tensor : layout.inputs) inputs.emplace_back(view_of(buffer, layout, tensor));
  for (const Placed& tensor : layout.outputs) outputs.push_back(view_of(buffer, layout, tensor));
  RunOptions options;
  options.executor = executor;
  const Status status = kernel.run(inputs, outputs, options);
  ASSERT_TRUE(status.ok()) << what << ' ' << in_words(layout) << ": " << status.error().message;
  for (size_t i = 0; i < size; ++i) {
    ASSERT_EQ(buffer[i], expected[i]) << what << ", byte " << i << " of " << in_words(layout);
  }
}

Result<BoundKernel> bind_layout(const Runtime& runtime, const FunctionPtr& function,
                                const Layout& layout) {
  const Result<Kernel> kernel = runtime.compile(function);
  if (!kernel) return kernel.error();
  std::vector<Dims> shapes;
  std::vector<Dims> strides;
  for (const Placed& tensor : layout.inputs) {
    shapes.push_back(layout.shape);
    strides.push_back(tensor.strides);
  }
  for (const Placed& tensor : layout.outputs) strides.push_back(tensor.strides);
  return kernel->bind(shapes, strides);
}

const Runtime& interpreter() {
  static const Runtime runtime = [] {
    RuntimeOptions options;
    options.interpret = true;
    return std::move(Runtime::create(options)).value();
  }();
  return runtime;
}

void check_everywhere(const Layout& layout) {
  const FunctionPtr function = conversions(layout);
  const auto check_with = [&](const Runtime& runtime, const std::string& what) {
    const Result<BoundKernel> kernel = bind_layout(runtime, function, layout);
    ASSERT_TRUE(kernel.ok()) << in_words(layout) << ": " << kernel.error().message;
    ASSERT_NO_FATAL_FAILURE(check(*kernel, layout, nullptr, what));
    for (int tasks : {2, 5}) {
      test::Backwards backwards(tasks);
      ASSERT_NO_FATAL_FAILURE(
          check(*kernel, layout, &backwards, fmt::format("{}, {} tasks", what, tasks)));
    }
  };
  for (const auto& [tier, runtime] : test::elementwise_tier_runtimes()) {
    ASSERT_NO_FATAL_FAILURE(check_with(runtime, std::string(name_of(tier))));
  }
  ASSERT_NO_FATAL_FAILURE(check_with(interpreter(), "interpreter"));
}

/// Bytes of `count` elements, which must be whole bytes.
int64_t whole_bytes(ElementType element, int64_t count) {
  return static_cast<int64_t>(samples::storage_bytes(element, static_cast<size_t>(count)));
}

/// The least count, of at least `count`, after which a whole byte, or group, begins.
int64_t rounded(ElementType element, int64_t count) {
  const int64_t aligned = aligned_elements(element);
  return (count + aligned - 1) / aligned * aligned;
}

/// The stride in elements that steps over `bytes` bytes.
int64_t stride_over(ElementType element, int64_t bytes) {
  return bytes * aligned_elements(element) / whole_bytes(element, aligned_elements(element));
}

/// Bytes that are a whole number of units of both types.
int64_t common_bytes(ElementType a, ElementType b) {
  return std::lcm(whole_bytes(a, aligned_elements(a)), whole_bytes(b, aligned_elements(b)));
}

int64_t round_up(int64_t number, int64_t unit) { return (number + unit - 1) / unit * unit; }

/// Rows of both tensors by turns: [rows, columns], the source's row, then the destination's.
Layout alternating_rows(ElementType from, ElementType to, int64_t rows, int64_t columns,
                        int64_t gap) {
  const int64_t unit = common_bytes(from, to);
  const int64_t source = whole_bytes(from, rounded(from, columns));
  const int64_t row = round_up(round_up(source, whole_bytes(to, aligned_elements(to))) +
                                   whole_bytes(to, rounded(to, columns)) + gap,
                               unit);
  Layout layout;
  layout.shape = {rows, columns};
  layout.inputs = {{from, {stride_over(from, row), 1}, 0, 0}};
  layout.outputs = {{to, {stride_over(to, row), 1}, source, 0}};
  return layout;
}

/// Single elements of both tensors by turns, each at the beginning of bytes of its own.
Layout alternating_elements(ElementType from, ElementType to, int64_t count, int64_t gap,
                            bool destination_first) {
  const int64_t source = whole_bytes(from, 1);
  const int64_t destination = whole_bytes(to, 1);
  const int64_t of_source = info(from).order == StorageOrder::split ? 3 : source;
  const int64_t of_destination = info(to).order == StorageOrder::split ? 3 : destination;
  const int64_t step = round_up(of_source + of_destination + gap, common_bytes(from, to));
  Layout layout;
  layout.shape = {count};
  layout.inputs = {{from, {stride_over(from, step)}, destination_first ? of_destination : 0, 0}};
  layout.outputs = {{to, {stride_over(to, step)}, destination_first ? 0 : of_source, 0}};
  return layout;
}

/// One is contiguous along rows, the other along columns, of one matrix of pairs.
Layout transposed_pairs(ElementType from, ElementType to, int64_t rows, int64_t columns) {
  const Layout line = alternating_elements(from, to, rows * columns, 0, false);
  const int64_t in = line.inputs[0].strides[0];
  const int64_t out = line.outputs[0].strides[0];
  Layout layout = line;
  layout.shape = {rows, columns};
  layout.inputs[0].strides = {in * columns, in};
  layout.outputs[0].strides = {out, out * rows};
  return layout;
}

/// The types whose elements are stored each in their own way.
constexpr ElementType stored_types[] = {u1, u2_msb_first, u3,  i4,  u4,       u6,
                                        u8, f16,          i32, f64, u3_split, u6_split};

constexpr int64_t counts[] = {1, 3, 8, 17, 64, 131};

TEST(InterleavedCalls, RowsByTurns) {
  for (ElementType from : stored_types) {
    for (ElementType to : stored_types) {
      for (int64_t columns : counts) {
        for (int64_t gap : {0, 1}) {
          ASSERT_NO_FATAL_FAILURE(check_everywhere(alternating_rows(from, to, 5, columns, gap)));
        }
      }
    }
  }
}

TEST(InterleavedCalls, ElementsByTurns) {
  for (ElementType from : stored_types) {
    for (ElementType to : stored_types) {
      for (int64_t count : counts) {
        for (bool destination_first : {false, true}) {
          ASSERT_NO_FATAL_FAILURE(check_everywhere(
              alternating_elements(from, to, count, count % 2, destination_first)));
        }
      }
    }
  }
}

TEST(InterleavedCalls, TransposedElements) {
  for (ElementType from : {u4, u8, f16, i32, f64}) {
    for (ElementType to : {u4, i8, bf16, f32, u64}) {
      for (int64_t rows : {3, 16, 37}) {
        for (int64_t columns : {2, 16, 65}) {
          ASSERT_NO_FATAL_FAILURE(check_everywhere(transposed_pairs(from, to, rows, columns)));
        }
      }
    }
  }
}

/// The left half of a matrix into its right half, and back.
TEST(InterleavedCalls, HalvesOfAMatrix) {
  for (int64_t columns : {1, 4, 7, 33, 200}) {
    for (bool to_right : {true, false}) {
      Layout layout;
      layout.shape = {6, columns};
      layout.inputs = {{i8, {2 * columns, 1}, to_right ? 0 : columns, 0}};
      layout.outputs = {{u8, {2 * columns, 1}, to_right ? columns : 0, 0}};
      ASSERT_NO_FATAL_FAILURE(check_everywhere(layout));
    }
  }
}

/// Nibbles with their neighbours' bytes between them, from odd nibbles on, too.
TEST(InterleavedCalls, NibblesInBytesByTurns) {
  for (int64_t count : counts) {
    for (int64_t in_offset : {0, 1}) {
      for (int64_t out_offset : {0, 1}) {
        Layout layout;
        layout.shape = {count};
        layout.inputs = {{u4, {4}, 0, in_offset}};
        layout.outputs = {{i4, {4}, 1, out_offset}};
        ASSERT_NO_FATAL_FAILURE(check_everywhere(layout));
      }
    }
  }
}

/// Two inputs and three outputs as the fields of an array of structures.
TEST(InterleavedCalls, FieldsOfStructures) {
  for (int64_t count : counts) {
    Layout layout;
    layout.shape = {count};
    layout.inputs = {{f32, {6}, 0, 0}, {u8, {24}, 7, 0}};
    layout.outputs = {{f16, {12}, 4, 0}, {i32, {6}, 8, 0}, {u8, {24}, 6, 0}};
    ASSERT_NO_FATAL_FAILURE(check_everywhere(layout));
    layout.shape = {3, count};
    for (auto* tensors : {&layout.inputs, &layout.outputs}) {
      for (Placed& tensor : *tensors) {
        tensor.strides = {tensor.strides[0] * count, tensor.strides[0]};
      }
    }
    ASSERT_NO_FATAL_FAILURE(check_everywhere(layout));
  }
}

/// One tensor somewhere in a buffer of a few hundred bytes: axes in any order, with gaps.
Placed any_placed(ElementType element, const Dims& shape, std::mt19937_64& random) {
  const auto below = [&](uint64_t end) { return static_cast<int64_t>(random() % end); };
  std::vector<int> order(static_cast<size_t>(shape.rank()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, random);
  Placed placed = {element, Dims::filled(shape.rank(), 1), below(48), below(3) == 0 ? below(9) : 0};
  int64_t stride = below(2) == 0 ? 1 : 1 + below(4);
  for (int axis : order) {
    placed.strides[axis] = stride;
    stride = stride * shape[axis] + (below(2) == 0 ? 0 : below(40));
  }
  return placed;
}

TEST(InterleavedCalls, WhateverSharesNoByte) {
  std::mt19937_64 random(9);
  const auto any_type = [&] { return stored_types[random() % std::size(stored_types)]; };
  size_t interleaved = 0;
  for (int round = 0; round < 20000; ++round) {
    const auto extent = [&] { return static_cast<int64_t>(1 + random() % 12); };
    Layout layout;
    layout.shape = round % 2 == 0 ? Dims{extent(), extent()} : Dims{extent(), extent(), extent()};
    layout.inputs = {any_placed(any_type(), layout.shape, random)};
    layout.outputs = {any_placed(any_type(), layout.shape, random)};
    const std::set<int64_t> read = bytes_touched(layout.shape, layout.inputs[0]);
    const std::set<int64_t> written = bytes_touched(layout.shape, layout.outputs[0]);
    const bool is_apart =
        std::ranges::none_of(written, [&](int64_t byte) { return read.contains(byte); });
    if (!is_apart || *read.begin() > *written.rbegin() || *written.begin() > *read.rbegin()) {
      continue;
    }
    ASSERT_NO_FATAL_FAILURE(check_everywhere(layout)) << "round " << round;
    ++interleaved;
  }
  EXPECT_GT(interleaved, 500U);
}

/// Outputs whose rows alternate with each other's, written by several tasks at the same time; and
/// stores past the caches.
TEST(InterleavedCalls, LargeOutputsByThreads) {
  constexpr int64_t rows = 700;
  constexpr int64_t columns = 515;
  Layout layout;
  layout.shape = {rows, columns};
  constexpr int64_t row = 4096;
  layout.inputs = {{f32, {row / 4, 1}, 0, 0}};
  layout.outputs = {{u8, {row, 1}, 2060, 0}, {i16, {row / 2, 1}, 2576, 0}};
  const FunctionPtr function = conversions(layout);
  for (const auto& [tier, runtime] : test::elementwise_tier_runtimes()) {
    const Result<BoundKernel> kernel = bind_layout(runtime, function, layout);
    ASSERT_TRUE(kernel.ok());
    test::ThreadPerTask threads(4);
    ASSERT_NO_FATAL_FAILURE(check(*kernel, layout, &threads, std::string(name_of(tier))));
    EXPECT_EQ(threads.max(), 4);
  }
}

/// The result's pixels, or rows, between those of x.
void check_convolution(std::string_view text, const Dims& x_shape, const Dims& y_shape,
                       const Dims& x_strides, const Dims& y_strides, int64_t y_byte) {
  const Dims w_shape = {16, 24, 3, 3};
  std::vector<std::byte> weights(16 * 24 * 9);
  test::fill_with_samples(weights, 5);
  const ConstView w(weights.data(), i8, w_shape, weights.size());
  const Placed x = {u8, x_strides, 0, 0};
  const Placed y = {i32, y_strides, y_byte, 0};
  std::vector<std::byte> before(std::max(end_of(x_shape, x), end_of(y_shape, y)));
  test::fill_with_samples(before, 6);
  const Layout of_x = {x_shape, {x}, {}};
  const Layout of_y = {y_shape, {}, {y}};

  std::vector<std::byte> expected = before;
  std::vector<std::byte> dense(4 * static_cast<size_t>(element_count(y_shape).value()));
  const auto run = [&](const Runtime& runtime, std::span<std::byte> in, const View& out,
                       Executor* executor) {
    const ConstView inputs[] = {view_of(in, of_x, x), w};
    const View outputs[] = {out};
    const Result<Kernel> kernel = runtime.compile(text);
    ASSERT_TRUE(kernel.ok()) << kernel.error().message;
    const Result<BoundKernel> bound = kernel->bind(inputs, outputs);
    ASSERT_TRUE(bound.ok()) << bound.error().message;
    RunOptions options;
    options.executor = executor;
    const Status status = bound->run(inputs, outputs, options);
    ASSERT_TRUE(status.ok()) << status.error().message;
  };
  ASSERT_NO_FATAL_FAILURE(
      run(interpreter(), before, View(dense.data(), i32, y_shape, dense.size()), nullptr));
  size_t next = 0;
  for_each_element(y_shape, y, [&](size_t at) {
    std::copy_n(dense.begin() + static_cast<ptrdiff_t>(4 * next++), 4,
                expected.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(y.byte) + 4 * at));
  });
  for (const auto& [tier, runtime] : test::elementwise_tier_runtimes()) {
    for (int tasks : {1, 4}) {
      test::ThreadPerTask threads(tasks);
      std::vector<std::byte> buffer = before;
      ASSERT_NO_FATAL_FAILURE(run(runtime, buffer, view_of(buffer, of_y, y), &threads));
      ASSERT_EQ(buffer, expected) << name_of(tier) << ", " << tasks << " tasks";
    }
  }
}

TEST(InterleavedCalls, Convolutions) {
  constexpr int64_t height = 19;
  constexpr int64_t width = 23;
  constexpr int64_t pixel = 104;  // 24 channels of x, a gap, 16 channels of y, a gap
  ASSERT_NO_FATAL_FAILURE(check_convolution(
      "func @f(%x: u8[?, ?, ?, ?], %w: i8[16, 24, 3, 3]) -> i32[?, ?, ?, ?] {\n"
      "  %y = conv_integer %x, %w {layout = nhwc, pads = [1, 1, 1, 1]}\n  return %y\n}\n",
      {1, height, width, 24}, {1, height, width, 16}, {1, pixel * width, pixel, 1},
      {1, pixel / 4 * width, pixel / 4, 1}, 32));
  constexpr int64_t row = 120;  // 23 bytes of x, 92 of y
  ASSERT_NO_FATAL_FAILURE(
      check_convolution("func @f(%x: u8[?, ?, ?, ?], %w: i8[16, 24, 3, 3]) -> i32[?, ?, ?, ?] {\n"
                        "  %y = conv_integer %x, %w {pads = [1, 1, 1, 1]}\n  return %y\n}\n",
                        {1, 24, height, width}, {1, 16, height, width}, {1, row * height, row, 1},
                        {1, row / 4 * height, row / 4, 1}, 24));
}

/// Interleaved tensors through Runtime::convert.
TEST(InterleavedCalls, AreConverted) {
  std::vector<std::byte> buffer(16);
  test::fill_with_samples(buffer, 3);
  const Layout layout = {{2, 4}, {{i8, {8, 1}, 0, 0}}, {{i8, {8, 1}, 4, 0}}};
  const std::vector<std::byte> expected = expected_buffer(layout, buffer);
  for (const auto& [tier, runtime] : test::elementwise_tier_runtimes()) {
    const Status status = runtime.convert(view_of(buffer, layout, layout.inputs[0]),
                                          view_of(buffer, layout, layout.outputs[0]));
    ASSERT_TRUE(status.ok()) << status.error().message;
    EXPECT_EQ(buffer, expected) << name_of(tier);
  }
}

}  // namespace
}  // namespace castor
