// SPDX-License-Identifier: Apache-2.0
// The border of the C++ API: what is thrown inside becomes an error.
#pragma once

#include <utility>

#include "ir/support/result.hpp"

namespace castor {

/// The error that stands for the exception that is being handled; called in a handler. Memory that
/// is refused, or sizes that no memory has, are `out_of_memory`, without an allocation. Anything
/// else is `internal`, with the exception's words where there is memory for them.
CASTOR_API Error error_of_exception() noexcept;

/// "tasks() of the executor has thrown: what it says" (`invalid_argument`), for what a callback of
/// the caller's throws; memory that is refused stays `out_of_memory`. Called in a handler.
CASTOR_API Error callback_error(std::string_view callback) noexcept;

/// Gives what `body` gives, a Result, a Status or anything that an Error becomes; or the error that
/// stands for what it throws.
template <class Body>
auto guarded(const Body& body) noexcept -> decltype(body()) {
  try {
    return body();
  } catch (...) {
    return error_of_exception();
  }
}

}  // namespace castor
