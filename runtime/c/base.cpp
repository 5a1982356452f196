// SPDX-License-Identifier: Apache-2.0
// Status codes, messages, version and texts of the C API.
#include <fmt/format.h>
#include <castor/castor.hpp>

#include <algorithm>
#include <cstring>

#include "runtime/c/guard.hpp"
#include "runtime/c/handles.hpp"

namespace castor::c {

namespace {

constexpr std::string_view mark_of_cut = "...";

bool continues_a_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

/// How much of a text that is too long is kept: whole characters of UTF-8.
size_t whole_characters(std::string_view text, size_t max) {
  size_t end = max;
  while (end > 0 && end + 3 > max && continues_a_character(text[end])) --end;
  return end;
}

/// Appends to a message of `used` bytes what fits, and marks what does not.
void append(castor_error& error, size_t used, std::string_view text) {
  const size_t room = CASTOR_MESSAGE_BYTES - 1 - used;
  if (text.size() <= room) {
    std::ranges::copy(text, error.message + used);
    error.message[used + text.size()] = '\0';
    return;
  }
  const size_t kept = whole_characters(text, room - mark_of_cut.size());
  std::ranges::copy(text.substr(0, kept), error.message + used);
  std::ranges::copy(mark_of_cut, error.message + used + kept);
  error.message[used + kept + mark_of_cut.size()] = '\0';
}

castor_status status_of(ErrorCode code) { return static_cast<castor_status>(code) + 1; }

castor_status write(castor_error* error, castor_status status, std::string_view message,
                    TextPosition where = {}) {
  if (error == nullptr) return status;
  error->status = status;
  error->line = where.line;
  error->column = where.column;
  size_t used = 0;
  if (where.known()) {
    const auto written = fmt::format_to_n(error->message, CASTOR_MESSAGE_BYTES / 2,
                                          "line {}, column {}: ", where.line, where.column);
    used = written.size;
  }
  append(*error, used, message);
  return status;
}

}  // namespace

castor_status report_success(castor_error* error) noexcept {
  if (error != nullptr) {
    error->status = CASTOR_OK;
    error->line = error->column = 0;
    error->message[0] = '\0';
  }
  return CASTOR_OK;
}

castor_status report(castor_error* error, const Error& failure) noexcept {
  return write(error, status_of(failure.code), failure.message, failure.where);
}

castor_status report_no_memory(castor_error* error) noexcept {
  return write(error, CASTOR_OUT_OF_MEMORY, "no memory left");
}

castor_status report_exception(castor_error* error, const char* what) noexcept {
  return write(error, CASTOR_INTERNAL, what);
}

}  // namespace castor::c

extern "C" {

const char* castor_status_name(castor_status status) noexcept {
  if (status == CASTOR_OK) return "ok";
  if (status < CASTOR_OK || status > CASTOR_LIMIT_EXCEEDED) return "unknown";
  return castor::name_of(static_cast<castor::ErrorCode>(status - 1)).data();
}

const char* castor_version_string() noexcept { return castor::version().data(); }

castor_status castor_check_abi(uint32_t abi_version, castor_error* error) noexcept {
  return castor::c::guarded(error, [&]() -> castor::Status {
    if (abi_version == CASTOR_ABI_VERSION) return {};
    return castor::Error{castor::ErrorCode::unsupported,
                         fmt::format("the program was compiled for ABI {}, this castor {} has {}",
                                     abi_version, castor::version(), CASTOR_ABI_VERSION)};
  });
}

const char* castor_text_data(const castor_text* text) noexcept {
  return text == nullptr ? "" : text->text.c_str();
}

size_t castor_text_length(const castor_text* text) noexcept {
  return text == nullptr ? 0 : text->text.size();
}

void castor_text_destroy(castor_text* text) noexcept { delete text; }

}  // extern "C"
