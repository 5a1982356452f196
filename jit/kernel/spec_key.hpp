// SPDX-License-Identifier: Apache-2.0
// Keys of kernels' code: the bytes of what it depends on, and of nothing else.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "jit/kernel/spec.hpp"
#include "jit/target.hpp"

namespace castor::jit {

namespace spec_detail {

template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;

/// What is stored in a key as its own bytes, none of which is padding.
template <class T>
concept PlainBytes = !HasFields<T> && !std::is_pointer_v<T> && std::is_trivially_copyable_v<T> &&
                     std::has_unique_object_representations_v<T>;

/// Number of a vector's elements, which stands before them: so no key is the beginning of another.
using ElementCount = uint32_t;

}  // namespace spec_detail

/// The bytes that a value takes in a key.
template <class T>
constexpr size_t key_bytes(const T& value) {
  if constexpr (HasFields<T>) {
    size_t bytes = 0;
    for_each_field(value, [&](std::string_view, const auto& part) { bytes += key_bytes(part); });
    return bytes;
  } else if constexpr (std::is_pointer_v<T>) {
    return key_bytes(*value);
  } else if constexpr (spec_detail::is_vector<T>) {
    size_t bytes = sizeof(spec_detail::ElementCount);
    for (const auto& element : value) bytes += key_bytes(element);
    return bytes;
  } else {
    static_assert(spec_detail::PlainBytes<T>,
                  "a part of a spec needs fields or bytes without padding");
    return sizeof(T);
  }
}

/// Writes those bytes; returns the end of what it has written.
template <class T>
char* write_key(char* to, const T& value) {
  if constexpr (HasFields<T>) {
    for_each_field(value, [&](std::string_view, const auto& part) { to = write_key(to, part); });
    return to;
  } else if constexpr (std::is_pointer_v<T>) {
    return write_key(to, *value);
  } else if constexpr (spec_detail::is_vector<T>) {
    to = write_key(to, static_cast<spec_detail::ElementCount>(value.size()));
    for (const auto& element : value) to = write_key(to, element);
    return to;
  } else {
    static_assert(spec_detail::PlainBytes<T>,
                  "a part of a spec needs fields or bytes without padding");
    std::memcpy(to, &value, sizeof(T));
    return to + sizeof(T);
  }
}

/// What code depends on of a target.
struct TargetKey {
  Tier tier;
  bool frame_pointers;
  static constexpr auto fields(const auto& list) {
    return list(field("tier", &TargetKey::tier),
                field("frame_pointers", &TargetKey::frame_pointers));
  }
};

/// The epilogue of kernels that apply none.
struct NoEpilogue {
  static constexpr auto fields(const auto& list) { return list(); }
};

/// The key of a kernel's code: the spec's name, what it depends on of the target, the fields of
/// spec and epilogue, which is null where there is none. Equal keys have equal code; shapes,
/// strides, names and addresses are not in it. Throws std::bad_alloc.
template <HasFields Spec, class Epilogue = NoEpilogue>
std::string kernel_key(const Spec& spec, const Target& target, const Epilogue* epilogue = nullptr) {
  constexpr std::string_view name = Spec::name;
  const TargetKey target_key = {target.tier, target.frame_pointers};
  size_t bytes = name.size() + 1 + key_bytes(target_key) + key_bytes(spec);
  if (epilogue != nullptr) bytes += key_bytes(*epilogue);
  std::string key(bytes, '\0');
  char* to = key.data() + name.copy(key.data(), name.size()) + 1;
  to = write_key(write_key(to, target_key), spec);
  if (epilogue != nullptr) write_key(to, *epilogue);
  return key;
}

}  // namespace castor::jit
