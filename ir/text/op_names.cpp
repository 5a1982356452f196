// SPDX-License-Identifier: Apache-2.0
#include "ir/text/op_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "ir/op.hpp"

namespace castor::text {

namespace {

/// Names further away are no help.
constexpr size_t near = 2;

/// Letters to insert, drop or replace (Levenshtein's distance), counted up to near + 1.
size_t distance(std::string_view a, std::string_view b) {
  if (std::max(a.size(), b.size()) > std::min(a.size(), b.size()) + near) return near + 1;
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

/// How far a name is from what was found: `maximum` begins with `max`.
size_t farness(std::string_view found, std::string_view name) {
  if (name.size() >= 3 && found.starts_with(name)) return 0;
  const size_t letters = distance(found, name);
  return 2 * letters > name.size() ? near + 1 : letters;  // `foo` is not `floor`
}

}  // namespace

std::string expected_op(std::string_view found) {
  std::vector<std::string_view> nearest;
  size_t min = near;
  for (const OpInfo& row : op_table()) {
    const size_t here = farness(found, row.name);
    if (here < min) nearest.clear();
    if (here <= min) nearest.push_back(row.name);
    min = std::min(min, here);
  }
  if (!nearest.empty()) return fmt::format("an operation such as {}", fmt::join(nearest, ", "));
  for (const OpInfo& row : op_table()) nearest.push_back(row.name);
  return fmt::format("an operation: {}", fmt::join(nearest, ", "));
}

}  // namespace castor::text
