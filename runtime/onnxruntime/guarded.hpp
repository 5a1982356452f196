// SPDX-License-Identifier: Apache-2.0
// Callbacks of ONNX Runtime throw nothing.
#pragma once

#include <exception>
#include <new>

#include "runtime/onnxruntime/host.hpp"

namespace castor::onnxruntime {

/// What `step` gives, for ONNX Runtime; what it throws becomes a status as well.
template <class Step>
abi::OrtStatus* guarded(const Host& host, const Step& step) noexcept {
  try {
    return host.given(step());
  } catch (const std::bad_alloc&) {
    return host.function(abi::CreateStatus)(abi::ORT_FAIL, "castor: out of memory");
  } catch (const std::exception& error) {
    return host.function(abi::CreateStatus)(abi::ORT_FAIL, error.what());
  }
}

}  // namespace castor::onnxruntime
