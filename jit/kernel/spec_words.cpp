// SPDX-License-Identifier: Apache-2.0
#include "jit/kernel/spec_words.hpp"

#include <algorithm>

namespace castor::jit {

namespace {

bool is_list(const FieldWords& field) { return !field.elements.empty(); }

/// "outputs=4 adds"; lists have lines of their own.
std::string fields_text(std::span<const FieldWords> fields) {
  std::string text;
  for (const FieldWords& field : fields) {
    if (is_list(field)) continue;
    if (!text.empty()) text += ' ';
    text += field.word;
    if (!field.value.empty()) text += '=' + field.value;
  }
  return text;
}

std::string list_text(const FieldWords& list) {
  std::string text = "  " + std::string(list.word) + ':';
  for (size_t i = 0; i < list.elements.size(); ++i) {
    const std::string element = fields_text(list.elements[i]);
    text += i == 0 ? "" : ",";
    text += element.empty() ? "" : ' ' + element;
  }
  return text + '\n';
}

}  // namespace

bool SpecWords::has_full_short_name() const { return std::ranges::none_of(fields, is_list); }

std::string short_name(const SpecWords& words) {
  std::string name(words.name);
  for (const FieldWords& field : words.fields) {
    if (is_list(field)) continue;
    const bool is_word = !field.value.empty() && (field.value[0] < '0' || field.value[0] > '9');
    name += '_' + std::string(field.word) + (is_word ? "_" : "") + field.value;
  }
  return name;
}

std::string text_of(const SpecWords& words) {
  const std::string fields = fields_text(words.fields);
  std::string text = "  kernel: " + std::string(words.name) + (fields.empty() ? "" : ' ' + fields);
  text += '\n';
  for (const FieldWords& field : words.fields) {
    if (is_list(field)) text += list_text(field);
  }
  return text;
}

}  // namespace castor::jit
