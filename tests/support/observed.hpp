// SPDX-License-Identifier: Apache-2.0
// Runtimes that are observed: a folder for their files, and their code.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "runtime/compiled.hpp"
#include "runtime/observe/observer.hpp"
#include "runtime/runtime_state.hpp"
#include "tests/support/files.hpp"

namespace castor::test {

inline FunctionPtr parsed(std::string_view text) { return parse_function(text).value(); }

inline constexpr std::string_view to_i8_text =
    "func @to_i8(%x: f32[?n]) -> (i8[?n]) {\n  %y = convert %x : i8\n  return %y\n}\n";
inline constexpr std::string_view to_u8_text =
    "func @to_u8(%x: f32[?n]) -> (u8[?n]) {\n  %y = convert %x : u8\n  return %y\n}\n";

/// A runtime for AVX2, which every machine with code runs, and what it compiles.
class ObservedRuntime {
 public:
  explicit ObservedRuntime(const ObserveOptions& options) {
    auto made =
        detail::make_runtime({.tier = Tier::avx2, .observe = options}, jit::SystemCalls::real());
    EXPECT_TRUE(made.ok()) << made.error().message;
    if (made.ok()) state_ = *made;
  }

  /// The code that compiling the function makes; the same code at a second call.
  KernelCodePtr<jit::NestSpec> code_of(std::string_view text) const {
    const FunctionPtr function = parsed(text);
    const CompileWatch watch(state_->observer.get(), *function);
    const auto compiled = detail::compile(function, *state_);
    EXPECT_TRUE(compiled.ok()) << compiled.error().message;
    watch.done(compiled);
    return compiled.ok() && !(*compiled)->likely.empty() ? (*compiled)->likely[0].code : nullptr;
  }
  const detail::RuntimeState& state() const { return *state_; }

 private:
  std::shared_ptr<detail::RuntimeState> state_;
};

}  // namespace castor::test
