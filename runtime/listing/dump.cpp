// SPDX-License-Identifier: Apache-2.0
// Stages of the lowering as text.
#include <fmt/format.h>
#include <castor/listing.hpp>

#include <array>

#include "ir/rewrite/canonicalize.hpp"
#include "ir/support/guarded.hpp"
#include "ir/text/text.hpp"
#include "jit/dump/dump.hpp"
#include "jit/listing/assembly_text.hpp"
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
    const Result<std::string> lines = jit::listing(
        (*codes)[nest], {.model = jit::port_model_of(target.core, jit::host().identity)});
    if (!lines) return lines.error();
    text += fmt::format("{}; nest {}\n{}", nest == 0 ? "" : "\n", nest, *lines);
  }
  return text;
}

using Dump = Result<std::string> (*)(const FunctionPtr&, const jit::Target&);
constexpr std::array<Dump, 4> dumps = {dump_ir, dump_nests, dump_lane_programs, dump_assembly};

Result<std::string> code_text(const jit::MachineCode& code, CodeFormat format,
                              const std::string& symbol) {
  switch (format) {
    case CodeFormat::gas: return jit::gas_text(code, symbol);
    case CodeFormat::hex: return jit::hex_text(code);
    case CodeFormat::mca: return jit::mca_text(code, symbol);
  }
  return Error{ErrorCode::invalid_argument,
               fmt::format("code format {}, expected 0 to 2", static_cast<int>(format))};
}

Result<std::string> code_texts(const FunctionPtr& function, CodeFormat format,
                               const jit::Target& target) {
  const auto codes = jit::emit_annotated(*canonicalize(function), target);
  if (!codes) return codes.error();
  std::string text;
  for (size_t nest = 0; nest < codes->size(); ++nest) {
    const std::string symbol = fmt::format("nest{}", nest);
    const Result<std::string> lines = code_text((*codes)[nest], format, symbol);
    if (!lines) return lines.error();
    text += fmt::format("# {}\n{}", symbol, *lines);
  }
  return text;
}

jit::Target target_of(Tier tier, Core core, bool frame_pointers) {
  jit::Target target;
  target.tier = tier;
  target.core = core;
  target.frame_pointers = frame_pointers;
  return target;
}

Error no_function() { return {ErrorCode::invalid_argument, "no function (null)"}; }

}  // namespace

Result<std::string> dump(const FunctionPtr& function, DumpStage stage, Tier tier, Core core,
                         bool frame_pointers) {
  return guarded([&]() -> Result<std::string> {
    if (function == nullptr) return no_function();
    return dumps.at(static_cast<size_t>(stage))(function, target_of(tier, core, frame_pointers));
  });
}

Result<std::string> dump_code(const FunctionPtr& function, CodeFormat format, Tier tier, Core core,
                              bool frame_pointers) {
  return guarded([&]() -> Result<std::string> {
    if (function == nullptr) return no_function();
    return code_texts(function, format, target_of(tier, core, frame_pointers));
  });
}

}  // namespace castor
