// SPDX-License-Identifier: Apache-2.0
// Whatever the text form says, the C API's builder can build: every op of the table, every
// attribute, all types, random functions; and every mistake that it can be told.
#include <castor/castor.h>
#include <gtest/gtest.h>

#include <set>

#include "ir/text/text.hpp"
#include "tests/support/built_in_c.hpp"
#include "tools/fuzz/generate.hpp"

namespace castor::test {
namespace {

/// An operation between parameters %a, %b (the types of `operands`, comma-separated) and a result.
struct OpRow {
  const char* parameters;
  const char* results;  ///< types
  const char* names;
  const char* operation;
};

constexpr OpRow special_rows[] = {
    {"", "f32[]", "%r", "constant -0.5 : f32[]"},
    {"", "i4[3]", "%r", "constant [1, -8, 7] : i4[3]"},
    {"", "u8[0, 2]", "%r", "constant [] : u8[0, 2]"},
    {"%a: f32[?n, ?]", "u8[?n, ?]", "%r",
     "convert %a {overflow = saturate, rounding = nearest_even} : u8"},
    {"%a: f32[2]", "f4e2m1[2]", "%r", "convert %a {nan = zero} : f4e2m1"},
    {"%a: u64[2], %b: i8[]", "f64[2], f64[]", "%r, %s",
     "convert_promote_types %a, %b {promote_unsafe = true, u64_integer_promotion_target = f64}"},
    {"%a: i16[2], %b: i8[]", "i16[2], i16[]", "%r, %s",
     "convert_promote_types %a, %b {pytorch_scalar_promotion = true}"},
    {"%a: f32[3, 1]", "f32[2, 3, 4]", "%r", "broadcast %a {mode = numpy} : [2, 3, 4]"},
    {"%a: f32[3, 5]", "f32[2, 3, 4, 5]", "%r",
     "broadcast %a {mode = explicit, axes = [1, 3]} : [2, 3, 4, 5]"},
    {"%a: f32[3]", "f32[2, 3, 4]", "%r", "broadcast %a {mode = pdpd, axis = 1} : [2, 3, 4]"},
    {"%a: f32[]", "f32[]", "%r", "broadcast %a {mode = explicit, axes = []} : []"},
    {"%a: f32[?n, 4]", "f32[?, 2]", "%r", "reshape %a : [?, 2]"},
    {"%a: f32[1]", "f32[]", "%r", "reshape %a : []"},
    {"%a: f32[2, 3], %b: f32[3]", "f32[2, 3]", "%r", "add %a, %b {broadcast = pdpd, axis = 1}"},
    {"%a: f32[?n]", "f32[?n]", "%r", "clamp %a {lo = -0.5, hi = 6}"},
    {"%a: f32[?n]", "f32[?n]", "%r", "clamp %a {hi = inf}"},
    {"%a: boolean[3], %b: f16[3]", "f16[3]", "%r", "select %a, %b, %b {broadcast = none}"},
    {"%a: f32[2, 3]", "u8[2, 3], f32[], u8[]", "%r, %s, %t", "dynamic_quantize_linear %a : u8"},
    {"%a: f32[2, 3]", "i8[2, 3], f32[2, 1]", "%r, %s",
     "dynamic_quantize_symmetric %a {axes = [1], scaling = reciprocal} : i8"},
    {"%a: f32[2, 3]", "f32[2]", "%r", "reduce_min %a {axes = [1]}"},
    {"%a: f32[2, 3]", "f32[]", "%r", "reduce_max %a"},
    {"%a: f32[2, 3]", "f32[1, 3]", "%r", "reduce_max_abs %a {axes = [-2], keep_dims = true}"},
    {"%a: i8[2, 3]", "i32[]", "%r", "reduce_sum %a {accumulator = i32}"},
    {"%a: u8[?n, 3], %b: f16[256]", "f16[?n, 3]", "%r", "look_up %a, %b"},
    {"%a: nf4[?n, 3], %b: f32[3, 16]", "f32[?n, 3]", "%r", "look_up %a, %b {axis = 1}"},
    {"%a: u8[1, 3, 8, 8], %b: i8[6, 3, 3, 3]", "i32[1, 6, 6, 6]", "%r", "conv_integer %a, %b"},
    {"%a: u8[1, 8, 8, 4], %b: i8[6, 2, 3, 3], %z: i8[6]", "i32[1, 8, 8, 6]", "%r",
     "conv_integer %a, %b, none, %z {group = 2, pads = [1, 1, 1, 1], strides = [1, 1], dilations = "
     "[1, 1], kernel_shape = [3, 3], layout = nhwc, auto_pad = notset}"},
    {"%a: u8[?n, 3], %b: i8[3, 4], %z: u8[?n, 1]", "i32[?n, 4]", "%r", "matmul_integer %a, %b, %z"},
    {"%a: f32[?n]", "fx8<frac = 7>[?n]", "%r",
     "requantize %a {rounding = nearest_even} : fx8<frac = 7>"},
    {"%a: sa8<axis = 1, scale = [3, 4], frac = [7, -8], zero_point = [1, 0]>[2, 2]",
     "sa32<scale = 3, frac = 3, zero_point = 0>[2, 2]", "%r",
     "requantize %a {arithmetic = embarc} : sa32<scale = 3, frac = 3, zero_point = 0>"},
    {"%a: sa8<scale = ?, frac = ?, zero_point = ?>[2], %s: i16[], %f: i8[], %z: i16[]", "f32[2]",
     "%r", "requantize %a, %s, %f, %z : f32"},
    {"%a: fx16<frac = ?>[2], %f: i8[]", "fx16<frac = ?>[2]", "%r",
     "requantize %a, none, %f, none, none, %f : fx16<frac = ?>"},
    {"%a: f32[4, 6], %s: f32[4, 2]", "f32[4, 6]", "%r",
     "mul %a, %s {broadcast = blocked, axes = [1], block = [3]}"},
    {"%a: f32[?n, 6], %s: f32[6]", "i8[?n, 6]", "%r",
     "quantize_linear %a, %s {axis = 1, precision = f16, scaling = reciprocal} : i8"},
    {"%a: u8[2, 6], %s: f32[2, 2], %z: u8[2, 2]", "f16[2, 6]", "%r",
     "dequantize_linear %a, %s, %z {block_size = 3} : f16"},
    {"%a: u8[1, 3, 8], %s: f32[], %z: u8[], %b: i8[6, 3, 3], %t: f32[6], %v: i8[], %c: i32[6]",
     "u8[1, 6, 8]", "%r", "qlinear_conv %a, %s, %z, %b, %t, %v, %s, %z, %c {pads = [1, 1]}"},
    {"%a: u8[?n, 3], %s: f32[], %z: u8[], %b: i8[3, 4], %t: f32[4], %v: i8[]", "u8[?n, 4]", "%r",
     "qlinear_matmul %a, %s, %z, %b, %t, %v, %s, %z"},
    {"%a: f4e2m1[2, 64], %s: f8e8m0[2, 2]", "bf16[2, 64]", "%r",
     "dequantize_mx %a, %s {format = mxfp4} : bf16"},
    {"%a: bf16[2, 64]", "f4e2m1[2, 64], f8e8m0[2, 2]", "%r, %s",
     "quantize_mx %a {format = mxfp4, scale_rule = ceil_power} : f4e2m1"},
    {"%a: f32[2, 64], %t: f32[]", "f4e2m1[2, 64], f8e4m3[2, 4]", "%r, %s",
     "quantize_mx %a, %t {format = nvfp4} : f4e2m1"},
    {"%a: f32[2, 64], %t: f32[]", "f4e2m1[2, 64], f8e4m3[2, 4]", "%r, %s",
     "quantize_mx %a, %t {format = nvfp4, scaling = reciprocal} : f4e2m1"},
    {"%a: f32[2, 64]", "f32[]", "%r", "nvfp4_tensor_scale %a"},
    {"%a: u8[2, 3, 9, 9]", "u8[2, 3, 5, 5]", "%r",
     "max_pool %a {kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]}"},
};

/// A text with one operation of each op that needs no more than operands.
std::string plain_text(const OpInfo& row) {
  std::string operands;
  for (int i = 0; i < row.operands; ++i) operands += i == 0 ? "%a" : ", %a";
  const char* type = row.types == OperandClass::boolean ? "boolean"
                     : admits(row.types, ElementType::i32) && row.types != OperandClass::floating
                         ? "i32"
                         : "f32";
  const bool is_truth = row.infer == InferRule::comparison;
  return "func @f(%a: " + std::string(type) + "[?n]) -> (" + (is_truth ? "boolean" : type) +
         "[?n]) {\n  %r = " + std::string(row.name) + " " + operands + "\n  return %r\n}\n";
}

std::vector<std::string> texts() {
  std::vector<std::string> all;
  for (const OpRow& row : special_rows) {
    all.push_back("func @f(" + std::string(row.parameters) + ") -> (" + row.results + ") {\n  " +
                  row.names + " = " + row.operation + "\n  return " + row.names + "\n}\n");
  }
  for (const OpInfo& row : op_table()) {
    const bool is_plain = row.family == OpFamily::elementwise &&
                          row.suffix == TypeSuffix::optional_type &&
                          row.infer != InferRule::selection && row.infer != InferRule::promoted &&
                          row.op != OpKind::clamp;
    if (is_plain) all.push_back(plain_text(row));
  }
  all.push_back(
      "func @e(%a: f16[2]) -> (f16[2], f16[?]) attributes {excess_precision = allow} {\n"
      "  return %a, %a\n}\n");
  return all;
}

TEST(CastorCBuilder, BuildsWhatTheTextFormSays) {
  std::set<OpKind> seen;
  for (const std::string& text : texts()) {
    const Result<FunctionPtr> function = parse_function(text);
    ASSERT_TRUE(function.ok()) << function.error().to_string() << "\n" << text;
    for (const Operation& operation : (*function)->operations) seen.insert(operation.op);
    EXPECT_EQ(text_built_in_c(**function), print(**function));
  }
  for (const OpInfo& row : op_table()) EXPECT_TRUE(seen.contains(row.op)) << row.name;
}

TEST(CastorCBuilder, BuildsConstantsThatAreBoundByName) {
  ParseOptions options;
  options.bind_constant = [](std::string_view, const TensorType&) {
    return std::vector<std::byte>{std::byte{1}, std::byte{2}};
  };
  const auto function = parse_function(
      "func @f() -> (u8[2]) {\n  %0 = constant @weights : u8[2]\n  return %0\n}\n", {}, options);
  ASSERT_TRUE(function.ok()) << function.error().to_string();
  const std::string text = text_built_in_c(**function);
  EXPECT_EQ(text, print(**function));
  EXPECT_NE(text.find("@weights"), std::string::npos);
}

TEST(CastorCBuilder, BuildsRandomFunctions) {
  size_t operations = 0;
  for (uint64_t index = 0; index < 400; ++index) {
    const fuzz::Program program = fuzz::generate(fuzz::program_seed(19, index));
    const Result<FunctionPtr> function = fuzz::build_function(program);
    ASSERT_TRUE(function.ok()) << function.error().to_string();
    operations += (*function)->operations.size();
    ASSERT_EQ(text_built_in_c(**function), print(**function)) << "program " << index;
  }
  EXPECT_GT(operations, 800u);
}

/// One mistake: what leads to it, and what the message says of it.
struct MistakeRow {
  const char* name;
  castor_status status;
  const char* message;  ///< a part of it
  void (*make)(castor_builder* builder, castor_value x);
  bool is_late = false;  ///< found when all is there
};

castor_operation operation_of(const char* op, const castor_value* operands, size_t count) {
  castor_operation operation = {};
  operation.struct_size = sizeof operation;
  operation.op = op;
  operation.operands = operands;
  operation.operand_count = count;
  return operation;
}

void add_typed(castor_builder* builder, castor_tensor_type type) {
  castor_builder_input(builder, "y", &type);
}

constexpr castor_dim two = {2, nullptr};

void add_with_attribute(castor_builder* builder, castor_value x, castor_attribute attribute) {
  castor_operation operation = operation_of("clamp", &x, 1);
  operation.attributes = &attribute;
  operation.attribute_count = 1;
  castor_builder_op(builder, &operation);
}

const MistakeRow mistake_rows[] = {
    {"no type", CASTOR_INVALID_ARGUMENT, "no type of an input (NULL)",
     [](castor_builder* b, castor_value) { castor_builder_input(b, "y", nullptr); }},
    {"element type 0", CASTOR_INVALID_ARGUMENT, "input %y: element type 0, expected 1 to ",
     [](castor_builder* b, castor_value) {
       add_typed(b, {0, 0, nullptr, nullptr});
     }},
    {"element type 99", CASTOR_INVALID_ARGUMENT, "element type 99",
     [](castor_builder* b, castor_value) {
       add_typed(b, {99, 0, nullptr, nullptr});
     }},
    {"rank -1", CASTOR_INVALID_ARGUMENT, "rank -1, expected 0 to 16",
     [](castor_builder* b, castor_value) {
       add_typed(b, {CASTOR_F32, -1, nullptr, nullptr});
     }},
    {"rank 17", CASTOR_INVALID_ARGUMENT, "rank 17",
     [](castor_builder* b, castor_value) {
       add_typed(b, {CASTOR_F32, 17, &two, nullptr});
     }},
    {"no dims", CASTOR_INVALID_ARGUMENT, "no dims (NULL) for rank 1",
     [](castor_builder* b, castor_value) {
       add_typed(b, {CASTOR_F32, 1, nullptr, nullptr});
     }},
    {"extent -2", CASTOR_INVALID_ARGUMENT, "extent -2 of axis 0",
     [](castor_builder* b, castor_value) {
       const castor_dim dim = {-2, nullptr};
       add_typed(b, {CASTOR_F32, 1, &dim, nullptr});
     }},
    {"named extent", CASTOR_INVALID_ARGUMENT, "extent 2 of axis 0 is named \"n\"",
     [](castor_builder* b, castor_value) {
       const castor_dim dim = {2, "n"};
       add_typed(b, {CASTOR_F32, 1, &dim, nullptr});
     }},
    {"name of an extent", CASTOR_INVALID_FUNCTION, "",
     [](castor_builder* b, castor_value) {
       const castor_dim dim = {CASTOR_UNKNOWN, "n m"};
       add_typed(b, {CASTOR_F32, 1, &dim, nullptr});
     }},
    {"name twice", CASTOR_INVALID_FUNCTION, "%x is defined twice",
     [](castor_builder* b, castor_value) {
       const castor_tensor_type type = {CASTOR_F32, 1, &two, nullptr};
       castor_builder_input(b, "x", &type);
     }},
    {"quantized format", CASTOR_INVALID_ARGUMENT, "quantized format 5, expected 1 to 4",
     [](castor_builder* b, castor_value) {
       const castor_quantization q = {5, CASTOR_PER_TENSOR, {}, {}, {}};
       add_typed(b, {CASTOR_I8, 1, &two, &q});
     }},
    {"slices without values", CASTOR_INVALID_ARGUMENT, "scale of 3 slices without values (NULL)",
     [](castor_builder* b, castor_value) {
       const castor_quantization q = {CASTOR_SA8, CASTOR_PER_TENSOR, {nullptr, 3}, {}, {}};
       add_typed(b, {CASTOR_I8, 1, &two, &q});
     }},
    {"container", CASTOR_INVALID_FUNCTION, "fx8 is held in i16, expected i8",
     [](castor_builder* b, castor_value) {
       const int32_t frac = 3;
       const castor_quantization q = {CASTOR_FX8, CASTOR_PER_TENSOR, {}, {&frac, 1}, {}};
       add_typed(b, {CASTOR_I16, 1, &two, &q});
     }},
    {"empty scale", CASTOR_INVALID_FUNCTION, "scale of sa8",
     [](castor_builder* b, castor_value) {
       const int32_t one = 1;
       const castor_quantization q = {
           CASTOR_SA8, CASTOR_PER_TENSOR, {&one, 0}, {&one, 1}, {&one, 1}};
       add_typed(b, {CASTOR_I8, 1, &two, &q});
     }},
    {"no operation", CASTOR_INVALID_ARGUMENT, "no operation (NULL)",
     [](castor_builder* b, castor_value) { castor_builder_op(b, nullptr); }},
    {"struct_size", CASTOR_INVALID_ARGUMENT, "struct_size of castor_operation is 8",
     [](castor_builder* b, castor_value x) {
       castor_operation operation = operation_of("relu", &x, 1);
       operation.struct_size = 8;
       castor_builder_op(b, &operation);
     }},
    {"no op", CASTOR_INVALID_ARGUMENT, "no op's name (NULL)",
     [](castor_builder* b, castor_value x) { castor_builder_unary(b, nullptr, x, nullptr); }},
    {"unknown op", CASTOR_INVALID_FUNCTION, "\"foo\"",
     [](castor_builder* b, castor_value x) { castor_builder_unary(b, "foo", x, nullptr); }},
    {"operand count", CASTOR_INVALID_FUNCTION, "add: found 1 operands, expected 2",
     [](castor_builder* b, castor_value x) { castor_builder_unary(b, "add", x, nullptr); }},
    {"undefined operand", CASTOR_INVALID_FUNCTION, "operand 1 is value 7",
     [](castor_builder* b, castor_value x) { castor_builder_binary(b, "add", x, 7, nullptr); }},
    {"absent operand", CASTOR_INVALID_FUNCTION, "operand 1 is none, but it is not optional",
     [](castor_builder* b, castor_value x) {
       castor_builder_binary(b, "add", x, CASTOR_NO_VALUE, nullptr);
     }},
    {"no operands", CASTOR_INVALID_ARGUMENT, "no operands (NULL)",
     [](castor_builder* b, castor_value) {
       const castor_operation operation = operation_of("relu", nullptr, 1);
       castor_builder_op(b, &operation);
     }},
    {"no attributes", CASTOR_INVALID_ARGUMENT, "no attributes (NULL)",
     [](castor_builder* b, castor_value x) {
       castor_operation operation = operation_of("relu", &x, 1);
       operation.attribute_count = 1;
       castor_builder_op(b, &operation);
     }},
    {"attribute without a name", CASTOR_INVALID_ARGUMENT, "an attribute has no name (NULL)",
     [](castor_builder* b, castor_value x) {
       add_with_attribute(b, x, castor_integer_attribute(nullptr, 1));
     }},
    {"attribute without a text", CASTOR_INVALID_ARGUMENT, "attribute lo: no text (NULL)",
     [](castor_builder* b, castor_value x) {
       add_with_attribute(b, x, castor_identifier_attribute("lo", nullptr));
     }},
    {"attribute without integers", CASTOR_INVALID_ARGUMENT, "no integers (NULL)",
     [](castor_builder* b, castor_value x) {
       add_with_attribute(b, x, castor_integers_attribute("lo", nullptr, 2));
     }},
    {"kind of attribute", CASTOR_INVALID_ARGUMENT, "attribute lo: kind 7, expected 1 to 6",
     [](castor_builder* b, castor_value x) {
       castor_attribute attribute = castor_integer_attribute("lo", 1);
       attribute.kind = 7;
       add_with_attribute(b, x, attribute);
     }},
    {"string", CASTOR_INVALID_FUNCTION, "lo = \"a \\\"b\\\"\" is a string",
     [](castor_builder* b, castor_value x) {
       castor_attribute attribute = castor_identifier_attribute("lo", "a \"b\"");
       attribute.kind = CASTOR_ATTRIBUTE_STRING;
       add_with_attribute(b, x, attribute);
     },
     true},
    {"convert to nothing", CASTOR_INVALID_ARGUMENT, "convert: element type 0",
     [](castor_builder* b, castor_value x) { castor_builder_convert(b, x, 0, nullptr, nullptr); }},
    {"convert with a rounding", CASTOR_INVALID_ARGUMENT, "rounding 7, expected 0 to 6",
     [](castor_builder* b, castor_value x) {
       castor_convert_options options = CASTOR_CONVERT_OPTIONS;
       options.rounding = 7;
       castor_builder_convert(b, x, CASTOR_U8, &options, nullptr);
     }},
    {"constant without data", CASTOR_INVALID_ARGUMENT, "no data of a constant (NULL)",
     [](castor_builder* b, castor_value) {
       const castor_tensor_type type = {CASTOR_F32, 1, &two, nullptr};
       castor_builder_constant(b, &type, nullptr, 8, nullptr);
     }},
    {"constant without a type", CASTOR_INVALID_FUNCTION, "the full type must be written",
     [](castor_builder* b, castor_value) {
       castor_builder_constant(b, nullptr, "12345678", 8, nullptr);
     }},
    {"size of a constant", CASTOR_INVALID_FUNCTION, "7 bytes",
     [](castor_builder* b, castor_value) {
       const castor_tensor_type type = {CASTOR_F32, 1, &two, nullptr};
       castor_builder_constant(b, &type, "12345678", 7, nullptr);
     },
     true},
    {"data of another op", CASTOR_INVALID_ARGUMENT, "relu: data, which only a constant has",
     [](castor_builder* b, castor_value x) {
       castor_operation operation = operation_of("relu", &x, 1);
       operation.data = "1";
       operation.bytes = 1;
       castor_builder_op(b, &operation);
     }},
    {"binding", CASTOR_INVALID_ARGUMENT, "\"a b\" cannot name a constant",
     [](castor_builder* b, castor_value) {
       const castor_tensor_type type = {CASTOR_U8, 1, &two, nullptr};
       castor_operation operation = operation_of("constant", nullptr, 0);
       operation.type = &type;
       operation.data = "12";
       operation.bytes = 2;
       operation.binding = "a b";
       castor_builder_op(b, &operation);
     }},
    {"quantized suffix without an element", CASTOR_INVALID_ARGUMENT,
     "requantize: a quantized type without its element type",
     [](castor_builder* b, castor_value x) {
       const castor_quantization q = {CASTOR_FX8, CASTOR_PER_TENSOR, {}, {}, {}};
       const castor_tensor_type type = {CASTOR_NO_ELEMENT, CASTOR_NO_RANK, nullptr, &q};
       castor_operation operation = operation_of("requantize", &x, 1);
       operation.type = &type;
       castor_builder_op(b, &operation);
     }},
    {"no attribute of the function", CASTOR_INVALID_ARGUMENT, "no attribute (NULL)",
     [](castor_builder* b, castor_value) { castor_builder_attribute(b, nullptr); }},
    {"attribute of the function", CASTOR_INVALID_FUNCTION, "found foo = 1",
     [](castor_builder* b, castor_value) {
       const castor_attribute attribute = castor_integer_attribute("foo", 1);
       castor_builder_attribute(b, &attribute);
     },
     true},
    {"undefined output", CASTOR_INVALID_FUNCTION, "result 0 is value 9",
     [](castor_builder* b, castor_value) { castor_builder_output(b, 9, nullptr); }},
    {"declared type", CASTOR_INVALID_FUNCTION, "element types must be equal",
     [](castor_builder* b, castor_value x) {
       const castor_tensor_type type = {CASTOR_F16, 1, &two, nullptr};
       castor_builder_output(b, x, &type);
     }},
    {"type of an output", CASTOR_INVALID_ARGUMENT, "output: rank -5",
     [](castor_builder* b, castor_value x) {
       const castor_tensor_type type = {CASTOR_F16, -5, nullptr, nullptr};
       castor_builder_output(b, x, &type);
     }},
};

TEST(CastorCBuilder, TellsTheFirstMistake) {
  for (const MistakeRow& row : mistake_rows) {
    castor_error error;
    castor_builder* builder = nullptr;
    ASSERT_EQ(castor_builder_create("f", &builder, &error), CASTOR_OK);
    const castor_tensor_type type = {CASTOR_F32, 1, &two, nullptr};
    const castor_value x = castor_builder_input(builder, "x", &type);
    row.make(builder, x);
    if (row.is_late) {
      castor_builder_output(builder, x, nullptr);
    } else {
      EXPECT_EQ(castor_builder_unary(builder, "nonsense", x, nullptr), CASTOR_NO_VALUE) << row.name;
    }
    auto* function = reinterpret_cast<castor_function*>(builder);
    EXPECT_EQ(castor_builder_finish(builder, &function, &error), row.status)
        << row.name << ": " << error.message;
    EXPECT_EQ(error.status, row.status);
    EXPECT_EQ(function, nullptr) << row.name;
    EXPECT_NE(std::string_view(error.message).find(row.message), std::string_view::npos)
        << row.name << ": " << error.message;
    castor_builder_destroy(builder);
  }
}

TEST(CastorCBuilder, IsSpentAfterItsFunction) {
  castor_error error;
  castor_builder* builder = nullptr;
  castor_function* function = nullptr;
  ASSERT_EQ(castor_builder_create("f", &builder, nullptr), CASTOR_OK);
  const castor_tensor_type type = {CASTOR_F32, 0, nullptr, nullptr};
  castor_builder_output(builder, castor_builder_input(builder, nullptr, &type), nullptr);
  ASSERT_EQ(castor_builder_finish(builder, &function, &error), CASTOR_OK) << error.message;
  castor_function_destroy(function);
  EXPECT_EQ(castor_builder_input(builder, "x", &type), CASTOR_NO_VALUE);
  EXPECT_EQ(castor_builder_finish(builder, &function, &error), CASTOR_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "the builder has finished its function");
  EXPECT_EQ(function, nullptr);
  castor_builder_destroy(builder);
}

}  // namespace
}  // namespace castor::test
