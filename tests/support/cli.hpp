// SPDX-License-Identifier: Apache-2.0
// The fixture of the tests that run the castor command.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "jit/target.hpp"
#include "tests/support/command.hpp"
#include "tools/castor/npy.hpp"

namespace castor::test {

inline const std::string to_f16_text =
    "func @to_f16(%x: f32[?a, ?b]) -> (f16[?a, ?b]) {\n"
    "  %y = convert %x {overflow = saturate} : f16\n"
    "  return %y\n"
    "}\n";

/// A folder of its own, and the command.
class Cli : public testing::Test {
 protected:
  CommandResult castor(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), CASTOR_COMMAND);
    return run_command(arguments);
  }

  std::string path(const std::string& name) const { return folder_.path(name); }

  std::string write(const std::string& name, const std::string& text) const {
    write_text(path(name), text);
    return path(name);
  }

  template <class T>
  std::string write_array(const std::string& name, ElementType type, const Dims& shape,
                          const std::vector<T>& values) const {
    const auto bytes = std::as_bytes(std::span(values));
    EXPECT_TRUE(tools::write_npy(path(name), type, shape, bytes).ok());
    return path(name);
  }

  /// The values of a file that must hold this type and shape.
  template <class T>
  std::vector<T> read_array(const std::string& name, ElementType type, const Dims& shape) const {
    const Result<tools::Array> array = tools::read_npy(path(name));
    if (!array) {
      ADD_FAILURE() << array.error().message;
      return {};
    }
    EXPECT_EQ(array->element, type);
    EXPECT_EQ(array->shape, shape);
    std::vector<T> values(array->bytes.size() / sizeof(T));
    if (values.empty()) return values;  // whose data may be null
    std::memcpy(values.data(), array->bytes.data(), values.size() * sizeof(T));
    return values;
  }

  TemporaryFolder folder_;
};

inline void expect_success(const CommandResult& result) {
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
}

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "expected \"" << part << "\" in:\n" << text;
}

/// One clear line on standard error and nothing on standard output.
inline void expect_one_line(const CommandResult& result, int status, const std::string& message) {
  EXPECT_EQ(result.status, status) << message;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_EQ(result.err.rfind("castor", 0), 0u) << result.err;
  expect_contains(result.err, message);
}

/// Tiers that the command runs without --emulate.
inline std::vector<std::string> runnable_tiers() {
  std::vector<std::string> names;
  for (const jit::TierInfo& row : jit::tier_table()) {
    if (jit::host().features.contains(row.features)) names.emplace_back(row.name);
  }
  return names;
}

}  // namespace castor::test
