// SPDX-License-Identifier: Apache-2.0
// Conversions against tests/data/convert_golden.csv, which exact rationals computed
// (tests/oracle/convert_oracle.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <string>
#include <utility>

#include "ir/numerics/scalar.hpp"

namespace castor {
namespace {

struct Row {
  ElementType from;
  ElementType to;
  ConvertOptions options;
  uint64_t input;
  uint64_t expected;
};

/// "from,to,overflow,rounding,nan,input,expected"; options may be empty, bits are hexadecimal.
Row parse_row(const std::string& line) {
  std::array<std::string, 7> fields;
  size_t begin = 0;
  for (std::string& field : fields) {
    const size_t end = std::min(line.find(',', begin), line.size());
    field = line.substr(begin, end - begin);
    begin = std::min(end + 1, line.size());
  }
  Row row{};
  row.from = element_type_named(fields[0]).value();
  row.to = element_type_named(fields[1]).value();
  if (!fields[2].empty()) row.options.overflow = overflow_named(fields[2]).value();
  if (!fields[3].empty()) row.options.rounding = rounding_named(fields[3]).value();
  if (!fields[4].empty()) row.options.nan = nan_mode_named(fields[4]).value();
  row.input = std::stoull(fields[5], nullptr, 16);
  row.expected = std::stoull(fields[6], nullptr, 16);
  return row;
}

TEST(NumericsGolden, EveryRow) {
  const std::string path = std::string(CASTOR_TEST_DATA) + "/convert_golden.csv";
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  std::string line;
  std::getline(file, line);  // where the file comes from
  std::getline(file, line);
  ASSERT_EQ(line, "from,to,overflow,rounding,nan,input,expected");
  size_t rows = 0;
  std::set<std::pair<ElementType, ElementType>> pairs;
  while (std::getline(file, line)) {
    const Row row = parse_row(line);
    ASSERT_TRUE(check_convert_options(row.from, row.to, row.options)) << line;
    const uint64_t actual = numerics::convert(row.input, row.from, row.to, row.options);
    ASSERT_EQ(actual, row.expected) << line << std::hex << "\nactual: 0x" << actual;
    pairs.insert({row.from, row.to});
    ++rows;
  }
  EXPECT_EQ(rows, 55058u);
  EXPECT_EQ(pairs.size(), 759u);
}

}  // namespace
}  // namespace castor
