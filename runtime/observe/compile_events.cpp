// SPDX-License-Identifier: Apache-2.0
// What an observer is told of whole functions.
#include <fmt/format.h>

#include "runtime/compiled.hpp"
#include "runtime/observe/observer.hpp"

namespace castor {

void Observer::compiled(const Function& function, const detail::Compiled& compiled,
                        std::chrono::nanoseconds time) noexcept {
  const std::string& reason = compiled.interpreted_because;
  try {
    if (!reason.empty() && logs(LogLevel::warning)) {
      log(LogLevel::warning, fmt::format("@{}: interpreted, since {}", function.name, reason));
    } else if (reason.empty() && logs(LogLevel::info)) {
      log(LogLevel::info,
          fmt::format("@{}: compiled for {} in {:.1f} us, {} nest{}", function.name,
                      jit::name_of(compiled.target.tier), static_cast<double>(time.count()) / 1000,
                      compiled.nests.size(), compiled.nests.size() == 1 ? "" : "s"));
    }
    if (dump_) {
      check(
          dump_->write(function, *compiled.canonical, reason.empty() ? &compiled.target : nullptr));
    }
  } catch (...) {  // std::bad_alloc: a message less
  }
}

void Observer::refused(std::string_view what, const Error& error) const noexcept {
  if (!logs(LogLevel::warning)) return;
  try {
    log(LogLevel::warning,
        fmt::format("{}: refused ({}): {}", what, name_of(error.code), error.to_string()));
  } catch (...) {  // std::bad_alloc: a message less
  }
}

CompileWatch::CompileWatch(Observer* observer, const Function& function)
    : observer_(observer), function_(function) {
  if (observer_ != nullptr) begin_ = std::chrono::steady_clock::now();
}

void CompileWatch::done(const Result<std::shared_ptr<const detail::Compiled>>& compiled) const {
  if (observer_ == nullptr) return;
  if (compiled.ok()) {
    observer_->compiled(function_, **compiled, std::chrono::steady_clock::now() - begin_);
  } else {
    observer_->refused("compile @" + function_.name, compiled.error());
  }
}

}  // namespace castor
