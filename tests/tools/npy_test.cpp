// SPDX-License-Identifier: Apache-2.0
// .npy files: what is read, what is refused and how, what is written.
#include "tools/castor/npy.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

namespace castor::tools {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  std::vector<std::byte> bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

/// A file with this dictionary and `data` bytes of data, 1, 2, 3...
std::string file_with(const std::string& dictionary, size_t data, int version = 1) {
  std::string file("\x93NUMPY");
  file += static_cast<char>(version);
  file += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    file += static_cast<char>(dictionary.size() >> (8 * i));
  }
  file += dictionary;
  for (size_t i = 0; i < data; ++i) file += static_cast<char>(i + 1);
  return file;
}

std::string dictionary(const std::string& descr, const std::string& order,
                       const std::string& shape) {
  return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

Result<Array> parse_text(const std::string& file) { return parse_npy(bytes_of(file)); }

TEST(NpyRead, EveryTypeIsKnown) {
  const struct {
    const char* descr;
    ElementType element;
    size_t size;
  } rows[] = {
      {"'|b1'", ElementType::boolean, 1}, {"'|u1'", ElementType::u8, 1},
      {"'<u1'", ElementType::u8, 1},      {"'<u2'", ElementType::u16, 2},
      {"'<u4'", ElementType::u32, 4},     {"'<u8'", ElementType::u64, 8},
      {"'|i1'", ElementType::i8, 1},      {"'<i2'", ElementType::i16, 2},
      {"'<i4'", ElementType::i32, 4},     {"'<i8'", ElementType::i64, 8},
      {"'<f2'", ElementType::f16, 2},     {"'<f4'", ElementType::f32, 4},
      {"\"<f8\"", ElementType::f64, 8},
  };
  for (const auto& row : rows) {
    const Result<Array> array =
        parse_text(file_with(dictionary(row.descr, "False", "(2, 3)"), 6 * row.size));
    ASSERT_TRUE(array.ok()) << row.descr << ": " << array.error().message;
    EXPECT_EQ(array->element, row.element) << row.descr;
    EXPECT_EQ(array->shape, Dims({2, 3}));
    EXPECT_EQ(array->bytes.size(), 6 * row.size);
    EXPECT_EQ(array->bytes[0], std::byte{1}) << "data begin at the wrong offset";
    EXPECT_EQ(array->view().strides, Dims({3, 1}));
  }
}

TEST(NpyRead, EveryVersionIsRead) {
  for (int version = 1; version <= 3; ++version) {
    const Result<Array> array =
        parse_text(file_with(dictionary("'|u1'", "False", "(4,)"), 4, version));
    ASSERT_TRUE(array.ok()) << version << ": " << array.error().message;
    EXPECT_EQ(array->shape, Dims({4}));
    EXPECT_EQ(array->bytes, bytes_of("\x01\x02\x03\x04"));
  }
}

TEST(NpyRead, ShapesAndKeyOrder) {
  const Result<Array> scalar = parse_text(file_with(dictionary("'<f4'", "False", "()"), 4));
  ASSERT_TRUE(scalar.ok()) << scalar.error().message;
  EXPECT_EQ(scalar->shape, Dims());
  const Result<Array> empty = parse_text(file_with(dictionary("'<f4'", "False", "(5, 0)"), 0));
  ASSERT_TRUE(empty.ok()) << empty.error().message;
  EXPECT_EQ(empty->shape, Dims({5, 0}));
  const Result<Array> swapped =
      parse_text(file_with("{\"shape\":(2,),'fortran_order':False,'descr':'|i1'}", 2));
  ASSERT_TRUE(swapped.ok()) << swapped.error().message;
  EXPECT_EQ(swapped->element, ElementType::i8);
}

TEST(NpyRead, FortranOrderIsAStridedView) {
  const Result<Array> array = parse_text(file_with(dictionary("'|u1'", "True", "(2, 3, 4)"), 24));
  ASSERT_TRUE(array.ok()) << array.error().message;
  const ConstView view = array->view();
  EXPECT_EQ(view.shape, Dims({2, 3, 4}));
  EXPECT_EQ(view.strides, Dims({1, 2, 6}));
  EXPECT_EQ(view.bytes, 24u);
}

TEST(NpyRead, RefusesWhatIsWrong) {
  const auto with_shape = [](const char* shape) {
    return file_with(dictionary("'<f4'", "False", shape), 16);
  };
  const auto with_type = [](const char* descr) {
    return file_with(dictionary(descr, "False", "(4,)"), 16);
  };
  std::string long_header = file_with(dictionary("'<f4'", "False", "(4,)"), 0);
  long_header[9] = '\x7F';
  std::string version_nine = with_shape("(4,)");
  version_nine[6] = 9;
  const struct {
    std::string file;
    const char* message;
  } rows[] = {
      {"", "not an .npy file"},
      {"\x93NUMPY", "not an .npy file"},
      {"GARBAGE, LONGER THAN A HEADER", "not an .npy file"},
      {std::string("\x93NUMPY\x01\x00\x10", 9), "ends within the header's length"},
      {version_nine, "version 9.0 of .npy, expected 1.0, 2.0 or 3.0"},
      {long_header, "ends after the file"},
      {with_shape("(5,)"), "expected 20 bytes of data for f32[5], found 16"},
      {with_shape("(3,)"), "expected 12 bytes of data for f32[3], found 16"},
      {with_shape("(-4,)"), "an extent that is not negative"},
      {with_shape("(99999999999999999999,)"), "an extent below 2^63"},
      {with_shape("(4611686018427387904, 2)"), "more elements than memory can hold"},
      {with_shape("(9223372036854775807,)"), "more elements than memory can hold"},
      {with_shape("(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,4)"), "more than 16 dimensions"},
      {with_shape("(2 2)"), "expected ',' or ')'"},
      {with_shape("(2, x)"), "expected an extent or ')'"},
      {with_shape("4"), "expected '('"},
      {with_type("'>f4'"), "big endian"},
      {with_type("'<f16'"), "is not supported"},
      {with_type("'<c8'"), "is not supported"},
      {with_type("'|O'"), "is not supported"},
      {with_type("''"), "is not supported"},
      {with_type("[('a', '<f4')]"), "structured arrays are not supported"},
      {with_type("4"), "expected a type such as '<f4'"},
      {file_with(dictionary("'<f4'", "Maybe", "(4,)"), 16), "expected True or False"},
      {file_with("{'descr': '<f4', 'shape': (4,)}", 16), "lacks the key 'fortran_order'"},
      {file_with("{'descr': '<f4', 'descr': '<f4'}", 16), "has the key 'descr' twice"},
      {file_with("{'other': 1}", 16), "has the key 'other', expected descr"},
      {file_with("{'descr", 16), "expected a key in quotes"},
      {file_with("", 16), "expected '{'"},
      {file_with(dictionary("'<f4'", "False", "(4,)") + "x", 16), "the end of the header"},
  };
  for (const auto& row : rows) {
    const Result<Array> array = parse_text(row.file);
    ASSERT_FALSE(array.ok()) << "accepted, expected: " << row.message;
    EXPECT_EQ(array.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(array.error().message.find(row.message), std::string::npos)
        << "found \"" << array.error().message << "\", expected \"" << row.message << '"';
    EXPECT_EQ(array.error().message.find('\n'), std::string::npos);
  }
}

TEST(NpyRead, EveryTruncationIsRefused) {
  const std::string file = file_with(dictionary("'<f4'", "False", "(4,)"), 16);
  ASSERT_TRUE(parse_text(file).ok());
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(parse_text(file.substr(0, size)).ok()) << size;
  }
}

TEST(NpyRead, EveryDamagedByteIsHarmless) {
  const std::string file = file_with(dictionary("'<f4'", "False", "(2, 2)"), 16);
  for (size_t at = 0; at < file.size() - 16; ++at) {
    for (char value : std::string("\0\1()'-9\x7F\xFF", 9)) {
      std::string damaged = file;
      damaged[at] = value;
      const Result<Array> array = parse_text(damaged);
      if (array) {
        EXPECT_EQ(array->bytes.size(), 16u) << at << ' ' << int{value};
      }
    }
  }
}

TEST(NpyWrite, HeaderIsVersionOneAndPadded) {
  const std::string header = make_npy_header(ElementType::f32, {2, 3});
  EXPECT_EQ(header.size() % 64, 0u);
  EXPECT_EQ(header.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_EQ(header.substr(10, 61), "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  ");
  EXPECT_EQ(header.back(), '\n');
  EXPECT_EQ(static_cast<size_t>(static_cast<unsigned char>(header[8])), header.size() - 10);
  EXPECT_NE(make_npy_header(ElementType::u8, {7}).find("'shape': (7,), }"), std::string::npos);
  EXPECT_NE(make_npy_header(ElementType::u8, {}).find("'shape': (), }"), std::string::npos);
  const Dims long_shape = Dims::filled(max_rank, INT64_MAX);  // two length bytes in use
  const std::string long_header = make_npy_header(ElementType::u8, long_shape);
  EXPECT_EQ(long_header.size() % 64, 0u);
  const Result<NpyHeader> parsed = parse_npy_header(bytes_of(long_header));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->shape, long_shape);
}

TEST(NpyWrite, ReadsBack) {
  const std::string path = testing::TempDir() + "castor_npy_test.npy";
  for (const ElementInfo& row : element_table) {
    if (!npy_descr(row.type)) continue;
    const std::vector<std::byte> data(static_cast<size_t>(6 * row.bits / 8), std::byte{0xA5});
    ASSERT_TRUE(write_npy(path, row.type, {3, 1, 2}, data).ok());
    const Result<Array> array = read_npy(path);
    ASSERT_TRUE(array.ok()) << array.error().message;
    EXPECT_EQ(array->element, row.type);
    EXPECT_EQ(array->shape, Dims({3, 1, 2}));
    EXPECT_FALSE(array->fortran_order);
    EXPECT_EQ(array->bytes, data);
  }
  std::filesystem::remove(path);
}

TEST(NpyFiles, ErrorsNameTheFile) {
  const std::string path = testing::TempDir() + "castor_npy_test_absent.npy";
  const Result<Array> absent = read_npy(path);
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().code, ErrorCode::io);
  EXPECT_NE(absent.error().message.find(path), std::string::npos);
  const Result<Array> folder = read_npy(testing::TempDir());
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.error().code, ErrorCode::io);
  const Status full = write_npy("/dev/full", ElementType::u8, {1}, bytes_of("x"));
  ASSERT_FALSE(full.ok());
  EXPECT_NE(full.error().message.find("/dev/full"), std::string::npos);
}

}  // namespace
}  // namespace castor::tools
