// SPDX-License-Identifier: Apache-2.0
// Dimensions, shapes and concrete extents.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/support/export.hpp"
#include "ir/support/result.hpp"
#include "ir/types/element_type.hpp"
#include "ir/types/quantization.hpp"

namespace castor {

/// Tensors have at most this many dimensions.
inline constexpr int max_rank = 16;

/// Up to `max_rank` numbers held in place: extents, strides or coordinates of one tensor. Of more,
/// the first max_rank + 1 are kept, and every check refuses the rank.
class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<int64_t> values) : Dims(std::span(values.begin(), values.size())) {}
  explicit Dims(std::span<const int64_t> values) {
    for (int64_t value : values) push_back(value);
  }
  /// `rank` copies of `value`.
  static Dims filled(int rank, int64_t value) {
    Dims dims;
    for (int i = 0; i < rank; ++i) dims.push_back(value);
    return dims;
  }

  int rank() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  int64_t& operator[](int axis) { return values_[axis]; }
  int64_t operator[](int axis) const { return values_[axis]; }
  /// Appends one number; nothing when there are max_rank + 1.
  void push_back(int64_t value) {
    if (rank_ <= max_rank) values_[rank_++] = value;
  }
  const int64_t* begin() const { return values_; }
  const int64_t* end() const { return values_ + rank_; }
  int64_t* begin() { return values_; }
  int64_t* end() { return values_ + rank_; }
  friend bool operator==(const Dims& a, const Dims& b) {
    return a.rank_ == b.rank_ && std::equal(a.begin(), a.end(), b.begin());
  }

 private:
  int64_t values_[max_rank + 1];  // only the first rank_ are ever read
  uint8_t rank_ = 0;
};

/// "[2, 3]".
CASTOR_API std::string to_string(const Dims& dims);

/// One dimension of a tensor type: a number, `?`, or a named unknown `?n`.
struct Dim {
  static constexpr int64_t unknown_extent = -1;

  int64_t extent = unknown_extent;
  std::string name;  ///< name of a named unknown, without the question mark; else empty

  Dim() = default;
  template <std::integral Int>
  Dim(Int fixed) : extent(static_cast<int64_t>(fixed)) {}
  /// An unknown from text: "?" or "?name".
  Dim(const char* unknown) : name(unknown[0] == '?' ? unknown + 1 : unknown) {}
  static Dim any() { return {}; }
  static Dim named(std::string name) {
    Dim dim;
    dim.name = std::move(name);
    return dim;
  }

  bool is_fixed() const { return extent != unknown_extent; }
  friend bool operator==(const Dim&, const Dim&) = default;
};

using Shape = std::vector<Dim>;

/// "[1, 64, ?h, ?]".
CASTOR_API std::string to_string(const Shape& shape);
CASTOR_API Shape to_shape(const Dims& extents);
CASTOR_API bool is_fixed(const Shape& shape);

/// The number of elements, or nothing when it exceeds 2^63 - 1. A zero-sized dimension gives 0
/// whatever the others are.
CASTOR_API std::optional<int64_t> element_count(const Dims& extents);
/// ceil(count * bits / 8), for the split layouts whole groups of 3 bytes; nothing when it exceeds
/// 2^63 - 1.
CASTOR_API std::optional<int64_t> byte_size(ElementType type, int64_t count);

/// Element strides of a dense row-major tensor; a zero-sized tensor gets the strides that its
/// extents would have with 1 in place of 0 (INT64_MAX where that overflows).
CASTOR_API Dims dense_strides(const Dims& extents);

/// A quantization that types share, or null: plain elements.
using QuantizationPtr = std::shared_ptr<const Quantization>;
/// Whether both are the same, by value.
CASTOR_API bool same_quantization(const QuantizationPtr& a, const QuantizationPtr& b);

/// An element type with a shape: the type of an IR value. A quantized tensor's elements are those
/// of its format's container.
struct TensorType {
  ElementType element = ElementType::f32;
  Shape shape;
  QuantizationPtr quantization{};
  friend bool operator==(const TensorType& a, const TensorType& b) {
    return a.element == b.element && a.shape == b.shape &&
           same_quantization(a.quantization, b.quantization);
  }
};

/// The type of a quantized tensor.
CASTOR_API TensorType quantized_type(Quantization quantization, Shape shape);

/// "f32", "fx8<frac = 7>".
CASTOR_API std::string element_text(const TensorType& type);
/// "f32[1, ?n]", "fx8<frac = 7>[2]".
CASTOR_API std::string to_string(const TensorType& type);

}  // namespace castor
