// SPDX-License-Identifier: Apache-2.0
// Texts kept in tests/data/golden/: read, compared, and rewritten by one switch (README there).
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace castor::test {

inline std::filesystem::path golden_folder() {
  return std::filesystem::path(CASTOR_TEST_DATA) / "golden";
}

/// Every file of a listing, in order.
inline std::vector<std::filesystem::path> listing_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder() / "listings")) {
    files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

/// Whether the switch is on: golden texts are written instead of compared.
inline bool rewrites_golden() {
  const char* value = std::getenv("CASTOR_REWRITE_GOLDEN");
  return value != nullptr && std::string_view(value) == "1";
}

/// The file's text; empty when it is not there.
inline std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Up to `max` lines, each after a mark, then how many are left out.
inline std::string marked(std::span<const std::string> lines, char mark, size_t max) {
  std::string text;
  for (const std::string& line : lines.first(std::min(max, lines.size()))) {
    text += fmt::format("{} {}\n", mark, line);
  }
  if (lines.size() > max) text += fmt::format("{} .. {} more lines\n", mark, lines.size() - max);
  return text;
}

/// A difference of two texts: lines that go and lines that come.
struct Hunk {
  size_t old_lines = 0;
  size_t new_lines = 0;
};

/// The least stretch after which the texts go on alike for two lines, or everything that is left.
inline Hunk first_hunk(std::span<const std::string> olds, std::span<const std::string> news) {
  constexpr size_t farthest = 60;
  const auto alike = [&](size_t i, size_t k) {
    const bool ends = i == olds.size() && k == news.size();
    if (ends || i >= olds.size() || k >= news.size()) return ends;
    const bool last = i + 1 == olds.size() || k + 1 == news.size();
    return olds[i] == news[k] && (last || olds[i + 1] == news[k + 1]);
  };
  for (size_t distance = 1; distance <= farthest; ++distance) {
    for (size_t gone = 0; gone <= distance; ++gone) {
      if (alike(gone, distance - gone)) return {gone, distance - gone};
    }
  }
  return {olds.size(), news.size()};
}

/// The first differences, cut short, with the lines before each; and how many there are.
inline std::string short_difference(const std::string& expected, const std::string& found) {
  constexpr size_t context = 2;
  constexpr size_t max_lines = 6;
  constexpr size_t max_hunks = 4;
  const std::vector<std::string> old_lines = lines_of(expected);
  const std::vector<std::string> new_lines = lines_of(found);
  std::span<const std::string> olds = old_lines;
  std::span<const std::string> news = new_lines;
  std::string text;
  size_t hunks = 0;
  size_t same = 0;  // lines alike before what is left
  while (!olds.empty() || !news.empty()) {
    if (!olds.empty() && !news.empty() && olds.front() == news.front()) {
      olds = olds.subspan(1);
      news = news.subspan(1);
      ++same;
      continue;
    }
    const Hunk hunk = first_hunk(olds, news);
    if (++hunks <= max_hunks) {
      const auto line = static_cast<size_t>(olds.data() - old_lines.data());
      const size_t before = std::min(same, context);
      text += fmt::format("line {}:\n", line + 1);
      text += marked({olds.data() - before, before}, ' ', before);
      text += marked(olds.first(hunk.old_lines), '-', max_lines);
      text += marked(news.first(hunk.new_lines), '+', max_lines);
    }
    olds = olds.subspan(hunk.old_lines);
    news = news.subspan(hunk.new_lines);
    same = 0;
  }
  if (hunks > max_hunks) text += fmt::format("and {} more differences\n", hunks - max_hunks);
  return text;
}

/// Compares a text with the file, or writes the file where the switch is on and they differ.
inline void expect_golden(const std::filesystem::path& path, const std::string& found) {
  const std::string expected = text_of_file(path);
  if (expected == found) return;
  const std::string name = std::filesystem::relative(path, golden_folder()).string();
  if (!rewrites_golden()) {
    const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
    ADD_FAILURE() << "tests/data/golden/" << name << " differs (- file, + generated now)\n"
                  << short_difference(expected, found) << "if the change is meant, rewrite with\n"
                  << "  CASTOR_REWRITE_GOLDEN=1 " << program;
    return;
  }
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << found;
  file.close();
  ASSERT_TRUE(file.good()) << "cannot write " << path;
  fmt::print("rewrote tests/data/golden/{}\n", name);
}

}  // namespace castor::test
