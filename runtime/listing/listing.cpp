// SPDX-License-Identifier: Apache-2.0
// Listings of bound kernels.
#include <fmt/format.h>
#include <castor/listing.hpp>

#include <cstring>

#include "ir/support/guarded.hpp"
#include "jit/dump/dump.hpp"
#include "jit/listing/listing.hpp"
#include "runtime/conv/epilogue.hpp"
#include "runtime/listing/emitted_codes.hpp"

namespace castor {

namespace {

/// Writes one bound kernel's listing, nest by nest in the order in which they run.
class Writer {
 public:
  explicit Writer(const detail::BoundState& bound) : bound_(bound) {}

  Result<std::string> write() {
    for (size_t n = 0; n < bound_.nests.size(); ++n) {
      if (Status status = nest(bound_.nests[n], fmt::format("nest {}", n)); !status) {
        return status.error();
      }
    }
    return std::move(text_);
  }

 private:
  const detail::Compiled& compiled() const { return *bound_.kernel->compiled; }

  void heading(std::string_view name) {
    text_ += fmt::format("{}; {}\n", text_.empty() ? "" : "\n", name);
  }

  Status nest(const detail::BoundNest& nest, const std::string& name) {
    return detail::is_elementwise(nest) ? elementwise(nest, nest.space.form, name)
                                        : large_form(nest, name);
  }

  Status elementwise(const detail::BoundNest& nest, const jit::NestForm& form,
                     const std::string& name) {
    Status status =
        detail::for_each_emitted(compiled(), nest, form, [&](const detail::EmittedCode& code) {
          heading(name + code.part);
          return append(code.code);
        });
    if (!status || nest.planned != nullptr) return status;
    if (nest.main.code == nullptr) {
      heading(name + ": no elements");
    } else {
      heading(fmt::format("{}: a copy of a tensor, {} bytes", name, nest.main.code->block.size()));
    }
    return {};
  }

  /// A convolution or requantization, then the nest that takes its result slice by slice.
  Status large_form(const detail::BoundNest& nest, const std::string& name) {
    heading(name + ", as for large tensors");
    const auto codes = jit::emit_annotated(*compiled().canonical, compiled().target);
    if (!codes && codes.error().code != ErrorCode::unsupported) return codes.error();
    if (!codes) {
      text_ += fmt::format("; no listing: {}\n", codes.error().message);
    } else {
      const auto index = static_cast<size_t>(nest.planned - compiled().nests.data());
      if (Status status = append((*codes)[index]); !status) return status;
    }
    if (!nest.epilogue) return {};
    return elementwise(nest.epilogue->nest, nest.epilogue->walk.space.form, name + ", epilogue");
  }

  Status append(const jit::MachineCode& code) {
    const Result<std::string> lines = jit::listing(code);
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
