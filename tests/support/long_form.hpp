// SPDX-License-Identifier: Apache-2.0
// The long form of a test program: more of the same inputs, for minutes instead of seconds.
#pragma once

#include <cstdlib>
#include <cstring>

namespace castor::test {

/// Whether the long form was asked for: `--long`, which support/main.cpp turns into CASTOR_LONG=1,
/// or that in the environment.
inline bool long_form() {
  const char* value = std::getenv("CASTOR_LONG");
  return value != nullptr && std::strcmp(value, "1") == 0;
}

}  // namespace castor::test
