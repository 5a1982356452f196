// SPDX-License-Identifier: Apache-2.0
// Ops with what they give of C++ numbers: rows of the tests against the machine.
#pragma once

#include "ir/op.hpp"

namespace castor::test {

template <class T>
struct BinaryRow {
  OpKind op;
  T (*expected)(T a, T b);
};

template <class T>
struct UnaryRow {
  OpKind op;
  T (*expected)(T x);
};

template <class T>
struct ComparisonRow {
  OpKind op;
  bool (*expected)(T a, T b);
};

template <class T>
const ComparisonRow<T> comparison_rows[] = {
    {OpKind::equal, [](T a, T b) { return a == b; }},
    {OpKind::not_equal, [](T a, T b) { return a != b; }},
    {OpKind::less, [](T a, T b) { return a < b; }},
    {OpKind::less_equal, [](T a, T b) { return a <= b; }},
    {OpKind::greater, [](T a, T b) { return a > b; }},
    {OpKind::greater_equal, [](T a, T b) { return a >= b; }},
};

}  // namespace castor::test
