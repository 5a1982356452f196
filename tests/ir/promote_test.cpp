// SPDX-License-Identifier: Apache-2.0
// Promotion: every row of the golden table (tests/oracle/promote_golden.py), OpenVINO's own
// examples, messages, older layouts and attributes.
#include "ir/types/promote.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "ir/builder.hpp"
#include "ir/text/text.hpp"

namespace castor {
namespace {

using enum ElementType;

/// The errors by the golden table's names.
const std::map<std::string, std::string> error_texts = {
    {"INTF", "Integer input cannot be safely promoted to floating-point."},
    {"PT", "Scalar input cannot be PyTorch-like promoted using safe promotion rules."},
    {"UNS", "Unsigned integer input cannot be safely promoted into any supported signed integer."},
    {"UN", "Unsupported input element types for ConvertPromoteTypes with given attributes."},
};

/// What a cell of the golden table says, where `target` stands for u64's.
std::string cell(const Result<ElementType>& result) {
  if (result) return std::string(name_of(*result));
  for (const auto& [name, text] : error_texts) {
    if (result.error().message.starts_with("convert_promote_types: " + text + " Found ")) {
      return name;
    }
  }
  return result.error().message;
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
  return fields;
}

/// A column of the golden table.
struct Column {
  bool unsafe;
  bool left_is_scalar;
  bool right_is_scalar;
};
constexpr Column columns[] = {
    {false, false, false}, {false, true, false}, {false, false, true}, {false, true, true},
    {true, false, false},  {true, true, false},  {true, false, true},  {true, true, true},
};

void expect_cell(ElementType left, ElementType right, const Column& column, bool pytorch,
                 const std::string& golden) {
  for (const ElementType target : {f32, i4, nf4}) {
    const PromoteOptions options = {column.unsafe, pytorch, target};
    const PromoteOperand a = {left, column.left_is_scalar};
    const PromoteOperand b = {right, column.right_is_scalar};
    const std::string expected = golden == "target" ? std::string(name_of(target)) : golden;
    const auto where = [&] {
      return testing::Message() << name_of(left) << a.is_scalar << ", " << name_of(right)
                                << b.is_scalar << ", unsafe " << column.unsafe << ", pytorch "
                                << pytorch << ", target " << name_of(target);
    };
    ASSERT_EQ(cell(promoted_type(a, b, options)), expected) << where();
    ASSERT_EQ(cell(promoted_type(b, a, options)), expected) << where() << ", swapped";
  }
}

TEST(Promote, EveryRowOfTheGoldenTable) {
  std::ifstream file(std::string(CASTOR_TEST_DATA) + "/promote_golden.csv");
  ASSERT_TRUE(file);
  std::string line;
  std::getline(file, line);  // where the file comes from
  std::getline(file, line);
  ASSERT_EQ(line,
            "left,right,safe_none,safe_left,safe_right,safe_both,unsafe_none,unsafe_left,"
            "unsafe_right,unsafe_both");
  int rows = 0;
  for (; std::getline(file, line); ++rows) {
    const std::vector<std::string> fields = fields_of(line);
    ASSERT_EQ(fields.size(), 10u) << line;
    const ElementType left = element_type_named(fields[0]).value();
    const ElementType right = element_type_named(fields[1]).value();
    ASSERT_EQ(left, value_types[static_cast<size_t>(rows / value_type_count)]) << line;
    ASSERT_EQ(right, value_types[static_cast<size_t>(rows % value_type_count)]) << line;
    for (size_t i = 0; i < std::size(columns); ++i) {
      expect_cell(left, right, columns[i], true, fields[2 + i]);
      // Without the attribute scalars are as any other tensor.
      expect_cell(left, right, columns[i], false, fields[columns[i].unsafe ? 6 : 2]);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_EQ(rows, value_type_count * value_type_count);
}

struct Example {
  const char* left;
  const char* right;
  const char* safe;
  const char* unsafe;
};

/// convert-promote-types-14: the examples of its text, and of its layers.
TEST(Promote, ExamplesOfOpenVINOsDocumentation) {
  const Example examples[] = {
      {"i8", "f32", "f32", "f32"},       {"i32", "u8", "i32", "i32"},
      {"f16", "i64", "INTF", "f16"},     {"f64", "u64", "INTF", "f64"},
      {"i8", "u8", "UNS", "i16"},        {"f16", "bf16", "UN", "f32"},
      {"f8e4m3", "f8e5m2", "UN", "f16"}, {"u64", "i8", "UNS", "f32"},
      {"f16", "f32", "f32", "f32"},      {"i16", "u32", "UNS", "i64"},
      {"i16", "u64", "UNS", "f32"},
  };
  for (const Example& row : examples) {
    const PromoteOperand left = {*element_type_named(row.left)};
    const PromoteOperand right = {*element_type_named(row.right)};
    EXPECT_EQ(cell(promoted_type(left, right, {})), row.safe) << row.left << ' ' << row.right;
    EXPECT_EQ(cell(promoted_type(left, right, {.promote_unsafe = true})), row.unsafe)
        << row.left << ' ' << row.right;
  }
  const PromoteOptions pytorch = {.pytorch_scalar_promotion = true};
  const PromoteOptions unsafe = {.promote_unsafe = true, .pytorch_scalar_promotion = true};
  EXPECT_EQ(cell(promoted_type({i64, true}, {u8}, unsafe)), "u8");
  EXPECT_EQ(cell(promoted_type({i64, true}, {u8}, pytorch)), "PT");
  EXPECT_EQ(cell(promoted_type({f16, true}, {i8}, pytorch)), "f16");
}

TEST(Promote, OlderLayoutsPromoteAsTheTypeOfTheirValues) {
  const std::pair<ElementType, ElementType> layouts[] = {
      {u1_lsb_first, u1}, {u2_msb_first, u2}, {u3_split, u3}, {u6_split, u6}};
  for (const auto& [layout, type] : layouts) {
    EXPECT_EQ(cell(promoted_type({layout}, {layout}, {})), name_of(layout));
    EXPECT_EQ(cell(promoted_type({layout}, {type}, {})), name_of(type));
    EXPECT_EQ(cell(promoted_type({boolean}, {layout}, {})), name_of(type));
    for (ElementType scalar : value_types) {
      const PromoteOperand other = {scalar, true};
      for (const PromoteOptions& options :
           {PromoteOptions{}, PromoteOptions{true, false, i8}, PromoteOptions{true, true, i8}}) {
        EXPECT_EQ(cell(promoted_type({layout}, other, options)),
                  cell(promoted_type({type}, other, options)));
      }
    }
  }
  EXPECT_EQ(cell(promoted_type({u3_split}, {u6_split}, {})), "u6");
}

/// `%a, %b = convert_promote_types %x, %y` on two types, or the message.
std::string inferred(const char* left, const char* right, const std::string& attributes) {
  const std::string text = std::string("func @f(%x: ") + left + ", %y: " + right +
                           ") -> (boolean[]) { %a, %b = convert_promote_types %x, %y " +
                           attributes + " %c = constant true : boolean[] return %c }";
  const auto function = parse_function(text);
  if (!function) return function.error().message;
  const Operation& operation = (*function)->operations[0];
  return to_string((*function)->type_of(operation.results[0])) + " " +
         to_string((*function)->type_of(operation.results[1]));
}

TEST(Promote, ResultsKeepTheShapesOfTheOperands) {
  EXPECT_EQ(inferred("i16[256, 56]", "u32[3]", "{promote_unsafe = true}"), "i64[256, 56] i64[3]");
  EXPECT_EQ(inferred("f16[?n, 2]", "f32[]", ""), "f32[?n, 2] f32[]");
  EXPECT_EQ(inferred("boolean[2]", "nf4[?]", ""), "nf4[2] nf4[?]");
  EXPECT_EQ(inferred("u64[2]", "i4[3]",
                     "{promote_unsafe = true, u64_integer_promotion_target = u1.lsb_first}"),
            "u1.lsb_first[2] u1.lsb_first[3]");
  EXPECT_EQ(inferred("u8[2]", "i64[]", "{pytorch_scalar_promotion = true, promote_unsafe = true}"),
            "u8[2] u8[]");
  EXPECT_EQ(inferred("u8[2]", "i64[]", "{promote_unsafe = true} : i64"), "i64[2] i64[]");
}

TEST(Promote, MistakesSayWhatWasFoundAndExpected) {
  EXPECT_EQ(inferred("f16[2]", "i64[]", ""),
            "convert_promote_types: Integer input cannot be safely promoted to floating-point. "
            "Found f16 and i64 (a scalar), expected a floating-point type of at least twice the "
            "integer's bits, or promote_unsafe = true");
  EXPECT_EQ(inferred("u8[]", "i8[2]", ""),
            "convert_promote_types: Unsigned integer input cannot be safely promoted into any "
            "supported signed integer. Found u8 (a scalar) and i8, expected a signed integer of at "
            "least twice the unsigned one's bits, or promote_unsafe = true");
  EXPECT_EQ(inferred("bf16[2]", "f16[2]", ""),
            "convert_promote_types: Unsupported input element types for ConvertPromoteTypes with "
            "given attributes. Found bf16 and f16, expected one type that holds the values of the "
            "other, or promote_unsafe = true");
  EXPECT_EQ(inferred("i64[]", "u8[2]", "{pytorch_scalar_promotion = true}"),
            "convert_promote_types: Scalar input cannot be PyTorch-like promoted using safe "
            "promotion rules. Found i64 (a scalar) and u8, expected a tensor of the scalar's "
            "signedness and at least its bits, or promote_unsafe = true");
  EXPECT_EQ(inferred("i64[]", "u8[2]", "{u64_integer_promotion_target = f33}"),
            "convert_promote_types: u64_integer_promotion_target = f33 is no element type, "
            "expected one such as f32");
  EXPECT_EQ(inferred("i64[]", "u8[2]", "{promote_unsafe = 1}"),
            "convert_promote_types: promote_unsafe = 1 is an integer, expected true or false");
  EXPECT_EQ(inferred("i64[]", "u8[2]", "{promote_unsafe = true} : i64[]"),
            "convert_promote_types: %b has type i64[2], but i64[] is written");
}

TEST(Promote, OptionsAndAttributesSayTheSame) {
  for (const PromoteOptions& options :
       {PromoteOptions{}, PromoteOptions{true, false, f32}, PromoteOptions{false, true, u8},
        PromoteOptions{true, true, nf4}}) {
    Operation operation{.op = OpKind::convert_promote_types};
    operation.attributes = attributes_of(options);
    const auto back = promote_options(operation);
    ASSERT_TRUE(back);
    EXPECT_EQ(*back, options);
  }
  EXPECT_TRUE(attributes_of(PromoteOptions{}).empty());
}

}  // namespace
}  // namespace castor
