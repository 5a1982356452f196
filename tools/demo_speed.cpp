// SPDX-License-Identifier: Apache-2.0
// Measures conversions of an f32 batch against memcpy, for tools/demo.
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>

#include "castor/castor.hpp"

namespace castor {
namespace {

/// Zeroed memory on huge pages where the system has them.
class Memory {
 public:
  explicit Memory(size_t bytes) : bytes_(bytes) {
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return;
    madvise(at, bytes, MADV_HUGEPAGE);
    data_ = static_cast<std::byte*>(at);
    std::memset(data_, 0, bytes);
  }
  ~Memory() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::byte* data() const { return data_; }
  size_t size() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_;
};

/// A conversion to measure.
struct Conversion {
  ElementType to;
  ConvertOptions options;
};
constexpr std::array<Conversion, 2> conversions = {{
    {ElementType::u8, {.overflow = Overflow::saturate, .rounding = Rounding::nearest_even}},
    {ElementType::f16, {.overflow = Overflow::saturate}},
}};

/// An amount of source data and where it lives.
struct Size {
  size_t source_bytes;
  std::string_view name;
};
constexpr std::array<Size, 3> sizes = {{
    {size_t{12} << 10, "12 KiB, in L1"},
    {size_t{256} << 10, "256 KiB, in L2"},
    {size_t{64} << 20, "64 MiB, in memory"},
}};

constexpr int rounds = 15;                         // the best of which counts
constexpr size_t round_bytes = size_t{128} << 20;  // moved in each round, at least

double seconds_of(const std::function<void()>& work, size_t repetitions) {
  const auto begin = std::chrono::steady_clock::now();
  for (size_t i = 0; i < repetitions; ++i) work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Times of one repetition, in seconds.
struct Times {
  double ours = 1e9;
  double memcpy = 1e9;
};

/// Runs both in turn, so that neither meets a faster machine than the other.
Times measure(const std::function<void()>& ours, const std::function<void()>& copy,
              size_t bytes_moved) {
  const size_t repetitions = std::max<size_t>(round_bytes / bytes_moved, 1);
  const auto count = static_cast<double>(repetitions);
  Times best;
  for (int round = 0; round < rounds; ++round) {
    best.ours = std::min(best.ours, seconds_of(ours, repetitions) / count);
    best.memcpy = std::min(best.memcpy, seconds_of(copy, repetitions) / count);
  }
  return best;
}

void fill(const Memory& source) {
  for (size_t i = 0; i < source.size() / sizeof(float); ++i) {
    const float value = static_cast<float>(i % 4801) * 0.0625f - 20.f;  // -20 to 280
    std::memcpy(source.data() + i * sizeof(float), &value, sizeof value);
  }
}

Result<BoundKernel> make_kernel(const Runtime& runtime, const Conversion& conversion,
                                int64_t elements) {
  FunctionBuilder builder("convert");
  const ValueId x = builder.parameter("x", {ElementType::f32, {Dim::any()}});
  builder.result(builder.convert(x, conversion.to, conversion.options));
  const Result<FunctionPtr> function = builder.finish();
  if (!function) return function.error();
  const Result<Kernel> kernel = runtime.compile(*function);
  if (!kernel) return kernel.error();
  return kernel->bind({Dims{elements}});
}

void print_row(const Conversion& conversion, const Size& size, size_t moved, const Times& best) {
  const double gigabytes = static_cast<double>(moved) * 1e-9;
  fmt::print("{:<12} {:<19} {:>8.1f} {:>8.1f} {:>9.0f} %\n",
             fmt::format("f32 -> {}", name_of(conversion.to)), size.name, gigabytes / best.ours,
             gigabytes / best.memcpy, 100 * best.memcpy / best.ours);
}

Status measure(const Runtime& runtime, const Conversion& conversion, const Size& size) {
  const auto elements = static_cast<int64_t>(size.source_bytes / sizeof(float));
  const Memory source(size.source_bytes);
  const Memory destination(static_cast<size_t>(*byte_size(conversion.to, elements)));
  const size_t moved = source.size() + destination.size();
  const Memory from(moved / 2), to(moved / 2);  // memcpy reads one half and writes the other
  if (!source.data() || !destination.data() || !from.data() || !to.data()) {
    return Error{ErrorCode::out_of_memory, fmt::format("cannot allocate {} bytes", 2 * moved)};
  }
  fill(source);
  const Result<BoundKernel> kernel = make_kernel(runtime, conversion, elements);
  if (!kernel) return kernel.error();
  const std::array inputs = {
      ConstView(source.data(), ElementType::f32, Dims{elements}, source.size())};
  const std::array outputs = {
      View(destination.data(), conversion.to, Dims{elements}, destination.size())};

  Status status = kernel->run(inputs, outputs);
  if (!status) return status;
  const auto ours = [&] { status = kernel->run(inputs, outputs); };
  const auto copy = [&] {
    std::memcpy(to.data(), from.data(), from.size());
    asm volatile("" : : "r"(to.data()) : "memory");  // the copy is used
  };
  print_row(conversion, size, moved, measure(ours, copy, moved));
  return status;
}

Status measure_all() {
  const Result<Runtime> runtime = Runtime::create();
  if (!runtime) return runtime.error();
  fmt::print("{:<12} {:<19} {:>8} {:>8} {:>11}\n", "conversion", "source", "castor", "memcpy",
             "of memcpy");
  fmt::print("{:<12} {:<19} {:>8} {:>8}\n", "", "", "GB/s", "GB/s");
  for (const Conversion& conversion : conversions) {
    for (const Size& size : sizes) {
      Status status = measure(*runtime, conversion, size);
      if (!status) return status;
    }
  }
  return {};
}

}  // namespace
}  // namespace castor

int main() {
  const castor::Status status = castor::measure_all();
  if (status) return 0;
  fmt::print(stderr, "castor-demo-speed: {}\n", status.error().to_string());
  return 1;
}
