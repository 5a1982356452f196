// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/unwind_records.hpp"

#include <cstdint>
#include <cstring>

#include "jit/memory/system_memory.hpp"

namespace castor {

namespace {

using jit::FrameChange;

/// DWARF's numbers: 7.24 (table 7.29), 7.7.1, and of the ABI's figure 3.36.
constexpr uint8_t cfa_advance_loc = 0x40;  // with the distance in the low six bits
constexpr uint8_t cfa_offset = 0x80;       // with the register there
constexpr uint8_t cfa_restore = 0xc0;
constexpr uint8_t cfa_advance_loc2 = 0x03;
constexpr uint8_t cfa_advance_loc4 = 0x04;
constexpr uint8_t cfa_def_cfa = 0x0c;
constexpr uint8_t cfa_def_cfa_expression = 0x0f;
constexpr uint8_t op_deref = 0x06;
constexpr uint8_t op_plus_uconst = 0x23;
constexpr uint8_t op_breg0 = 0x70;
constexpr uint8_t rsp = 7;
constexpr uint8_t return_address = 16;

/// Encodings of pointers (LSB, 10.5.1).
constexpr uint8_t absolute_pointer = 0x00;
constexpr uint8_t unsigned_4 = 0x03;
constexpr uint8_t from_here_signed_4 = 0x1b;
constexpr uint8_t from_header_signed_4 = 0x3b;

constexpr int data_alignment = -8;

class Writer {
 public:
  template <class T>
  void number(T value) {
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    std::memcpy(&bytes_[at], &value, sizeof value);
  }
  void byte(uint8_t value) { bytes_.push_back(std::byte{value}); }
  void unsigned_leb(uint64_t value) {
    for (; value >= 0x80; value >>= 7) byte(static_cast<uint8_t>(value | 0x80));
    byte(static_cast<uint8_t>(value));
  }
  void signed_leb(int64_t value) {
    for (; value < -0x40 || value >= 0x40; value >>= 7) byte(static_cast<uint8_t>(value | 0x80));
    byte(static_cast<uint8_t>(value & 0x7f));
  }
  size_t size() const { return bytes_.size(); }

  /// A record: its length, and what `write` writes, up to a multiple of 8 with no-ops (0).
  template <class Write>
  void record(const Write& write) {
    const size_t begin = size();
    number(uint32_t{0});
    write();
    while (size() % 8 != 0) byte(0);
    const auto length = static_cast<uint32_t>(size() - begin - 4);
    std::memcpy(&bytes_[begin], &length, sizeof length);
  }

  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// What all code has in common: at its first instruction the CFA is rsp + 8.
void write_common(Writer& to, uint8_t pointer_encoding) {
  to.record([&] {
    to.number(uint32_t{0});  // no record of code
    to.byte(1);              // version
    for (const char letter : {'z', 'R', '\0'}) to.byte(static_cast<uint8_t>(letter));
    to.unsigned_leb(1);  // offsets in code are counted in bytes
    to.signed_leb(data_alignment);
    to.unsigned_leb(return_address);
    to.unsigned_leb(1);  // bytes of augmentation
    to.byte(pointer_encoding);
    to.byte(cfa_def_cfa);
    to.unsigned_leb(rsp);
    to.unsigned_leb(8);
    to.byte(cfa_offset | return_address);
    to.unsigned_leb(1);
  });
}

void write_advance(Writer& to, uint32_t bytes) {
  if (bytes == 0) return;
  if (bytes < 0x40) return to.byte(static_cast<uint8_t>(cfa_advance_loc | bytes));
  if (bytes <= UINT16_MAX) {
    to.byte(cfa_advance_loc2);
    return to.number(static_cast<uint16_t>(bytes));
  }
  to.byte(cfa_advance_loc4);
  to.number(bytes);
}

/// The CFA is the 64 bits at rsp + slot, + value.
void write_cfa_in_memory(Writer& to, const FrameChange& change) {
  Writer expression;
  expression.byte(op_breg0 + rsp);
  expression.signed_leb(change.slot);
  expression.byte(op_deref);
  expression.byte(op_plus_uconst);
  expression.unsigned_leb(static_cast<uint64_t>(change.value));
  to.byte(cfa_def_cfa_expression);
  to.unsigned_leb(expression.size());
  for (const std::byte each : expression.take()) to.byte(std::to_integer<uint8_t>(each));
}

void write_change(Writer& to, const FrameChange& change) {
  switch (change.kind) {
    case FrameChange::Kind::cfa_register:
      to.byte(cfa_def_cfa);
      to.unsigned_leb(change.reg);
      return to.unsigned_leb(static_cast<uint64_t>(change.value));
    case FrameChange::Kind::cfa_memory: return write_cfa_in_memory(to, change);
    case FrameChange::Kind::saved:
      to.byte(cfa_offset | change.reg);
      return to.unsigned_leb(static_cast<uint64_t>(change.value / data_alignment));
    case FrameChange::Kind::restored: return to.byte(cfa_restore | change.reg);
  }
}

/// A record of code, after the common one. `write_range` writes where it begins and its size.
template <class WriteRange>
void write_code(Writer& to, std::span<const FrameChange> frame, const WriteRange& write_range) {
  to.record([&] {
    to.number(static_cast<uint32_t>(to.size()));  // back to the common record, which is at 0
    write_range();
    to.unsigned_leb(0);  // bytes of augmentation
    uint32_t at = 0;
    for (const FrameChange& change : frame) {
      write_advance(to, change.offset - at);
      write_change(to, change);
      at = change.offset;
    }
  });
  to.number(uint32_t{0});  // the end
}

/// For code that ends with `code_bytes` bytes before a multiple of 8.
std::vector<std::byte> eh_frame_after(std::span<const FrameChange> frame, size_t code_bytes) {
  Writer to;
  write_common(to, from_here_signed_4);
  write_code(to, frame, [&] {
    const size_t from_code = jit::round_up(code_bytes, 8) + to.size();
    to.number(-static_cast<int32_t>(from_code));
    to.number(static_cast<uint32_t>(code_bytes));
  });
  return to.take();
}

/// Offset of the record of code in .eh_frame: after the common one.
size_t code_record(std::span<const std::byte> eh_frame) {
  uint32_t length = 0;
  std::memcpy(&length, eh_frame.data(), sizeof length);
  return sizeof length + length;
}

}  // namespace

std::vector<std::byte> eh_frame(std::span<const FrameChange> frame,
                                std::span<const std::byte> code) {
  Writer to;
  write_common(to, absolute_pointer);
  write_code(to, frame, [&] {
    to.number(reinterpret_cast<uintptr_t>(code.data()));
    to.number(uint64_t{code.size()});
  });
  return to.take();
}

FileUnwinding unwinding_after(std::span<const FrameChange> frame, size_t code_bytes) {
  const std::vector<std::byte> records = eh_frame_after(frame, code_bytes);
  const size_t header_at = records.size();  // a multiple of 4, from .eh_frame on
  Writer header;
  header.byte(1);                     // version
  header.byte(from_here_signed_4);    // how the pointer to .eh_frame is encoded
  header.byte(unsigned_4);            // the number of entries
  header.byte(from_header_signed_4);  // the entries
  header.number(-static_cast<int32_t>(header_at + header.size()));
  header.number(uint32_t{1});  // entries: where code begins, and its record
  header.number(-static_cast<int32_t>(jit::round_up(code_bytes, 8) + header_at));
  header.number(static_cast<int32_t>(code_record(records)) - static_cast<int32_t>(header_at));
  FileUnwinding file = {records, header.size()};
  const std::vector<std::byte> header_bytes = header.take();
  file.bytes.insert(file.bytes.end(), header_bytes.begin(), header_bytes.end());
  return file;
}

size_t unwinding_bytes_after(std::span<const FrameChange> frame, size_t code_bytes) {
  return jit::round_up(code_bytes, 8) - code_bytes +
         unwinding_after(frame, code_bytes).bytes.size();
}

}  // namespace castor
