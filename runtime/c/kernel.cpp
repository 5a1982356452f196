// SPDX-License-Identifier: Apache-2.0
// Kernels of the C API: what they are, and binding.
#include <castor/c/kernel.h>

#include <fmt/format.h>

#include "runtime/c/guard.hpp"
#include "runtime/c/kernel.hpp"
#include "runtime/c/structs.hpp"
#include "runtime/c/tensor.hpp"
#include "runtime/check/check_count.hpp"
#include "runtime/compiled.hpp"
#include "runtime/state_access.hpp"

namespace castor::c {

namespace {

Status make_bound(Result<BoundKernel> bound, std::unique_ptr<castor_bound_kernel>& made) {
  if (!bound) return bound.error();
  made = std::make_unique<castor_bound_kernel>(castor_bound_kernel{std::move(bound).value()});
  return {};
}

Status read_all(const castor_extents* given, size_t count, const char* what,
                std::vector<Dims>& to) {
  for (size_t i = 0; i < count; ++i) {
    Result<Dims> dims = dims_of(given[i], fmt::format("{} {}", what, i));
    if (!dims) return dims.error();
    to.push_back(*dims);
  }
  return {};
}

Result<BindOptions> options_of(const castor_bind_options* options) {
  castor_bind_options given;
  Status status = read_struct(options, "castor_bind_options", given);
  if (!status) return status.error();
  status = check_reserved(given.reserved, "castor_bind_options");
  if (!status) return status.error();
  if (given.scratch < CASTOR_SCRATCH_OF_KERNEL || given.scratch > CASTOR_SCRATCH_OF_CALLER) {
    return invalid(fmt::format("scratch {} in castor_bind_options, expected 0 to {}", given.scratch,
                               static_cast<int>(CASTOR_SCRATCH_OF_CALLER)));
  }
  return BindOptions{.scratch = static_cast<ScratchOwner>(given.scratch)};
}

/// Compares the counts with the function before any entry is read.
Status check_counts(const castor_kernel& kernel, size_t shapes, size_t strides) {
  const Function& function = kernel.kernel.function();
  const size_t inputs = function.parameters.size();
  if (Status status = detail::check_count("input shapes", shapes, inputs); !status) return status;
  if (strides == 0) return {};
  return detail::check_count("strides (inputs and outputs)", strides,
                             inputs + function.results.size());
}

template <class Pointer>
Status read_all(const castor_view* given, size_t count, const char* what,
                std::vector<BasicView<Pointer>>& to) {
  to.resize(count);
  for (size_t i = 0; i < count; ++i) {
    if (Status status = read_view(given[i], {what, i}, to[i]); !status) return status;
  }
  return {};
}

}  // namespace

Status make_kernel(Result<Kernel> kernel, std::unique_ptr<castor_kernel>& made) {
  if (!kernel) return kernel.error();
  castor_function function(detail::StateAccess::of(*kernel).function);
  made.reset(new castor_kernel{std::move(kernel).value(), std::move(function)});
  return {};
}

}  // namespace castor::c

extern "C" {

const char* castor_tier_name(castor_tier tier) noexcept {
  if (tier == CASTOR_TIER_NONE) return "none";
  if (tier < 0 || tier > castor::jit::tier_count) return nullptr;
  return castor::jit::name_of(static_cast<castor::Tier>(tier - 1)).data();
}

void castor_kernel_destroy(castor_kernel* kernel) noexcept { delete kernel; }

const castor_function* castor_kernel_function(const castor_kernel* kernel) noexcept {
  return kernel == nullptr ? nullptr : &kernel->function;
}

castor_engine castor_kernel_engine(const castor_kernel* kernel) noexcept {
  return kernel == nullptr ? CASTOR_ENGINE_NONE : castor::c::to_c(kernel->kernel.engine());
}

const char* castor_kernel_engine_reason(const castor_kernel* kernel) noexcept {
  return kernel == nullptr
             ? ""
             : kernel->kernel.engine_reason().data();  // ends in a null: it is a std::string's
}

castor_tier castor_kernel_tier(const castor_kernel* kernel) noexcept {
  return kernel == nullptr ? CASTOR_TIER_NONE : castor::c::to_c(kernel->kernel.tier());
}

castor_status castor_kernel_bind(const castor_kernel* kernel, const castor_extents* shapes,
                                 size_t shape_count, const castor_extents* strides,
                                 size_t stride_count, const castor_bind_options* options,
                                 castor_bound_kernel** bound, castor_error* error) noexcept {
  using namespace castor;
  return c::guarded_make(error, bound, [&](std::unique_ptr<castor_bound_kernel>& made) -> Status {
    if (Status status = c::needed(kernel, "kernel"); !status) return status;
    if (Status status = c::needed(shapes, shape_count, "shapes"); !status) return status;
    if (Status status = c::needed(strides, stride_count, "strides"); !status) return status;
    const Result<BindOptions> how = c::options_of(options);
    if (!how) return how.error();
    Status status = c::check_counts(*kernel, shape_count, stride_count);
    if (!status) return status;
    std::vector<Dims> extents;
    status = c::read_all(shapes, shape_count, "shape of input", extents);
    if (!status) return status;
    std::vector<Dims> steps;
    status = c::read_all(strides, stride_count, "strides of tensor", steps);
    if (!status) return status;
    return c::make_bound(kernel->kernel.bind(extents, steps, *how), made);
  });
}

castor_status castor_kernel_bind_views(const castor_kernel* kernel, const castor_view* inputs,
                                       size_t input_count, const castor_view* outputs,
                                       size_t output_count, const castor_bind_options* options,
                                       castor_bound_kernel** bound, castor_error* error) noexcept {
  using namespace castor;
  return c::guarded_make(error, bound, [&](std::unique_ptr<castor_bound_kernel>& made) -> Status {
    if (Status status = c::needed(kernel, "kernel"); !status) return status;
    if (Status status = c::needed(inputs, input_count, "inputs"); !status) return status;
    if (Status status = c::needed(outputs, output_count, "outputs"); !status) return status;
    const Result<BindOptions> how = c::options_of(options);
    if (!how) return how.error();
    const Function& function = kernel->kernel.function();
    Status status = detail::check_count("inputs", input_count, function.parameters.size());
    if (status) status = detail::check_count("outputs", output_count, function.results.size());
    if (!status) return status;
    std::vector<ConstView> from;
    status = c::read_all(inputs, input_count, "input", from);
    if (!status) return status;
    std::vector<View> to;
    status = c::read_all(outputs, output_count, "output", to);
    if (!status) return status;
    return c::make_bound(kernel->kernel.bind(from, to, *how), made);
  });
}

}  // extern "C"
