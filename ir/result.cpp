// SPDX-License-Identifier: Apache-2.0
#include "ir/result.hpp"

#include <fmt/format.h>

#include <new>

namespace castor {

namespace {

/// Short enough to need no allocation of its own.
const Error no_memory_for_an_error{ErrorCode::out_of_memory, "no memory left", {}};

}  // namespace

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
