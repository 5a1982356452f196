// SPDX-License-Identifier: Apache-2.0
// The map of perf and the jitdump, read back.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "tests/support/observed_files.hpp"
#include "tests/support/process_maps.hpp"

namespace castor {
namespace {

using test::dump_name;
using test::DumpFile;
using test::jitdump_in;
using test::LoadRecord;
using test::map_lines;
using test::map_name;
using test::MapLine;
using test::ObservedRuntime;
using test::perf_map_in;
using test::read_dump;
using test::TemporaryFolder;

TEST(PerfMap, HasALineForEachCode) {
  const TemporaryFolder directory;
  const ObservedRuntime runtime(perf_map_in(directory));
  const std::vector codes = {runtime.code_of(test::to_i8_text), runtime.code_of(test::to_u8_text),
                             runtime.code_of(test::to_i8_text)};
  EXPECT_EQ(codes[0], codes[2]);
  const std::vector<MapLine> lines = map_lines(directory.path(map_name()));
  ASSERT_EQ(lines.size(), 2u);
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].begin, reinterpret_cast<uintptr_t>(codes[i]->block.code()));
    EXPECT_EQ(lines[i].size, codes[i]->block.code_size());
  }
  EXPECT_EQ(lines[0].name, "castor_convert_f32_i8_contiguous_avx2");
  EXPECT_EQ(lines[1].name, "castor_convert_f32_u8_contiguous_avx2");
}

TEST(PerfMap, CodeLiesInMemoryWithoutAFile) {  // perf asks the map about no other
  const TemporaryFolder directory;
  const ObservedRuntime runtime(perf_map_in(directory));
  const KernelCodePtr<jit::NestSpec> code = runtime.code_of(test::to_i8_text);
  const auto address = reinterpret_cast<uintptr_t>(code->block.code());
  int found = 0;
  for (const test::ProcessMapping& mapping : test::process_maps()) {
    if (address < mapping.begin || address >= mapping.end) continue;
    ++found;
    EXPECT_TRUE(mapping.executable());
    EXPECT_EQ(mapping.name, "");
  }
  EXPECT_EQ(found, 1);
  EXPECT_EQ(test::count_writable_executable(), 0);
}

TEST(PerfMap, IsSharedByRuntimes) {
  const TemporaryFolder directory;
  const ObservedRuntime first(perf_map_in(directory));
  first.code_of(test::to_i8_text);
  const ObservedRuntime second(perf_map_in(directory));
  second.code_of(test::to_i8_text);
  first.code_of(test::to_u8_text);
  EXPECT_EQ(map_lines(directory.path(map_name())).size(), 3u);
}

TEST(JitdumpFile, ReadsBack) {
  const TemporaryFolder directory;
  std::vector<KernelCodePtr<jit::NestSpec>> codes;
  {
    const ObservedRuntime runtime(jitdump_in(directory));
    codes = {runtime.code_of(test::to_i8_text), runtime.code_of(test::to_u8_text)};
    runtime.code_of(test::to_i8_text);
    EXPECT_EQ(read_dump(directory.path(dump_name())).closes, 0);
  }
  const DumpFile file = read_dump(directory.path(dump_name()));
  EXPECT_EQ(file.header.magic, 0x4A695444u);
  EXPECT_EQ(file.header.version, 1u);
  EXPECT_EQ(file.header.total_size, 40u);
  EXPECT_EQ(file.header.elf_machine, 62u);  // x86-64
  EXPECT_EQ(file.header.process, static_cast<uint32_t>(::getpid()));
  EXPECT_EQ(file.closes, 1);
  ASSERT_EQ(file.loads.size(), 2u);
  uint64_t time = file.header.timestamp;
  for (size_t i = 0; i < file.loads.size(); ++i) {
    const LoadRecord& record = file.loads[i];
    EXPECT_GE(record.load.prefix.timestamp, time);
    time = record.load.prefix.timestamp;
    EXPECT_EQ(record.load.process, static_cast<uint32_t>(::getpid()));
    EXPECT_EQ(record.load.thread, static_cast<uint32_t>(::gettid()));
    EXPECT_EQ(record.load.code_address, reinterpret_cast<uintptr_t>(codes[i]->block.code()));
    EXPECT_EQ(record.load.virtual_address, record.load.code_address);
    ASSERT_EQ(record.code.size(), codes[i]->block.code_size());
    EXPECT_EQ(std::memcmp(record.code.data(), codes[i]->block.code(), record.code.size()), 0);
  }
  EXPECT_EQ(file.loads[0].name, "castor_convert_f32_i8_contiguous_avx2");
  EXPECT_NE(file.loads[0].load.code_index, file.loads[1].load.code_index);
}

/// The number at an offset of the sections, which are counted from the first instruction on.
template <class T>
int64_t number_at(const std::string& sections, size_t offset) {
  T value{};
  EXPECT_LE(offset + sizeof value, sections.size());
  if (offset + sizeof value <= sections.size()) {
    std::memcpy(&value, sections.data() + offset, sizeof value);
  }
  return value;
}

/// As perf puts them into a file: .eh_frame after the code, at a multiple of 8, then .eh_frame_hdr.
TEST(JitdumpFile, HasUnwindRecordsThatLeadToTheCode) {
  const TemporaryFolder directory;
  std::vector<KernelCodePtr<jit::NestSpec>> codes;
  {
    const ObservedRuntime runtime(jitdump_in(directory));
    codes = {runtime.code_of(test::to_i8_text), runtime.code_of(test::to_u8_text)};
  }
  const DumpFile file = read_dump(directory.path(dump_name()));
  ASSERT_EQ(file.unwinding.size(), 2u);
  for (size_t i = 0; i < file.unwinding.size(); ++i) {
    const std::string& sections = file.unwinding[i].sections;
    const jitdump::Unwinding& fields = file.unwinding[i].fields;
    const int64_t code_bytes = static_cast<int64_t>(file.loads[i].load.code_size);
    const int64_t begin = -static_cast<int64_t>(jit::round_up(file.loads[i].load.code_size, 8));
    EXPECT_EQ(fields.section_bytes, sections.size());
    EXPECT_EQ(fields.mapped_bytes, sections.size());
    ASSERT_EQ(fields.header_bytes, 20u);
    const size_t header = sections.size() - fields.header_bytes;
    EXPECT_EQ(sections.substr(header, 4), "\x01\x1b\x03\x3b");
    EXPECT_EQ(number_at<int32_t>(sections, header + 4), -static_cast<int64_t>(header + 4));
    EXPECT_EQ(number_at<uint32_t>(sections, header + 8), 1);
    const auto header_at = static_cast<int64_t>(header);
    EXPECT_EQ(header_at + number_at<int32_t>(sections, header + 12), begin);
    const int64_t record = header_at + number_at<int32_t>(sections, header + 16);
    ASSERT_GT(record, 0);
    const auto at = static_cast<size_t>(record);
    EXPECT_EQ(number_at<uint32_t>(sections, at + 4), record + 4);  // back to the common record
    EXPECT_EQ(record + 8 + number_at<int32_t>(sections, at + 8), begin);
    EXPECT_EQ(number_at<uint32_t>(sections, at + 12), code_bytes);
    EXPECT_EQ(number_at<uint32_t>(sections, header - 4), 0);  // the end
  }
}

/// perf takes addresses after the code for its records.
TEST(JitdumpFile, LeavesRoomForUnwindRecords) {
  const TemporaryFolder directory;
  const ObservedRuntime runtime(jitdump_in(directory));
  const std::vector codes = {runtime.code_of(test::to_i8_text), runtime.code_of(test::to_u8_text)};
  const DumpFile file = read_dump(directory.path(dump_name()));
  ASSERT_EQ(file.loads.size(), 2u);
  const uint64_t end = file.loads[0].load.code_address +
                       jit::round_up(file.loads[0].load.code_size, 8) +
                       file.unwinding[0].fields.mapped_bytes;
  EXPECT_GE(file.loads[1].load.code_address, end);
  EXPECT_LT(file.loads[1].load.code_address, end + 64);
}

TEST(JitdumpFile, IsMappedExecutableForPerfToSee) {
  const TemporaryFolder directory;
  const auto markers = [&] {
    return std::ranges::count_if(test::process_maps(), [&](const test::ProcessMapping& mapping) {
      return mapping.name == directory.path(dump_name()) && mapping.executable();
    });
  };
  {
    const ObservedRuntime runtime(jitdump_in(directory));
    EXPECT_EQ(markers(), 1);
  }
  EXPECT_EQ(markers(), 0);
}

TEST(JitdumpFile, IsSharedByRuntimes) {
  const TemporaryFolder directory;
  {
    const ObservedRuntime first(jitdump_in(directory));
    first.code_of(test::to_i8_text);
    {
      const ObservedRuntime second(jitdump_in(directory));
      second.code_of(test::to_i8_text);
    }
    first.code_of(test::to_u8_text);
  }
  const DumpFile file = read_dump(directory.path(dump_name()));
  ASSERT_EQ(file.loads.size(), 3u);
  std::set<uint64_t> indices;
  for (const LoadRecord& record : file.loads) indices.insert(record.load.code_index);
  EXPECT_EQ(indices.size(), 3u);  // perf names its files by them
}

TEST(JitdumpFile, LeftByAnEarlierProcessIsBegunAnew) {
  const TemporaryFolder directory;
  const std::string path = directory.path(dump_name());
  std::ofstream(path) << "records of a process that had the same id";
  const timespec long_ago[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), long_ago, 0), 0);
  const ObservedRuntime runtime(jitdump_in(directory));
  runtime.code_of(test::to_i8_text);
  EXPECT_EQ(read_dump(path).loads.size(), 1u);
}

}  // namespace
}  // namespace castor
