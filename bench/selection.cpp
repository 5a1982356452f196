// SPDX-License-Identifier: Apache-2.0
#include "bench/selection.hpp"

#include <fmt/format.h>

namespace castor::bench {

Result<Selection> Selection::parse(std::string filter) {
  if (filter.empty() || filter == "all") filter = ".";
  Selection selection;
  selection.inverted_ = filter.front() == '-';
  if (selection.inverted_) filter.erase(0, 1);
  auto expression = std::make_unique<regex_t>();
  if (const int code = regcomp(expression.get(), filter.c_str(), REG_EXTENDED | REG_NOSUB)) {
    char message[128] = "";
    regerror(code, expression.get(), message, sizeof message);
    return Error{ErrorCode::invalid_argument,
                 fmt::format("--benchmark_filter '{}': {}", filter, message)};
  }
  selection.expression_.reset(expression.release());
  return selection;
}

bool Selection::operator()(const std::string& name) const {
  const bool found = regexec(expression_.get(), name.c_str(), 0, nullptr, 0) == 0;
  const bool selected = found != inverted_;
  count_ += selected ? 1 : 0;
  return selected;
}

}  // namespace castor::bench
