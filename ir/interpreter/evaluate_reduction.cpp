// SPDX-License-Identifier: Apache-2.0
// Reductions: groups of neighbouring axes, from the last to the first, each folded for itself.
#include <algorithm>

#include "ir/interpreter/evaluators.hpp"
#include "ir/numerics/float_ops.hpp"
#include "ir/numerics/integer_ops.hpp"
#include "ir/numerics/scalar.hpp"
#include "ir/shape/reduction.hpp"

namespace castor {

namespace {

using Elements = std::vector<uint64_t>;

constexpr uint64_t quiet_nan = 0x7fc00000;  // in f32, as are the infinities
constexpr uint64_t infinity = 0x7f800000;
constexpr uint64_t negative_infinity = 0xff800000;

/// A number as an element of a floating type; an infinity where there is none as the largest.
uint64_t float_of(uint64_t f32, ElementType type) {
  ConvertOptions options;
  if (f32 != quiet_nan && !has_infinities(type)) options.overflow = Overflow::saturate;
  return numerics::convert(f32, ElementType::f32, type, options);
}

bool is_nan(uint64_t bits, ElementType type) {
  const uint64_t f64 = numerics::convert(bits, type, ElementType::f64, {});
  return (f64 & ~(uint64_t{1} << 63)) > 0x7ff0000000000000;
}

/// Any NaN as the quiet one of sign 0 without payload; all else as it is.
uint64_t with_one_nan(uint64_t bits, ElementType type) {
  if (!is_float(type) || !has_nans(type) || !is_nan(bits, type)) return bits;
  return float_of(quiet_nan, type);
}

/// The smallest number of an integer type.
uint64_t lowest_integer(ElementType type) {
  return static_cast<uint64_t>(integer_min(type)) & ~uint64_t{0} >> (64 - bits_of(type));
}

/// What a list of elements of one type becomes.
using Fold = uint64_t (*)(const Elements& elements, ElementType type);

uint64_t fold_min(const Elements& elements, ElementType type) {
  const bool floats = is_float(type);
  const BinaryFunction min = floats ? numerics::float_ops::min : numerics::integer_ops::min;
  uint64_t result = floats ? float_of(infinity, type) : integer_max(type);
  for (const uint64_t element : elements) result = min(result, element, type);
  return with_one_nan(result, type);
}

/// Magnitudes of integers are unsigned numbers of N bits: that of MIN is 2^(N - 1), which is MIN
/// again in a signed type.
uint64_t fold_max_abs(const Elements& elements, ElementType type) {
  if (!is_float(type)) {
    uint64_t result = 0;
    for (const uint64_t element : elements) {
      const uint64_t magnitude =
          is_signed_integer(type) ? numerics::integer_ops::abs(element, type) : element;
      result = std::max(result, magnitude);
    }
    return result;
  }
  uint64_t result = float_of(0, type);
  for (const uint64_t element : elements) {
    result = numerics::float_ops::max(result, numerics::float_ops::abs(element, type), type);
  }
  return with_one_nan(result, type);
}

uint64_t fold_integer_sum(const Elements& elements, ElementType type) {
  uint64_t sum = 0;
  for (const uint64_t element : elements) sum = numerics::integer_ops::add(sum, element, type);
  return sum;
}

/// The tree of at most one block.
uint64_t block_sum(const uint64_t* elements, size_t count, ElementType type) {
  const auto lanes = static_cast<size_t>(sum_tree(type).lanes);
  Elements partial(lanes, 0);
  for (size_t i = 0; i < count; ++i) {
    uint64_t& sum = partial[i % lanes];
    sum = numerics::float_ops::add(sum, elements[i], type);
  }
  for (size_t half = lanes / 2; half > 0; half /= 2) {
    for (size_t j = 0; j < half; ++j) {
      partial[j] = numerics::float_ops::add(partial[j], partial[j + half], type);
    }
  }
  return partial[0];
}

/// The sum of f32 or f64; see SumTree.
uint64_t fold_float_sum(const Elements& elements, ElementType type) {
  constexpr auto block = static_cast<size_t>(SumTree::block);
  Elements sums = elements;
  while (sums.size() > block) {
    Elements sums_of_blocks;
    for (size_t i = 0; i < sums.size(); i += block) {
      sums_of_blocks.push_back(block_sum(&sums[i], std::min(block, sums.size() - i), type));
    }
    sums = std::move(sums_of_blocks);
  }
  return with_one_nan(block_sum(sums.data(), sums.size(), type), type);
}

/// Folds the axes from `begin` to `end`, which are 1 afterwards.
void fold_group(Tensor& tensor, int begin, int end, Fold fold) {
  size_t outer = 1;
  size_t count = 1;
  size_t inner = 1;
  for (int axis = 0; axis < tensor.shape.rank(); ++axis) {
    const auto extent = static_cast<size_t>(tensor.shape[axis]);
    (axis < begin ? outer : axis < end ? count : inner) *= extent;
  }
  Elements folded;
  Elements along(count);
  for (size_t o = 0; o < outer; ++o) {
    for (size_t i = 0; i < inner; ++i) {
      for (size_t n = 0; n < count; ++n) along[n] = tensor.elements[(o * count + n) * inner + i];
      folded.push_back(fold(along, tensor.element));
    }
  }
  tensor.elements = std::move(folded);
  for (int axis = begin; axis < end; ++axis) tensor.shape[axis] = 1;
}

/// Folds the operand along the operation's axes. Without axes each element is folded by itself.
Elements fold(const Operation& operation, Tensor tensor, Fold fold) {
  const std::vector<bool> reduced = reduced_axes(operation, tensor.shape.rank());
  bool any = false;
  for (int end = tensor.shape.rank(); end > 0; --end) {
    if (!reduced[static_cast<size_t>(end - 1)]) continue;
    int begin = end - 1;
    while (begin > 0 && reduced[static_cast<size_t>(begin - 1)]) --begin;
    fold_group(tensor, begin, end, fold);
    any = true;
    end = begin + 1;
  }
  if (!any) fold_group(tensor, 0, 0, fold);
  return std::move(tensor.elements);
}

/// The operand as elements of another type that holds each of its own.
Tensor widened(const Tensor& operand, ElementType type) {
  Tensor wide = operand;
  wide.element = type;
  if (type == operand.element) return wide;
  for (uint64_t& bits : wide.elements) bits = numerics::convert(bits, operand.element, type, {});
  return wide;
}

}  // namespace

uint64_t largest_of(const std::vector<uint64_t>& elements, ElementType type) {
  const bool floats = is_float(type);
  const BinaryFunction max = floats ? numerics::float_ops::max : numerics::integer_ops::max;
  uint64_t result = floats ? float_of(negative_infinity, type) : lowest_integer(type);
  for (const uint64_t element : elements) result = max(result, element, type);
  return with_one_nan(result, type);
}

void evaluate_reduce_min(const Operation& operation, Operands operands, Results results) {
  results[0].elements = fold(operation, *operands[0], fold_min);
}

void evaluate_reduce_max(const Operation& operation, Operands operands, Results results) {
  results[0].elements = fold(operation, *operands[0], largest_of);
}

void evaluate_reduce_max_abs(const Operation& operation, Operands operands, Results results) {
  results[0].elements = fold(operation, *operands[0], fold_max_abs);
}

void evaluate_reduce_sum(const Operation& operation, Operands operands, Results results) {
  const ElementType own = operands[0]->element;
  const ElementType result = results[0].element;
  if (!is_float(own)) {
    results[0].elements = fold(operation, widened(*operands[0], result), fold_integer_sum);
    return;
  }
  const ElementType wide = own == ElementType::f64 ? ElementType::f64 : ElementType::f32;
  Elements sums = fold(operation, widened(*operands[0], wide), fold_float_sum);
  if (wide != result) {
    for (uint64_t& bits : sums) bits = numerics::convert(bits, wide, result, {});
  }
  results[0].elements = std::move(sums);
}

}  // namespace castor
