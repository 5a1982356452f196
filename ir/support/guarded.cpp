// SPDX-License-Identifier: Apache-2.0
#include "ir/support/guarded.hpp"

#include <fmt/format.h>

#include <exception>
#include <new>
#include <stdexcept>

namespace castor {

namespace {

/// The error of code `kind` that `words` gives for what the exception says, unless memory is what
/// was missing; the same where there is no memory for the words.
template <class Words>
Error error_by_kind(ErrorCode kind, const Words& words) noexcept {
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      return Error::out_of_memory();
    } catch (const std::length_error&) {  // more elements than a vector can ever hold
      return Error::out_of_memory();
    } catch (const std::exception& failure) {
      return {kind, words(failure.what())};
    } catch (...) {
      return {kind, words("an exception that is no std::exception")};
    }
  } catch (...) {  // making the words failed
    return Error::out_of_memory();
  }
}

}  // namespace

Error error_of_exception() noexcept {
  return error_by_kind(ErrorCode::internal, [](const char* what) { return std::string(what); });
}

Error callback_error(std::string_view callback) noexcept {
  return error_by_kind(ErrorCode::invalid_argument, [&](const char* what) {
    return fmt::format("{} has thrown: {}", callback, what);
  });
}

}  // namespace castor
