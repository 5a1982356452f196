// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/jitdump.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <ctime>

#include "runtime/observe/unwind_records.hpp"

namespace castor {

namespace {

static_assert(sizeof(jitdump::Header) == 40 && sizeof(jitdump::CodeLoad) == 56 &&
              sizeof(jitdump::Unwinding) == 40);

uint64_t monotonic_nanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  static_assert(std::has_unique_object_representations_v<T>);
  return std::as_bytes(std::span(&value, 1));
}

std::vector<std::byte> header() {
  const jitdump::Header header = {.magic = jitdump::magic,
                                  .version = jitdump::version,
                                  .total_size = sizeof(jitdump::Header),
                                  .elf_machine = EM_X86_64,
                                  .padding = 0,
                                  .process = static_cast<uint32_t>(::getpid()),
                                  .timestamp = monotonic_nanoseconds(),
                                  .flags = 0};
  const std::span bytes = bytes_of(header);
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> load_record(std::string_view name, std::span<const std::byte> code,
                                   uint64_t index) {
  const auto address = reinterpret_cast<uintptr_t>(code.data());
  const size_t size = sizeof(jitdump::CodeLoad) + name.size() + 1 + code.size();
  const jitdump::CodeLoad load = {.prefix = {.id = jitdump::RecordId::code_load,
                                             .total_size = static_cast<uint32_t>(size),
                                             .timestamp = monotonic_nanoseconds()},
                                  .process = static_cast<uint32_t>(::getpid()),
                                  .thread = static_cast<uint32_t>(::gettid()),
                                  .virtual_address = address,
                                  .code_address = address,
                                  .code_size = code.size(),
                                  .code_index = index};
  std::vector<std::byte> record(size);  // zeros: the name's end among them
  std::byte* at = record.data();
  std::memcpy(at, &load, sizeof(load));
  at += sizeof(load);
  std::memcpy(at, name.data(), name.size());
  at += name.size() + 1;
  std::memcpy(at, code.data(), code.size());
  return record;
}

std::vector<std::byte> unwinding_record(std::span<const jit::FrameChange> frame,
                                        size_t code_bytes) {
  const FileUnwinding unwinding = unwinding_after(frame, code_bytes);
  const size_t size = sizeof(jitdump::Unwinding) + jit::round_up(unwinding.bytes.size(), 8);
  const jitdump::Unwinding fields = {.prefix = {.id = jitdump::RecordId::unwinding,
                                                .total_size = static_cast<uint32_t>(size),
                                                .timestamp = monotonic_nanoseconds()},
                                     .section_bytes = unwinding.bytes.size(),
                                     .header_bytes = unwinding.header_bytes,
                                     .mapped_bytes = unwinding.bytes.size()};
  std::vector<std::byte> record(size);
  std::memcpy(record.data(), &fields, sizeof(fields));
  std::memcpy(record.data() + sizeof(fields), unwinding.bytes.data(), unwinding.bytes.size());
  return record;
}

}  // namespace

Result<Jitdump> Jitdump::open(const std::string& directory) {
  if (Status status = prepare_directory(directory); !status) return status.error();
  Result<RecordFile> file = RecordFile::open(fmt::format("{}/jit-{}.dump", directory, ::getpid()));
  if (!file.ok()) return file.error();
  // Another runtime of this process may have begun the file.
  Status begun = file->append(
      [](uint64_t offset) { return offset == 0 ? header() : std::vector<std::byte>(); });
  if (!begun) return begun.error();
  Result<jit::MappedPages> marker = jit::MappedPages::map(
      jit::SystemCalls::real(), "mmap(PROT_READ | PROT_EXEC)", jit::page_bytes,
      PROT_READ | PROT_EXEC, MAP_PRIVATE, file->descriptor());
  if (!marker.ok()) {
    return Error{ErrorCode::io, fmt::format("perf cannot be told of {}: {}", file->path(),
                                            marker.error().message)};
  }
  return Jitdump(std::move(file).value(), std::move(marker).value());
}

Status Jitdump::add(std::string_view name, std::span<const std::byte> code,
                    std::span<const jit::FrameChange> frame) {
  return file_.append([&](uint64_t offset) {
    std::vector<std::byte> records = unwinding_record(frame, code.size());
    const std::vector<std::byte> load = load_record(name, code, offset + records.size());
    records.insert(records.end(), load.begin(), load.end());
    return records;
  });
}

Status Jitdump::close() {
  const jitdump::RecordPrefix close = {.id = jitdump::RecordId::code_close,
                                       .total_size = sizeof(jitdump::RecordPrefix),
                                       .timestamp = monotonic_nanoseconds()};
  const std::span bytes = bytes_of(close);
  return file_.append([&](uint64_t) { return std::vector<std::byte>(bytes.begin(), bytes.end()); });
}

}  // namespace castor
