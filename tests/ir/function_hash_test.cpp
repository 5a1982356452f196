// SPDX-License-Identifier: Apache-2.0
// Comparing functions by what they compute, and their hashes.
#include "ir/function.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "ir/builder.hpp"

namespace castor {
namespace {

using enum ElementType;
using Build = std::function<void(FunctionBuilder&)>;

Result<FunctionPtr> built(const Build& build, std::string name = "f") {
  FunctionBuilder builder(std::move(name));
  build(builder);
  return builder.finish();
}

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> result;
  for (int value : values) result.push_back(static_cast<std::byte>(value));
  return result;
}

Operation convert_of(ValueId operand) {
  return {.op = OpKind::convert, .operands = {operand}, .where = {7, 3}};
}

/// x: type -> convert to `to` with options; names and positions as given.
Build conversion(const TensorType& type, ElementType to, const ConvertOptions& options = {},
                 const std::string& name = "x") {
  return [=](FunctionBuilder& b) { b.result(b.convert(b.parameter(name, type), to, options)); };
}

Build constant_of(const TensorType& type, std::initializer_list<int> data) {
  return [=, copy = bytes(data)](FunctionBuilder& b) { b.result(b.constant(type, copy)); };
}

TEST(Hash, TellsComputationsApart) {
  const std::vector<Build> distinct = {
      conversion({u8, {2}}, f16),
      conversion({i8, {2}}, f16),
      conversion({u8, {3}}, f16),
      conversion({u8, {"?"}}, f16),
      conversion({u8, {"?n"}}, f16),
      conversion({u8, {"?m"}}, f16),
      conversion({u8, {2, 1}}, f16),
      conversion({u8, {1, 2}}, f16),
      conversion({u8, {2}}, bf16),
      conversion({u8, {2}}, f16, {.overflow = Overflow::saturate}),
      conversion({f32, {2}}, u8, {.overflow = Overflow::wrap}),
      conversion({f32, {2}}, u8, {.rounding = Rounding::up}),
      conversion({f32, {2}}, u8, {.overflow = Overflow::wrap, .rounding = Rounding::up}),
      constant_of({u8, {2}}, {1, 2}),
      constant_of({u8, {2}}, {2, 1}),
      constant_of({i8, {2}}, {1, 2}),
      constant_of({u16, {}}, {1, 2}),
      constant_of({u8, {int64_t{0}}}, {}),
      [](FunctionBuilder& b) {
        b.result(b.parameter("x", {u8, {2}}));
      },
      [](FunctionBuilder& b) {
        b.result(b.parameter("x", {u8, {2}}));
        b.parameter("y", {u8, {2}});
      },
      [](FunctionBuilder& b) {
        b.parameter("x", {u8, {2}});
        b.result(b.parameter("y", {u8, {2}}));
      },
      [](FunctionBuilder& b) {
        const ValueId x = b.parameter("x", {u8, {2}});
        b.result(x);
        b.result(x);
      },
      [](FunctionBuilder& b) {
        b.result(b.parameter("x", {u8, {2}}), TensorType{u8, {"?"}});
      },
      [](FunctionBuilder& b) {
        b.attribute({"excess_precision", {Identifier{"allow"}}});
        b.result(b.parameter("x", {u8, {2}}));
      },
  };
  std::vector<FunctionPtr> functions;
  std::set<uint64_t> hashes;
  for (const Build& build : distinct) {
    const auto result = built(build);
    ASSERT_TRUE(result) << result.error().message;
    functions.push_back(*result);
    hashes.insert((*result)->hash);
  }
  EXPECT_EQ(hashes.size(), distinct.size());
  for (const FunctionPtr& a : functions) {
    for (const FunctionPtr& b : functions) {
      Function unhashed_a = *a;  // the comparison itself, without the short cut by hash
      Function unhashed_b = *b;
      unhashed_a.hash = unhashed_b.hash = 0;
      EXPECT_EQ(same_computation(unhashed_a, unhashed_b), a == b);
    }
  }
}

void expect_same(const Build& a, const Build& b, const std::string& name_of_b = "f") {
  const auto first = built(a);
  const auto second = built(b, name_of_b);
  ASSERT_TRUE(first && second);
  EXPECT_EQ((*first)->hash, (*second)->hash);
  EXPECT_TRUE(same_computation(**first, **second));
}

TEST(Hash, IgnoresNamesPositionsAndOrderOfAttributes) {
  expect_same(conversion({u8, {2}}, f16), conversion({u8, {2}}, f16, {}, "other"), "g");
  const auto written = [](bool swapped, TextPosition where) {
    return [=](FunctionBuilder& b) {
      Operation operation = convert_of(b.parameter("x", {f32, {2}}));
      operation.where = where;
      operation.attributes = {{"overflow", {Identifier{"wrap"}}}, {"rounding", {Identifier{"up"}}}};
      if (swapped) std::swap(operation.attributes[0], operation.attributes[1]);
      b.result(b.append(operation, {.element = u8, .shape = {}}));
    };
  };
  expect_same(written(false, {1, 2}), written(true, {3, 4}));
}

TEST(Hash, IgnoresTheNumberingOfValuesAndNamesOfConstants) {
  const auto order = [](bool parameter_first, const std::string& binding) {
    return [=](FunctionBuilder& b) {
      Operation constant{.op = OpKind::constant};
      constant.data = std::make_shared<const ConstantData>(ConstantData{binding, bytes({1})});
      const WrittenType type = {.element = u8, .shape = Shape{}};
      ValueId x = parameter_first ? b.parameter("x", {u8, {}}) : no_value;
      const ValueId c = b.append(constant, type);
      if (!parameter_first) x = b.parameter("x", {u8, {}});
      b.result(b.convert(x, f32));
      b.result(c);
    };
  };
  expect_same(order(true, ""), order(false, "weights"));
}

ContentId id_of(const std::vector<std::byte>& data) {
  return ContentId(std::make_shared<const ConstantData>(ConstantData{{}, data}));
}

TEST(ContentId, DependsOnEveryByteAndTheLength) {
  std::vector<ContentId> ids;
  for (size_t size = 0; size < 20; ++size) {
    const std::vector<std::byte> zeros(size);
    ids.push_back(id_of(zeros));
    EXPECT_TRUE(ids.back().same_content(id_of(zeros)));
    for (size_t at = 0; at < size; ++at) {
      std::vector<std::byte> one = zeros;
      one[at] = std::byte{1};
      ids.push_back(id_of(one));
    }
  }
  for (size_t i = 0; i < ids.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(ids[i].same_content(ids[j]));
  }
}

/// Long contents are hashed in parts: their ends, both sides of the middle, and bytes between.
TEST(ContentId, OfLongContentDependsOnEveryByteAndTheLength) {
  std::set<std::array<uint64_t, 2>> ids;
  std::set<uint64_t> hashes;
  size_t count = 0;
  const auto add = [&](const std::vector<std::byte>& data) {
    ids.insert(id_of(data).words());
    hashes.insert(content_hash(data));
    ++count;
  };
  for (size_t size = 65535; size < 65536 + 34; ++size) {
    std::vector<std::byte> data(size);
    add(data);
    const size_t middle = size / 2;
    for (const size_t at : {size_t{0}, size_t{31}, middle - 1, middle, middle + 1, size - 34,
                            size - 33, size - 32, size - 9, size - 8, size - 2, size - 1}) {
      data[at] = std::byte{1};
      add(data);
      data[at] = {};
    }
  }
  std::vector<std::byte> data(70001);
  for (size_t at = 40; at < size_t{32000}; at += 509) {
    data[at] = std::byte{0x80};
    add(data);
    data[at] = {};
  }
  EXPECT_EQ(ids.size(), count);
  EXPECT_EQ(hashes.size(), count);
  EXPECT_TRUE(id_of(data).same_content(id_of(data)));
}

Operation constant_operation(std::initializer_list<int> data) {
  Operation constant{.op = OpKind::constant};
  constant.data = std::make_shared<const ConstantData>(ConstantData{{}, bytes(data)});
  return constant;
}

FunctionPtr function_of(const Operation& constant) {
  return *built([&](FunctionBuilder& b) {
    b.result(b.append(constant, {.element = u8, .shape = Shape{2}}));
  });
}

TEST(ContentId, OfOtherDataIsNotTrusted) {
  // An operation copied from a function, ids and all, and given other data.
  const FunctionPtr first = function_of(constant_operation({1, 2}));
  Operation copy = first->operations[0];
  EXPECT_TRUE(copy.data_id.is_of(copy.data));
  copy.data = constant_operation({3, 4}).data;
  EXPECT_FALSE(copy.data_id.is_of(copy.data));
  const FunctionPtr second = function_of(copy);
  EXPECT_FALSE(same_computation(*first, *second));
  EXPECT_TRUE(same_computation(*second, *function_of(constant_operation({3, 4}))));
}

TEST(ContentId, MayBeAbsent) {
  Function one = *function_of(constant_operation({1, 2}));
  Function same = one;
  Function other = one;
  for (Function* function : {&same, &other}) {
    const bool is_same = function == &same;
    function->operations[0].data = constant_operation({1, is_same ? 2 : 3}).data;
    function->operations[0].data_id = {};
  }
  EXPECT_TRUE(same_computation(one, same));
  EXPECT_FALSE(same_computation(one, other));
}

TEST(Hash, OfContentDependsOnEveryByteAndTheLength) {
  std::set<uint64_t> hashes;
  for (size_t size = 0; size < 20; ++size) {
    const std::vector<std::byte> zeros(size);
    hashes.insert(content_hash(zeros));
    for (size_t at = 0; at < size; ++at) {
      std::vector<std::byte> one = zeros;
      one[at] = std::byte{1};
      hashes.insert(content_hash(one));
    }
  }
  EXPECT_EQ(hashes.size(), 20u + 19 * 20 / 2);
}

}  // namespace
}  // namespace castor
