// SPDX-License-Identifier: Apache-2.0
// A toy inference engine: loads a quantized layer, runs it over batches of changing size on its own
// threads, and prints what castor's cache did.
#include <castor/castor.hpp>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

using castor::ElementType, castor::Dims;

/// The layer: a convolution of bytes with their zero point, scaled by channel, as bytes again.
constexpr const char* layer_text = R"(
func @layer(%x: u8[?n, 16, 28, 28], %scale: f32[32, 1, 1]) -> (u8[?n, 32, 28, 28]) {
  %w = constant @weights : i8[32, 16, 3, 3]
  %zero = constant 128 : u8[]
  %sums = conv_integer %x, %w, %zero {pads = [1, 1, 1, 1]}
  %real = convert %sums : f32
  %scaled = mul %real, %scale
  %y = convert %scaled {overflow = saturate, rounding = nearest_even} : u8
  return %y
})";

/// The engine's threads. castor splits a call into tasks and hands them over here.
class Pool : public castor::Executor {
 public:
  explicit Pool(int threads) : tasks_(threads) {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
  }
  ~Pool() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }
  int tasks() const override { return tasks_; }
  void run(int count, void (*task)(void* context, int index), void* context) override {
    const std::lock_guard one_call_at_a_time(calls_);
    std::unique_lock lock(mutex_);
    job_ = {task, context, count};
    left_ = count;
    changed_.notify_all();
    take_tasks(lock);
    changed_.wait(lock, [this] { return left_ == 0; });
  }

 private:
  struct Job {
    void (*task)(void* context, int index) = nullptr;
    void* context = nullptr;
    int next = 0;  ///< tasks that nobody has taken yet: next - 1 to 0
  };
  void take_tasks(std::unique_lock<std::mutex>& lock) {
    while (job_.next > 0) {
      const Job job = job_;
      const int index = --job_.next;
      lock.unlock();
      job.task(job.context, index);
      lock.lock();
      if (--left_ == 0) changed_.notify_all();
    }
  }
  void work() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      take_tasks(lock);
      changed_.wait(lock, [this] { return stopping_ || job_.next > 0; });
    }
  }

  const int tasks_;
  std::mutex calls_, mutex_;
  std::condition_variable changed_;
  Job job_;
  int left_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

/// The value of a result; ends the program, with castor's message, if there is none.
template <class T>
T checked(castor::Result<T> result) {
  if (result.ok()) return std::move(result).value();
  std::fprintf(stderr, "toy_engine: %s\n", result.error().to_string().c_str());
  std::exit(1);
}

/// A model file would hold these.
castor::Result<std::vector<std::byte>> load_constant(std::string_view name,
                                                     const castor::TensorType&) {
  if (name != "weights") return castor::Error{castor::ErrorCode::io, "no such tensor"};
  std::vector<std::byte> weights(32 * 16 * 3 * 3);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = std::byte(i * 37 % 15 - 7);
  return weights;
}

int main() {
  Pool pool(2);
  const castor::Runtime runtime = checked(castor::Runtime::create());
  const castor::FunctionPtr layer =
      checked(castor::parse_function(layer_text, "layer", {.bind_constant = load_constant}));
  const std::vector<float> scale(32, 0.02F);

  for (const int64_t batch : {1, 4, 2, 4, 1}) {
    const castor::Kernel kernel = checked(runtime.compile(layer));  // once; then from the cache
    const castor::BoundKernel bound = checked(kernel.bind({{batch, 16, 28, 28}, {32, 1, 1}}));
    const Dims shape = bound.output_shapes()[0];
    std::vector<uint8_t> x(batch * 16 * 28 * 28), y(batch * 32 * 28 * 28);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint8_t>(i * 11 + i / 256);

    const castor::ConstView inputs[] = {
        {x.data(), ElementType::u8, {batch, 16, 28, 28}, x.size()},
        {scale.data(), ElementType::f32, {32, 1, 1}, scale.size() * sizeof(float)}};
    const castor::View outputs[] = {{y.data(), ElementType::u8, shape, y.size()}};
    const castor::Status status = bound.run(inputs, outputs, {.executor = &pool});
    if (!status.ok()) return std::fprintf(stderr, "%s\n", status.error().message.c_str()), 1;

    uint64_t sum = 0;
    for (const uint8_t element : y) sum += element;
    std::printf("batch %d: sum %llu\n", int(batch), static_cast<unsigned long long>(sum));
  }
  const castor::CacheStatistics cache = runtime.statistics();
  std::printf("functions: %d compiled, %d hits\n", int(cache.functions), int(cache.function_hits));
  std::printf("codes: %d generated, %d hits\n", int(cache.codes), int(cache.code_hits));
}
