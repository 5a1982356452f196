// SPDX-License-Identifier: Apache-2.0
// Bound kernels of the C API: what they are, and running.
#include <castor/c/kernel.h>

#include <fmt/format.h>

#include <memory>
#include <type_traits>

#include "runtime/c/guard.hpp"
#include "runtime/c/handles.hpp"
#include "runtime/c/structs.hpp"
#include "runtime/c/tensor.hpp"

namespace castor::c {

namespace {

constexpr size_t run_options_1 = sizeof(castor_run_options);
constexpr size_t executor_1 = sizeof(castor_executor);

/// The views of a call, without an allocation where they are few.
template <class Pointer>
class Views {
 public:
  using View = BasicView<Pointer>;

  Status read(const castor_view* given, size_t count, const char* what) {
    if (Status status = needed(given, count, what); !status) return status;
    if (count > few) {
      many.resize(count);
      views = many;
    } else {
      views = {reinterpret_cast<View*>(place), count};
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

  alignas(View) std::byte place[few * sizeof(View)];  // only views that there are get a beginning
  std::vector<View> many;
  std::span<View> views;
};

/// The caller's threads.
class ExecutorFromC final : public Executor {
 public:
  explicit ExecutorFromC(const castor_executor& given) : given_(given) {}
  int tasks() const override { return given_.tasks; }
  int64_t wake_up_ns() const override {
    return given_.wake_up_ns == 0 ? usual_wake_up_ns : given_.wake_up_ns;
  }
  void run(int count, void (*task)(void* context, int index), void* context) override {
    given_.parallel_for(given_.context, count, task, context);
  }

 private:
  const castor_executor given_;
};

Status read_executor(const castor_executor* given, std::optional<ExecutorFromC>& executor) {
  if (given == nullptr) return {};
  castor_executor fields;
  Status status = read_struct(given, executor_1, "castor_executor", fields);
  if (!status) return status;
  if (fields.tasks < 1) {
    return invalid(fmt::format("{} tasks of the executor, expected 1 or more", fields.tasks));
  }
  if (fields.parallel_for == nullptr) return invalid("no parallel_for of the executor (NULL)");
  executor.emplace(fields);
  return {};
}

Status run(const BoundKernel& kernel, std::span<const ConstView> inputs,
           std::span<const View> outputs, const castor_run_options* options) {
  castor_run_options given;
  Status status = read_struct(options, run_options_1, "castor_run_options", given);
  if (!status) return status;
  if (given.stores < CASTOR_STORES_AUTOMATIC || given.stores > CASTOR_STORES_STREAMING) {
    return invalid(fmt::format("stores {}, expected 0 to {}", given.stores,
                               static_cast<int>(CASTOR_STORES_STREAMING)));
  }
  std::optional<ExecutorFromC> executor;
  if (status = read_executor(given.executor, executor); !status) return status;
  RunOptions how;
  how.stores = static_cast<StorePolicy>(given.stores);
  how.executor = executor ? &*executor : nullptr;
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
    c::Views<const void*> from;
    if (Status status = from.read(inputs, input_count, "input"); !status) return status;
    c::Views<void*> to;
    if (Status status = to.read(outputs, output_count, "output"); !status) return status;
    return c::run(bound->kernel, from.get(), to.get(), options);
  });
}

}  // extern "C"
