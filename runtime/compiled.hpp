// SPDX-License-Identifier: Apache-2.0
// What a Kernel points to: a compiled function.
#pragma once

#include <castor/executor.hpp>

#include <memory>
#include <string>
#include <vector>

#include "ir/function.hpp"
#include "jit/emit/nest_emitter.hpp"
#include "jit/plan/nest.hpp"
#include "jit/target.hpp"
#include "runtime/cache/kernel_code.hpp"

namespace castor {
class Observer;
}

namespace castor::detail {

struct CodeStore;
struct RuntimeMemory;
struct RuntimeState;

/// Code that compiling makes ahead, in the form that a nest most likely has.
struct LikelyCode {
  jit::NestForm form;
  KernelCodePtr<jit::NestSpec> code;
};

/// A compiled function, without the names that the caller gave to its values.
struct Compiled {
  FunctionPtr function;   ///< what was compiled; without its names where these are long
  FunctionPtr canonical;  ///< what the nests were planned from
  jit::Target target;
  std::shared_ptr<CodeStore> store;
  std::shared_ptr<Observer> observer;  ///< null: nobody watches
  std::shared_ptr<const RuntimeMemory> memory;
  std::vector<jit::Nest> nests;
  std::vector<LikelyCode> likely;   ///< codes of each nest
  std::string interpreted_because;  ///< not empty: there is no code
  /// Not empty: convolutions are of a lower tier than the machine's best one could be.
  std::string lower_tier_because;
  std::shared_ptr<Executor> executor;  ///< used by calls that name none; may be null
};

/// What `engine_reason` says: why there is no code, or why it is of a lower tier.
template <class State>  // Compiled or BoundState
const std::string& reason_of(const State& state) {
  return state.interpreted_because.empty() ? state.lower_tier_because : state.interpreted_because;
}

struct KernelState {
  FunctionPtr function;
  std::shared_ptr<const Compiled> compiled;
};

/// Compiles a verified function to code, stage by stage.
Result<std::shared_ptr<const Compiled>> compile(const FunctionPtr& function,
                                                const RuntimeState& runtime);

}  // namespace castor::detail
