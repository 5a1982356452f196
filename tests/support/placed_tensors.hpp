// SPDX-License-Identifier: Apache-2.0
// Tensors at various offsets and with various strides in guarded pages, and functions run on them
// by machine code.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "castor/castor.hpp"
#include "tests/support/interpreted.hpp"
#include "tools/testing/guarded_pages.hpp"

namespace castor::test {

/// A tensor's layout in its pages.
enum class Placing : uint8_t {
  at_end,      ///< dense, its last byte against the page after it
  at_begin,    ///< dense, its first byte against the page before it
  spaced,      ///< with gaps along every axis
  transposed,  ///< its axes in reverse order, without gaps
  exchanged,   ///< its last two axes exchanged, without gaps
  inside,      ///< as rows of a larger tensor, some elements after its beginning
};
inline constexpr int placings = 6;

/// A tensor and its memory. A result says what it must be, or, without elements, only its type
/// and shape.
struct Placed {
  Patterns tensor;
  Placing placing = Placing::at_end;
};

/// Memory for a tensor of whole bytes.
class PlacedTensor {
 public:
  PlacedTensor(ElementType type, const Dims& shape, Placing placing);
  explicit PlacedTensor(const Placed& source);

  View view();
  /// The elements. They are gone then: what is left must be what the memory held at first.
  Patterns take();
  /// After `take`: whether nothing but the tensor's elements was written.
  bool is_clean() const;

 private:
  template <class Visit>
  void for_each_element(Visit visit);

  ElementType type_;
  Dims shape_;
  Dims strides_;
  int64_t offset_ = 0;
  size_t bytes_ = 0;
  std::unique_ptr<GuardedPages> pages_;
  std::byte* data_ = nullptr;
};

/// Runs a function and puts the results' elements into `results`. Gives what went wrong, empty if
/// nothing did: an error, another engine than machine code, an input that has changed, memory
/// written outside a result.
std::string run_placed(const Runtime& runtime, const FunctionPtr& function,
                       const std::vector<Placed>& operands, std::vector<Placed>& results);

/// On every tier, with results as they must be.
std::string mistake_on_tiers(const FunctionPtr& function, const std::vector<Placed>& operands,
                             const std::vector<Placed>& expected);

/// All results of a function on these operands, by the interpreter; a failure fails the running
/// test.
std::vector<Patterns> interpreted_results(const Function& function,
                                          const std::vector<Patterns>& operands);

}  // namespace castor::test
