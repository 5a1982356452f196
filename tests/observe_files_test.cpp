// SPDX-License-Identifier: Apache-2.0
// The files of perf: the map and the jitdump, read back; what may go wrong with them; forks.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstring>
#include <sstream>

#include "tests/support/child_process.hpp"
#include "tests/support/observed.hpp"
#include "tests/support/process_maps.hpp"

namespace castor {
namespace {

using test::content_of;
using test::ObservedRuntime;
using test::TemporaryDirectory;

ObserveOptions perf_map_in(const TemporaryDirectory& directory) {
  ObserveOptions options;
  options.perf_map = true;
  options.perf_map_directory = directory.path();
  return options;
}

ObserveOptions jitdump_in(const TemporaryDirectory& directory) {
  ObserveOptions options;
  options.jitdump_directory = directory.path();
  return options;
}

std::string map_name(pid_t process = ::getpid()) {
  return "perf-" + std::to_string(process) + ".map";
}
std::string dump_name(pid_t process = ::getpid()) {
  return "jit-" + std::to_string(process) + ".dump";
}

struct MapLine {
  uintptr_t begin = 0;
  size_t size = 0;
  std::string name;
};

std::vector<MapLine> map_lines(const std::string& path) {
  std::ifstream file(path);
  std::vector<MapLine> lines;
  MapLine line;
  while (file >> std::hex >> line.begin >> line.size >> line.name) lines.push_back(line);
  EXPECT_TRUE(file.eof());
  return lines;
}

TEST(PerfMap, HasALineForEachPieceOfCode) {
  const TemporaryDirectory directory;
  const ObservedRuntime runtime(perf_map_in(directory));
  const std::vector codes = {runtime.code_of(test::to_i8_text), runtime.code_of(test::to_u8_text),
                             runtime.code_of(test::to_i8_text)};
  EXPECT_EQ(codes[0], codes[2]);
  const std::vector<MapLine> lines = map_lines(directory / map_name());
  ASSERT_EQ(lines.size(), 2u);
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].begin, reinterpret_cast<uintptr_t>(codes[i]->block.code()));
    EXPECT_EQ(lines[i].size, codes[i]->block.size());
  }
  EXPECT_EQ(lines[0].name, "castor_convert_f32_i8_contiguous_avx2");
  EXPECT_EQ(lines[1].name, "castor_convert_f32_u8_contiguous_avx2");
}

TEST(PerfMap, CodeLiesInMemoryWithoutAFile) {  // perf asks the map about no other
  const TemporaryDirectory directory;
  const ObservedRuntime runtime(perf_map_in(directory));
  const NestCodePtr code = runtime.code_of(test::to_i8_text);
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
  const TemporaryDirectory directory;
  const ObservedRuntime first(perf_map_in(directory));
  first.code_of(test::to_i8_text);
  const ObservedRuntime second(perf_map_in(directory));
  second.code_of(test::to_i8_text);
  first.code_of(test::to_u8_text);
  EXPECT_EQ(map_lines(directory / map_name()).size(), 3u);
}

/// One record of a jitdump file.
struct LoadRecord {
  jitdump::CodeLoad load;
  std::string name;
  std::string code;
};

struct DumpFile {
  jitdump::Header header{};
  std::vector<LoadRecord> loads;
  int closes = 0;
};

/// Fails the running test where the file is not well formed.
DumpFile read_dump(const std::string& path) {
  const std::string bytes = content_of(path);
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
  return file;
}

TEST(JitdumpFile, ReadsBack) {
  const TemporaryDirectory directory;
  std::vector<NestCodePtr> codes;
  {
    const ObservedRuntime runtime(jitdump_in(directory));
    codes = {runtime.code_of(test::to_i8_text), runtime.code_of(test::to_u8_text)};
    runtime.code_of(test::to_i8_text);
    EXPECT_EQ(read_dump(directory / dump_name()).closes, 0);
  }
  const DumpFile file = read_dump(directory / dump_name());
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
    ASSERT_EQ(record.code.size(), codes[i]->block.size());
    EXPECT_EQ(std::memcmp(record.code.data(), codes[i]->block.code(), record.code.size()), 0);
  }
  EXPECT_EQ(file.loads[0].name, "castor_convert_f32_i8_contiguous_avx2");
  EXPECT_NE(file.loads[0].load.code_index, file.loads[1].load.code_index);
}

TEST(JitdumpFile, IsMappedExecutableForPerfToSee) {
  const TemporaryDirectory directory;
  const auto markers = [&] {
    return std::ranges::count_if(test::process_maps(), [&](const test::ProcessMapping& mapping) {
      return mapping.name == directory / dump_name() && mapping.executable();
    });
  };
  {
    const ObservedRuntime runtime(jitdump_in(directory));
    EXPECT_EQ(markers(), 1);
  }
  EXPECT_EQ(markers(), 0);
}

TEST(JitdumpFile, IsSharedByRuntimes) {
  const TemporaryDirectory directory;
  {
    const ObservedRuntime first(jitdump_in(directory));
    first.code_of(test::to_i8_text);
    {
      const ObservedRuntime second(jitdump_in(directory));
      second.code_of(test::to_i8_text);
    }
    first.code_of(test::to_u8_text);
  }
  const DumpFile file = read_dump(directory / dump_name());
  ASSERT_EQ(file.loads.size(), 3u);
  std::set<uint64_t> indices;
  for (const LoadRecord& record : file.loads) indices.insert(record.load.code_index);
  EXPECT_EQ(indices.size(), 3u);  // perf names its files by them
}

TEST(JitdumpFile, LeftByAnEarlierProcessIsBegunAnew) {
  const TemporaryDirectory directory;
  const std::string path = directory / dump_name();
  std::ofstream(path) << "records of a process that had the same id";
  const timespec long_ago[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), long_ago, 0), 0);
  const ObservedRuntime runtime(jitdump_in(directory));
  runtime.code_of(test::to_i8_text);
  EXPECT_EQ(read_dump(path).loads.size(), 1u);
}

struct RefusedRow {
  std::string_view name;
  ObserveOptions (*options)(const TemporaryDirectory& directory);
};

const RefusedRow refused_rows[] = {
    {"perf map in a directory's missing directory",
     [](const TemporaryDirectory& directory) {
       ObserveOptions options = perf_map_in(directory);
       options.perf_map_directory += "/missing/too";
       return options;
     }},
    {"jitdump where a file is",
     [](const TemporaryDirectory& directory) {
       std::ofstream(directory / "file") << "x";
       ObserveOptions options;
       options.jitdump_directory = directory / "file";
       return options;
     }},
    {"dump in a missing directory",
     [](const TemporaryDirectory& directory) {
       ObserveOptions options;
       options.dump_directory = directory / "missing/too";
       return options;
     }},
    {"a link in the map's place",
     [](const TemporaryDirectory& directory) {
       std::filesystem::create_symlink(directory / "elsewhere", directory / map_name());
       return perf_map_in(directory);
     }},
    {"a directory in the jitdump's place",
     [](const TemporaryDirectory& directory) {
       std::filesystem::create_directory(directory / dump_name());
       return jitdump_in(directory);
     }},
};

TEST(ObserveFiles, ThatCannotBeMadeRefuseTheRuntime) {
  for (const RefusedRow& row : refused_rows) {
    const TemporaryDirectory directory;
    RuntimeOptions options;
    options.observe = row.options(directory);
    const Result<Runtime> runtime = Runtime::create(options);
    ASSERT_FALSE(runtime.ok()) << row.name;
    EXPECT_EQ(runtime.error().code, ErrorCode::io) << row.name;
    EXPECT_NE(runtime.error().message.find(directory.path()), std::string::npos)
        << row.name << ": " << runtime.error().message;
    EXPECT_FALSE(std::filesystem::exists(directory / "elsewhere")) << row.name;
  }
}

TEST(ObserveFiles, MissingDirectoriesAreMade) {
  const TemporaryDirectory directory;
  ObserveOptions options;
  options.jitdump_directory = directory / "new";
  const ObservedRuntime runtime(options);
  EXPECT_TRUE(std::filesystem::exists(directory / "new/" + dump_name()));
}

/// In a child whose files may have no more bytes: compiling goes on, and the failure is told.
int compile_with_full_files(const ObserveOptions& observe, const std::string& file) {
  std::vector<std::string> errors;
  RuntimeOptions options;
  options.observe = observe;
  options.observe.log_level = LogLevel::error;
  options.observe.log_context = &errors;
  options.observe.log = [](void* context, LogLevel, std::string_view message) {
    static_cast<std::vector<std::string>*>(context)->emplace_back(message);
  };
  const Result<Runtime> runtime = Runtime::create(options);
  if (!runtime.ok()) return 1;
  const auto before = std::filesystem::exists(file) ? std::filesystem::file_size(file) : 0;
  const rlimit limit = {before + 10, before + 10};
  if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
  const Result<Kernel> kernel = runtime->compile(test::to_i8_text);
  if (!kernel.ok() || kernel->engine() != Engine::jit) return 3;
  const Result<BoundKernel> bound = kernel->bind({{2}});
  const float x[2] = {-3.7F, 200};
  int8_t y[2] = {};
  const ConstView in(x, ElementType::f32, {2}, sizeof x);
  const View out(y, ElementType::i8, {2}, sizeof y);
  if (!bound.ok() || !bound->run({&in, 1}, {&out, 1}).ok() || y[0] != -3 || y[1] != 127) return 4;
  const Status observation = runtime->observation();
  if (observation.ok() || observation.error().code != ErrorCode::io) return 5;
  if (errors.empty() || errors[0] != observation.error().message) return 6;
  const auto after = std::filesystem::exists(file) ? std::filesystem::file_size(file) : 0;
  return after == before ? 0 : 7;  // a record is there as a whole, or not at all
}

TEST(ObserveFiles, ThatAreFullFailNoCompile) {
  const TemporaryDirectory directory;
  EXPECT_EQ(test::in_child([&] {
              return compile_with_full_files(perf_map_in(directory), directory / map_name());
            }),
            0);
  EXPECT_EQ(test::in_child([&] {
              return compile_with_full_files(jitdump_in(directory), directory / dump_name());
            }),
            0);
  const TemporaryDirectory dump;
  ObserveOptions options;
  options.dump_directory = dump.path();
  EXPECT_EQ(test::in_child([&] { return compile_with_full_files(options, dump / "to_i8.castor"); }),
            0);
  EXPECT_EQ(dump.files(), std::set<std::string>());
}

TEST(ObserveFiles, OfAForkedChildAreItsOwn) {
  const TemporaryDirectory directory;
  ObserveOptions options = perf_map_in(directory);
  options.jitdump_directory = directory.path();
  const ObservedRuntime runtime(options);
  runtime.code_of(test::to_i8_text);
  const std::string map = content_of(directory / map_name());
  const std::string dump = content_of(directory / dump_name());
  const pid_t child = test::start_child([&] {
    const NestCodePtr code = runtime.code_of(test::to_u8_text);
    const std::vector<MapLine> lines = map_lines(directory / map_name());
    if (lines.size() != 1) return 1;
    if (lines[0].begin != reinterpret_cast<uintptr_t>(code->block.code())) return 2;
    const DumpFile file = read_dump(directory / dump_name());
    if (file.loads.size() != 1) return 3;
    return file.loads[0].load.process == static_cast<uint32_t>(::getpid()) ? 0 : 4;
  });
  EXPECT_EQ(test::wait_for(child), 0);
  EXPECT_EQ(directory.files().size(), 4u);
  EXPECT_EQ(content_of(directory / map_name()), map);
  EXPECT_EQ(content_of(directory / dump_name()), dump);
  EXPECT_EQ(map_lines(directory / map_name(child)).size(), 1u);
  runtime.code_of(test::to_u8_text);  // the parent goes on with its own
  EXPECT_EQ(map_lines(directory / map_name()).size(), 2u);
}

TEST(ObserveFiles, AreWrittenByManyThreads) {
  const TemporaryDirectory directory;
  ObserveOptions options = perf_map_in(directory);
  options.jitdump_directory = directory.path();
  const ObservedRuntime first(options);
  const ObservedRuntime second(options);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const ObservedRuntime& runtime = t % 2 == 0 ? first : second;
      for (const char* type : {"i8", "u8", "i16", "u16", "i32", "i64", "f16", "bf16"}) {
        const std::string name(type);
        runtime.code_of("func @f(%x: f32[?n]) -> (" + name + "[?n]) { %y = convert %x : " + name +
                        " return %y }");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::string> names;
  const std::vector<MapLine> lines = map_lines(directory / map_name());
  for (const MapLine& line : lines) names.insert(line.name);
  EXPECT_EQ(names.size(), 8u);
  EXPECT_EQ(read_dump(directory / dump_name()).loads.size(), lines.size());
}

}  // namespace
}  // namespace castor
