// SPDX-License-Identifier: Apache-2.0
// A whole function on tensors between guard pages: the interpreter's result once, then machine code
// on every tier, byte for byte.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/interpreter/interpreter.hpp"
#include "ir/shape/convolution.hpp"
#include "ir/verify/infer.hpp"
#include "tests/support/conversions.hpp"
#include "tools/testing/guarded_pages.hpp"

namespace castor::test {

/// One tensor's layout in memory; no strides: dense.
struct Layout {
  static constexpr int64_t line = 64;  ///< bytes

  Dims shape;
  Dims strides = {};
  int64_t offset = 0;
  /// Bytes from the beginning of a cache line to the memory's; nothing: it touches a page's end.
  std::optional<int64_t> line_offset = {};

  Dims steps() const { return strides.empty() ? dense_strides(shape) : strides; }
  /// Elements from the beginning of the memory to the last one, included.
  size_t span() const {
    int64_t last = offset;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis] == 0) return 0;
      last += (shape[axis] - 1) * steps()[axis];
    }
    return static_cast<size_t>(last + 1);
  }
};

/// Memory of one tensor, against the page after it or the one before it.
class GuardedTensor {
 public:
  GuardedTensor(ElementType element, const Layout& layout, bool at_end)
      : element_(element),
        layout_(layout),
        bytes_(samples::storage_bytes(element, layout.span())),
        pages_(std::make_unique<GuardedPages>(bytes_ + Layout::line)),
        data_(at_end ? pages_->at_end(bytes_) : pages_->at_begin()) {
    if (layout.line_offset) data_ = in_line(data_, *layout.line_offset, at_end);
    pages_->fill(filler);
  }

  void fill(uint64_t seed) {
    const std::vector<uint64_t> random =
        samples::random_patterns(element_, layout_.span(), 2 * seed);
    const std::vector<uint64_t> boundary = samples::boundary_patterns(element_);
    for (size_t i = 0; i < layout_.span(); ++i) {
      const bool rare = (i + seed) % 3 == 0;
      const size_t at = (i * 7919 + seed * 104729) % boundary.size();
      samples::store_pattern(bytes(), element_, i, rare ? boundary[at] : random[i]);
    }
  }

  std::span<std::byte> bytes() { return {data_, bytes_}; }
  std::span<const std::byte> bytes() const { return {data_, bytes_}; }
  View view() const {
    return {data_, element_, layout_.shape, layout_.steps(), layout_.offset, bytes_};
  }
  /// Whether nothing but the tensor's own bytes was written.
  bool is_clean_around() const { return pages_->is_filled_but({data_, bytes_}, filler); }

 private:
  static constexpr std::byte filler{0xc5};

  /// The closest address so far from the beginning of a line, away from the page.
  static std::byte* in_line(std::byte* from, int64_t line_offset, bool backward) {
    const int64_t too_far = static_cast<int64_t>(reinterpret_cast<uintptr_t>(from)) - line_offset;
    return backward ? from - (too_far & (Layout::line - 1))
                    : from + (-too_far & (Layout::line - 1));
  }

  ElementType element_;
  Layout layout_;
  size_t bytes_;
  std::unique_ptr<GuardedPages> pages_;
  std::byte* data_;
};

/// One function and its tensors: layouts of the inputs, and, unless dense, of the outputs.
struct FunctionCase {
  std::string text;
  std::vector<Layout> inputs;
  std::vector<Layout> outputs = {};
};

/// Tensors of a case, with data that depends on the seed alone.
class CaseTensors {
 public:
  CaseTensors(const Function& function, const FunctionCase& row, uint64_t seed, bool at_end) {
    std::vector<Dims> shapes;
    for (size_t i = 0; i < row.inputs.size(); ++i) {
      inputs_.emplace_back(function.type_of(function.parameters[i]).element, row.inputs[i], at_end)
          .fill(seed + i);
      shapes.push_back(row.inputs[i].shape);
    }
    const Result<BoundShapes> bound = bind_shapes(function, shapes);
    if (!bound) throw std::runtime_error(bound.error().message);
    for (size_t i = 0; i < function.results.size(); ++i) {
      const Layout layout =
          row.outputs.empty() ? Layout{bound->values[function.results[i]]} : row.outputs[i];
      outputs_.emplace_back(function.type_of(function.results[i]).element, layout, at_end);
    }
  }

  std::vector<ConstView> inputs() {
    std::vector<ConstView> views;
    for (GuardedTensor& tensor : inputs_) views.push_back(tensor.view());
    return views;
  }
  std::vector<View> outputs() {
    std::vector<View> views;
    for (GuardedTensor& tensor : outputs_) views.push_back(tensor.view());
    return views;
  }
  std::vector<GuardedTensor>& output_tensors() { return outputs_; }

 private:
  std::vector<GuardedTensor> inputs_;
  std::vector<GuardedTensor> outputs_;
};

/// Runs a case in the interpreter and on every tier; any difference fails the running test.
inline void check_function(const FunctionCase& row, uint64_t seed = 1) {
  const Result<FunctionPtr> function = parse_function(row.text);
  ASSERT_TRUE(function.ok()) << function.error().message << "\n" << row.text;
  CaseTensors expected(**function, row, seed, true);
  const Status interpreted = interpret(**function, expected.inputs(), expected.outputs());
  ASSERT_TRUE(interpreted.ok()) << interpreted.error().message;
  const auto& runtimes =
      has_convolutions(**function) ? tier_runtimes() : elementwise_tier_runtimes();
  for (const auto& [tier, runtime] : runtimes) {
    for (const bool at_end : {true, false}) {
      CaseTensors actual(**function, row, seed, at_end);
      const Result<Kernel> kernel = runtime.compile(*function);
      ASSERT_TRUE(kernel.ok()) << kernel.error().message;
      ASSERT_EQ(kernel->engine(), Engine::jit) << kernel->engine_reason();
      const Result<BoundKernel> bound = kernel->bind(actual.inputs(), actual.outputs());
      ASSERT_TRUE(bound.ok()) << bound.error().message;
      ASSERT_EQ(bound->engine(), Engine::jit) << bound->engine_reason();
      const Status status = bound->run(actual.inputs(), actual.outputs());
      ASSERT_TRUE(status.ok()) << status.error().message;
      for (size_t i = 0; i < actual.output_tensors().size(); ++i) {
        GuardedTensor& found = actual.output_tensors()[i];
        ASSERT_TRUE(std::ranges::equal(found.bytes(), expected.output_tensors()[i].bytes()))
            << name_of(tier) << ", output " << i << " of\n"
            << row.text << "inputs of " << to_string(row.inputs[0].shape) << " ...";
        ASSERT_TRUE(found.is_clean_around()) << name_of(tier) << "\n" << row.text;
      }
    }
  }
}

}  // namespace castor::test
