// SPDX-License-Identifier: Apache-2.0
#include "runtime/c/observe.hpp"

#include <fmt/format.h>

#include <memory>

#include "runtime/c/handles.hpp"
#include "runtime/c/structs.hpp"

namespace castor::c {

namespace {

/// The caller's log.
struct LogFromC {
  decltype(castor_observe_options::log) log;
  void* context;
};

castor_log_level in_c(LogLevel level) { return static_cast<int32_t>(level) + 1; }

void pass_on(void* context, LogLevel level, std::string_view message) {
  const auto& to = *static_cast<const LogFromC*>(context);
  to.log(to.context, in_c(level), message.data(), message.size());
}

void read_text(const char* given, std::string& text) {
  if (given != nullptr && given[0] != '\0') text = given;
}

Status read_log(const castor_observe_options& given, ObserveOptions& options) {
  if (given.log_level < CASTOR_LOG_BY_DEFAULT || given.log_level > CASTOR_LOG_ERROR) {
    return invalid(fmt::format("log_level {}, expected 0 to {}", given.log_level,
                               static_cast<int>(CASTOR_LOG_ERROR)));
  }
  if (given.log_level != CASTOR_LOG_BY_DEFAULT) {
    options.log_level = static_cast<LogLevel>(given.log_level - 1);
  }
  if (given.log == nullptr) return {};
  const auto log = std::make_shared<LogFromC>(LogFromC{given.log, given.log_context});
  options.log = pass_on;
  options.log_context = log.get();
  options.log_owner = log;
  return {};
}

}  // namespace

Status read_observe_options(const castor_observe_options* given, ObserveOptions& options) {
  castor_observe_options fields;
  Status status = read_struct(given, "castor_observe_options", fields);
  if (!status) return status;
  options.perf_map = fields.perf_map != 0;
  options.gdb = fields.gdb != 0;
  options.unwind = fields.unwind != 0;
  read_text(fields.perf_map_directory, options.perf_map_directory);
  read_text(fields.jitdump_directory, options.jitdump_directory);
  read_text(fields.dump_directory, options.dump_directory);
  if (fields.listing != nullptr) options.listing = fields.listing->write;
  return read_log(fields, options);
}

}  // namespace castor::c

extern "C" const char* castor_log_level_name(castor_log_level level) noexcept {
  if (level < CASTOR_LOG_DEBUG || level > CASTOR_LOG_ERROR) return nullptr;
  return castor::name_of(static_cast<castor::LogLevel>(level - 1)).data();
}
