// SPDX-License-Identifier: Apache-2.0
#include "runtime/cache/kernel_table.hpp"

#include "ir/builder.hpp"
#include "runtime/cache/held_bytes.hpp"
#include "runtime/compiled.hpp"
#include "runtime/observe/observer.hpp"
#include "runtime/runtime_state.hpp"

namespace castor {

namespace {

template <class Object>
size_t bytes_held(const Object& object) {
  HeldBytes held;
  held.add(object);
  return held.bytes();
}

/// A kernel of the same computation, for the caller's function and its names. Both share what was
/// compiled; it is kept alive through `kernel`, so that no count is written that is not the
/// caller's own.
KernelStatePtr under_names_of(const FunctionPtr& function, KernelStatePtr kernel) {
  if (kernel->function == function) return kernel;
  const detail::Compiled* const shared = kernel->compiled.get();
  std::shared_ptr<const detail::Compiled> compiled(std::move(kernel), shared);
  return std::make_shared<detail::KernelState>(detail::KernelState{function, std::move(compiled)});
}

uint64_t key_of(ElementType from, ElementType to, int rank, const ConvertOptions& options) {
  return static_cast<uint64_t>(from) | static_cast<uint64_t>(to) << 8 |
         static_cast<uint64_t>(rank) << 16 | static_cast<uint64_t>(options.overflow) << 24 |
         static_cast<uint64_t>(options.rounding) << 32 | static_cast<uint64_t>(options.nan) << 40;
}

}  // namespace

Result<KernelTable::Kernels::Made> KernelTable::compile(const FunctionPtr& function,
                                                        const detail::RuntimeState& runtime) {
  const CompileWatch watch(runtime.observer.get(), *function);
  Result<std::shared_ptr<const detail::Compiled>> compiled = detail::compile(function, runtime);
  watch.done(compiled);
  if (!compiled.ok()) return compiled.error();
  // Executable memory that was refused may be granted later.
  const bool keep = (*compiled)->interpreted_because.empty() || !runtime.target;
  auto kernel = std::allocate_shared<detail::KernelState>(
      LineAllocator<detail::KernelState>(), detail::KernelState{(*compiled)->function, *compiled});
  const size_t bytes = bytes_held(*kernel);
  return Kernels::Made{std::move(kernel), bytes, keep, (*compiled)->function};
}

Result<KernelStatePtr> KernelTable::get(const FunctionPtr& function,
                                        const detail::RuntimeState& runtime) {
  bool is_mine = false;
  Result<KernelStatePtr> kernel = kernels_.get(function->hash, function, [&] {
    is_mine = true;
    return compile(function, runtime);
  });
  if (kernel.ok()) return under_names_of(function, std::move(kernel).value());
  if (is_mine) return kernel.error();
  // The failure of another thread that was asked for the same computation; its message has the
  // names of that thread's function.
  const Result<Kernels::Made> made = compile(function, runtime);
  if (!made.ok()) return made.error();
  return under_names_of(function, made->value);
}

Result<FunctionPtr> KernelTable::get_conversion(ElementType from, ElementType to, int rank,
                                                const ConvertOptions& options) {
  return conversions_.get(
      key_of(from, to, rank, options), key_of(from, to, rank, options),
      [&]() -> Result<Conversions::Made> {
        FunctionBuilder builder("convert");
        const TensorType type{from, Shape(static_cast<size_t>(rank), Dim::any())};
        builder.result(builder.convert(builder.parameter("source", type), to, options));
        Result<FunctionPtr> function = builder.finish();
        if (!function.ok()) return function.error();
        const size_t bytes = bytes_held(**function);
        return Conversions::Made{std::move(function).value(), bytes};
      });
}

}  // namespace castor
