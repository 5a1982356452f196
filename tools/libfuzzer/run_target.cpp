// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: texts that parse are compiled, but for the few forms that are interpreted, and
// run on small tensors; machine code must give the interpreter's bits, or its refusal, and touch
// nothing else.
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>

#include "castor/castor.hpp"
#include "ir/rewrite/canonicalize.hpp"
#include "ir/verify/infer.hpp"
#include "tools/fuzz/random.hpp"
#include "tools/libfuzzer/check.hpp"
#include "tools/libfuzzer/small_tensors.hpp"

namespace castor::libfuzzer {

namespace {

/// One runtime for each tier that this machine runs; their caches are small, so that they evict.
const std::vector<Runtime>& runtimes() {
  static const std::vector<Runtime> all = [] {
    std::vector<Runtime> made;
    for (const jit::TierInfo& row : jit::tier_table()) {
      RuntimeOptions options;
      options.tier = row.tier;
      options.cache_bytes = size_t{256} << 10;
      Result<Runtime> runtime = Runtime::create(options);
      if (runtime) made.push_back(std::move(runtime).value());
    }
    return made;
  }();
  return all;
}

std::string message_of(const Status& status) { return status ? "ok" : status.error().to_string(); }

void check_call(const BoundKernel& kernel, SmallCall& call, std::string_view text) {
  const Status expected = call.interpret();
  const Status status = call.run(kernel);
  expect(message_of(status) == message_of(expected),
         "machine code: " + message_of(status) + "; interpreter: " + message_of(expected), text);
  if (const std::string difference = call.difference(); !difference.empty()) {
    found(difference, text);
  }
}

void check_function(const FunctionPtr& function, uint64_t seed, std::string_view text) {
  fuzz::Random random(seed);
  if (runtimes().empty()) found("this machine runs no tier", text);
  const Runtime& runtime = random.pick(runtimes());
  const Result<Kernel> kernel = runtime.compile(function);
  if (!kernel) return expect_refusal(kernel.error(), text);
  expect(kernel->engine() == Engine::jit || !reason_interpreted(*canonicalize(function)).empty(),
         kernel->engine_reason(), text);
  const std::optional<std::vector<Dims>> shapes = small_shapes(*function, random);
  if (!shapes) return;
  const Result<BoundKernel> bound = kernel->bind(*shapes);
  if (!bound) found("small shapes do not bind: " + bound.error().to_string(), text);
  SmallCall call(function, *shapes, bound->output_shapes(), random);
  check_call(*bound, call, text);
}

}  // namespace

}  // namespace castor::libfuzzer

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace castor::libfuzzer;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto functions = castor::parse(text);
  if (!functions) return 0;
  const uint64_t seed = castor::content_hash(std::as_bytes(std::span(data, size)));
  for (size_t i = 0; i < functions->size() && i < 2; ++i) {
    if ((*functions)[i]->operations.size() <= 64) check_function((*functions)[i], seed + i, text);
  }
  return 0;
}
