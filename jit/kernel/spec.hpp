// SPDX-License-Identifier: Apache-2.0
// Specs of kernels: each is a struct that holds all that a kernel's code depends on besides target
// and epilogue, with one list of its fields. Equality (here), the cache's key (spec_key.hpp) and
// the words of dumps and profilers (spec_words.hpp) derive from the list, which names every member
// once: a spec whose list does not has no key that compiles.
//
//   struct CopySpec {
//     static constexpr std::string_view name = "copy";  // distinct from all other specs' names
//     using Arguments = const CopyArguments;            // what the code takes a pointer to
//     int bytes = 1;
//     static constexpr auto fields(const auto& list) {
//       return list(field("bytes", &CopySpec::bytes));
//     }
//   };
//   Result<MachineCode> emit_kernel(const CopySpec& spec, const Target& target,
//                                   const EmitOptions& options = {});
//
// Specs and what they hold are aggregates of default-made values, and have no arrays of C. A spec
// whose base has members names it as `Base`.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

namespace castor::jit {

/// The type of a kernel's code.
template <class Spec>
using KernelFunction = void (*)(typename Spec::Arguments* arguments);

/// A member that code depends on, and its word.
template <class Spec, class T>
struct SpecField {
  std::string_view word;
  T Spec::*member;
};
template <class Spec, class T>
constexpr SpecField<Spec, T> field(std::string_view word, T Spec::*member) {
  return {word, member};
}

/// A member that code does not depend on: it is listed, lest it is forgotten, and left out.
template <class Spec, class T>
struct MemberOutsideCode {
  T Spec::*member;
};
template <class Spec, class T>
constexpr MemberOutsideCode<Spec, T> not_in_code(T Spec::*member) {
  return {member};
}

namespace spec_detail {

/// A list that nothing is done with.
struct AnyList {
  constexpr void operator()(const auto&...) const {}
};

}  // namespace spec_detail

/// A type with a list of its fields: a spec, or a part of one. The list is handed to a function, so
/// that it costs a compiler time only where it is used; as a tuple it took half of a source's time.
template <class T>
concept HasFields = requires {
  T::fields(spec_detail::AnyList());
};

namespace spec_detail {

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
concept NoOptional = !is_optional<T>;

/// Becomes any member of an aggregate. An optional is made by its constructor from any value.
struct AnyValue {
  template <NoOptional T>
  operator T() const;
};

template <class T, size_t... index>
consteval bool takes_values(std::index_sequence<index...>) {
  return requires { T{((void)index, AnyValue{})...}; };
}

/// The number of members of an aggregate: of the most values that it can be made of.
template <class T, size_t count = 0>
consteval size_t member_count() {
  if constexpr (takes_values<T>(std::make_index_sequence<count + 1>())) {
    return member_count<T, count + 1>();
  } else {
    return count;
  }
}

/// The members of the base that a spec names, besides the one that it counts as.
template <class T>
consteval size_t more_of_base() {
  if constexpr (requires { typename T::Base; }) {
    return member_count<typename T::Base>() - 1;
  } else {
    return 0;
  }
}

template <class A, class B>
constexpr bool is_same_member(A a, B b) {
  if constexpr (std::is_same_v<decltype(a.member), decltype(b.member)>) {
    return a.member == b.member;
  } else {
    return false;
  }
}

}  // namespace spec_detail

/// Whether `T::fields` has every member of T, and none twice.
template <HasFields T>
consteval bool lists_every_member() {
  const auto is_complete = [](auto... listed) {
    [[maybe_unused]] const auto times = [&](auto one) {
      return (size_t{0} + ... + size_t{spec_detail::is_same_member(one, listed)});
    };
    return sizeof...(listed) == spec_detail::member_count<T>() + spec_detail::more_of_base<T>() &&
           ((times(listed) == 1) && ...);
  };
  return T::fields(is_complete);
}

/// Calls `visit(word, value)` for each field that code depends on, in the list's order.
template <HasFields T, class Visit>
constexpr void for_each_field(T& of, const Visit& visit) {
  static_assert(lists_every_member<std::remove_const_t<T>>(), "a member is missing in fields");
  const auto visit_one = [&]<class Listed>(const Listed& listed) {
    if constexpr (requires { listed.word; }) visit(listed.word, of.*listed.member);
  };
  std::remove_const_t<T>::fields([&](const auto&... listed) { (visit_one(listed), ...); });
}

/// Equal specs have equal code on one target.
template <HasFields T>
constexpr bool operator==(const T& a, const T& b) {
  static_assert(lists_every_member<T>(), "a member is missing in fields");
  const auto agrees = [&]<class Listed>(const Listed& listed) {
    if constexpr (requires { listed.word; }) return a.*listed.member == b.*listed.member;
    return true;
  };
  return T::fields([&](const auto&... listed) { return (agrees(listed) && ...); });
}

}  // namespace castor::jit
