// SPDX-License-Identifier: Apache-2.0
// Listings of bound kernels.
#include <fmt/format.h>
#include <castor/listing.hpp>

#include <cstring>

#include "ir/support/guarded.hpp"
#include "jit/dump/dump.hpp"
#include "jit/listing/listing.hpp"
#include "runtime/bind/bound_state.hpp"
#include "runtime/compiled.hpp"
#include "runtime/conv/convolution.hpp"
#include "runtime/conv/convolution_output.hpp"
#include "runtime/listing/emitted_codes.hpp"
#include "runtime/state_access.hpp"

namespace castor {

namespace {

/// Writes one bound kernel's listing, step by step in the order in which they run.
class Writer {
 public:
  explicit Writer(const detail::BoundState& bound) : bound_(bound) {}

  Result<std::string> write() {
    if (Status status = write_steps(bound_); !status) return status.error();
    return std::move(text_);
  }

 private:
  const detail::Compiled& compiled() const { return *bound_.kernel->compiled; }

  Status write_steps(const detail::BoundState& bound) {
    for (size_t n = 0; n < bound.steps.size(); ++n) {
      const std::string name = fmt::format("nest {}", n);
      Status status =
          std::visit([&](const auto& step) { return write(step, name); }, bound.steps[n]);
      if (!status) return status;
    }
    return {};
  }

  void heading(std::string_view name) {
    text_ += fmt::format("{}; {}\n", text_.empty() ? "" : "\n", name);
  }

  Status write(const detail::EmptyStep& step, const std::string& name) {
    heading(name + (step.is_folded ? ": folded by a convolution's kernels" : ": no elements"));
    return {};
  }

  Status write(const detail::PaddingStep&, const std::string& name) {
    heading(name + ": fills the padding of what is pooled");
    return {};
  }

  Status write(const detail::ElementwiseStep& step, const std::string& name) {
    if (step.program == detail::StepProgram::requantization) return large_form(step, name);
    if (step.program == detail::StepProgram::planned) return emitted(step, name);
    heading(fmt::format("{}: a copy of a tensor, {} bytes", name, step.main.code->block.size()));
    return {};
  }

  Status write(const detail::FoldStep& step, const std::string& name) {
    if (!step.combines && step.main.code != nullptr) return emitted(step, name);
    heading(step.combines ? name + ": folds partial results" : name + ": no elements");
    return {};
  }

  Status write(const detail::RowBlockStep& step, const std::string&) {
    heading(fmt::format("all nests, one block of rows after the other: {} blocks", step.count()));
    return write_steps(*step.block);
  }

  /// The convolution, then the nest that takes its result slice by slice, unless the microkernel
  /// applies it.
  Status write(const detail::ConvolutionStep& step, const std::string& name) {
    Status status = large_form(step, name);
    if (!status || !step.epilogue || step.convolution->applies_epilogue) return status;
    return emitted(*step.epilogue, name + ", epilogue");
  }

  Status write(const detail::RequantizeStep& step, const std::string& name) {
    return large_form(step, name);
  }

  Status write(const detail::TableStep& step, const std::string& name) {
    return large_form(step, name);
  }

  template <class EmittedStep>
  Status emitted(const EmittedStep& step, const std::string& name) {
    return detail::for_each_emitted(compiled(), step, [&](const detail::EmittedCode& code) {
      heading(name + code.part);
      return append(code.code);
    });
  }

  /// A convolution or requantization, whose listing does not depend on the tensors.
  Status large_form(const detail::StepBase& step, const std::string& name) {
    heading(name + ", as for large tensors");
    const auto codes = jit::emit_annotated(*compiled().canonical, bound_.target);
    if (!codes && codes.error().code != ErrorCode::unsupported) return codes.error();
    if (codes) return append((*codes)[step.nest]);
    text_ += fmt::format("; no listing: {}\n", codes.error().message);
    return {};
  }

  Status append(const jit::MachineCode& code) {
    const Result<std::string> lines =
        jit::listing(code, {.model = jit::port_model_of(bound_.target.core, jit::host().identity)});
    if (!lines) return lines.error();
    text_ += *lines;
    return {};
  }

  const detail::BoundState& bound_;
  std::string text_;
};

}  // namespace

Result<std::string> listing(const BoundKernel& kernel) {
  return guarded([&]() -> Result<std::string> {
    const detail::BoundState& bound = detail::StateAccess::of(kernel);
    if (kernel.engine() == Engine::interpreter) {
      return fmt::format("; interpreted: {}\n", bound.interpreted_because);
    }
    return Writer(bound).write();
  });
}

}  // namespace castor
