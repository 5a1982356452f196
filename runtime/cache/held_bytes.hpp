// SPDX-License-Identifier: Apache-2.0
// How many bytes of memory objects hold, those of the allocator among them.
#pragma once

#include <unordered_set>
#include <vector>

#include "ir/function.hpp"
#include "runtime/cache/block_bytes.hpp"

namespace castor {

namespace detail {
struct KernelState;
}  // namespace detail

namespace jit {
struct Nest;
}  // namespace jit

/// Counts what objects hold. What several share, constants, parameters of quantization, code,
/// counts once.
class HeldBytes {
 public:
  void add(const Function& function);
  /// With the function, the canonical one, nests and code.
  void add(const detail::KernelState& kernel);

  size_t bytes() const { return bytes_; }

 private:
  template <class T>
  void add_block(const std::vector<T>& elements) {
    bytes_ += block_bytes(elements.capacity() * sizeof(T));
  }
  void add_block(const std::string& text) { bytes_ += block_bytes(text); }
  /// Whether the object was not counted yet; null never is.
  bool is_new(const void* shared) { return shared != nullptr && counted_.insert(shared).second; }

  void add(const Shape& shape);
  void add(const TensorType& type);
  void add(const AttributeValue& value);
  void add(const Attributes& attributes);
  void add(const Operation& operation);
  void add(const jit::Nest& nest);

  size_t bytes_ = 0;
  std::unordered_set<const void*> counted_;
};

/// The function, or, where the names in it hold more than everything else, a copy with numbers for
/// names: what a cache keeps, which compares functions by what they compute.
FunctionPtr without_long_names(const FunctionPtr& function);

}  // namespace castor
