// SPDX-License-Identifier: Apache-2.0
// The stages of compiling, in order: verify, canonicalise, plan, look up or emit and publish.
#include <fmt/format.h>

#include "ir/composition/expand.hpp"
#include "ir/rewrite/canonicalize.hpp"
#include "ir/verify/verify.hpp"
#include "jit/plan/access_pattern.hpp"
#include "runtime/cache/held_bytes.hpp"
#include "runtime/compiled.hpp"
#include "runtime/runtime_state.hpp"

namespace castor::detail {

namespace {

Result<FunctionPtr> expanded_function(const FunctionPtr& function) {
  return has_compositions(*function) ? expand_compositions(*function) : function;
}

/// By nest, whether its code is known before shapes are. That of convolutions and requantizations
/// depends on extents and parameters; epilogues, and what folds their results, are mostly part of
/// the kernels of convolutions.
std::vector<bool> has_likely_code(const std::vector<jit::Nest>& nests) {
  std::vector<bool> has_code;
  for (const jit::Nest& nest : nests) {
    has_code.push_back(!nest.convolution && !nest.requantization && !nest.epilogue);
  }
  for (const jit::Nest& nest : nests) {
    if (nest.folded) has_code[nest.folded->nest] = false;
  }
  return has_code;
}

}  // namespace

Result<std::shared_ptr<const Compiled>> compile(const FunctionPtr& function,
                                                const RuntimeState& runtime) {
  if (Status status = verify(*function); !status) return status.error();
  if (const size_t found = counted_name_bytes(*function); found > runtime.limits.name_bytes) {
    return limit_exceeded("@" + function->name, found, "bytes of names", runtime.limits.name_bytes);
  }
  auto compiled = std::make_shared<Compiled>();
  compiled->memory = runtime.memory;
  compiled->function = without_long_names(function);
  Result<FunctionPtr> expanded = expanded_function(compiled->function);
  if (!expanded) return expanded.error();
  compiled->canonical = canonicalize(*expanded);
  compiled->observer = runtime.observer;
  compiled->interpreted_because =
      runtime.target ? reason_interpreted(*compiled->canonical) : runtime.interpreted_because;
  if (!compiled->interpreted_because.empty()) {
    return std::shared_ptr<const Compiled>(std::move(compiled));
  }

  compiled->target = *runtime.target;
  compiled->store = runtime.store;
  compiled->executor = runtime.executor;
  compiled->nests = jit::plan_nests(*compiled->canonical, compiled->target);
  if (compiled->nests.size() > runtime.limits.nests) {
    return limit_exceeded("@" + function->name, compiled->nests.size(), "nests",
                          runtime.limits.nests);
  }
  const jit::LikelyForms forms(*compiled->canonical);
  const std::vector<bool> has_code = has_likely_code(compiled->nests);
  for (size_t i = 0; i < compiled->nests.size(); ++i) {
    const jit::Nest& nest = compiled->nests[i];
    if (nest.inputs.size() > jit::max_inputs) {
      return Error{ErrorCode::unsupported,
                   fmt::format("@{}: one of its operations reads {} tensors in different ways; at "
                               "most {} are supported",
                               function->name, nest.inputs.size(), jit::max_inputs)};
    }
    if (nest.convolution) compiled->lower_tier_because = runtime.lower_tier_because;
    if (!has_code[i]) {
      compiled->likely.emplace_back();
      continue;
    }
    jit::NestForm form = forms.form_of(nest, compiled->target);
    Result<KernelCodePtr<jit::NestSpec>> code =
        runtime.store->cache.get(nest, form, compiled->target, compiled->canonical.get());
    if (code.ok()) {
      compiled->likely.push_back({std::move(form), std::move(code).value()});
    } else if (code.error().code == ErrorCode::executable_memory) {
      compiled->interpreted_because = code.error().message;
      compiled->likely.clear();
      break;
    } else {
      return code.error();
    }
  }
  return std::shared_ptr<const Compiled>(std::move(compiled));
}

}  // namespace castor::detail
