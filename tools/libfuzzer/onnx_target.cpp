// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: the front end for models of ONNX, on any bytes.
#include <algorithm>
#include <cstdint>

#include "ir/text/text.hpp"
#include "ir/verify/verify.hpp"
#include "runtime/onnx/plan.hpp"
#include "tools/libfuzzer/check.hpp"
#include "tools/onnx/model.hpp"

namespace castor::libfuzzer {

namespace {

/// Every taken node is in one unit, whose function is right.
void check(const onnx::Plan& plan) {
  std::vector<int> units(plan.graph.nodes.size());
  for (const onnx::Unit& unit : plan.units) {
    const Status verified = verify(*unit.function);
    if (!verified) found("a unit: " + verified.error().to_string(), print(*unit.function));
    for (const onnx::NodeIndex index : unit.nodes) ++units[index];
  }
  for (size_t i = 0; i < units.size(); ++i) {
    const bool is_taken = plan.verdicts[i].kind == onnx::Verdict::Kind::taken;
    expect(units[i] == (is_taken ? 1 : 0), "a node is in another number of units",
           plan.graph.nodes[i].op_type);
  }
  const Result<FunctionPtr> whole = whole_function(plan);
  if (!whole) return expect_refusal(whole.error(), "the whole graph");
  const Status verified = verify(**whole);
  if (!verified) found("the whole graph: " + verified.error().to_string(), print(**whole));
}

}  // namespace

}  // namespace castor::libfuzzer

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace castor::libfuzzer;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  auto graph = castor::onnx_file::parse_model(bytes, "no such folder");
  if (!graph) {
    expect_refusal(graph.error(), "a model");
    return 0;
  }
  for (const bool strict : {false, true}) {
    const auto plan = castor::onnx::make_plan(*graph, {.strict = strict});
    if (plan) {
      check(*plan);
    } else {
      expect_refusal(plan.error(), "a graph");
    }
  }
  return 0;
}
