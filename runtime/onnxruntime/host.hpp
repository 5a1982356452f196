// SPDX-License-Identifier: Apache-2.0
// ONNX Runtime as the plugin sees it: its functions, with statuses as results, and its log.
#pragma once

#include <string>
#include <vector>

#include "ir/support/result.hpp"
#include "runtime/onnxruntime/abi.hpp"

namespace castor::onnxruntime {

/// The tables of one ONNX Runtime. Cheap to copy; valid as long as its library is loaded.
class Host {
 public:
  /// Settles the version that both sides know. Fails (unsupported) below 1.23.
  static Result<Host> negotiate(const abi::OrtApiBase* base);

  uint32_t version() const { return version_; }
  bool has(uint32_t since) const { return version_ >= since; }

  /// Calls a function that gives a status, which is released: `host(abi::Node_GetName, node,
  /// &name)`.
  template <class... Parameters, class... Arguments>
  Status operator()(abi::Slot<abi::OrtStatus*(Parameters...)> slot, Arguments... arguments) const {
    return taken(abi::at(api_, slot)(arguments...));
  }
  /// A function that gives something else, or one whose status is handed on.
  template <class Signature>
  auto function(abi::Slot<Signature> slot) const {
    return abi::at(api_, slot);
  }
  /// A function of the table for execution providers.
  template <class Signature>
  auto provider_function(abi::Slot<Signature> slot) const {
    return abi::at(provider_api_, slot);
  }

  /// A status of ONNX Runtime's as ours; releases it.
  Status taken(abi::OrtStatus* status) const;
  /// Ours as one of ONNX Runtime's: null for success.
  abi::OrtStatus* given(const Status& status) const;

 private:
  const abi::OrtApi* api_ = nullptr;
  const abi::OrtEpApi* provider_api_ = nullptr;
  uint32_t version_ = 0;
};

/// Where a session's messages go.
class Log {
 public:
  Log(const Host& host, const abi::OrtLogger* logger) : host_(host), logger_(logger) {}
  void operator()(abi::OrtLoggingLevel level, const std::string& message) const;

 private:
  Host host_;
  const abi::OrtLogger* logger_;
};

/// The list that a pair of functions gives, how many and which: `list<const OrtNode*>(host, graph,
/// Graph_GetNumNodes, Graph_GetNodes)`.
template <class Element, class Owner>
Result<std::vector<Element>> list(const Host& host, const Owner* owner,
                                  abi::Slot<abi::OrtStatus*(const Owner*, size_t*)> count_of,
                                  abi::Slot<abi::OrtStatus*(const Owner*, Element*, size_t)> get) {
  size_t count = 0;
  if (Status status = host(count_of, owner, &count); !status) return status.error();
  std::vector<Element> elements(count);
  if (Status status = host(get, owner, elements.data(), count); !status) return status.error();
  return elements;
}

/// Text that a function gives.
template <class Owner>
Result<std::string> text(const Host& host, const Owner* owner,
                         abi::Slot<abi::OrtStatus*(const Owner*, const char**)> get) {
  const char* found = nullptr;
  if (Status status = host(get, owner, &found); !status) return status.error();
  return std::string(found == nullptr ? "" : found);
}

}  // namespace castor::onnxruntime
