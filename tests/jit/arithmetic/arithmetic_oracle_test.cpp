// SPDX-License-Identifier: Apache-2.0
// Every op of types of at most 16 bits against exact rationals: writes what the interpreter gives
// for every code and every pair of 8-bit codes, and has tests/oracle/arithmetic_oracle.py compare.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "tests/support/command.hpp"
#include "tests/support/element_types.hpp"
#include "tests/support/interpreted.hpp"
#include "tests/support/long_form.hpp"
#include "tools/testing/samples.hpp"

namespace castor {
namespace {

using test::Patterns;

/// Elements of a type that binary ops take in pairs: all, or of 16-bit types the extreme ones of
/// each kind and a choice of boundary and random patterns.
std::vector<uint64_t> inputs_of(ElementType type) {
  if (bits_of(type) <= 8) return samples::all_patterns(type);
  const size_t share = test::long_form() ? 200 : 60;
  std::set<uint64_t> chosen = {0, 1, 2, 3, 0x7fff, 0x7ffe, 0x8000, 0x8001, 0x8002, 0xffff, 0xfffe};
  if (is_float(type)) {
    const int mantissa = info(type).format.mantissa_bits;
    const uint64_t infinity = 0x7fff >> mantissa << mantissa;
    const uint64_t one = static_cast<uint64_t>(info(type).format.bias) << mantissa;
    for (uint64_t middle :
         {infinity, one, one + (uint64_t{1} << mantissa), uint64_t{1} << mantissa}) {
      for (uint64_t pattern : {middle - 2, middle - 1, middle, middle + 1, middle + 2}) {
        chosen.insert(pattern);
        chosen.insert(pattern | 0x8000);
      }
    }
  }
  const std::vector<uint64_t> boundaries = samples::boundary_patterns(type);
  for (size_t i = 0; i < share; ++i) chosen.insert(boundaries[i * boundaries.size() / share]);
  for (uint64_t pattern : samples::random_patterns(type, share, 3)) chosen.insert(pattern);
  return {chosen.begin(), chosen.end()};
}

/// A bound of clamp, as the attribute has it and as the manifest says it.
struct Bound {
  std::optional<AttributeValue> value;
  std::string text = "-";
};

Bound bound(int64_t integer) { return {AttributeValue{integer}, std::to_string(integer)}; }

Bound bound(double number) {
  char text[64];
  std::snprintf(text, sizeof(text), "%a", number);
  return {AttributeValue{number}, text};
}

const std::vector<std::pair<Bound, Bound>>& clamp_bounds() {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  static const std::vector<std::pair<Bound, Bound>> bounds = {
      {{}, {}},
      {bound(int64_t{0}), {}},
      {{}, bound(int64_t{0})},
      {bound(int64_t{-3}), bound(int64_t{5})},
      {bound(-0.0), bound(6.0)},
      {bound(0.0), bound(-0.0)},
      {bound(-0.3), bound(0.7)},
      {bound(2.5), bound(-1.5)},  // lo > hi gives hi
      {bound(-1e9), bound(1e9)},
      {bound(int64_t{1} << 40), {}},
      {{}, bound(-(int64_t{1} << 40))},
      {bound(-infinity), bound(infinity)},
      {bound(infinity), {}},
      {{}, bound(-infinity)},
      {bound(1.0 + 0x1p-9), bound(0x1p-30)},
      {bound(-1e-300), bound(1e-300)},
  };
  return bounds;
}

/// Writes files of results and the lines of the manifest.
class Writer {
 public:
  explicit Writer(const test::TemporaryFolder& folder)
      : folder_(folder), manifest_(folder.path("manifest.txt")) {}

  void write_inputs(ElementType type) {
    if (bits_of(type) > 8) write(std::string(name_of(type)) + ".inputs", type, inputs_of(type));
  }

  void write_unary(OpKind op, ElementType type, const Bound& lo = {}, const Bound& hi = {}) {
    Attributes attributes;
    if (lo.value) attributes.push_back({"lo", *lo.value});
    if (hi.value) attributes.push_back({"hi", *hi.value});
    const Patterns x = test::row_of(type, samples::all_patterns(type));
    add(op, type, test::interpreted(op, {x}, attributes), lo, hi);
  }

  /// Each with each: a column and a row.
  void write_binary(OpKind op, ElementType type) {
    const std::vector<uint64_t> inputs = inputs_of(type);
    const Patterns column{type, {static_cast<int64_t>(inputs.size()), 1}, inputs};
    add(op, type, test::interpreted(op, {column, test::row_of(type, inputs)}), {}, {});
  }

 private:
  void add(OpKind op, ElementType type, const Patterns& result, const Bound& lo, const Bound& hi) {
    const std::string file = std::to_string(files_++) + ".results";
    write(file, result.type, result.elements);
    manifest_ << file << " " << name_of(op) << " " << name_of(type) << " " << lo.text << " "
              << hi.text << "\n";
    manifest_.flush();
    ASSERT_TRUE(manifest_);
  }

  void write(const std::string& name, ElementType type, const std::vector<uint64_t>& elements) {
    std::string bytes;
    for (uint64_t element : elements) {
      bytes.push_back(static_cast<char>(element & 0xff));
      if (bits_of(type) > 8) bytes.push_back(static_cast<char>(element >> 8));
    }
    test::write_text(folder_.path(name), bytes);
  }

  const test::TemporaryFolder& folder_;
  std::ofstream manifest_;
  int files_ = 0;
};

/// Ops that compute each element of the result from elements of one type.
bool computes(OpKind op) {
  return info(op).family == OpFamily::elementwise && op != OpKind::convert &&
         op != OpKind::convert_promote_types && op != OpKind::select;
}

void write_results(Writer& writer, ElementType type) {
  writer.write_inputs(type);
  for (const OpInfo& row : op_table()) {
    if (!computes(row.op) || !admits(row.types, type)) continue;
    if (row.op == OpKind::clamp) {
      for (const auto& [lo, hi] : clamp_bounds()) writer.write_unary(row.op, type, lo, hi);
    } else if (row.operands == 1) {
      writer.write_unary(row.op, type);
    } else {
      writer.write_binary(row.op, type);
    }
  }
}

TEST(ArithmeticOracle, EveryOpOfNarrowTypes) {
  const test::TemporaryFolder folder;
  Writer writer(folder);
  for (ElementType type : test::value_types()) {
    if (bits_of(type) <= 16) write_results(writer, type);
  }
  const test::CommandResult result =
      test::run_command({CASTOR_PYTHON, "-B", CASTOR_ORACLE, folder.path("")});
  ASSERT_EQ(result.status, 0) << result.out << result.err;
  EXPECT_GT(std::stoll(result.out), 9'000'000) << result.out;  // it begins with their number
  std::cout << result.out;
}

}  // namespace
}  // namespace castor
