// SPDX-License-Identifier: Apache-2.0
// The reader of ONNX's node tests: tensors in every form that ONNX stores them in, and models.
#include "tests/support/onnx_node.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/command.hpp"

namespace castor {
namespace {

using namespace std::string_literals;

/// A length-delimited field of a protobuf message; `field` and the length are below 16 and 128.
std::string field(int number, const std::string& content) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(content.size())} +
         content;
}

/// A number from 0 to 127 as a field.
std::string number(int field, int value) {
  return {static_cast<char>(field << 3), static_cast<char>(value)};
}

/// Field numbers of TensorProto.
enum Field {
  dims = 1,
  float_data = 4,
  int32_data = 5,
  int64_data = 7,
  raw_data = 9,
  f64_data = 10,
  uint64_data = 11
};

std::string tensor(int extent, int data_type, Field data, const std::string& values) {
  return number(dims, extent) + number(2, data_type) + field(data, values);
}

std::string bytes_of(const test::OnnxTensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()};
}

struct TensorRow {
  const char* story;
  std::string message;
  ElementType element;
  int64_t count;
  std::string bytes;
};

const std::vector<TensorRow> tensor_rows = {
    {"raw data is storage", tensor(2, 5, raw_data, "\x01\x02\x03\x04"s), ElementType::i16, 2,
     "\x01\x02\x03\x04"s},
    {"float_data", tensor(1, 1, float_data, "\x00\x00\x80\x3f"s), ElementType::f32, 1,
     "\x00\x00\x80\x3f"s},
    {"double_data", tensor(1, 11, f64_data, "\1\2\3\4\5\6\7\x40"s), ElementType::f64, 1,
     "\1\2\3\4\5\6\7\x40"s},
    {"int64_data, 300", tensor(1, 7, int64_data, "\xac\x02"s), ElementType::i64, 1,
     "\x2c\x01\0\0\0\0\0\0"s},
    {"uint32 is in uint64_data", tensor(2, 12, uint64_data, "\x07\xac\x02"s), ElementType::u32, 2,
     "\7\0\0\0\x2c\x01\0\0"s},
    {"uint64_data", tensor(1, 13, uint64_data, "\x07"s), ElementType::u64, 1, "\7\0\0\0\0\0\0\0"s},
    {"int32_data, -1", tensor(1, 6, int32_data, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s),
     ElementType::i32, 1, "\xff\xff\xff\xff"s},
    {"int8 in int32_data, -1",
     tensor(1, 3, int32_data, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s), ElementType::i8, 1,
     "\xff"s},
    {"f16 bits in int32_data, 0x3c00", tensor(1, 10, int32_data, "\x80\x78"s), ElementType::f16, 1,
     "\x00\x3c"s},
    {"booleans in int32_data", tensor(2, 9, int32_data, "\1\0"s), ElementType::boolean, 2, "\1\0"s},
    {"two 4-bit elements in each value", tensor(3, 22, int32_data, "\x21\x03"s), ElementType::i4, 3,
     "\x21\x03"s},
    {"four 2-bit elements in each value", tensor(5, 25, int32_data, "\x39\x01"s), ElementType::u2,
     5, "\x39\x01"s},
    {"no elements at all", tensor(0, 1, raw_data, ""), ElementType::f32, 0, ""},
};

TEST(OnnxNode, ReadsTensorsOfEveryField) {
  for (const TensorRow& row : tensor_rows) {
    SCOPED_TRACE(row.story);
    const auto read = test::parse_onnx_tensor(row.message);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->element, row.element);
    EXPECT_EQ(read->shape, Dims{row.count});
    EXPECT_EQ(bytes_of(*read), row.bytes);
  }
}

TEST(OnnxNode, ReadsScalars) {
  const auto scalar = test::parse_onnx_tensor(number(2, 2) + field(raw_data, "\x2a"));
  ASSERT_TRUE(scalar) << scalar.error().message;
  EXPECT_EQ(scalar->element, ElementType::u8);
  EXPECT_TRUE(scalar->shape.empty());
  EXPECT_EQ(bytes_of(*scalar), "\x2a");
}

TEST(OnnxNode, LeavesTypesThatCastorLacksWithoutAnElementType) {
  for (int data_type : {0, 8, 14, 15, 29, 99}) {
    const auto read = test::parse_onnx_tensor(tensor(1, data_type, raw_data, "12345678"));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->element, std::nullopt) << data_type;
  }
}

TEST(OnnxNode, RefusesContradictions) {
  EXPECT_FALSE(test::parse_onnx_tensor(tensor(3, 5, raw_data, "\x01\x02\x03\x04"s)));
  EXPECT_FALSE(test::parse_onnx_tensor(tensor(3, 22, int32_data, "\x21"s)));
  EXPECT_FALSE(test::parse_onnx_tensor(tensor(1, 1, int32_data, "\x01"s)));
  EXPECT_FALSE(test::parse_onnx_tensor("\xff\xff"));
}

// A model with one node of three inputs, of which the second is left out and the third is an
// initializer; its attributes are an integer, integers and a text.
TEST(OnnxNode, ReadsAModelWithItsData) {
  const std::string u8_tensor = field(2, field(1, number(1, 2)));
  const std::string node = field(1, "x") + field(1, "") + field(1, "w") + field(2, "y") +
                           field(4, "ConvInteger") + field(5, field(1, "group") + number(3, 1)) +
                           field(5, field(1, "pads") + number(8, 1) + number(8, 2)) +
                           field(5, field(1, "auto_pad") + field(4, "VALID"));
  const std::string weights = tensor(2, 2, raw_data, "\5\6") + field(8, "w");
  const std::string graph = field(1, node) + field(5, weights) +
                            field(11, field(1, "x") + u8_tensor) +
                            field(12, field(1, "y") + u8_tensor);
  ASSERT_LT(graph.size(), 16384u);
  const std::string long_graph =
      std::string{7 << 3 | 2, static_cast<char>(graph.size() % 128 | 128),
                  static_cast<char>(graph.size() / 128)} +
      graph;
  const std::string opset = field(8, field(1, "other") + number(2, 9)) + field(8, number(2, 10));

  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("test_data_set_0"));
  test::write_text(folder.path("model.onnx"), long_graph + opset);
  test::write_text(folder.path("test_data_set_0/input_0.pb"), tensor(1, 2, raw_data, "\1"));
  test::write_text(folder.path("test_data_set_0/output_0.pb"), tensor(1, 2, raw_data, "\7"));

  const auto read = test::read_onnx_node_test(folder.path(""));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->op_type, "ConvInteger");
  EXPECT_EQ(read->opset, 10);
  EXPECT_EQ(read->integer("group", 7), 1);
  EXPECT_EQ(read->integer("absent", 7), 7);
  EXPECT_EQ(read->integers("pads"), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(read->text("auto_pad", "NOTSET"), "VALID");
  ASSERT_EQ(read->data_sets.size(), 1u);
  const test::OnnxDataSet& data = read->data_sets[0];
  ASSERT_EQ(data.inputs.size(), 3u);
  EXPECT_EQ(bytes_of(*data.inputs[0]), "\1");
  EXPECT_FALSE(data.inputs[1]);
  EXPECT_EQ(bytes_of(*data.inputs[2]), "\5\6");
  ASSERT_EQ(data.outputs.size(), 1u);
  EXPECT_EQ(bytes_of(data.outputs[0]), "\7");
}

TEST(OnnxNode, RefusesFunctionBodiesAndMissingFiles) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(test::read_onnx_node_test(folder.path("")).error().code, ErrorCode::io);
  const std::string two_nodes = field(1, field(4, "Cast")) + field(1, field(4, "Cast"));
  test::write_text(folder.path("model.onnx"), field(7, two_nodes));
  EXPECT_EQ(test::read_onnx_node_test(folder.path("")).error().code, ErrorCode::unsupported);
  test::write_text(folder.path("model.onnx"), field(7, field(1, field(4, "Cast"))));
  EXPECT_EQ(test::read_onnx_node_test(folder.path("")).error().code, ErrorCode::io);
}

}  // namespace
}  // namespace castor
