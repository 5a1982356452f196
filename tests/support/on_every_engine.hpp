// SPDX-License-Identifier: Apache-2.0
// A function of one result on dense tensors: in the interpreter, and through a runtime of every
// tier, whose machine code must compute it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "tests/support/conversions.hpp"
#include "tests/support/interpreted.hpp"
#include "tools/testing/guarded_pages.hpp"

namespace castor::test {

/// The first element that differs, or nothing.
inline std::string first_difference(const Patterns& expected, const Patterns& actual) {
  if (expected.type != actual.type || expected.shape != actual.shape) {
    return fmt::format("found {}{}, expected {}{}", name_of(actual.type), to_string(actual.shape),
                       name_of(expected.type), to_string(expected.shape));
  }
  for (size_t i = 0; i < expected.elements.size(); ++i) {
    if (expected.elements[i] == actual.elements[i]) continue;
    return fmt::format("element {} of {}: found 0x{:x}, expected 0x{:x}", i,
                       to_string(expected.shape), actual.elements[i], expected.elements[i]);
  }
  return {};
}

/// A dense tensor that ends at a guard page.
class GuardedPatterns {
 public:
  GuardedPatterns(ElementType type, const Dims& shape)
      : type_(type),
        shape_(shape),
        count_(static_cast<size_t>(element_count(shape).value())),
        bytes_(samples::storage_bytes(type, count_)),
        pages_(std::make_unique<GuardedPages>(std::max<size_t>(bytes_, 1))) {
    pages_->fill(filler);
  }
  explicit GuardedPatterns(const Patterns& source) : GuardedPatterns(source.type, source.shape) {
    std::ranges::copy(samples::pack(type_, source.elements), pages_->at_end(bytes_));
  }

  View view() { return {pages_->at_end(bytes_), type_, shape_, bytes_}; }
  Patterns patterns() {
    Patterns found{type_, shape_, {}};
    const std::span<const std::byte> bytes{pages_->at_end(bytes_), bytes_};
    for (size_t i = 0; i < count_; ++i) {
      found.elements.push_back(samples::load_pattern(bytes, type_, i));
    }
    return found;
  }
  /// Whether nothing but the tensor's own bytes was written.
  bool is_clean_around() const {
    return pages_->is_filled_but({pages_->at_end(bytes_), bytes_}, filler);
  }

 private:
  static constexpr std::byte filler{0xc5};

  ElementType type_;
  Dims shape_;
  size_t count_;
  size_t bytes_;
  std::unique_ptr<GuardedPages> pages_;
};

/// What is wrong with what a runtime gives for the function; empty if nothing.
inline std::string mistake_of(const Runtime& runtime, const FunctionPtr& function,
                              const std::vector<Patterns>& operands, const Patterns& expected) {
  std::vector<GuardedPatterns> sources;
  std::vector<ConstView> inputs;
  for (const Patterns& operand : operands) {
    inputs.emplace_back(sources.emplace_back(operand).view());
  }
  GuardedPatterns result(expected.type, expected.shape);
  const std::vector<View> outputs = {result.view()};
  const Result<Kernel> kernel = runtime.compile(function);
  if (!kernel) return kernel.error().to_string();
  const Result<BoundKernel> bound = kernel->bind(inputs, outputs);
  if (!bound) return bound.error().to_string();
  if (bound->engine() != Engine::jit) return "interpreted: " + std::string(kernel->engine_reason());
  if (const Status status = bound->run(inputs, outputs); !status) return status.error().to_string();
  if (!result.is_clean_around()) return "wrote outside the result";
  return first_difference(expected, result.patterns());
}

/// Compares the interpreter's result and every tier's with the expected one; empty if all are
/// equal.
inline std::string mistake_anywhere(const FunctionPtr& function,
                                    const std::vector<Patterns>& operands,
                                    const Patterns& expected) {
  std::string mistake = first_difference(expected, interpreted(*function, operands));
  if (!mistake.empty()) return "interpreter: " + mistake;
  for (const auto* runtimes : {&tier_runtimes(), &other_form_runtimes()}) {
    for (const auto& [tier, runtime] : *runtimes) {
      mistake = mistake_of(runtime, function, operands, expected);
      if (!mistake.empty()) return fmt::format("{}: {}", name_of(tier), mistake);
    }
  }
  return {};
}

}  // namespace castor::test
