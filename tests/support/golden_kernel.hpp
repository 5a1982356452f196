// SPDX-License-Identifier: Apache-2.0
// Kernels of tests/data/golden/listings/: what a file's head says, and the listing that follows
// from it. The format: tests/data/golden/README.md.
#pragma once

#include <map>
#include <sstream>
#include <string>
#include <string_view>

#include "ir/rewrite/canonicalize.hpp"
#include "ir/text/text.hpp"
#include "jit/dump/annotate.hpp"
#include "jit/dump/dump.hpp"
#include "jit/emit/nest_emitter.hpp"
#include "jit/lane/builder.hpp"
#include "jit/lane/optimize.hpp"
#include "jit/listing/listing.hpp"
#include "tests/support/golden_spec.hpp"

namespace castor::test {

/// Parts a file's head from the listing.
inline constexpr std::string_view end_of_head = "----\n";

/// What the head of a file asks for.
struct GoldenKernel {
  std::string head;  ///< the text, without `end_of_head`
  jit::Target target;
  FunctionPtr function;    ///< null where no function gives the code
  jit::NestForm form;      ///< every nest's; no access classes: dense
  bool is_likely = false;  ///< in place of `form`: each nest's likely one, as `castor dump` has it
  /// In place of nests: the kernel itself. The function, if there is one, is then a convolution
  /// with the epilogue that the kernel applies.
  std::optional<KernelSpec> spec{};
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
  } else if (key == "core") {
    const auto core = jit::core_named(value);
    if (!core) return bad_head(key, value, "a core of the tuning table");
    kernel.target.core = *core;
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
  } else if (key == "frame_pointers") {
    if (value != "kept") return bad_head(key, value, "kept");
    kernel.target.frame_pointers = true;
  } else if (key == "stores") {
    if (value != "streaming") return bad_head(key, value, "streaming");
    kernel.form.stores = jit::Stores::streaming;
  } else if (key == "form") {
    if (value != "likely") return bad_head(key, value, "likely");
    kernel.is_likely = true;
  } else if (key == "kernel") {
    Result<KernelSpec> spec = read_kernel_spec(value);
    if (!spec) return spec.error();
    kernel.spec = std::move(spec).value();
  } else if (key == "blocks") {
    if (!kernel.spec) return bad_head(key, value, "a kernel that the blocks are of");
    return read_blocks(value, *kernel.spec);
  } else if (key == "lanes") {
    if (value != "more values than registers") return bad_head(key, value, "a built-in program");
  } else {
    return bad_head(
        key, value,
        "one of the keys tier, core, loops, access, frame_pointers, stores, form, kernel, blocks, "
        "lanes");
  }
  return {};
}

/// Reads the head of a file's text. Fails where a directive or the function is wrong.
inline Result<GoldenKernel> read_golden_kernel(const std::string& text) {
  GoldenKernel kernel;
  kernel.head = text.substr(0, text.find(end_of_head));
  const auto directives = directives_of(kernel.head);
  if (!directives.contains("tier")) return Error{ErrorCode::invalid_argument, "no tier is named"};
  for (const bool is_blocks : {false, true}) {  // which need the kernel
    for (const auto& [key, value] : directives) {
      if ((key == "blocks") != is_blocks) continue;
      const Status status = read_directive(key, value, kernel);
      if (!status) return status.error();
    }
  }
  const bool has_function = kernel.head.find("func @") != std::string::npos;
  if (directives.contains("lanes") || (kernel.spec && !has_function)) return kernel;
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
    if (form.access.empty()) form.access = nest.dense_form().access;
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
  return emit_nest(made.nest, made.form, kernel.target, {.annotate = true});
}

/// What the kernel applies to its sums: the operations after the function's convolution. Fails
/// where kernels of this tier cannot apply them.
inline Result<jit::TileEpilogue> epilogue_of(const GoldenKernel& kernel) {
  const std::vector<jit::Nest> nests = plan_nests(*kernel.function, kernel.target);
  if (nests.size() == 2 && nests[0].convolution && nests[1].epilogue) {
    auto epilogue = likely_tile_epilogue(*kernel.function, nests[1], kernel.target);
    if (epilogue) return std::move(*epilogue);
  }
  return Error{ErrorCode::invalid_argument,
               "a convolution with an epilogue that kernels apply is expected"};
}

inline Result<jit::MachineCode> emit_golden_spec(const GoldenKernel& kernel) {
  if (!kernel.function) {
    return emit_spec(*kernel.spec, kernel.target, nullptr, {.annotate = true});
  }
  const Result<jit::TileEpilogue> epilogue = epilogue_of(kernel);
  if (!epilogue) return epilogue.error();
  return emit_spec(*kernel.spec, kernel.target, &*epilogue, jit::annotated_with(*kernel.function));
}

/// Every code that the file lists.
inline Result<std::vector<jit::MachineCode>> golden_codes(const GoldenKernel& kernel) {
  if (kernel.is_likely) return emit_annotated(*kernel.function, kernel.target);
  std::vector<jit::MachineCode> codes;
  const auto add = [&](Result<jit::MachineCode> code) -> Status {
    if (!code) return code.error();
    codes.push_back(std::move(code).value());
    return {};
  };
  if (kernel.spec) {
    if (Status status = add(emit_golden_spec(kernel)); !status) return status.error();
    return codes;
  }
  for (const GoldenNest& made : nests_of(kernel)) {
    if (Status status = add(emit_golden(kernel, made)); !status) return status.error();
  }
  return codes;
}

/// The whole text that the file should have: its head, and the listing of every code. Fails also
/// where an instruction is none of the tier's.
inline Result<std::string> golden_text(const GoldenKernel& kernel) {
  std::string text = kernel.head + std::string(end_of_head);
  const Result<std::vector<jit::MachineCode>> codes = golden_codes(kernel);
  if (!codes) return codes.error();
  for (size_t i = 0; i < codes->size(); ++i) {
    const jit::MachineCode& code = (*codes)[i];
    const Status features = check_features(code, kernel.target);
    if (!features) return features.error();
    const Status unwinding = check_unwinding(code);
    if (!unwinding) return unwinding.error();
    const Result<std::string> lines = listing(code, {.compact = true});
    if (!lines) return lines.error();
    if (codes->size() > 1) text += "; nest " + std::to_string(i) + "\n";
    text += *lines;
  }
  return text;
}

}  // namespace castor::test
