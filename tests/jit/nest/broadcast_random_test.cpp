// SPDX-License-Identifier: Apache-2.0
// Random shapes: what types say of unknown extents holds for every extent that is bound, and the
// axes of operands are aligned with axes of the result that have their extents.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "ir/shape/broadcast.hpp"

namespace castor {
namespace {

using Extents = std::map<std::string, int64_t>;

/// A dimension of each kind, and the extent that stands for it.
struct Choice {
  Dim dim;
  int64_t extent;
};

class Chooser {
 public:
  explicit Chooser(uint32_t seed) : random_(seed) {}

  int below(int limit) { return static_cast<int>(random_() % static_cast<uint32_t>(limit)); }

  void new_names() { names_ = {{"n", small()}, {"m", small()}}; }
  const Extents& names() const { return names_; }

  Choice choice() {
    switch (below(4)) {
      case 0: return {"?", small()};
      case 1: return {"?n", names_["n"]};
      case 2: return {"?m", names_["m"]};
      default: break;
    }
    const int64_t extent = small();
    return {extent, extent};
  }

 private:
  /// 0, 1 often, 2 or 3.
  int64_t small() {
    constexpr int64_t extents[] = {0, 1, 1, 1, 2, 2, 3};
    return extents[below(7)];
  }

  std::mt19937 random_;
  Extents names_;
};

struct Operand {
  Shape shape;
  Dims extents;
};

Operand operand_of_rank(Chooser& chooser, int rank) {
  Operand operand;
  for (int axis = 0; axis < rank; ++axis) {
    const Choice choice = chooser.choice();
    operand.shape.push_back(choice.dim);
    operand.extents.push_back(choice.extent);
  }
  return operand;
}

/// Fixed and named dimensions are what was bound.
void expect_true_of(const Shape& type, const Dims& extents, const Extents& names) {
  ASSERT_EQ(type.size(), static_cast<size_t>(extents.rank()));
  for (int axis = 0; axis < extents.rank(); ++axis) {
    const Dim& dim = type[static_cast<size_t>(axis)];
    if (dim.is_fixed()) {
      EXPECT_EQ(dim.extent, extents[axis]);
    } else if (!dim.name.empty()) {
      EXPECT_EQ(names.at(dim.name), extents[axis]);
    }
  }
}

void expect_axes(const Operation& operation, size_t index, const Dims& operand,
                 const Dims& result) {
  const Dims axes = axes_along_result(operation, index, operand.rank(), result.rank());
  ASSERT_EQ(axes.rank(), operand.rank());
  for (int i = 0; i < operand.rank(); ++i) {
    if (i > 0 && axes[i] >= 0) {
      EXPECT_GT(axes[i], axes[i - 1]);
    }
    if (operand[i] == 1) continue;
    ASSERT_GE(axes[i], 0);
    EXPECT_EQ(operand[i], result[static_cast<int>(axes[i])]);
  }
}

/// Shapes of fixed dimensions alone give what their extents give, in the same words.
template <class Give>
void expect_same_of_fixed(const Give& give, const Result<Dims>& bound) {
  const Result<Shape> fixed = give();
  ASSERT_EQ(fixed.ok(), bound.ok());
  if (bound) {
    EXPECT_EQ(*fixed, to_shape(*bound));
  } else {
    EXPECT_EQ(fixed.error().message, bound.error().message);
  }
}

BroadcastRule elementwise_rule(Chooser& chooser) {
  switch (chooser.below(4)) {
    case 0: return {.mode = BroadcastMode::none};
    case 1: return {.mode = BroadcastMode::pdpd, .axis = chooser.below(5) - 1};
    default: return {};
  }
}

TEST(BroadcastRandom, ElementwiseTypesHoldForWhatIsBound) {
  Chooser chooser(20240709);
  int bound_count = 0;
  for (int round = 0; round < 100000; ++round) {
    chooser.new_names();
    const BroadcastRule rule = elementwise_rule(chooser);
    const int rank = chooser.below(4);
    const int other = rule.mode == BroadcastMode::none ? rank : chooser.below(4);
    const Operand a = operand_of_rank(chooser, rank);
    const Operand b = operand_of_rank(chooser, other);
    const Dims* const extents[] = {&a.extents, &b.extents};
    const Result<Dims> bound = broadcast_shapes(OpKind::add, rule, extents);
    const Shape fixed_a = to_shape(a.extents);
    const Shape fixed_b = to_shape(b.extents);
    const Shape* const fixed[] = {&fixed_a, &fixed_b};
    expect_same_of_fixed([&] { return broadcast_shapes(OpKind::add, rule, fixed); }, bound);
    const Shape* const types[] = {&a.shape, &b.shape};
    const Result<Shape> type = broadcast_shapes(OpKind::add, rule, types);
    if (!bound) continue;
    ++bound_count;
    ASSERT_TRUE(type) << type.error().message;
    expect_true_of(*type, *bound, chooser.names());
    Operation operation{.op = OpKind::add};
    operation.attributes = attributes_of(OpKind::add, rule);
    expect_axes(operation, 0, a.extents, *bound);
    expect_axes(operation, 1, b.extents, *bound);
    if (HasFailure())
      FAIL() << to_string(a.shape) << ' ' << to_string(b.shape) << " round " << round;
  }
  EXPECT_GT(bound_count, 10000);
}

BroadcastRule target_rule(Chooser& chooser, int data_rank) {
  switch (chooser.below(4)) {
    case 0: return {.mode = BroadcastMode::pdpd, .axis = chooser.below(5) - 1};
    case 1: return {.mode = BroadcastMode::bidirectional};
    case 2: {
      BroadcastRule rule = {.mode = BroadcastMode::explicitly};
      for (int i = 0; i < data_rank; ++i) rule.axes.push_back(i + chooser.below(2));
      return rule;
    }
    default: return {};
  }
}

TEST(BroadcastRandom, TypesOfBroadcastHoldForWhatIsBound) {
  Chooser chooser(20240710);
  int bound_count = 0;
  for (int round = 0; round < 100000; ++round) {
    chooser.new_names();
    const Operand data = operand_of_rank(chooser, chooser.below(3));
    const Operand target = operand_of_rank(chooser, chooser.below(4));
    const BroadcastRule rule = target_rule(chooser, data.extents.rank());
    const Result<Dims> bound = broadcast_to_target(rule, data.extents, target.extents);
    const Shape fixed_data = to_shape(data.extents);
    const Shape fixed_target = to_shape(target.extents);
    expect_same_of_fixed([&] { return broadcast_to_target(rule, fixed_data, fixed_target); },
                         bound);
    if (!bound) continue;
    ++bound_count;
    const Result<Shape> type = broadcast_to_target(rule, data.shape, target.shape);
    ASSERT_TRUE(type) << type.error().message;
    expect_true_of(*type, *bound, chooser.names());
    if (rule.mode != BroadcastMode::bidirectional) {
      EXPECT_EQ(*bound, target.extents);
    }
    Operation operation{.op = OpKind::broadcast};
    operation.attributes = attributes_of(OpKind::broadcast, rule);
    expect_axes(operation, 0, data.extents, *bound);
    if (HasFailure()) {
      FAIL() << to_string(data.shape) << ' ' << to_string(target.shape) << " round " << round;
    }
  }
  EXPECT_GT(bound_count, 10000);
}

}  // namespace
}  // namespace castor
