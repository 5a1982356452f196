// SPDX-License-Identifier: Apache-2.0
#include "tools/recording/recording_runtime.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "runtime/bind/bind.hpp"
#include "runtime/bind/bound_state.hpp"
#include "runtime/compiled.hpp"
#include "runtime/observe/code_name.hpp"
#include "runtime/observe/code_watcher.hpp"
#include "runtime/runtime_state.hpp"

namespace castor::tools {

namespace {

/// Pages of its own for each code, which are made to begin with a return before they get
/// executable.
jit::SystemCalls with_returns_alone() {
  jit::SystemCalls calls = jit::SystemCalls::real();
  calls.memfd_create = [](const char*, unsigned) {
    errno = ENOSYS;
    return -1;
  };
  calls.mprotect = [](void* at, size_t size, int protection) {
    constexpr unsigned char landing_and_return[] = {0xf3, 0x0f, 0x1e, 0xfa, 0xc3};  // endbr64; ret
    if ((protection & PROT_EXEC) != 0)
      std::memcpy(at, landing_and_return, sizeof landing_and_return);
    return ::mprotect(at, size, protection);
  };
  return calls;
}

/// "castor_pack_input_plain_avx2_0123abcd" -> "pack_input_plain".
std::string plain_name(std::string name, std::string_view key, jit::Tier tier) {
  for (const std::string& ending : {"_" + short_hash(key), "_" + std::string(name_of(tier))}) {
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  }
  constexpr std::string_view prefix = "castor_";
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

class Recorder final : public CodeWatcher {
 public:
  explicit Recorder(jit::Tier tier) : tier_(tier) {}
  std::shared_ptr<const void> code_made(const CodeDescription& description, std::string_view key,
                                        const jit::MachineCode& code,
                                        const jit::CodeBlock&) noexcept override {
    const std::lock_guard lock(mutex_);
    auto annotated = description.annotated();
    if (!annotated) annotated = Error{ErrorCode::internal, "the code is emitted without notes"};
    kernels_.push_back(
        {plain_name(description.name(key), key, tier_), code, std::move(*annotated), binds_});
    return nullptr;
  }
  void begin_binding() { binds_ = true; }
  std::vector<RecordedKernel> take() { return std::move(kernels_); }

 private:
  const jit::Tier tier_;
  std::mutex mutex_;
  bool binds_ = false;
  std::vector<RecordedKernel> kernels_;
};

}  // namespace

RecordingRuntime::RecordingRuntime(const jit::Target& target, RunAtBind code)
    : target_(target),
      calls_(code == RunAtBind::runs ? jit::SystemCalls::real() : with_returns_alone()) {}

Result<std::vector<RecordedKernel>> RecordingRuntime::bind(const FunctionPtr& function,
                                                           const RecordedTensors& tensors) const {
  return bind_first(SIZE_MAX, function, tensors);
}

Result<std::vector<RecordedKernel>> RecordingRuntime::bind_first(
    size_t nests, const FunctionPtr& function, const RecordedTensors& tensors) const {
  // Whatever the machine's best tier is, or CASTOR_ISA names.
  auto runtime = detail::make_runtime({.interpret = true}, calls_);
  if (!runtime) return runtime.error();
  const auto recorder = std::make_shared<Recorder>(target_.tier);
  (*runtime)->target = target_;
  (*runtime)->store = std::make_shared<detail::CodeStore>(calls_, no_limit, recorder);
  const auto compiled = detail::compile(function, **runtime);
  if (!compiled) return compiled.error();
  auto part = std::make_shared<detail::Compiled>(**compiled);
  part->nests.resize(std::min(nests, part->nests.size()));
  recorder->begin_binding();
  auto kernel = std::make_shared<const detail::KernelState>(detail::KernelState{function, part});
  // Scratch is the caller's: there is no call.
  const auto bound = detail::bind_kernel(std::move(kernel), tensors.shapes, tensors.strides,
                                         {.scratch = ScratchOwner::caller});
  if (!bound) return bound.error();
  if (!(*bound)->interpreted_because.empty()) {
    return Error{ErrorCode::executable_memory, (*bound)->interpreted_because};
  }
  return recorder->take();
}

}  // namespace castor::tools
