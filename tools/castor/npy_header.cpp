// SPDX-License-Identifier: Apache-2.0
// The header: magic, version, length, and a Python dictionary such as
// {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
#include <fmt/format.h>

#include <array>
#include <charconv>

#include "tools/castor/npy.hpp"

namespace castor::tools {

namespace {

struct NpyType {
  std::string_view descr;
  ElementType element;
};

constexpr std::array<NpyType, 12> npy_types = {{
    {"|b1", ElementType::boolean},
    {"|u1", ElementType::u8},
    {"<u2", ElementType::u16},
    {"<u4", ElementType::u32},
    {"<u8", ElementType::u64},
    {"|i1", ElementType::i8},
    {"<i2", ElementType::i16},
    {"<i4", ElementType::i32},
    {"<i8", ElementType::i64},
    {"<f2", ElementType::f16},
    {"<f4", ElementType::f32},
    {"<f8", ElementType::f64},
}};

constexpr std::string_view magic("\x93NUMPY", 6);

Error malformed(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

/// Printable text of what a hostile file holds.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (char c : text.substr(0, 32)) out += c >= ' ' && c <= '~' ? c : '?';
  return out + (text.size() > 32 ? "...'" : "'");
}

/// Reads the dictionary from left to right; the first mistake ends it.
class DictionaryReader {
 public:
  explicit DictionaryReader(std::string_view text) : text_(text) {}

  Status read(NpyHeader& header) {
    if (!take('{')) return unexpected("'{'");
    while (!take('}')) {
      Status status = entry(header);
      if (!status) return status;
      if (!take(',') && !looking_at('}')) return unexpected("',' or '}'");
    }
    skip_spaces();
    if (at_ != text_.size()) return unexpected("the end of the header");
    for (const Entry& row : entries) {
      if (seen_[static_cast<size_t>(&row - entries.data())]) continue;
      return malformed(fmt::format("header lacks the key '{}'", row.key));
    }
    return {};
  }

 private:
  struct Entry {
    std::string_view key;
    Status (DictionaryReader::*read)(NpyHeader& header);
  };
  static const std::array<Entry, 3> entries;

  Status entry(NpyHeader& header) {
    const std::optional<std::string_view> key = string();
    if (!key) return unexpected("a key in quotes, or '}'");
    if (!take(':')) return unexpected("':'");
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].key != *key) continue;
      if (seen_[i]) return malformed(fmt::format("header has the key {} twice", quoted(*key)));
      seen_[i] = true;
      return (this->*entries[i].read)(header);
    }
    return malformed(
        fmt::format("header has the key {}, expected descr, fortran_order or shape", quoted(*key)));
  }

  Error unexpected(std::string_view expected) const {
    const std::string_view tail = text_.substr(at_);
    return malformed(fmt::format("header: expected {} at character {}, found {}", expected, at_,
                                 tail.empty() ? "its end" : quoted(tail)));
  }

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool looking_at(char c) {
    skip_spaces();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool take(char c) {
    if (!looking_at(c)) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view word) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  std::optional<std::string_view> string() {
    const char quote = looking_at('"') ? '"' : '\'';
    if (!looking_at(quote)) return std::nullopt;
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view content = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return content;
  }

  Status descr(NpyHeader& header) {
    if (looking_at('[')) return malformed("structured arrays are not supported");
    const std::optional<std::string_view> name = string();
    if (!name) return unexpected("a type such as '<f4'");
    for (const NpyType& row : npy_types) {
      const bool one_byte = row.descr[0] == '|';  // byte order does not matter
      const bool little = name->starts_with('<') || name->starts_with('|');
      if (*name == row.descr || (one_byte && little && name->substr(1) == row.descr.substr(1))) {
        header.element = row.element;
        return {};
      }
    }
    if (name->starts_with('>')) {
      return malformed(fmt::format("type {} is big endian, expected little endian", quoted(*name)));
    }
    return malformed(fmt::format(
        "type {} is not supported, expected b1, u1 to u8, i1 to i8 or f2 to f8, little endian",
        quoted(*name)));
  }

  Status order(NpyHeader& header) {
    header.fortran_order = take("True");
    if (!header.fortran_order && !take("False")) return unexpected("True or False");
    return {};
  }

  Status shape(NpyHeader& header) {
    if (!take('(')) return unexpected("'('");
    bool separated = true;
    while (!take(')')) {
      if (!separated) return unexpected("',' or ')'");
      skip_spaces();
      int64_t extent = 0;
      const char* begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), extent);
      if (error == std::errc::result_out_of_range) return unexpected("an extent below 2^63");
      if (error != std::errc()) return unexpected("an extent or ')'");
      if (extent < 0) return unexpected("an extent that is not negative");
      if (header.shape.rank() == max_rank) {
        return malformed(fmt::format("shape has more than {} dimensions", max_rank));
      }
      header.shape.push_back(extent);
      at_ += static_cast<size_t>(end - begin);
      separated = take(',');
    }
    return {};
  }

  std::string_view text_;
  size_t at_ = 0;
  std::array<bool, 3> seen_ = {};
};

const std::array<DictionaryReader::Entry, 3> DictionaryReader::entries = {{
    {"descr", &DictionaryReader::descr},
    {"fortran_order", &DictionaryReader::order},
    {"shape", &DictionaryReader::shape},
}};

/// Where the dictionary is stored in a file.
struct Extent {
  size_t begin = 0;
  size_t size = 0;
};

Result<Extent> dictionary_extent(std::string_view file) {
  if (!file.starts_with(magic) || file.size() < magic.size() + 2) {
    return malformed("not an .npy file: expected it to begin with \\x93NUMPY and a version");
  }
  const int major = static_cast<unsigned char>(file[6]);
  const int minor = static_cast<unsigned char>(file[7]);
  if (major < 1 || major > 3 || minor != 0) {
    return malformed(fmt::format("version {}.{} of .npy, expected 1.0, 2.0 or 3.0", major, minor));
  }
  const size_t length_bytes = major == 1 ? 2 : 4;
  Extent extent{magic.size() + 2 + length_bytes, 0};
  if (file.size() < extent.begin) return malformed("file ends within the header's length");
  for (size_t i = 0; i < length_bytes; ++i) {
    extent.size |= size_t{static_cast<unsigned char>(file[8 + i])} << (8 * i);
  }
  if (file.size() - extent.begin < extent.size) {
    return malformed(fmt::format("header of {} bytes ends after the file of {} bytes", extent.size,
                                 file.size()));
  }
  return extent;
}

}  // namespace

std::optional<std::string_view> npy_descr(ElementType type) {
  for (const NpyType& row : npy_types) {
    if (row.element == type) return row.descr;
  }
  return std::nullopt;
}

Result<NpyHeader> parse_npy_header(std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const Result<Extent> extent = dictionary_extent(text);
  if (!extent) return extent.error();
  NpyHeader header;
  header.bytes = extent->begin + extent->size;
  const Status status = DictionaryReader(text.substr(extent->begin, extent->size)).read(header);
  if (!status) return status.error();
  return header;
}

}  // namespace castor::tools
