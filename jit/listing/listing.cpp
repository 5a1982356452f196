// SPDX-License-Identifier: Apache-2.0
// The annotated listing.
#include "jit/listing/listing.hpp"

#include <fmt/format.h>

#include "jit/listing/pool.hpp"
#include "jit/listing/port_model.hpp"

namespace castor::jit {
namespace {

constexpr uint32_t bytes_a_line = 10;  // of an instruction's encoding

/// Writes one listing; its members are called in the order of the text.
class Writer {
 public:
  Writer(const MachineCode& code, std::span<const DecodedInstruction> program)
      : code_(code), program_(program) {}

  void instruction(const ListedInstruction& listed);
  void pool();
  void totals();
  std::string take() { return std::move(text_); }

 private:
  void notes_until(uint32_t offset);
  void loop_ends(uint32_t offset);
  void loop_begins(uint32_t offset);
  void loop_cycles(const CodeLoop& loop);
  uint32_t instructions_of(const CodeLoop& loop) const;
  std::string encoding(uint32_t begin, uint32_t end) const;
  void line(std::string_view text) { text_.append(text).append("\n"); }
  void blank() {
    if (!text_.empty() && !text_.ends_with("\n\n")) text_ += "\n";
  }

  const MachineCode& code_;
  std::span<const DecodedInstruction> program_;
  std::string text_;
  size_t next_note_ = 0;
  std::string origin_;  // the last one printed
};

void Writer::instruction(const ListedInstruction& listed) {
  loop_ends(listed.offset);
  loop_begins(listed.offset);
  notes_until(listed.offset);
  if (listed.label) line(fmt::format("L{}:", *listed.label));
  const uint32_t end = listed.offset + listed.length;
  const uint32_t first = std::min(end, listed.offset + bytes_a_line);
  std::string row = fmt::format("  {:04x}  {:<{}}  {}", listed.offset,
                                encoding(listed.offset, first), 2 * bytes_a_line, listed.text);
  if (!listed.comment.empty()) row = fmt::format("{:<76}  ; {}", row, listed.comment);
  line(row);
  if (first < end) line(fmt::format("        {}", encoding(first, end)));
}

/// A note's origin is printed when it changes, the note itself always.
void Writer::notes_until(uint32_t offset) {
  for (; next_note_ < code_.notes.size() && code_.notes[next_note_].offset <= offset;
       ++next_note_) {
    const CodeNote& note = code_.notes[next_note_];
    if (note.origin != origin_ && !note.origin.empty()) line(fmt::format("; {}", note.origin));
    origin_ = note.origin;
    line(fmt::format(";   {}", note.text));
  }
}

void Writer::loop_begins(uint32_t offset) {
  for (const CodeLoop& loop : code_.loops) {
    if (loop.begin != offset) continue;
    blank();
    line(
        fmt::format("; ---- loop: {}; {} elements an iteration, {} B read, {} B written; {} "
                    "instructions, {} B",
                    loop.name, loop.elements, loop.load_bytes, loop.store_bytes,
                    instructions_of(loop), loop.end - loop.begin));
    loop_cycles(loop);
  }
}

void Writer::loop_cycles(const CodeLoop& loop) {
  const auto cycles = port_cycles(program_, loop);
  if (!cycles) return line(fmt::format(";      no cycles: {}", cycles.error().message));
  line(fmt::format(
      ";      cycles an iteration (Zen 4, L1): load {:.2f}, store {:.2f}, pipes {:.2f}"
      "{}, front end {:.2f}",
      cycles->load, cycles->store, cycles->pipes,
      cycles->busiest.empty() ? "" : fmt::format(" ({})", cycles->busiest), cycles->front_end));
  std::string limit = fmt::format(";      limit {:.2f}: {}", cycles->bound(), cycles->limited_by());
  if (loop.store_bytes > 0) {
    limit += fmt::format("; {:.2f} per 64 B written", cycles->bound() * 64 / loop.store_bytes);
  }
  if (loop.elements > 0) {
    limit += fmt::format("; {:.3f} per element", cycles->bound() / loop.elements);
  }
  line(limit);
}

void Writer::loop_ends(uint32_t offset) {
  for (const CodeLoop& loop : code_.loops) {
    if (loop.end != offset) continue;
    line(fmt::format("; ---- end of {}", loop.name));
    blank();
  }
}

uint32_t Writer::instructions_of(const CodeLoop& loop) const {
  uint32_t count = 0;
  for (const DecodedInstruction& decoded : program_) {
    count += decoded.offset >= loop.begin && decoded.offset < loop.end;
  }
  return count;
}

std::string Writer::encoding(uint32_t begin, uint32_t end) const {
  std::string text;
  for (uint32_t i = begin; i < end; ++i) {
    text += fmt::format("{:02x}", std::to_integer<int>(code_.bytes[i]));
  }
  return text;
}

void Writer::pool() {
  loop_ends(code_.instruction_bytes);
  const std::string constants = pool_text(program_, code_);
  if (constants.empty()) return;
  blank();
  line("; constant pool");
  text_ += constants;
}

void Writer::totals() {
  blank();
  line(fmt::format("; {} bytes: {} in {} instructions, {} of constants; {} spills",
                   code_.bytes.size(), code_.instruction_bytes, program_.size(),
                   code_.bytes.size() - code_.pool_begin, code_.spills));
}

}  // namespace

Result<std::string> listing(const MachineCode& code) {
  auto program = decode(code);
  if (!program) return program.error();
  auto listed = disassemble(code);
  if (!listed) return listed.error();
  Writer writer(code, *program);
  for (const ListedInstruction& instruction : *listed) writer.instruction(instruction);
  writer.pool();
  writer.totals();
  return writer.take();
}

}  // namespace castor::jit
