// SPDX-License-Identifier: Apache-2.0
// What `castor check` feeds a function: shapes and element patterns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/function.hpp"

namespace castor::tools {

/// Where the elements of a case's inputs come from.
enum class Fill : uint8_t {
  boundary,  ///< samples::boundary_patterns, every pattern of types up to 16 bits
  random,    ///< samples::random_patterns
};

/// The layout of a tensor's elements.
enum class Layout : uint8_t {
  dense,
  padded,      ///< with gaps between rows
  transposed,  ///< the first axis is the closest
  spread,      ///< with gaps between elements
};
inline constexpr size_t layout_count = 4;

/// Element strides of a tensor of that shape.
Dims strides_of(Layout layout, const Dims& shape);

/// One set of inputs.
struct CheckCase {
  std::vector<Dims> shapes;  ///< shapes of the parameters
  Fill fill = Fill::boundary;
  uint64_t seed = 0;
  size_t first = 0;         ///< index of the first boundary pattern
  size_t misalignment = 0;  ///< elements between a 64-byte boundary and every tensor's beginning
  size_t start = 0;         ///< not 0: views of elements narrower than a byte have offsets
  Layout layout = Layout::dense;  ///< dense: of all tensors; else of the first, others have others

  Layout layout_of(size_t tensor) const {
    if (layout == Layout::dense) return layout;
    return static_cast<Layout>((static_cast<size_t>(layout) + tensor) % layout_count);
  }

  /// Elements from the first to the last one of a tensor of that shape (inputs, then outputs).
  size_t reach_of(size_t tensor, const Dims& shape) const;

  /// Elements before the first one of a tensor (inputs, then outputs), in its bytes.
  size_t start_of(size_t tensor, ElementType type) const {
    return is_sub_byte(type) && start != 0 ? (start + 3 * tensor) % 8 : 0;
  }
};

/// Cases for a function whose `?` dimensions may take any size: sizes of 0, 1, small odd numbers,
/// and vector multiples with both neighbours, alone and mixed; rows of few elements; extents of 1
/// in one dimension and in one parameter, which broadcast; sizes with their numbers of blocks for
/// operations that broadcast in blocks; and one size that holds all boundary patterns. Where none
/// of these fits, the extents that the function itself writes are tried. Each shape comes with both
/// fills, random ones with starts inside bytes and with gaps or transposed strides. Fixed shapes
/// are repeated until they have held all boundary patterns. Only shapes that bind; empty where none
/// does. A pure function of its arguments.
std::vector<CheckCase> plan_cases(const Function& function, uint64_t seed);

/// Makes the inputs of a function's cases.
class InputSource {
 public:
  /// `seed` shuffles the boundary patterns of every parameter but the first, so that two inputs
  /// meet in many combinations.
  InputSource(const Function& function, uint64_t seed);

  /// The dense bytes of parameter `index` (its index in Function::parameters).
  std::vector<std::byte> bytes(const CheckCase& test, size_t index) const;

 private:
  struct Parameter {
    ElementType type;
    std::vector<uint64_t> boundary;
    bool is_scale;  ///< a requantization's scale: positive numbers of 16 bits
  };
  std::vector<Parameter> parameters_;
};

/// "boundary patterns, shapes [1, 33]".
std::string describe(const CheckCase& test);

}  // namespace castor::tools
