// SPDX-License-Identifier: Apache-2.0
// The long form of a test program: more of the same inputs, for minutes instead of seconds.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace castor::test {

/// Whether the long form was asked for: `--long`, or CASTOR_LONG=1 in the environment.
inline bool long_form() {
  const char* value = std::getenv("CASTOR_LONG");
  return value != nullptr && std::strcmp(value, "1") == 0;
}

/// The body of a main function that understands `--long` and leaves other arguments to GoogleTest.
inline int run_tests(int argc, char** argv) {
  const auto is_long = [](const char* argument) { return std::strcmp(argument, "--long") == 0; };
  char** end = std::remove_if(argv + 1, argv + argc, is_long);
  if (end != argv + argc) setenv("CASTOR_LONG", "1", 1);
  argc = static_cast<int>(end - argv);
  argv[argc] = nullptr;
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace castor::test
