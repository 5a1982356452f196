// SPDX-License-Identifier: Apache-2.0
#include "tools/explorer/page.hpp"

#include <string_view>

#include "tools/explorer/page_files.hpp"

namespace castor::tools::explorer {

namespace {

/// JSON within a script: no "</script" nor "<!--" can be in it.
std::string without_markup(const std::string& json) {
  std::string text;
  text.reserve(json.size() + json.size() / 16);
  for (const char letter : json) {
    letter == '<' ? text += "\\u003c" : text += letter;
  }
  return text;
}

/// Puts `content` where the page says `mark`.
void fill(std::string& page, std::string_view mark, std::string_view content) {
  page.replace(page.find(mark), mark.size(), content);
}

}  // namespace

std::string to_page(const Model& model) {
  std::string page(page_html());
  // The model last: its texts may hold marks.
  fill(page, "/*STYLE*/", page_style());
  fill(page, "/*SCRIPT*/", page_script());
  fill(page, "/*MODEL*/", without_markup(to_json(model)));
  return page;
}

}  // namespace castor::tools::explorer
