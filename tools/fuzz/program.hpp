// SPDX-License-Identifier: Apache-2.0
// A program of the fuzzer: a function with one set of shapes, layouts and data, as plain values
// that the generator draws and the minimiser takes apart.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>
#include "ir/storage.hpp"

#include "ir/function.hpp"

namespace castor::fuzz {

/// One dimension of an input as its type writes it.
struct AxisSpec {
  enum class Kind : uint8_t { fixed, any, named };
  Kind kind = Kind::fixed;
  int64_t extent = 1;  ///< unless named
  size_t name = 0;     ///< index into Program::named_sizes
};

/// Where a tensor lies in its guarded pages.
struct Placement {
  Dims strides;
  int64_t offset = 0;  ///< of the view, in elements
  bool at_end = true;  ///< against the inaccessible page behind, else the one in front
  int64_t shift = 0;   ///< bytes between the tensor and that page
  bool spare = false;  ///< the view's `bytes` include those, where they lie behind
  /// Of a tensor close to the page in front: that page holds everything in front of the first
  /// element's first byte, the view's beginning included.
  bool hides_front = false;
};

/// Where the patterns of a tensor's elements (and of what lies between them) come from.
struct DataSpec {
  enum class Kind : uint8_t {
    boundary,  ///< drawn from samples::boundary_patterns
    random,    ///< samples::random_patterns
    same,      ///< `pattern` everywhere
  };
  Kind kind = Kind::random;
  uint64_t seed = 0;
  uint64_t pattern = 0;
};

struct InputSpec {
  ElementType element = ElementType::f32;
  std::vector<AxisSpec> axes;
  Placement place;
  DataSpec data;
};

/// A constant written as literals.
struct ConstantSpec {
  ElementType element = ElementType::f32;
  Dims shape;
  std::vector<uint64_t> patterns;
};

struct ConvertSpec {
  size_t operand = 0;
  ElementType to = ElementType::f32;
  ConvertOptions options;
};

struct ResultSpec {
  static constexpr int nowhere = -1;

  size_t value = 0;
  bool declares_unknowns = false;  ///< the signature writes `?` for every dimension
  int in_place_of = nowhere;       ///< the input whose memory it takes, and whose placement
  /// The result before it with whose elements its own alternate, in that result's memory. Both then
  /// have strides of their own, and `place` without strides (see Program::placement_of).
  int interleaved_with = nowhere;
  Placement place;
};

/// A call that must be refused, before the one that must not.
struct BadCall {
  enum class Kind : uint8_t {
    none,
    shape,    ///< of the view, not as bound
    bytes,    ///< one too few
    overlap,  ///< a result that begins where another tensor does
    null,     ///< no data
  };
  Kind kind = Kind::none;
  size_t tensor = 0;  ///< that is wrong: an input, or behind the inputs a result
  size_t other = 0;   ///< overlap: the tensor that it lies on
};

/// Values are numbered: inputs, then constants, then conversions.
struct Program {
  uint64_t seed = 0;  ///< that it was drawn from
  std::vector<InputSpec> inputs;
  std::vector<ConstantSpec> constants;
  std::vector<ConvertSpec> conversions;
  std::vector<ResultSpec> results;
  std::array<int64_t, 3> named_sizes = {};  ///< of ?a, ?b, ?c
  bool streams = false;                     ///< asks for stores past the caches
  BadCall bad_call;

  size_t first_conversion() const { return inputs.size() + constants.size(); }
  size_t value_count() const { return first_conversion() + conversions.size(); }
  ElementType element_of(size_t value) const;
  /// The input or constant that a value is computed from.
  size_t root_of(size_t value) const;
  Dims shape_of(size_t value) const;
  /// Where a result lies: where it says, where the input lies whose memory it takes, or alternating
  /// with another result.
  Placement placement_of(size_t result) const;
  /// The result that alternates with this one behind it, or nothing.
  std::optional<size_t> interleaved_behind(size_t result) const;
};

/// Whether results of `a` may take the memory of `b`: elements are as wide and lie alike.
constexpr bool are_stored_alike(ElementType a, ElementType b) {
  return bits_of(a) == bits_of(b) && info(a).order == info(b).order;
}

/// The function of a program; fails where the program makes no sense, which the generator's never
/// do.
Result<FunctionPtr> build_function(const Program& program);

}  // namespace castor::fuzz
