// SPDX-License-Identifier: Apache-2.0
// Shapes that a function's last operation gives: by its types, and by extents that are bound.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ir/text/text.hpp"
#include "ir/verify/infer.hpp"

namespace castor::test {

/// A `?` for each extent.
inline Shape open_shape(const Dims& extents) { return Shape(extents.rank(), "?"); }

/// " {attributes}", or nothing.
inline std::string in_braces(const std::string& attributes) {
  return attributes.empty() ? "" : " {" + attributes + "}";
}

/// A function of parameters %x0, %x1, ... of these types that ends with `operations` and returns
/// %x0: of what rank the last operation's result is, is what is asked for.
inline std::string function_text(const std::vector<std::string>& types,
                                 const std::string& operations) {
  std::string parameters;
  for (size_t i = 0; i < types.size(); ++i) {
    parameters += fmt::format("{}%x{}: {}", i == 0 ? "" : ", ", i, types[i]);
  }
  return fmt::format("func @f({}) -> ({}) {{ {} return %x0 }}", parameters, types[0], operations);
}

/// The shape of the last operation's first result, or the message.
inline std::string inferred(const std::string& text) {
  const auto function = parse_function(text);
  if (!function) return function.error().message;
  const Function& f = **function;
  return to_string(f.type_of(f.operations.back().results[0]).shape);
}

/// The extents of the same for these extents of parameters, or the message.
inline std::string bound(const std::string& text, const std::vector<Dims>& extents) {
  const auto function = parse_function(text);
  if (!function) return function.error().message;
  const auto shapes = bind_shapes(**function, extents);
  if (shapes) return to_string(shapes->values[(*function)->operations.back().results[0]]);
  EXPECT_EQ(shapes.error().code, ErrorCode::invalid_argument);
  return shapes.error().message;
}

/// Binds a function of open types. What is wrong with its ranks alone is found when it is parsed:
/// `expected`, but for `open` shapes in place of `fixed` ones.
inline void expect_bound(const std::string& text, const std::vector<Dims>& extents,
                         std::string expected, const std::vector<Shape>& open,
                         const std::vector<Dims>& fixed) {
  if (!parse_function(text)) {
    for (size_t i = 0, from = 0; i < fixed.size(); ++i) {
      const std::string shape = " " + to_string(fixed[i]);
      const size_t at = expected.find(shape, from);
      if (at == std::string::npos) continue;  // a message names two shapes
      expected.replace(at, shape.size(), " " + to_string(open[i]));
      from = at + 1;
    }
  }
  EXPECT_EQ(bound(text, extents), expected) << text;
}

/// Types, operations on them, and the last one's shape or the message.
struct Inference {
  std::vector<std::string> types;
  std::string operation;
  std::string result;
};

}  // namespace castor::test
