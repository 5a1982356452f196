// SPDX-License-Identifier: Apache-2.0
#include "tools/explorer/written.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "ir/text/text.hpp"

namespace castor::tools::explorer {

namespace {

/// Finds written operations by where they stand and by what they are called.
class WrittenOperations {
 public:
  explicit WrittenOperations(const Function& written) {
    for (size_t i = 0; i < written.operations.size(); ++i) {
      const Operation& operation = written.operations[i];
      const auto index = static_cast<Index>(i);
      if (operation.where.known()) by_position_[position_of(operation)] = index;
      for (const ValueId result : operation.results) by_name_[written.values[result].name] = index;
    }
  }

  Index find(const Function& canonical, const Operation& operation) const {
    if (operation.where.known()) {
      const auto found = by_position_.find(position_of(operation));
      if (found != by_position_.end()) return found->second;
    }
    for (const ValueId result : operation.results) {
      const auto found = by_name_.find(canonical.values[result].name);
      if (found != by_name_.end()) return found->second;
    }
    return none;
  }

 private:
  static std::pair<uint32_t, uint32_t> position_of(const Operation& operation) {
    return {operation.where.line, operation.where.column};
  }

  std::map<std::pair<uint32_t, uint32_t>, Index> by_position_;
  std::map<std::string_view, Index> by_name_;
};

/// The first operation after `index` that reads a result of it; the number of operations where
/// none does.
size_t first_reader(const Function& function, size_t index) {
  const std::vector<ValueId>& results = function.operations[index].results;
  const auto reads = [&](const Operation& operation) {
    return std::ranges::find_first_of(operation.operands, results) != operation.operands.end();
  };
  const auto after = function.operations.begin() + static_cast<ptrdiff_t>(index) + 1;
  return static_cast<size_t>(std::find_if(after, function.operations.end(), reads) -
                             function.operations.begin());
}

}  // namespace

std::vector<Index> written_operations(const Function& written, const Function& canonical) {
  const WrittenOperations known(written);
  std::vector<Index> origins(canonical.operations.size(), none);
  for (size_t i = origins.size(); i-- > 0;) {
    origins[i] = known.find(canonical, canonical.operations[i]);
    if (origins[i] != none) continue;
    const size_t reader = first_reader(canonical, i);
    if (reader < origins.size()) origins[i] = origins[reader];
  }
  return origins;
}

std::vector<WrittenLine> written_lines(const Function& written, const Function& canonical) {
  const std::vector<Index> origins = written_operations(written, canonical);
  std::vector<WrittenLine> lines;
  for (OperationLine& line : operation_lines(written)) {
    WrittenLine made = {.text = std::move(line.text), .operation = line.operation, .became = {}};
    for (size_t i = 0; i < origins.size() && line.operation != none; ++i) {
      if (origins[i] == line.operation) made.became.push_back(static_cast<Index>(i));
    }
    lines.push_back(std::move(made));
  }
  return lines;
}

}  // namespace castor::tools::explorer
