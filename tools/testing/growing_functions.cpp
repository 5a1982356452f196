// SPDX-License-Identifier: Apache-2.0
#include "tools/testing/growing_functions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace castor::test {

namespace {

/// The parts of one function.
struct Parts {
  std::vector<std::string> parameters{};
  std::vector<std::string> types{};
  std::vector<std::string> results{};
  std::string operations{};

  std::string text() const {
    return fmt::format("func @grown({}) -> ({}) {{\n{}  return {}\n}}\n",
                       fmt::join(parameters, ", "), fmt::join(types, ", "), operations,
                       fmt::join(results, ", "));
  }
};

}  // namespace

std::string inputs_of_a_shape_each(size_t operations) {
  Parts parts;
  for (size_t i = 0; i < operations; ++i) {
    parts.parameters.push_back(fmt::format("%x{}: f32[{}]", i, i + 1));
    parts.operations += fmt::format("  %y{0} = neg %x{0}\n", i);
    parts.types.push_back(fmt::format("f32[{}]", i + 1));
    parts.results.push_back(fmt::format("%y{}", i));
  }
  return parts.text();
}

std::string chain_of_reshapes(size_t operations) {
  constexpr std::array<std::string_view, 2> shapes = {"[64]", "[8, 8]"};
  Parts parts{.parameters = {"%y0: f32[64]"}};
  size_t shape = 0;
  for (size_t i = 1; i <= operations; ++i) {
    if (i % 2 == 1) {
      parts.operations += fmt::format("  %y{} = neg %y{}\n", i, i - 1);
      continue;
    }
    shape = 1 - shape;
    parts.operations += fmt::format("  %y{} = reshape %y{} : {}\n", i, i - 1, shapes[shape]);
  }
  parts.types = {fmt::format("f32{}", shapes[shape])};
  parts.results = {fmt::format("%y{}", operations)};
  return parts.text();
}

std::string chain_of_open_additions(size_t operations) {
  Parts parts{.parameters = {"%y0: f32[?, ?]"}};
  for (size_t i = 1; i <= operations; ++i) {
    parts.parameters.push_back(fmt::format("%x{}: f32[?, ?]", i));
    parts.operations += fmt::format("  %y{0} = add %y{1}, %x{0}\n", i, i - 1);
  }
  parts.types = {"f32[?, ?]"};
  parts.results = {fmt::format("%y{}", operations)};
  return parts.text();
}

std::string chain_of_elementwise(size_t operations) {
  constexpr std::array<std::string_view, 6> ops = {"mul %y{}, %x", "abs %y{}",  "min %y{}, %x",
                                                   "neg %y{}",     "relu %y{}", "sub %y{}, %x"};
  Parts parts{.parameters = {"%x: f32[?n]", "%y0: f32[?n]"}};
  for (size_t i = 1; i <= operations; ++i) {
    const std::string op = fmt::format(fmt::runtime(ops[i % ops.size()]), i - 1);
    parts.operations += fmt::format("  %y{} = {}\n", i, op);
  }
  parts.types = {"f32[?n]"};
  parts.results = {fmt::format("%y{}", operations)};
  return parts.text();
}

std::string convolutions_in_parallel(size_t operations) {
  Parts parts{.parameters = {"%w: i8[4, 4, 1, 1]"}};
  for (size_t i = 0; i < operations / 2; ++i) {
    const std::string shape = fmt::format("[1, 4, 1, {}]", i + 1);
    parts.parameters.push_back(fmt::format("%x{}: u8{}", i, shape));
    parts.operations += fmt::format(
        "  %c{0} = conv_integer %x{0}, %w\n  %y{0} = convert %c{0} {{overflow = saturate}} : u8\n",
        i);
    parts.types.push_back(fmt::format("u8{}", shape));
    parts.results.push_back(fmt::format("%y{}", i));
  }
  return parts.text();
}

}  // namespace castor::test
