// SPDX-License-Identifier: Apache-2.0
#include "runtime/onnxruntime/host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace castor::onnxruntime {

Result<Host> Host::negotiate(const abi::OrtApiBase* base) {
  // A version that the host lacks gives null, and a line on standard error: so the text is read.
  const char* text = base->GetVersionString();
  unsigned major = 0;
  unsigned minor = 0;
  const bool is_read = text != nullptr && std::sscanf(text, "%u.%u", &major, &minor) == 2;
  const uint32_t version =
      is_read && major == 1 ? std::min<uint32_t>(minor, abi::newest_version) : 0;
  Host host;
  host.api_ = version >= abi::oldest_version ? base->GetApi(version) : nullptr;
  if (host.api_ == nullptr) {
    return Error{ErrorCode::unsupported,
                 fmt::format("castor needs ONNX Runtime 1.{} or newer, found {}",
                             abi::oldest_version, text == nullptr ? "no version" : text)};
  }
  host.provider_api_ = host.function(abi::GetEpApi)();
  host.version_ = version;
  return host;
}

Status Host::taken(abi::OrtStatus* status) const {
  if (status == nullptr) return {};
  const char* message = function(abi::GetErrorMessage)(status);
  Error error(ErrorCode::internal,
              fmt::format("ONNX Runtime: {}", message == nullptr ? "" : message));
  function(abi::ReleaseStatus)(status);
  return error;
}

abi::OrtStatus* Host::given(const Status& status) const {
  if (status) return nullptr;
  const std::string message = "castor: " + status.error().to_string();
  return function(abi::CreateStatus)(abi::ORT_FAIL, message.c_str());
}

void Log::operator()(abi::OrtLoggingLevel level, const std::string& message) const {
  abi::OrtLoggingLevel least = abi::ORT_WARNING;
  if (!host_(abi::Logger_GetLoggingSeverityLevel, logger_, &least) || level < least) return;
  // A message that the log does not take is lost: there is nobody else to tell.
  (void)host_(abi::Logger_LogMessage, logger_, level, message.c_str(), "castor", 0, "castor").ok();
}

}  // namespace castor::onnxruntime
