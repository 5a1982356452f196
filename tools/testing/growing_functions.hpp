// SPDX-License-Identifier: Apache-2.0
// Functions of as many operations as one likes, whose nests grow in number with them: for tests and
// for the benchmark of compile times.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace castor::test {

/// One kind of function.
struct GrowingFunction {
  std::string_view name;
  std::string (*text)(size_t operations);  ///< a function of exactly n operations
};

/// An operation on each of many inputs, each of another shape: a nest each.
std::string inputs_of_a_shape_each(size_t operations);
/// One chain of elementwise operations, in turn with reshapes: a nest for every two.
std::string chain_of_reshapes(size_t operations);
/// Additions of one more input each, whose unknown extents may all be broadcast: ten to a nest.
std::string chain_of_open_additions(size_t operations);
/// One chain of elementwise operations of one shape: 192 to a nest.
std::string chain_of_elementwise(size_t operations);
/// Convolutions in parallel, each of another shape, each followed by a conversion of its own.
std::string convolutions_in_parallel(size_t operations);

inline constexpr std::array<GrowingFunction, 5> growing_functions = {{
    {"inputs", inputs_of_a_shape_each},
    {"reshapes", chain_of_reshapes},
    {"adds", chain_of_open_additions},
    {"elementwise", chain_of_elementwise},
    {"convolutions", convolutions_in_parallel},
}};

}  // namespace castor::test
