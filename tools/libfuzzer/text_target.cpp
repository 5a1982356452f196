// SPDX-License-Identifier: Apache-2.0
// libFuzzer target: the parser, the verifier, the printer and the canonical form, on any bytes.
#include <algorithm>
#include <cstdint>

#include "ir/rewrite/canonicalize.hpp"
#include "ir/text/text.hpp"
#include "ir/verify/verify.hpp"
#include "tools/libfuzzer/check.hpp"

namespace castor::libfuzzer {

namespace {

/// Constants bound by name: zeros, of tensors that are small.
Result<std::vector<std::byte>> zeros(std::string_view, const TensorType& type) {
  int64_t count = 1;
  for (const Dim& dim : type.shape) {
    if (!dim.is_fixed() || dim.extent > 4096)
      return Error{ErrorCode::invalid_argument, "too large"};
    count = std::min<int64_t>(count * dim.extent, 1 << 20);
  }
  const std::optional<int64_t> bytes = byte_size(type.element, count);
  if (!bytes || *bytes > 1 << 16) return Error{ErrorCode::invalid_argument, "too large"};
  return std::vector<std::byte>(static_cast<size_t>(*bytes));
}

void expect_round_trip(const Function& function, const ParseOptions& options) {
  const std::string printed = print(function);
  if (printed.size() > max_text_bytes) return;
  const Result<FunctionPtr> again = parse_function(printed, {}, options);
  if (!again) found("its own text is refused: " + again.error().to_string(), printed);
  expect(print(**again) == printed, "text changes from one round trip to the next", printed);
  expect(same_computation(function, **again), "a round trip changes the function", printed);
  expect((*again)->hash == function.hash, "a round trip changes the hash", printed);
}

void check(const FunctionPtr& function, const ParseOptions& options) {
  const std::string text = print(*function);
  const Status verified = verify(*function);
  if (!verified) found("the parser let pass: " + verified.error().to_string(), text);
  expect_round_trip(*function, options);
  const FunctionPtr canonical = canonicalize(function);
  const Status still_verified = verify(*canonical);
  if (!still_verified) found("canonical form: " + still_verified.error().to_string(), text);
  expect(canonicalize(canonical) == canonical, "the canonical form is not canonical", text);
}

}  // namespace

}  // namespace castor::libfuzzer

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace castor::libfuzzer;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const castor::ParseOptions options{.bind_constant = zeros};
  const auto functions = castor::parse(text, options);
  if (!functions) {
    expect_refusal(functions.error(), text);
    return 0;
  }
  for (const castor::FunctionPtr& function : *functions) check(function, options);
  return 0;
}
