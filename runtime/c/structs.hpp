// SPDX-License-Identifier: Apache-2.0
// Structures of the C API that may grow: they begin with their size.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "runtime/c/guard.hpp"

namespace castor::c {

/// A larger size is no structure of any version.
inline constexpr size_t max_struct_bytes = 4096;

/// Checks struct_size of the structure at `given`: `min` bytes is what the first version of it
/// had (a structure that grows keeps that number, as an offset of the field that came then), `here`
/// what this library knows.
inline Status check_struct_size(const void* given, size_t min, size_t here, const char* name) {
  size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (size < min || size > max_struct_bytes) {
    return invalid(
        fmt::format("struct_size of {} is {}, expected {}: sizeof({})", name, size, here, name));
  }
  return {};
}

/// Copies the fields that `given` has to `fields`; those that it lacks are zero. Refuses what this
/// library does not know, unless it is zero. A null `given` is the default: zeros.
template <class Struct>
Status read_struct(const Struct* given, const char* name, Struct& fields,
                   size_t min = sizeof(Struct)) {
  fields = {};
  if (given == nullptr) return {};
  Status status = check_struct_size(given, min, sizeof(Struct), name);
  if (!status) return status;
  const size_t size = given->struct_size;
  std::memcpy(&fields, given, std::min(size, sizeof(Struct)));
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (size_t i = sizeof(Struct); i < size; ++i) {
    if (bytes[i] == 0) continue;
    return Error{ErrorCode::unsupported,
                 fmt::format("byte {} of {} is set, of a field that castor {} does not know", i,
                             name, castor_version_string())};
  }
  return {};
}

/// Refuses what is set in a field that has no meaning yet.
inline Status check_reserved(int32_t reserved, const char* name) {
  if (reserved == 0) return {};
  return invalid(fmt::format("reserved is {} in {}, expected 0", reserved, name));
}

/// Copies `fields` to the structure at `to`, as many bytes as it has room for, and zeros after
/// them; struct_size, which was checked, stays.
template <class Struct>
void write_struct(const Struct& fields, Struct* to) {
  const size_t size = to->struct_size;
  const size_t known = std::min(size, sizeof(Struct));
  auto* bytes = reinterpret_cast<unsigned char*>(to);
  std::memcpy(bytes + sizeof(size_t),
              reinterpret_cast<const unsigned char*>(&fields) + sizeof(size_t),
              known - sizeof(size_t));
  std::fill(bytes + known, bytes + size, static_cast<unsigned char>(0));
}

/// Writes what `ask()` gives to the structure of the caller, which is checked first.
template <class Struct, class Ask>
Status fill_struct(Struct* to, const char* name, const Ask& ask, size_t min = sizeof(Struct)) {
  if (Status status = needed(to, "statistics"); !status) return status;
  if (Status status = check_struct_size(to, min, sizeof(Struct), name); !status) return status;
  write_struct(ask(), to);
  return {};
}

}  // namespace castor::c
