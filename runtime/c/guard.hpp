// SPDX-License-Identifier: Apache-2.0
// The border of the C API: what happens inside becomes a status and a message.
#pragma once

#include <castor/c/base.h>

#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "ir/support/result.hpp"

namespace castor::c {

/// Writes the outcome of a call; `error` may be null. They allocate nothing. The shared library
/// shows them to castor's components.
CASTOR_API castor_status report_success(castor_error* error) noexcept;
CASTOR_API castor_status report(castor_error* error, const Error& failure) noexcept;
CASTOR_API castor_status report_no_memory(castor_error* error) noexcept;
CASTOR_API castor_status report_exception(castor_error* error, const char* what) noexcept;

/// Runs the body of a C function, which gives a Status and may throw.
template <class Body>
castor_status guarded(castor_error* error, const Body& body) noexcept {
  try {
    const Status status = body();
    return status.ok() ? report_success(error) : report(error, status.error());
  } catch (const std::bad_alloc&) {
    return report_no_memory(error);
  } catch (const std::length_error&) {  // sizes that no memory has
    return report_no_memory(error);
  } catch (const std::exception& exception) {
    return report_exception(error, exception.what());
  } catch (...) {
    return report_exception(error, "an exception of an unknown type");
  }
}

/// As `guarded`, for a function that gives a handle by `*made`, which is null unless the body
/// succeeds. `body(handle)` fills a unique_ptr.
template <class Handle, class Body>
castor_status guarded_make(castor_error* error, Handle** made, const Body& body) noexcept {
  if (made != nullptr) *made = nullptr;
  return guarded(error, [&]() -> Status {
    if (made == nullptr) {
      return Error{ErrorCode::invalid_argument, "no pointer for the handle to make (NULL)"};
    }
    std::unique_ptr<Handle> handle;
    Status status = body(handle);
    if (status.ok()) *made = handle.release();
    return status;
  });
}

inline Error invalid(std::string message) {
  return {ErrorCode::invalid_argument, std::move(message)};
}

/// Refuses a NULL where something is needed.
inline Status needed(const void* given, const char* what) {
  if (given != nullptr) return {};
  return invalid(std::string("no ") + what + " (NULL)");
}
/// Refuses NULL for an array, which may be NULL where it is empty.
inline Status needed(const void* given, size_t count, const char* what) {
  return count == 0 ? Status() : needed(given, what);
}

}  // namespace castor::c
