// SPDX-License-Identifier: Apache-2.0
// Bound kernels of the C API: what they are, and running.
#include <castor/c/kernel.h>

#include <fmt/format.h>

#include <memory>
#include <type_traits>

#include "runtime/bind/bound_state.hpp"
#include "runtime/c/executor.hpp"
#include "runtime/c/guard.hpp"
#include "runtime/c/handles.hpp"
#include "runtime/c/structs.hpp"
#include "runtime/c/tensor.hpp"
#include "runtime/check/check_count.hpp"
#include "runtime/state_access.hpp"

namespace castor::c {

namespace {

/// The views of a call, without an allocation where they are few.
template <class Pointer>
class Views {
 public:
  using View = BasicView<Pointer>;

  /// `all` is "inputs"; there must be `expected` of them, and no more are read.
  Status read(const castor_view* given, size_t count, size_t expected, const char* what,
              const char* all) {
    if (Status status = needed(given, count, what); !status) return status;
    if (Status status = detail::check_count(all, count, expected); !status) return status;
    if (count > few) {
      many.resize(count);
      views = many;
    } else {
      views = {reinterpret_cast<View*>(storage), count};
      std::uninitialized_default_construct(views.begin(), views.end());
    }
    for (size_t i = 0; i < count; ++i) {
      if (Status status = read_view(given[i], {what, i}, views[i]); !status) return status;
    }
    return {};
  }
  std::span<const View> get() const { return views; }

 private:
  static constexpr size_t few = 16;
  static_assert(std::is_trivially_destructible_v<View>);

  alignas(View) std::byte storage[few * sizeof(View)];  // only views that there are get a beginning
  std::vector<View> many;
  std::span<View> views;
};

Status run(const BoundKernel& kernel, std::span<const ConstView> inputs,
           std::span<const View> outputs, const castor_run_options* options) {
  castor_run_options given;
  Status status = read_struct(options, "castor_run_options", given);
  if (!status) return status;
  if (given.stores < CASTOR_STORES_AUTOMATIC || given.stores > CASTOR_STORES_STREAMING) {
    return invalid(fmt::format("stores {}, expected 0 to {}", given.stores,
                               static_cast<int>(CASTOR_STORES_STREAMING)));
  }
  if (status = check_reserved(given.reserved, "castor_run_options"); !status) return status;
  if (given.scratch == nullptr && given.scratch_bytes != 0) {
    return invalid(fmt::format("no scratch (NULL) for its {} bytes", given.scratch_bytes));
  }
  std::optional<ExecutorFromC> executor;
  if (status = read_executor(given.executor, executor); !status) return status;
  RunOptions how;
  how.stores = static_cast<StorePolicy>(given.stores);
  how.executor = executor ? &*executor : nullptr;
  how.scratch = {static_cast<std::byte*>(given.scratch), given.scratch_bytes};
  return kernel.run(inputs, outputs, how);
}

}  // namespace

}  // namespace castor::c

extern "C" {

void castor_bound_kernel_destroy(castor_bound_kernel* bound) noexcept { delete bound; }

size_t castor_bound_kernel_output_count(const castor_bound_kernel* bound) noexcept {
  return bound == nullptr ? 0 : bound->kernel.output_shapes().size();
}

castor_extents castor_bound_kernel_output_shape(const castor_bound_kernel* bound,
                                                size_t index) noexcept {
  if (index >= castor_bound_kernel_output_count(bound)) return {nullptr, -1};
  const castor::Dims& extents = bound->kernel.output_shapes()[index];
  return {extents.begin(), extents.rank()};
}

castor_engine castor_bound_kernel_engine(const castor_bound_kernel* bound) noexcept {
  return bound == nullptr ? CASTOR_ENGINE_NONE : castor::c::to_c(bound->kernel.engine());
}

castor_tier castor_bound_kernel_tier(const castor_bound_kernel* bound) noexcept {
  return bound == nullptr ? CASTOR_TIER_NONE : castor::c::to_c(bound->kernel.tier());
}

const char* castor_bound_kernel_engine_reason(const castor_bound_kernel* bound) noexcept {
  return bound == nullptr
             ? ""
             : bound->kernel.engine_reason().data();  // ends in a null: it is a std::string's
}

size_t castor_bound_kernel_scratch_bytes(const castor_bound_kernel* bound, int32_t tasks) noexcept {
  return bound == nullptr ? 0 : bound->kernel.scratch_bytes(tasks);
}

size_t castor_bound_kernel_code_bytes(const castor_bound_kernel* bound) noexcept {
  return bound == nullptr ? 0 : bound->kernel.code_bytes();
}

castor_status castor_bound_kernel_run(const castor_bound_kernel* bound, const castor_view* inputs,
                                      size_t input_count, const castor_view* outputs,
                                      size_t output_count, const castor_run_options* options,
                                      castor_error* error) noexcept {
  using namespace castor;
  return c::guarded(error, [&]() -> Status {
    if (Status status = c::needed(bound, "bound kernel"); !status) return status;
    const detail::BoundState& state = detail::StateAccess::of(bound->kernel);
    const size_t expected_inputs = state.inputs.size();
    const size_t expected_outputs = state.outputs.size();
    c::Views<const void*> from;
    Status status = from.read(inputs, input_count, expected_inputs, "input", "inputs");
    if (!status) return status;
    c::Views<void*> to;
    status = to.read(outputs, output_count, expected_outputs, "output", "outputs");
    if (!status) return status;
    return c::run(bound->kernel, from.get(), to.get(), options);
  });
}

}  // extern "C"
