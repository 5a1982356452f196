// SPDX-License-Identifier: Apache-2.0
#include "runtime/onnx/extent_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace castor::onnx {

namespace {

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

/// Whether a name looks like a generated one: "v12_0".
bool looks_generated(std::string_view name) {
  const size_t bar = name.find('_');
  if (bar == std::string_view::npos || bar < 2 || name.front() != 'v') return false;
  const std::string_view axis = name.substr(bar + 1);
  return !axis.empty() && std::ranges::all_of(name.substr(1, bar - 1), is_digit) &&
         std::ranges::all_of(axis, is_digit);
}

bool may_stay(const std::string& name) {
  return identifier(name) == name && !looks_generated(name);
}

template <class Visit>
void for_each_name(Graph& graph, const Visit& visit) {
  for (Value& value : graph.values) {
    if (!value.shape) continue;
    for (Dim& dim : *value.shape) {
      if (!dim.is_fixed() && !dim.name.empty()) visit(dim.name);
    }
  }
}

}  // namespace

std::string identifier(std::string_view name) {
  std::string result;
  for (const char letter : name) {
    const bool stays =
        (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || is_digit(letter);
    result += stays ? letter : '_';
  }
  return result.empty() || is_digit(result[0]) ? "n" + result : result;
}

std::string generated_name(ValueIndex value, size_t axis) {
  return fmt::format("v{}_{}", value, axis);
}

void name_extents(Graph& graph) {
  std::set<std::string> taken;
  for_each_name(graph, [&](const std::string& name) {
    if (may_stay(name)) taken.insert(name);
  });
  std::map<std::string, std::string> renamed;
  for_each_name(graph, [&](std::string& name) {
    if (may_stay(name)) return;
    const auto [at, is_new] = renamed.try_emplace(name);
    if (is_new) {
      const std::string wanted = (looks_generated(name) ? "n_" : "") + identifier(name);
      at->second = wanted;
      for (int i = 2; !taken.insert(at->second).second; ++i) {
        at->second = fmt::format("{}_{}", wanted, i);
      }
    }
    name = at->second;
  });
}

void forget_extent_names(Graph& graph) {
  for_each_name(graph, [](std::string& name) { name.clear(); });
}

bool has_equal_extents(const Function& function) {
  std::set<std::string_view> seen;
  for (const ValueId parameter : function.parameters) {
    for (const Dim& dim : function.type_of(parameter).shape) {
      if (!dim.is_fixed() && !seen.insert(dim.name).second) return true;
    }
  }
  return false;
}

}  // namespace castor::onnx
