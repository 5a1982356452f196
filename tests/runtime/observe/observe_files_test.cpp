// SPDX-License-Identifier: Apache-2.0
// Files that observe code: what may go wrong with them, forks, and threads.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <thread>

#include "tests/support/child_process.hpp"
#include "tests/support/observed_files.hpp"

namespace castor {
namespace {

using test::dump_name;
using test::DumpFile;
using test::jitdump_in;
using test::map_lines;
using test::map_name;
using test::MapLine;
using test::ObservedRuntime;
using test::perf_map_in;
using test::read_dump;
using test::read_text;
using test::TemporaryFolder;

struct RefusedRow {
  std::string_view name;
  ObserveOptions (*options)(const TemporaryFolder& directory);
};

const RefusedRow refused_rows[] = {
    {"perf map in a directory's missing directory",
     [](const TemporaryFolder& directory) {
       ObserveOptions options = perf_map_in(directory);
       options.perf_map_directory += "/missing/too";
       return options;
     }},
    {"jitdump where a file is",
     [](const TemporaryFolder& directory) {
       std::ofstream(directory.path("file")) << "x";
       ObserveOptions options;
       options.jitdump_directory = directory.path("file");
       return options;
     }},
    {"dump in a missing directory",
     [](const TemporaryFolder& directory) {
       ObserveOptions options;
       options.dump_directory = directory.path("missing/too");
       return options;
     }},
    {"a link instead of the map",
     [](const TemporaryFolder& directory) {
       std::filesystem::create_symlink(directory.path("elsewhere"), directory.path(map_name()));
       return perf_map_in(directory);
     }},
    {"a directory instead of the jitdump",
     [](const TemporaryFolder& directory) {
       std::filesystem::create_directory(directory.path(dump_name()));
       return jitdump_in(directory);
     }},
};

TEST(ObserveFiles, ThatCannotBeMadeRefuseTheRuntime) {
  for (const RefusedRow& row : refused_rows) {
    const TemporaryFolder directory;
    RuntimeOptions options;
    options.observe = row.options(directory);
    const Result<Runtime> runtime = Runtime::create(options);
    ASSERT_FALSE(runtime.ok()) << row.name;
    EXPECT_EQ(runtime.error().code, ErrorCode::io) << row.name;
    EXPECT_NE(runtime.error().message.find(directory.path()), std::string::npos)
        << row.name << ": " << runtime.error().message;
    EXPECT_FALSE(std::filesystem::exists(directory.path("elsewhere"))) << row.name;
  }
}

TEST(ObserveFiles, MissingDirectoriesAreMade) {
  const TemporaryFolder directory;
  ObserveOptions options;
  options.jitdump_directory = directory.path("new");
  const ObservedRuntime runtime(options);
  EXPECT_TRUE(std::filesystem::exists(directory.path("new/") + dump_name()));
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
  const TemporaryFolder directory;
  EXPECT_EQ(test::in_child([&] {
              return compile_with_full_files(perf_map_in(directory), directory.path(map_name()));
            }),
            0);
  EXPECT_EQ(test::in_child([&] {
              return compile_with_full_files(jitdump_in(directory), directory.path(dump_name()));
            }),
            0);
  const TemporaryFolder dump;
  ObserveOptions options;
  options.dump_directory = dump.path();
  EXPECT_EQ(
      test::in_child([&] { return compile_with_full_files(options, dump.path("to_i8.castor")); }),
      0);
  EXPECT_EQ(dump.files(), std::set<std::string>());
}

TEST(ObserveFiles, OfAForkedChildAreItsOwn) {
  const TemporaryFolder directory;
  ObserveOptions options = perf_map_in(directory);
  options.jitdump_directory = directory.path();
  const ObservedRuntime runtime(options);
  runtime.code_of(test::to_i8_text);
  const std::string map = read_text(directory.path(map_name()));
  const std::string dump = read_text(directory.path(dump_name()));
  const pid_t child = test::start_child([&] {
    const KernelCodePtr<jit::NestSpec> code = runtime.code_of(test::to_u8_text);
    const std::vector<MapLine> lines = map_lines(directory.path(map_name()));
    if (lines.size() != 1) return 1;
    if (lines[0].begin != reinterpret_cast<uintptr_t>(code->block.code())) return 2;
    const DumpFile file = read_dump(directory.path(dump_name()));
    if (file.loads.size() != 1) return 3;
    return file.loads[0].load.process == static_cast<uint32_t>(::getpid()) ? 0 : 4;
  });
  EXPECT_EQ(test::wait_for(child), 0);
  EXPECT_EQ(directory.files().size(), 4u);
  EXPECT_EQ(read_text(directory.path(map_name())), map);
  EXPECT_EQ(read_text(directory.path(dump_name())), dump);
  EXPECT_EQ(map_lines(directory.path(map_name(child))).size(), 1u);
  runtime.code_of(test::to_u8_text);  // the parent goes on with its own
  EXPECT_EQ(map_lines(directory.path(map_name())).size(), 2u);
}

TEST(ObserveFiles, AreWrittenByManyThreads) {
  const TemporaryFolder directory;
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
  const std::vector<MapLine> lines = map_lines(directory.path(map_name()));
  for (const MapLine& line : lines) names.insert(line.name);
  EXPECT_EQ(names.size(), 8u);
  EXPECT_EQ(read_dump(directory.path(dump_name())).loads.size(), lines.size());
}

}  // namespace
}  // namespace castor
