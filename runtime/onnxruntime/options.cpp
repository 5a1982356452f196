// SPDX-License-Identifier: Apache-2.0
#include "runtime/onnxruntime/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "ir/support/processors.hpp"

namespace castor::onnxruntime {

namespace {

/// ONNX Runtime writes provider options under the provider's name in lower case.
constexpr std::string_view prefix = "ep.castorexecutionprovider.";

constexpr int max_threads = 256;

/// The entry of the session's configuration; nothing where there is none.
Result<std::optional<std::string>> entry(const Host& host, const abi::OrtSessionOptions* session,
                                         const std::string& key) {
  int has = 0;
  if (Status status = host(abi::HasSessionConfigEntry, session, key.c_str(), &has); !status) {
    return status.error();
  }
  if (has == 0) return std::optional<std::string>();
  size_t size = 0;  // with the zero at its end
  if (Status status = host(abi::GetSessionConfigEntry, session, key.c_str(),
                           static_cast<char*>(nullptr), &size);
      !status) {
    return status.error();
  }
  std::string value(size, '\0');
  if (Status status = host(abi::GetSessionConfigEntry, session, key.c_str(), value.data(), &size);
      !status) {
    return status.error();
  }
  value.resize(value.find('\0') == std::string::npos ? value.size() : value.find('\0'));
  return std::optional(value);
}

Error wrong(std::string_view option, const std::string& found, std::string_view expected) {
  return {ErrorCode::invalid_argument,
          fmt::format("the option {} is '{}', expected {}", option, found, expected)};
}

template <class Number>
std::optional<Number> number(const std::string& text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole ? std::optional(value) : std::nullopt;
}

Status set(Options& options, std::string_view key, const std::string& text) {
  if (key == "isa") {
    options.isa = jit::tier_named(text);
    if (!options.isa) return wrong(key, text, "a tier that `castor info` lists");
  } else if (key == "threads") {
    const auto threads = number<int>(text);
    if (!threads || *threads < 1 || *threads > max_threads) return wrong(key, text, "1 to 256");
    options.threads = *threads;
  } else if (key == "min_gain") {
    const auto gain = number<double>(text);
    if (!gain || !(*gain >= 0)) return wrong(key, text, "a number of at least 0");
    options.min_gain = *gain;
  } else {
    if (text != "0" && text != "1") return wrong(key, text, "0 or 1");
    (key == "explain" ? options.explain : options.perf_map) = text == "1";
  }
  return {};
}

}  // namespace

Result<Options> read_options(const Host& host, const abi::OrtSessionOptions* session) {
  Options options{.threads = std::min(processors_of_process(), max_threads)};
  for (const std::string_view key : {"isa", "threads", "min_gain", "perf_map", "explain"}) {
    const auto text = entry(host, session, fmt::format("{}{}", prefix, key));
    if (!text) return text.error();
    if (!*text) continue;
    if (Status status = set(options, key, **text); !status) return status.error();
  }
  const auto context = entry(host, session, "ep.context_enable");
  if (!context) return context.error();
  options.is_enabled = !*context || **context != "1";
  return options;
}

}  // namespace castor::onnxruntime
