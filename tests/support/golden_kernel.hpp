// SPDX-License-Identifier: Apache-2.0
// Kernels of tests/data/golden/listings/: what a file's head says, and the listing that follows
// from it. The format: tests/data/golden/README.md.
#pragma once

#include <map>
#include <sstream>
#include <string>
#include <string_view>

#include "ir/canonicalize.hpp"
#include "ir/text.hpp"
#include "jit/dump.hpp"
#include "jit/emit/nest_emitter.hpp"
#include "jit/lane/builder.hpp"
#include "jit/lane/optimize.hpp"
#include "jit/listing/listing.hpp"

namespace castor::test {

/// Parts a file's head from the listing.
inline constexpr std::string_view end_of_head = "----\n";

/// What the head of a file asks for.
struct GoldenKernel {
  std::string head;  ///< the text, without `end_of_head`
  jit::Target target;
  FunctionPtr function;  ///< null for a lane program that no function gives
  jit::NestForm form;    ///< of every nest; no access classes: dense
};

/// One nest, ready to be emitted.
struct GoldenNest {
  jit::Nest nest;
  jit::NestForm form;
};

/// "// tier: avx2" and the like, by key.
inline std::map<std::string, std::string> directives_of(const std::string& head) {
  std::map<std::string, std::string> found;
  std::istringstream stream(head);
  for (std::string line; std::getline(stream, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("// ") && colon != std::string::npos) {
      found[line.substr(3, colon - 3)] = line.substr(colon + 2);
    }
  }
  return found;
}

inline Error bad_head(const std::string& key, const std::string& value, std::string_view expected) {
  return {ErrorCode::invalid_argument,
          "'" + key + ": " + value + "', expected " + std::string(expected)};
}

inline Status read_directive(const std::string& key, const std::string& value,
                             GoldenKernel& kernel) {
  if (key == "tier") {
    const auto tier = jit::tier_named(value);
    if (!tier) return bad_head(key, value, "a tier");
    kernel.target.tier = *tier;
  } else if (key == "loops") {
    kernel.form.rank = std::atoi(value.c_str());
    if (kernel.form.rank < 1) return bad_head(key, value, "a number from 1 on");
  } else if (key == "access") {
    std::istringstream words(value);
    for (std::string word; words >> word;) {
      using enum jit::Access;
      const jit::Access all[] = {contiguous, strided, bitwise};
      const auto* const access =
          std::ranges::find_if(all, [&](jit::Access known) { return word == jit::name_of(known); });
      if (access == std::end(all)) {
        return bad_head(key, value, "contiguous, strided or bitwise for each operand");
      }
      kernel.form.access.push_back(*access);
    }
  } else if (key == "stores") {
    if (value != "streaming") return bad_head(key, value, "streaming");
    kernel.form.stores = jit::Stores::streaming;
  } else if (key == "lanes") {
    if (value != "more values than registers") return bad_head(key, value, "a built-in program");
  } else {
    return bad_head(key, value, "one of the keys tier, loops, access, stores, lanes");
  }
  return {};
}

/// Reads the head of a file's text. Fails where a directive or the function is wrong.
inline Result<GoldenKernel> read_golden_kernel(const std::string& text) {
  GoldenKernel kernel;
  kernel.head = text.substr(0, text.find(end_of_head));
  const auto directives = directives_of(kernel.head);
  if (!directives.contains("tier")) return Error{ErrorCode::invalid_argument, "no tier is named"};
  for (const auto& [key, value] : directives) {
    const Status status = read_directive(key, value, kernel);
    if (!status) return status.error();
  }
  if (directives.contains("lanes")) return kernel;
  const Result<FunctionPtr> function = parse_function(kernel.head);
  if (!function) return function.error();
  kernel.function = canonicalize(*function);
  return kernel;
}

/// More values alive than the tier has registers: partial sums, all needed at the end.
inline jit::Nest nest_with_more_values_than_registers(const jit::Target& target) {
  const auto alive = static_cast<size_t>(target.vector_registers()) + 2;
  jit::Nest nest;
  nest.inputs = {0};
  nest.outputs = {0};
  nest.program.sources = {{ElementType::i32}};
  nest.program.sinks = {{ElementType::i32}};
  jit::LaneBuilder builder(target, nest.program);
  std::vector<jit::LaneId> sums = {builder.load(0, jit::LaneType::i32)};
  while (sums.size() < alive) sums.push_back(builder.add(sums.back(), sums.front()));
  jit::LaneId all = sums.back();
  for (size_t i = alive - 1; i-- > 0;) all = builder.bit_xor(all, sums[i]);
  builder.store(0, all, jit::Narrowing::truncate);
  optimize(nest.program, target);
  return nest;
}

inline std::vector<GoldenNest> nests_of(const GoldenKernel& kernel) {
  std::vector<jit::Nest> nests;
  if (kernel.function) {
    nests = plan_nests(*kernel.function, kernel.target);
  } else {
    nests.push_back(nest_with_more_values_than_registers(kernel.target));
  }
  std::vector<GoldenNest> made;
  for (jit::Nest& nest : nests) {
    jit::NestForm form = kernel.form;
    if (form.access.empty()) form.access = jit::NestForm::dense(nest.operands()).access;
    made.push_back({std::move(nest), std::move(form)});
  }
  return made;
}

/// Emits one nest with notes. Fails where the form has not one access class for each operand.
inline Result<jit::MachineCode> emit_golden(const GoldenKernel& kernel, const GoldenNest& made) {
  if (made.form.access.size() != made.nest.operands()) {
    return Error{ErrorCode::invalid_argument, "as many access classes as operands are expected: " +
                                                  std::to_string(made.nest.operands())};
  }
  if (kernel.function) {
    return emit_annotated(*kernel.function, made.nest, made.form, kernel.target);
  }
  jit::EmitOptions options;
  options.annotate = true;
  return emit_nest(made.nest, made.form, kernel.target, options);
}

/// The whole text that the file should have: its head, and the listing of every nest. Fails also
/// where an instruction is none of the tier's.
inline Result<std::string> golden_text(const GoldenKernel& kernel) {
  std::string text = kernel.head + std::string(end_of_head);
  const std::vector<GoldenNest> nests = nests_of(kernel);
  for (size_t i = 0; i < nests.size(); ++i) {
    const Result<jit::MachineCode> code = emit_golden(kernel, nests[i]);
    if (!code) return code.error();
    const Status features = check_features(*code, kernel.target);
    if (!features) return features.error();
    const Result<std::string> lines = listing(*code, {.compact = true});
    if (!lines) return lines.error();
    if (nests.size() > 1) text += "; nest " + std::to_string(i) + "\n";
    text += *lines;
  }
  return text;
}

}  // namespace castor::test
