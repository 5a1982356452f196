// SPDX-License-Identifier: Apache-2.0
// Messages of a runtime: which there are, from which level on, and that hits are silent.
#include <gtest/gtest.h>

#include <mutex>

#include "tests/support/observed.hpp"

namespace castor {
namespace {

/// What a runtime logged.
class Log {
 public:
  ObserveOptions options(LogLevel level = LogLevel::debug) {
    ObserveOptions options;
    options.log = [](void* context, LogLevel of, std::string_view message) {
      Log& log = *static_cast<Log*>(context);
      const std::lock_guard lock(log.mutex_);
      log.lines_.push_back(std::string(name_of(of)) + ": " + std::string(message));
    };
    options.log_context = this;
    options.log_level = level;
    return options;
  }
  /// Whether a line begins and ends so.
  bool has(std::string_view begin, std::string_view end = {}) const {
    return std::ranges::any_of(lines_, [&](const std::string& line) {
      return line.starts_with(begin) && line.ends_with(end);
    });
  }
  size_t size() const { return lines_.size(); }
  std::string text() const {
    std::string text;
    for (const std::string& line : lines_) text += line + "\n";
    return text;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

Runtime make(Log& log, LogLevel level, RuntimeOptions options = {}) {
  options.observe = log.options(level);
  return Runtime::create(options).value();
}

TEST(Log, TellsOfFunctionsAndCode) {
  Log log;
  {
    const Runtime runtime = make(log, LogLevel::debug, {.tier = Tier::avx2});
    ASSERT_TRUE(runtime.compile(test::to_i8_text).ok());
    EXPECT_TRUE(log.has("debug: castor_convert_f32_i8_contiguous_avx2: ")) << log.text();
    EXPECT_TRUE(log.has("info: @to_i8: compiled for avx2 in ", " us, 1 nest")) << log.text();
    EXPECT_EQ(log.size(), 2u) << log.text();
    ASSERT_TRUE(runtime.compile(test::to_i8_text).ok());
    EXPECT_EQ(log.size(), 2u) << log.text();  // a hit
  }
  EXPECT_TRUE(log.has("debug: castor_convert_f32_i8_contiguous_avx2: ", "of code are gone"))
      << log.text();
  EXPECT_EQ(log.size(), 3u) << log.text();
}

TEST(Log, BeginsAtItsLevel) {
  Log log;
  const Runtime runtime = make(log, LogLevel::warning);
  ASSERT_TRUE(runtime.compile(test::to_i8_text).ok());
  EXPECT_EQ(log.size(), 0u) << log.text();
}

TEST(Log, TellsWhyFunctionsAreInterpreted) {
  Log log;
  RuntimeOptions interpret;
  interpret.interpret = true;
  const Runtime asked = make(log, LogLevel::warning, interpret);
  ASSERT_TRUE(asked.compile(test::to_i8_text).ok());
  EXPECT_TRUE(log.has("warning: @to_i8: interpreted, since the runtime was asked to interpret"))
      << log.text();

  Log refused;
  jit::SystemCalls system = jit::SystemCalls::real();
  system.memfd_create = [](const char*, unsigned) {
    errno = EPERM;
    return -1;
  };
  system.mprotect = [](void*, size_t, int) {
    errno = EACCES;
    return -1;
  };
  const auto state = detail::make_runtime(
      {.tier = Tier::avx2, .observe = refused.options(LogLevel::warning)}, system);
  ASSERT_TRUE(state.ok());
  const FunctionPtr function = test::parsed(test::to_i8_text);
  const CompileWatch watch((*state)->observer.get(), *function);
  watch.done(detail::compile(function, **state));
  EXPECT_TRUE(refused.has("warning: @to_i8: interpreted, since mprotect")) << refused.text();
}

TEST(Log, TellsOfRefusals) {
  Log log;
  const Runtime runtime = make(log, LogLevel::warning);
  EXPECT_FALSE(runtime.compile("func @f(").ok());
  EXPECT_TRUE(log.has("warning: compile: refused (invalid_text): line 1")) << log.text();
  const Result<Kernel> kernel = runtime.compile(test::to_i8_text);
  ASSERT_TRUE(kernel.ok());
  EXPECT_FALSE(kernel->bind({{2, 3}}).ok());
  EXPECT_TRUE(log.has("warning: bind @to_i8: refused (invalid_argument): ")) << log.text();
  EXPECT_EQ(log.size(), 2u) << log.text();
}

TEST(Log, MayBeCalledFromItself) {  // no lock is held meanwhile
  struct Caller {
    std::optional<Runtime> runtime;
    int messages = 0;
  } caller;
  RuntimeOptions options;
  options.observe.log_context = &caller;
  options.observe.log = [](void* context, LogLevel, std::string_view) {
    Caller& called = *static_cast<Caller*>(context);
    if (++called.messages == 1) {
      EXPECT_TRUE(called.runtime->compile(test::to_u8_text).ok());
      EXPECT_TRUE(called.runtime->observation().ok());
    }
  };
  caller.runtime = Runtime::create(options).value();
  ASSERT_TRUE(caller.runtime->compile(test::to_i8_text).ok());
  EXPECT_EQ(caller.messages, 2);
  caller.runtime.reset();
}

}  // namespace
}  // namespace castor
