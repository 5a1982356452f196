// SPDX-License-Identifier: Apache-2.0
#include "ir/support/result.hpp"

#include <fmt/format.h>

#include <new>

namespace castor {

namespace {

/// Short enough for a std::string to hold it without an allocation.
constexpr std::string_view no_memory_left = "no memory left";

const Error no_memory_for_an_error = Error::out_of_memory();

}  // namespace

Error Error::out_of_memory() noexcept {
  return {ErrorCode::out_of_memory, std::string(no_memory_left)};
}

Error::Error(const Error& other) noexcept : Error() { *this = other; }

Error& Error::operator=(const Error& other) noexcept {
  try {
    message = other.message;
    code = other.code;
    where = other.where;
  } catch (...) {  // std::bad_alloc
    *this = out_of_memory();
  }
  return *this;
}

Status::Status(Error error) noexcept : error_(new (std::nothrow) Error(std::move(error))) {
  if (error_ == nullptr) error_ = &no_memory_for_an_error;
}

Status::~Status() {
  if (error_ != &no_memory_for_an_error) delete error_;
}

std::string_view name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_text: return "invalid_text";
    case ErrorCode::invalid_function: return "invalid_function";
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::out_of_memory: return "out_of_memory";
    case ErrorCode::executable_memory: return "executable_memory";
    case ErrorCode::io: return "io";
    case ErrorCode::internal: return "internal";
    case ErrorCode::limit_exceeded: return "limit_exceeded";
  }
  return "unknown";
}

std::string Error::to_string() const {
  return where.known() ? fmt::format("line {}, column {}: {}", where.line, where.column, message)
                       : message;
}

}  // namespace castor
