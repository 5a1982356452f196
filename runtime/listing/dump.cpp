// SPDX-License-Identifier: Apache-2.0
// Stages of the lowering as text.
#include <fmt/format.h>
#include <castor/listing.hpp>

#include <array>

#include "ir/rewrite/canonicalize.hpp"
#include "ir/support/guarded.hpp"
#include "ir/text/text.hpp"
#include "jit/dump/dump.hpp"
#include "jit/listing/listing.hpp"

namespace castor {

namespace {

Result<std::string> dump_ir(const FunctionPtr& function, const jit::Target&) {
  const FunctionPtr canonical = canonicalize(function);
  std::string text = print(*function);
  if (canonical == function) return text;
  return text + "\n// canonicalised:\n" + print(*canonical);
}

Result<std::string> dump_nests(const FunctionPtr& function, const jit::Target& target) {
  return jit::dump_nest(*canonicalize(function), target);
}

Result<std::string> dump_lane_programs(const FunctionPtr& function, const jit::Target& target) {
  return jit::dump_lanes(*canonicalize(function), target);
}

Result<std::string> dump_assembly(const FunctionPtr& function, const jit::Target& target) {
  const auto codes = jit::emit_annotated(*canonicalize(function), target);
  if (!codes) return codes.error();
  std::string text;
  for (size_t nest = 0; nest < codes->size(); ++nest) {
    const Result<std::string> lines = jit::listing((*codes)[nest]);
    if (!lines) return lines.error();
    text += fmt::format("{}; nest {}\n{}", nest == 0 ? "" : "\n", nest, *lines);
  }
  return text;
}

using Dump = Result<std::string> (*)(const FunctionPtr&, const jit::Target&);
constexpr std::array<Dump, 4> dumps = {dump_ir, dump_nests, dump_lane_programs, dump_assembly};

}  // namespace

Result<std::string> dump(const FunctionPtr& function, DumpStage stage, Tier tier, Core core) {
  return guarded([&]() -> Result<std::string> {
    if (function == nullptr) return Error{ErrorCode::invalid_argument, "no function (null)"};
    jit::Target target;
    target.tier = tier;
    target.core = core;
    return dumps.at(static_cast<size_t>(stage))(function, target);
  });
}

}  // namespace castor
