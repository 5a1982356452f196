// SPDX-License-Identifier: Apache-2.0
// A C11 program that watches castor's code: a log, profilers' files, dumps with listings, GDB; and
// what is said where files cannot be written.
#define _POSIX_C_SOURCE 200809L

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "castor/listing.h"
#include "tests/support/c_checks.h"

static char folder[] = "/tmp/castor_c_observe_XXXXXX";

/// Whether a file's name in the folder contains `part`; files whose names do are removed.
static int removed(const char* part) {
  int found = 0;
  DIR* all = opendir(folder);
  for (struct dirent* each = readdir(all); each != NULL; each = readdir(all)) {
    char path[512];
    if (each->d_name[0] == '.' || strstr(each->d_name, part) == NULL) continue;
    snprintf(path, sizeof path, "%s/%s", folder, each->d_name);
    found += remove(path) == 0;
  }
  closedir(all);
  return found;
}

/// What was logged: of each level, and the last message.
struct log {
  int count[5];
  int bad;  ///< messages whose length is not theirs
  char last[300];
};

static void take_message(void* context, castor_log_level level, const char* message,
                         size_t length) {
  struct log* log = context;
  if (level < CASTOR_LOG_DEBUG || level > CASTOR_LOG_ERROR || strlen(message) != length) {
    ++log->bad;
    return;
  }
  ++log->count[level];
  snprintf(log->last, sizeof log->last, "%s", message);
}

static castor_runtime* runtime_of(const castor_observe_options* observe) {
  castor_runtime_options options = CASTOR_RUNTIME_OPTIONS;
  castor_runtime* runtime = NULL;
  options.interpret = interprets;
  options.observe = observe;
  EXPECT_OK(castor_runtime_create(&options, &runtime, &error));
  return runtime;
}

static int is_jit(const castor_runtime* runtime) {
  return castor_runtime_tier(runtime) != CASTOR_TIER_NONE;
}

/// Messages from each level on; the options are copied, the context outlives the runtime.
static void test_log(void) {
  for (castor_log_level level = CASTOR_LOG_BY_DEFAULT; level <= CASTOR_LOG_ERROR; ++level) {
    struct log log = {{0}, 0, ""};
    castor_observe_options observe = CASTOR_OBSERVE_OPTIONS;
    observe.log = take_message;
    observe.log_context = &log;
    observe.log_level = level;
    castor_runtime* runtime = runtime_of(&observe);
    memset(&observe, 0x5a, sizeof observe);
    const int jit = is_jit(runtime);
    castor_kernel* kernel = compiled(runtime, scale_text);
    castor_kernel* none = NULL;
    const castor_log_level from = level == CASTOR_LOG_BY_DEFAULT ? CASTOR_LOG_INFO : level;
    EXPECT(log.count[CASTOR_LOG_WARNING] == (!jit && from <= CASTOR_LOG_WARNING));
    EXPECT(log.count[CASTOR_LOG_INFO] <= (from <= CASTOR_LOG_INFO));
    EXPECT(log.count[CASTOR_LOG_INFO] == 1 || !jit || from > CASTOR_LOG_INFO);
    EXPECT((log.count[CASTOR_LOG_DEBUG] > 0) == (jit && from == CASTOR_LOG_DEBUG));
    EXPECT(castor_runtime_compile_text(runtime, "x", 1, NULL, &none, NULL) == CASTOR_INVALID_TEXT);
    EXPECT(log.count[CASTOR_LOG_WARNING] == (from <= CASTOR_LOG_WARNING) * (jit ? 1 : 2));
    EXPECT((strstr(log.last, "compile") != NULL) == (from <= CASTOR_LOG_WARNING));
    EXPECT_OK(castor_runtime_observation(runtime, &error));
    castor_runtime_destroy(runtime);
    const int made = log.count[CASTOR_LOG_DEBUG];
    castor_kernel_destroy(kernel);  // its code dies here, after the runtime
    EXPECT(log.count[CASTOR_LOG_DEBUG] == 2 * made);
    EXPECT(log.count[CASTOR_LOG_ERROR] == 0 && log.bad == 0);
  }
}

static void test_level_names(void) {
  EXPECT(strcmp(castor_log_level_name(CASTOR_LOG_DEBUG), "debug") == 0);
  EXPECT(strcmp(castor_log_level_name(CASTOR_LOG_INFO), "info") == 0);
  EXPECT(strcmp(castor_log_level_name(CASTOR_LOG_WARNING), "warning") == 0);
  EXPECT(strcmp(castor_log_level_name(CASTOR_LOG_ERROR), "error") == 0);
  EXPECT(castor_log_level_name(CASTOR_LOG_BY_DEFAULT) == NULL && castor_log_level_name(5) == NULL);
  EXPECT(castor_log_level_name(-1) == NULL);
}

/// perf's files, GDB, and dumps with listings or without.
static void test_files(void) {
  castor_observe_options observe = CASTOR_OBSERVE_OPTIONS;
  observe.perf_map = 1;
  observe.perf_map_directory = folder;
  observe.jitdump_directory = folder;
  observe.dump_directory = folder;
  observe.gdb = 1;
  observe.listing = castor_listing_writer();
  EXPECT(observe.listing != NULL && observe.listing == castor_listing_writer());
  castor_runtime* runtime = runtime_of(&observe);
  const int jit = is_jit(runtime);
  castor_kernel_destroy(compiled(runtime, scale_text));
  EXPECT_OK(castor_runtime_observation(runtime, &error));
  castor_runtime_destroy(runtime);
  char map[40];
  char dump[40];
  snprintf(map, sizeof map, "perf-%ld.map", (long)getpid());
  snprintf(dump, sizeof dump, "jit-%ld.dump", (long)getpid());
  EXPECT(removed(map) == 1 && removed(dump) == 1);
  EXPECT(removed(".castor") == 1 && removed(".nests.txt") == 1);
  EXPECT((removed(".asm.txt") > 0) == jit && removed(".bin") == 0);
  removed("");

  observe = (castor_observe_options)CASTOR_OBSERVE_OPTIONS;
  observe.perf_map_directory = "";
  observe.jitdump_directory = "";
  observe.dump_directory = folder;
  runtime = runtime_of(&observe);
  castor_kernel_destroy(compiled(runtime, scale_text));
  castor_runtime_destroy(runtime);
  EXPECT(removed("perf-") == 0 && removed("jit-") == 0 && removed(".asm.txt") == 0);
  EXPECT((removed(".bin") > 0) == jit);
  removed("");
}

static void test_files_that_cannot_be_written(void) {
  castor_observe_options observe = CASTOR_OBSERVE_OPTIONS;
  castor_runtime_options options = CASTOR_RUNTIME_OPTIONS;
  castor_runtime* runtime = NULL;
  const char** const directories[] = {&observe.perf_map_directory, &observe.jitdump_directory,
                                      &observe.dump_directory};
  options.observe = &observe;
  observe.perf_map = 1;
  observe.perf_map_directory = folder;
  for (size_t i = 0; i < 3; ++i) {
    const char* const good = *directories[i];
    *directories[i] = "/dev/null/castor";
    EXPECT_STATUS(castor_runtime_create(&options, &runtime, &error), CASTOR_IO, "/dev/null/castor");
    EXPECT(runtime == NULL);
    *directories[i] = good;
  }
  removed("");

  // A directory that goes away while the runtime lives: nothing fails, but it is told.
  char inner[sizeof folder + 6];
  struct log log = {{0}, 0, ""};
  snprintf(inner, sizeof inner, "%s/inner", folder);
  observe = (castor_observe_options)CASTOR_OBSERVE_OPTIONS;
  observe.dump_directory = inner;
  observe.log = take_message;
  observe.log_context = &log;
  runtime = runtime_of(&observe);
  EXPECT_OK(castor_runtime_observation(runtime, &error));
  EXPECT(rmdir(inner) == 0);
  castor_kernel_destroy(compiled(runtime, scale_text));
  EXPECT_STATUS(castor_runtime_observation(runtime, &error), CASTOR_IO, inner);
  EXPECT(log.count[CASTOR_LOG_ERROR] >= 1 && log.bad == 0);
  castor_runtime_destroy(runtime);
}

static void test_bad_options(void) {
  castor_observe_options observe = CASTOR_OBSERVE_OPTIONS;
  castor_runtime_options options = CASTOR_RUNTIME_OPTIONS;
  castor_runtime* runtime = NULL;
  options.observe = &observe;
  observe.log_level = 5;
  EXPECT_STATUS(castor_runtime_create(&options, &runtime, &error), CASTOR_INVALID_ARGUMENT,
                "log_level 5, expected 0 to 4");
  observe.log_level = -1;
  EXPECT_STATUS(castor_runtime_create(&options, &runtime, &error), CASTOR_INVALID_ARGUMENT,
                "log_level -1");
  observe.struct_size = 4;
  EXPECT_STATUS(castor_runtime_create(&options, &runtime, &error), CASTOR_INVALID_ARGUMENT,
                "struct_size of castor_observe_options is 4");
  EXPECT(runtime == NULL);
  EXPECT_STATUS(castor_runtime_observation(NULL, &error), CASTOR_INVALID_ARGUMENT,
                "no runtime (NULL)");
  runtime = runtime_of(NULL);
  EXPECT_OK(castor_runtime_observation(runtime, &error));
  castor_runtime_destroy(runtime);
}

/// libgcc's: the unwind record of the code at an address, or NULL.
struct dwarf_eh_bases {
  void *tbase, *dbase, *func;
};
const void* _Unwind_Find_FDE(void* at, struct dwarf_eh_bases* bases);

/// Where the log says that code is: "NAME: N bytes of code at 0x...".
static void take_address(void* context, castor_log_level level, const char* message,
                         size_t length) {
  const char* at = strstr(message, " bytes of code at ");
  (void)level, (void)length;
  if (at != NULL) sscanf(at, " bytes of code at %p", (void**)context);
}

/// Code is known to libgcc as long as it lives.
static void test_unwinding(void) {
  void* code = NULL;
  struct dwarf_eh_bases bases;
  castor_observe_options observe = CASTOR_OBSERVE_OPTIONS;
  observe.unwind = 1;
  observe.log = take_address;
  observe.log_context = &code;
  observe.log_level = CASTOR_LOG_DEBUG;
  castor_runtime* runtime = runtime_of(&observe);
  castor_kernel* kernel = compiled(runtime, scale_text);
  EXPECT((code != NULL) == is_jit(runtime));
  if (code != NULL) EXPECT(_Unwind_Find_FDE((char*)code + 1, &bases) != NULL);
  castor_kernel_destroy(kernel);
  castor_runtime_destroy(runtime);
  if (code != NULL) EXPECT(_Unwind_Find_FDE((char*)code + 1, &bases) == NULL);
}

int main(int argc, char** argv) {
  interprets = argc == 2 && strcmp(argv[1], "interpret") == 0;
  EXPECT(mkdtemp(folder) != NULL);
  test_log();
  test_level_names();
  test_files();
  test_files_that_cannot_be_written();
  test_bad_options();
  test_unwinding();
  EXPECT(rmdir(folder) == 0);
  return finished();
}
