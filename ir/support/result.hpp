// SPDX-License-Identifier: Apache-2.0
// Typed results: castor reports errors by value. No exception leaves a function that returns a
// Result or a Status, nor a FunctionBuilder, a handle or a copy of an error, also when no memory is
// left; what callbacks throw becomes an error as well. Functions that return text or lists by value
// (`print`, `to_string`) throw std::bad_alloc as their types do, and so does copying arguments.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "ir/support/export.hpp"

namespace castor {

/// What kind of failure a request met. `unsupported` means that the request is well formed but
/// castor does not implement it; every other code except `internal` is the caller's to mend.
enum class ErrorCode : uint8_t {
  invalid_text,       ///< the text form does not parse; `Error::where` is set
  invalid_function,   ///< a function breaks a rule of the IR (types, shapes, attributes)
  invalid_argument,   ///< a call's views, shapes, strides or options do not fit
  unsupported,        ///< well formed, but not implemented
  out_of_memory,      ///< an allocation was refused
  executable_memory,  ///< the system refuses memory that can be executed
  io,                 ///< a file cannot be read or written (tools, and ObserveOptions)
  internal,           ///< a bug in castor
  limit_exceeded,     ///< a text or function is larger than CompileLimits
};

/// The code's name as printed, e.g. "invalid_text".
CASTOR_API std::string_view name_of(ErrorCode code);

/// A position in the text form; lines and columns count from 1, line 0 means "not from a text".
struct TextPosition {
  uint32_t line = 0;
  uint32_t column = 0;
  bool known() const { return line != 0; }
};

/// A failure: its kind, a sentence that says what was found and what was expected, and, when it
/// concerns a text, where. Copying one never throws: a copy for which there is no memory says just
/// that (`out_of_memory`).
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
  TextPosition where{};

  Error() = default;
  Error(ErrorCode kind, std::string text, TextPosition place = {}) noexcept
      : code(kind), message(std::move(text)), where(place) {}
  CASTOR_API Error(const Error& other) noexcept;
  Error(Error&&) noexcept = default;
  CASTOR_API Error& operator=(const Error& other) noexcept;
  Error& operator=(Error&&) noexcept = default;
  ~Error() = default;

  /// What a call reports for which no memory is left. Allocates nothing.
  CASTOR_API static Error out_of_memory() noexcept;

  /// "line 3, column 7: message", or the message alone when the position is unknown.
  CASTOR_API std::string to_string() const;
};

/// Success, or an Error. One pointer wide; success allocates nothing, and a failure for which
/// there is no memory becomes `out_of_memory`.
class [[nodiscard]] Status {
 public:
  Status() = default;
  CASTOR_API Status(Error error) noexcept;
  Status(Status&& other) noexcept : error_(std::exchange(other.error_, nullptr)) {}
  Status& operator=(Status&& other) noexcept {
    std::swap(error_, other.error_);
    return *this;
  }
  CASTOR_API ~Status();

  bool ok() const { return error_ == nullptr; }
  explicit operator bool() const { return ok(); }
  /// The failure; only when !ok().
  const Error& error() const { return *error_; }

 private:
  const Error* error_ = nullptr;  // owned, but for the one that stands for no memory
};

/// A value, or an Error.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Error error) : state_(std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  /// The value; only when ok().
  T& value() & { return *std::get_if<0>(&state_); }
  const T& value() const& { return *std::get_if<0>(&state_); }
  T&& value() && { return std::move(*std::get_if<0>(&state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  /// The failure; only when !ok().
  const Error& error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

}  // namespace castor
