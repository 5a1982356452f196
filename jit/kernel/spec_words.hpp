// SPDX-License-Identifier: Apache-2.0
// Specs in words: the names that profilers see, and the text of dumps and of golden listings.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/kernel/spec.hpp"

namespace castor::jit {

/// A field that has not its default.
struct FieldWords {
  std::string_view word;
  std::string value;  ///< "4", "i16_pairs"; empty for a switch that is on, and for a list
  std::vector<std::vector<FieldWords>>
      elements{};  ///< the words of each element, where the field is a list
};

/// A spec in words.
struct SpecWords {
  std::string_view name;
  std::vector<FieldWords> fields;
  /// Whether `short_name` says all: there is no list.
  bool has_full_short_name() const;
};

/// The words of an integer; empty for a boolean that is true; an enumerator's name, of those that
/// `names_of` lists for its type.
template <class T>
std::string value_text(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "" : "off";
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(names_of(value)[static_cast<size_t>(value)]);
  } else {
    return std::to_string(value);
  }
}

/// The words of all fields that have not their defaults.
template <HasFields T>
std::vector<FieldWords> field_words(const T& of) {
  std::vector<FieldWords> words;
  const T standard{};
  const auto add = [&]<class Value>(const SpecField<T, Value>& field) {
    const Value& value = of.*field.member;
    if (value == standard.*field.member) return;
    FieldWords& added = words.emplace_back(FieldWords{field.word, {}});
    if constexpr (requires { value.begin(); }) {
      for (const auto& element : value) added.elements.push_back(field_words(element));
    } else {
      added.value = value_text(value);
    }
  };
  const auto add_listed = [&]<class Listed>(const Listed& listed) {
    if constexpr (requires { listed.word; }) add(listed);
  };
  T::fields([&](const auto&... listed) { (add_listed(listed), ...); });
  return words;
}

template <HasFields Spec>
SpecWords spec_words(const Spec& spec) {
  return {Spec::name, field_words(spec)};
}

/// "pixel_vectorised_channels4_vectors3_dead_lanes": without lists.
std::string short_name(const SpecWords& words);

/// Lines in the form of the heads of golden listings: "  kernel: depthwise filter_rows=3 adds" and,
/// for each list, "  blocks: outputs=4 above=1, outputs=2".
std::string text_of(const SpecWords& words);

}  // namespace castor::jit
