// SPDX-License-Identifier: Apache-2.0
// The files of perf, read back.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "runtime/observe/jitdump.hpp"
#include "tests/support/observed.hpp"

namespace castor::test {

inline ObserveOptions perf_map_in(const TemporaryFolder& directory) {
  ObserveOptions options;
  options.perf_map = true;
  options.perf_map_directory = directory.path();
  return options;
}

inline ObserveOptions jitdump_in(const TemporaryFolder& directory) {
  ObserveOptions options;
  options.jitdump_directory = directory.path();
  return options;
}

inline std::string map_name(pid_t process = ::getpid()) {
  return "perf-" + std::to_string(process) + ".map";
}
inline std::string dump_name(pid_t process = ::getpid()) {
  return "jit-" + std::to_string(process) + ".dump";
}

struct MapLine {
  uintptr_t begin = 0;
  size_t size = 0;
  std::string name;
};

inline std::vector<MapLine> map_lines(const std::string& path) {
  std::ifstream file(path);
  std::vector<MapLine> lines;
  MapLine line;
  while (file >> std::hex >> line.begin >> line.size >> line.name) lines.push_back(line);
  EXPECT_TRUE(file.eof());
  return lines;
}

/// One record of a jitdump file.
struct LoadRecord {
  jitdump::CodeLoad load;
  std::string name;
  std::string code;
};

/// How code is unwound: the sections of a file that has them after its code.
struct UnwindingRecord {
  jitdump::Unwinding fields;
  std::string sections;
};

struct DumpFile {
  jitdump::Header header{};
  std::vector<LoadRecord> loads;
  std::vector<UnwindingRecord> unwinding;  ///< one before each of `loads`
  int closes = 0;
};

/// Fails the running test where the file is not well formed.
inline DumpFile read_dump(const std::string& path) {
  const std::string bytes = read_text(path);
  DumpFile file;
  EXPECT_GE(bytes.size(), sizeof file.header);
  if (bytes.size() < sizeof file.header) return file;
  std::memcpy(&file.header, bytes.data(), sizeof file.header);
  size_t at = file.header.total_size;
  while (at + sizeof(jitdump::RecordPrefix) <= bytes.size()) {
    LoadRecord record{};
    std::memcpy(&record.load.prefix, bytes.data() + at, sizeof record.load.prefix);
    const size_t size = record.load.prefix.total_size;
    EXPECT_LE(at + size, bytes.size());
    if (size < sizeof(jitdump::RecordPrefix) || at + size > bytes.size()) break;
    if (record.load.prefix.id == jitdump::RecordId::code_close) {
      EXPECT_EQ(size, sizeof(jitdump::RecordPrefix));
      ++file.closes;
    } else if (record.load.prefix.id == jitdump::RecordId::unwinding) {
      UnwindingRecord unwinding{};
      EXPECT_EQ(file.unwinding.size(), file.loads.size());
      std::memcpy(&unwinding.fields, bytes.data() + at, sizeof unwinding.fields);
      EXPECT_LE(sizeof unwinding.fields + unwinding.fields.section_bytes, size);
      EXPECT_EQ(size % 8, 0u);
      unwinding.sections =
          bytes.substr(at + sizeof unwinding.fields, unwinding.fields.section_bytes);
      file.unwinding.push_back(unwinding);
    } else {
      EXPECT_EQ(record.load.prefix.id, jitdump::RecordId::code_load);
      std::memcpy(&record.load, bytes.data() + at, sizeof record.load);
      record.name = bytes.data() + at + sizeof record.load;
      record.code =
          bytes.substr(at + sizeof record.load + record.name.size() + 1, record.load.code_size);
      EXPECT_EQ(size, sizeof record.load + record.name.size() + 1 + record.load.code_size);
      file.loads.push_back(record);
    }
    at += size;
  }
  EXPECT_EQ(at, bytes.size());
  EXPECT_EQ(file.unwinding.size(), file.loads.size());
  return file;
}

}  // namespace castor::test
