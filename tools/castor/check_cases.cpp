// SPDX-License-Identifier: Apache-2.0
#include "tools/castor/check_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>

#include "ir/composition/expand.hpp"
#include "ir/support/integer_math.hpp"
#include "ir/verify/infer.hpp"
#include "ir/verify/requantize.hpp"
#include "tools/testing/samples.hpp"

namespace castor::tools {

namespace {

/// Around the vector lengths of every tier (8 to 64 elements) and their unrolled multiples.
constexpr std::array<int64_t, 22> sizes = {0,  1,  3,  7,  8,   9,   15,  16,  17,  31,  32,
                                           33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1021};

/// Extents of rows so short that a vector spans several of them.
constexpr std::array<int64_t, 4> short_rows = {1, 3, 4, 5};

constexpr int64_t max_elements = int64_t{1} << 18;  // per case with chosen sizes
constexpr size_t max_repetitions = 65536;           // per fixed shape
constexpr size_t misalignments = 64;

std::vector<uint64_t> boundary_set(ElementType type) {
  return bits_of(type) <= 16 ? samples::all_patterns(type) : samples::boundary_patterns(type);
}

/// Whether the value is a scale of a `requantize`, which must be positive.
bool is_scale(const Function& function, ValueId value) {
  return std::ranges::any_of(function.operations, [&](const Operation& operation) {
    return operation.op == OpKind::requantize &&
           (operation.operands[source_parameter(0)] == value ||
            operation.operands[destination_parameter(0)] == value);
  });
}

/// The most boundary patterns that any parameter has.
size_t boundary_count(const Function& function) {
  size_t max = 1;
  for (ValueId id : function.parameters) {
    max = std::max(max, boundary_set(function.type_of(id).element).size());
  }
  return max;
}

/// Which unknown each dimension of each parameter is: equal names are one unknown, every `?` is
/// its own, -1 stands for a fixed dimension.
struct Unknowns {
  std::vector<std::vector<int>> of_parameter;
  int count = 0;
};

Unknowns find_unknowns(const Function& function) {
  Unknowns unknowns;
  std::vector<std::string> names;  // names of the unknowns so far; empty for `?`
  for (ValueId id : function.parameters) {
    std::vector<int>& indices = unknowns.of_parameter.emplace_back();
    for (const Dim& dim : function.type_of(id).shape) {
      if (dim.is_fixed()) {
        indices.push_back(-1);
        continue;
      }
      const auto known =
          dim.name.empty() ? names.end() : std::find(names.begin(), names.end(), dim.name);
      indices.push_back(static_cast<int>(known - names.begin()));
      if (known == names.end()) names.push_back(dim.name);
    }
  }
  unknowns.count = static_cast<int>(names.size());
  return unknowns;
}

/// The parameters' shapes with these sizes for the unknowns.
std::vector<Dims> shapes_with(const Function& function, const Unknowns& unknowns,
                              const std::vector<int64_t>& values) {
  std::vector<Dims> shapes;
  for (size_t i = 0; i < function.parameters.size(); ++i) {
    const Shape& shape = function.type_of(function.parameters[i]).shape;
    Dims& dims = shapes.emplace_back();
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const int unknown = unknowns.of_parameter[i][axis];
      dims.push_back(unknown < 0 ? shape[axis].extent : values[static_cast<size_t>(unknown)]);
    }
  }
  return shapes;
}

/// The most elements that one of the shapes has; INT64_MAX where that overflows.
int64_t largest_count(const std::vector<Dims>& shapes) {
  int64_t largest = 0;
  for (const Dims& shape : shapes) {
    largest = std::max(largest, element_count(shape).value_or(INT64_MAX));
  }
  return largest;
}

/// The extents of blocks that operations of the function broadcast over, once compositions are
/// expanded.
std::vector<int64_t> block_extents(const Function& function) {
  const Result<FunctionPtr> expanded = expand_compositions(function);
  std::set<int64_t> found;
  for (const Operation& operation : (expanded ? **expanded : function).operations) {
    const AttributeValue* blocks = find(operation.attributes, "block");
    const auto* list =
        blocks == nullptr ? nullptr : std::get_if<AttributeValue::List>(&blocks->value);
    if (list == nullptr) continue;
    for (const AttributeValue& entry : *list) {
      if (const auto* extent = std::get_if<int64_t>(&entry.value)) found.insert(*extent);
    }
  }
  found.erase(1);
  return {found.begin(), found.end()};
}

/// The shapes to try, by the rules of plan_cases.
class ShapePlan {
 public:
  explicit ShapePlan(const Function& function)
      : function_(function), unknowns_(find_unknowns(function)) {}

  std::vector<std::vector<Dims>> take() {
    if (unknowns_.count == 0) {
      add_fixed();
    } else {
      add_equal_sizes();
      if (unknowns_.count > 1) add_mixed_sizes();
      if (unknowns_.count > 1) add_short_rows();
      if (unknowns_.count > 1) add_ones();
      if (unknowns_.count > 1) add_blocks();
      add_full_size();
      if (plan_.empty()) add_extents_of_values();
    }
    return std::move(plan_);
  }

 private:
  using Sizes = std::vector<int64_t>;

  void add_fixed() {
    const std::vector<Dims> shapes = shapes_with(function_, unknowns_, {});
    if (!bind_shapes(function_, shapes)) return;
    const size_t elements = static_cast<size_t>(std::max<int64_t>(largest_count(shapes), 1));
    const size_t repetitions = (boundary_count(function_) + elements - 1) / elements;
    plan_.assign(std::min(repetitions, max_repetitions), shapes);
  }

  void add_equal_sizes() {
    for (int64_t size : sizes) add(Sizes(static_cast<size_t>(unknowns_.count), size));
  }

  void add_mixed_sizes() {
    for (size_t round = 0; round < sizes.size(); ++round) {
      Sizes values;
      for (size_t i = 0; i < static_cast<size_t>(unknowns_.count); ++i) {
        values.push_back(sizes[(round + 7 * i) % sizes.size()]);
      }
      add(values);
    }
  }

  /// Innermost extents of a few elements, others so long that rows are joined.
  void add_short_rows() {
    for (int64_t row : short_rows) {
      Sizes values(static_cast<size_t>(unknowns_.count), 67);
      for (const std::vector<int>& parameter : unknowns_.of_parameter) {
        if (!parameter.empty() && parameter.back() >= 0) {
          values[static_cast<size_t>(parameter.back())] = row;
        }
      }
      add(values);
    }
  }

  /// One unknown is 1, or all of one parameter; others are equal, so that they broadcast.
  void add_ones() {
    for (int64_t others : {int64_t{5}, int64_t{33}}) {
      const Sizes all(static_cast<size_t>(unknowns_.count), others);
      for (size_t one = 0; one < all.size(); ++one) {
        Sizes values = all;
        values[one] = 1;
        add(values);
      }
      for (const std::vector<int>& parameter : unknowns_.of_parameter) {
        Sizes values = all;
        for (int unknown : parameter) {
          if (unknown >= 0) values[static_cast<size_t>(unknown)] = 1;
        }
        add(values);
      }
    }
  }

  /// Unknowns of two tensors, one of which has an element for each block of the other: of each size
  /// the first combination that fits, in which most unknowns are the size itself.
  void add_blocks() {
    const std::vector<int64_t> blocks = block_extents(function_);
    if (blocks.empty()) return;
    for (const int64_t size : sizes) {
      Sizes extents = {size};
      for (const int64_t block : blocks) extents.push_back(ceil_div(size, block));
      extents.push_back(1);
      const size_t before = plan_.size();
      for_each_combination(extents, [&] { return plan_.size() > before; });
    }
  }

  /// All unknowns 1 but one, which makes room for every boundary pattern.
  void add_full_size() {
    Sizes values(static_cast<size_t>(unknowns_.count), 1);
    const int64_t others =
        std::max<int64_t>(largest_count(shapes_with(function_, unknowns_, values)), 1);
    const auto wanted = static_cast<int64_t>(boundary_count(function_));
    values.back() = (wanted - 1) / others + 1;
    add(values);
  }

  /// Extents that the function itself writes, in all combinations, until a few fit.
  void add_extents_of_values() {
    constexpr size_t enough = 8;
    std::set<int64_t> written = {1};
    for (const Value& value : function_.values) {
      for (const Dim& dim : value.type.shape) {
        if (dim.is_fixed()) written.insert(dim.extent);
      }
    }
    for_each_combination(Sizes(written.begin(), written.end()),
                         [&] { return plan_.size() >= enough; });
  }

  /// Adds the combinations of these extents that fit, until there are enough or too many are tried.
  template <class IsEnough>
  void for_each_combination(const Sizes& extents, const IsEnough& is_enough) {
    constexpr int max_attempts = 20000;
    std::vector<size_t> at(static_cast<size_t>(unknowns_.count), 0);
    for (int attempt = 0; attempt < max_attempts && !is_enough(); ++attempt) {
      Sizes values;
      for (size_t index : at) values.push_back(extents[index]);
      add(values);
      size_t digit = 0;
      while (digit < at.size() && ++at[digit] == extents.size()) at[digit++] = 0;
      if (digit == at.size()) return;
    }
  }

  void add(const Sizes& values) {
    std::vector<Dims> shapes = shapes_with(function_, unknowns_, values);
    const bool smallest = std::all_of(values.begin(), values.end(), [](auto v) { return v <= 1; });
    if (!smallest && largest_count(shapes) > max_elements) return;
    if (bind_shapes(function_, shapes)) plan_.push_back(std::move(shapes));
  }

  const Function& function_;
  const Unknowns unknowns_;
  std::vector<std::vector<Dims>> plan_;
};

}  // namespace

Dims strides_of(Layout layout, const Dims& shape) {
  constexpr int64_t gap = 3;
  Dims strides = dense_strides(shape);
  if (layout == Layout::dense || shape.empty()) return strides;
  const int rank = shape.rank();
  int64_t step = layout == Layout::spread ? 2 : 1;
  for (int i = 0; i < rank; ++i) {
    const int axis = layout == Layout::transposed ? i : rank - 1 - i;
    strides[axis] = step;
    step *= std::max<int64_t>(shape[axis], 1);
    if (layout == Layout::padded && i == 0) step += gap;
  }
  return strides;
}

size_t CheckCase::reach_of(size_t tensor, const Dims& shape) const {
  const Dims strides = strides_of(layout_of(tensor), shape);
  int64_t last = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 0) return 0;
    last += (shape[axis] - 1) * strides[axis];
  }
  return static_cast<size_t>(last) + 1;
}

std::vector<CheckCase> plan_cases(const Function& function, uint64_t seed) {
  std::vector<CheckCase> cases;
  size_t first = 0;
  for (const std::vector<Dims>& shapes : ShapePlan(function).take()) {
    for (Fill fill : {Fill::boundary, Fill::random}) {
      const size_t index = cases.size();
      const size_t start = fill == Fill::random ? 1 + index / 2 % 7 : 0;
      const auto layout =
          fill == Fill::random ? static_cast<Layout>(index / 2 % layout_count) : Layout::dense;
      cases.push_back({shapes, fill, seed + index, first, index % misalignments, start, layout});
    }
    first += static_cast<size_t>(largest_count(shapes));
  }
  return cases;
}

InputSource::InputSource(const Function& function, uint64_t seed) {
  for (ValueId id : function.parameters) {
    const ElementType type = function.type_of(id).element;
    std::vector<uint64_t> boundary = boundary_set(type);
    if (!parameters_.empty()) {
      std::shuffle(boundary.begin(), boundary.end(), std::mt19937_64(seed + parameters_.size()));
    }
    parameters_.push_back({type, std::move(boundary), is_scale(function, id)});
  }
}

std::vector<std::byte> InputSource::bytes(const CheckCase& test, size_t index) const {
  const auto& [type, boundary, positive] = parameters_[index];
  const auto count = static_cast<size_t>(element_count(test.shapes[index]).value_or(0));
  std::vector<uint64_t> patterns(count);
  if (test.fill == Fill::random) {
    patterns = samples::random_patterns(type, count, test.seed + index);
  } else {
    for (size_t i = 0; i < count; ++i) patterns[i] = boundary[(test.first + i) % boundary.size()];
  }
  for (uint64_t& pattern : patterns) {
    if (positive) pattern = std::max<uint64_t>(pattern & 0x7fff, 1);
  }
  return samples::pack(type, patterns);
}

std::string describe(const CheckCase& test) {
  std::string text = test.fill == Fill::boundary ? "boundary patterns" : "random patterns";
  for (size_t i = 0; i < test.shapes.size(); ++i) {
    text += fmt::format(", {}", to_string(test.shapes[i]));
    if (test.layout_of(i) == Layout::dense) continue;
    text += fmt::format(" strides {}", to_string(strides_of(test.layout_of(i), test.shapes[i])));
  }
  return text;
}

}  // namespace castor::tools
