// SPDX-License-Identifier: Apache-2.0
// Results of queries, kept by the hash of their canonical texts.
#pragma once

#include <map>
#include <string>

#include "ir/support/result.hpp"
#include "tools/prove/query/verdict.hpp"

namespace castor::prove {

/// What is known of queries. One line each in the file, ordered by hash: 16 hexadecimal digits, a
/// blank, and a letter for the status, a capital where deciding is costly; `wrong` is never kept.
/// Lines that begin with # are comments.
class Results {
 public:
  static Result<Results> read(const std::string& path);
  static Result<Results> parse(std::string_view text);
  castor::Status write(const std::string& path) const;
  std::string text() const;

  struct Entry {
    Status status;
    bool is_costly;
  };

  std::optional<Entry> find(uint64_t hash) const;
  void set(uint64_t hash, const Entry& entry) { entries_.insert_or_assign(hash, entry); }
  size_t size() const { return entries_.size(); }

 private:
  std::map<uint64_t, Entry> entries_;
};

}  // namespace castor::prove
