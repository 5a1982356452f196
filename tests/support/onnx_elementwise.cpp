// SPDX-License-Identifier: Apache-2.0
#include "tests/support/onnx_elementwise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <set>

namespace castor::test {

namespace {

/// "op Exp", "ops Exp, Log"; empty where there is a rule for every node.
std::string ops_without_rule(const OnnxGraphTest& test) {
  std::set<std::string> missing;
  for (const OnnxGraphNode& node : test.nodes) {
    if (!has_onnx_rule(node.op_type)) missing.insert(node.op_type);
  }
  if (missing.empty()) return {};
  return fmt::format("{} {}", missing.size() == 1 ? "op" : "ops", fmt::join(missing, ", "));
}

}  // namespace

Result<OnnxFunction> onnx_function(const OnnxGraphTest& test, const OnnxGraphData& data,
                                   const OnnxForm& form) {
  const std::string missing = ops_without_rule(test);
  if (!missing.empty()) return Error{ErrorCode::unsupported, missing};
  OnnxTranslation translation(data, form);
  for (const OnnxGraphNode& node : test.nodes) translate(node, translation);
  for (const std::string& output : test.outputs) {
    translation.builder().result(translation.value(output).id);
  }
  if (translation.refusal()) return Error{ErrorCode::unsupported, *translation.refusal()};
  auto function = translation.builder().finish();
  if (!function) return function.error();
  const auto parameters = translation.parameters();
  return OnnxFunction{*function, {parameters.begin(), parameters.end()}};
}

std::string ops_of(const Function& function) {
  std::string text;
  for (const Operation& operation : function.operations) {
    if (operation.op == OpKind::constant) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", name_of(operation.op));
  }
  return text.empty() ? "the input itself" : text;
}

std::string to_string(const OnnxListRow& row) {
  return fmt::format("{} | {} | {}", row.name, row.runs ? "run" : "left out", row.text);
}

std::vector<OnnxListRow> read_onnx_list(const std::filesystem::path& file) {
  constexpr std::string_view between = " | ";
  std::vector<OnnxListRow> rows;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    const size_t first = line.find(between);
    const size_t second = line.find(between, first + 1);
    if (line.starts_with("#") || second == std::string::npos) continue;
    const std::string fate = line.substr(first + between.size(), second - first - between.size());
    rows.push_back({line.substr(0, first), fate == "run", line.substr(second + between.size())});
  }
  return rows;
}

void write_onnx_list(const std::filesystem::path& file, std::vector<OnnxListRow> rows) {
  std::string text;
  std::ifstream old(file);
  for (std::string line; std::getline(old, line) && line.starts_with("#");) text += line + "\n";
  old.close();
  std::ranges::sort(rows);
  for (const OnnxListRow& row : rows) text += to_string(row) + "\n";
  std::ofstream(file) << text;
}

}  // namespace castor::test
