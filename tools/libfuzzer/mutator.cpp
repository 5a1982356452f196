// SPDX-License-Identifier: Apache-2.0
// How libFuzzer's targets change texts: beside its own changes of bytes, words of the language, and
// now and then a whole new function from the generator of `castor fuzz`.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/op.hpp"
#include "ir/text/text.hpp"
#include "tools/fuzz/generate.hpp"
#include "tools/fuzz/random.hpp"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace castor::libfuzzer {

namespace {

using fuzz::Random;

/// Names of ops, types and attributes, and numbers at limits.
const std::vector<std::string>& vocabulary() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> all = {"none", "inf",  "nan",   "0",          "1",
                                    "-1",   "true", "false", "2147483648", "9223372036854775807",
                                    "?",    "?n",   "0x0",   "fx8",        "fx16",
                                    "sa8",  "sa32", "scale", "frac",       "zero_point",
                                    "axis", "-inf", "256",   "1e30",       "attributes"};
    for (const ElementInfo& row : element_table) all.emplace_back(row.name);
    for (const OpInfo& row : op_table()) {
      all.emplace_back(row.name);
      for (const AttributeRule& attribute : row.attributes) {
        all.emplace_back(attribute.name);
        for (const std::string_view choice : attribute.choices) all.emplace_back(choice);
      }
    }
    return all;
  }();
  return words;
}

struct Word {
  size_t begin;
  size_t size;
};

std::vector<Word> words_of(std::string_view text) {
  const auto is_part = [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '.' || c == '%' || c == '@' || c == '?' || c == '-';
  };
  std::vector<Word> words;
  for (size_t at = 0; at < text.size(); ++at) {
    if (!is_part(static_cast<unsigned char>(text[at]))) continue;
    size_t end = at;
    while (end < text.size() && is_part(static_cast<unsigned char>(text[end]))) ++end;
    words.push_back({at, end - at});
    at = end;
  }
  return words;
}

/// One word becomes another: of the language, or of the same text.
void replace_word(std::string& text, Random& random) {
  const std::vector<Word> words = words_of(text);
  if (words.empty()) return;
  const Word at = random.pick(words);
  const Word other = random.pick(words);
  const std::string word =
      random.percent(50) ? random.pick(vocabulary()) : text.substr(other.begin, other.size);
  text.replace(at.begin, at.size, word);
}

/// One line is dropped, repeated, or moved.
void move_line(std::string& text, Random& random) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  if (lines.size() < 2) return;
  const size_t from = random.below(lines.size());
  const std::string line = lines[from];
  if (random.percent(60)) lines.erase(lines.begin() + static_cast<ptrdiff_t>(from));
  if (random.percent(60)) {
    lines.insert(lines.begin() + static_cast<ptrdiff_t>(random.below(lines.size() + 1)), line);
  }
  text.clear();
  for (const std::string& each : lines) text += each;
}

std::string drawn_text(Random& random) {
  const Result<FunctionPtr> function = fuzz::build_function(fuzz::generate(random.next()));
  return function ? print(**function) : std::string();
}

}  // namespace

}  // namespace castor::libfuzzer

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  using namespace castor::libfuzzer;
  Random random(seed);
  const size_t kind = random.below(16);
  if (kind >= 10) return LLVMFuzzerMutate(data, size, max_size);
  std::string text(reinterpret_cast<const char*>(data), size);
  if (kind == 0 || size == 0) {
    text = drawn_text(random);
  } else if (kind <= 7) {
    for (size_t i = random.below(3) + 1; i > 0; --i) replace_word(text, random);
  } else {
    move_line(text, random);
  }
  if (text.empty() || text.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::copy(text.begin(), text.end(), data);
  return text.size();
}
