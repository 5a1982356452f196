// SPDX-License-Identifier: Apache-2.0
// Limits of the C API as those of the C++ API.
#pragma once

#include <castor/c/function.h>

#include "ir/verify/limits.hpp"
#include "runtime/c/structs.hpp"

namespace castor::c {

/// A field of zeros, and a null `given`, is the default.
inline Status read_limits(const castor_compile_limits* given, CompileLimits& limits) {
  castor_compile_limits fields;
  Status status = read_struct(given, "castor_compile_limits", fields);
  if (!status) return status;
  const auto set = [](size_t field, size_t& limit) {
    if (field != 0) limit = field;
  };
  set(fields.text_bytes, limits.text_bytes);
  set(fields.operations, limits.operations);
  set(fields.values, limits.values);
  set(fields.name_bytes, limits.name_bytes);
  set(fields.nests, limits.nests);
  return {};
}

}  // namespace castor::c
