// SPDX-License-Identifier: Apache-2.0
// The annotated listing.
#include "jit/listing/listing.hpp"

#include <fmt/format.h>

#include <set>

#include "jit/listing/pool.hpp"
#include "jit/listing/port_model.hpp"

namespace castor::jit {
namespace {

constexpr uint32_t bytes_a_line = 10;     // of an instruction's encoding
constexpr size_t instruction_width = 50;  // comments follow

/// What a note is called where it was written out before: its first word.
std::string_view name_in(std::string_view note) { return note.substr(0, note.find_first_of(": ")); }

bool is_padding(const ListedInstruction& listed) { return listed.mnemonic == "nop"; }

/// Writes one listing; its members are called in the order of the text.
class Writer {
 public:
  Writer(const MachineCode& code, std::span<const DecodedInstruction> program,
         const ListingOptions& options)
      : code_(code), program_(program), options_(options) {}

  void instruction(const ListedInstruction& listed);
  void pool();
  void totals();
  std::string take() { return std::move(text_); }

 private:
  void padding();
  void loop_ends(uint32_t offset);
  void loop_begins(uint32_t offset);
  void loop_cycles(const CodeLoop& loop);
  const CodeNote* note_at(uint32_t offset);
  void section_begins(const CodeNote& note);
  std::string comment(const ListedInstruction& listed, const CodeNote* note);
  std::string encoding_column(uint32_t begin, uint32_t end) const;
  std::string bytes_text(uint32_t begin, uint32_t end) const;
  uint32_t instructions_of(const CodeLoop& loop) const;
  void line(std::string_view text) { text_.append(text).append("\n"); }
  void blank() {
    if (!text_.empty() && !text_.ends_with("\n\n")) text_ += "\n";
  }

  const MachineCode& code_;
  std::span<const DecodedInstruction> program_;
  const ListingOptions options_;
  std::string text_;
  size_t next_note_ = 0;
  std::string section_;            // the last one printed
  std::string origin_;             // the last one printed
  std::set<std::string> written_;  // notes that were written out
  bool in_padding_ = false;
};

void Writer::instruction(const ListedInstruction& listed) {
  loop_ends(listed.offset);
  loop_begins(listed.offset);
  const CodeNote* note = note_at(listed.offset);
  if (note != nullptr) section_begins(*note);
  if (listed.label) line(fmt::format("L{}:", *listed.label));
  if (options_.compact && is_padding(listed)) return padding();
  in_padding_ = false;
  const uint32_t end = listed.offset + listed.length;
  const uint32_t first = std::min(end, listed.offset + bytes_a_line);
  const std::string remark = comment(listed, note);
  const std::string encoding = encoding_column(listed.offset, first);
  line(remark.empty()
           ? fmt::format("{}  {}", encoding, listed.text)
           : fmt::format("{}  {:<{}}  ; {}", encoding, listed.text, instruction_width, remark));
  if (!options_.compact && first < end) line(fmt::format("        {}", bytes_text(first, end)));
}

/// One line for any number of nops, whose number and lengths follow from what stands before.
void Writer::padding() {
  if (!std::exchange(in_padding_, true)) {
    line(fmt::format("  {:<{}}  ; padding", "nop", instruction_width));
  }
}

std::string Writer::encoding_column(uint32_t begin, uint32_t end) const {
  if (options_.compact) return "";
  return fmt::format("  {:04x}  {:<{}}", begin, bytes_text(begin, end), 2 * bytes_a_line);
}

std::string Writer::bytes_text(uint32_t begin, uint32_t end) const {
  std::string text;
  for (uint32_t i = begin; i < end; ++i) {
    text += fmt::format("{:02x}", std::to_integer<int>(code_.bytes[i]));
  }
  return text;
}

/// The note that begins at the instruction: the last of several, as the others have no code.
const CodeNote* Writer::note_at(uint32_t offset) {
  const CodeNote* found = nullptr;
  for (; next_note_ < code_.notes.size() && code_.notes[next_note_].offset <= offset;
       ++next_note_) {
    found = &code_.notes[next_note_];
  }
  return found;
}

/// "; chunk 1: %y = convert %x : u8", where the section or the IR operation is another one. Steps
/// are named beside their instructions.
void Writer::section_begins(const CodeNote& note) {
  if (info(note.section).is_step) return;
  const std::string section = text_of(note.section, note.number);
  const bool new_section = std::exchange(section_, section) != section;
  const bool new_origin =
      !note.origin.empty() && std::exchange(origin_, note.origin) != note.origin;
  if (!new_section && !new_origin) return;
  line(fmt::format("; {}{}{}", section, new_origin ? ": " : "", new_origin ? note.origin : ""));
}

std::string Writer::comment(const ListedInstruction& listed, const CodeNote* note) {
  std::string text;
  if (note != nullptr && !note->text.empty()) {
    const bool is_new = written_.insert(note->text).second;
    text = is_new ? note->text : options_.compact ? "" : name_in(note->text);
  } else if (note != nullptr && !options_.compact && info(note->section).is_step) {
    text = text_of(note->section, note->number);
  }
  if (!text.empty() && !listed.comment.empty()) text += " | ";
  return text + listed.comment;
}

void Writer::loop_begins(uint32_t offset) {
  for (const CodeLoop& loop : code_.loops) {
    if (loop.begin != offset) continue;
    blank();
    line(
        fmt::format("; ---- {}: {} elements an iteration, {} B read, {} B written; {} "
                    "instructions, {} B",
                    loop.name, loop.elements, loop.load_bytes, loop.store_bytes,
                    instructions_of(loop), loop.end - loop.begin));
    loop_cycles(loop);
    origin_.clear();
  }
}

void Writer::loop_cycles(const CodeLoop& loop) {
  const auto cycles = port_cycles(program_, code_, loop, options_.model);
  if (!cycles) return line(fmt::format(";      no cycles: {}", cycles.error().message));
  line(fmt::format(
      ";      {:.2f} cycles ({}{}, L1) by {}: load {:.2f}, store {:.2f}, pipes {:.2f}"
      "{}, front end {:.2f}",
      cycles->bound(), cycles->core, cycles->has_foreign_tiles ? " with Granite Rapids' tiles" : "",
      cycles->limited_by(), cycles->load, cycles->store, cycles->pipes,
      cycles->busiest.empty() ? "" : fmt::format(" ({})", cycles->busiest), cycles->front_end));
  if (loop.store_bytes == 0 || loop.elements == 0) return;
  line(fmt::format(";      {:.2f} cycles per 64 B written, {:.3f} per element",
                   cycles->bound() * 64 / static_cast<double>(loop.store_bytes),
                   cycles->bound() / static_cast<double>(loop.elements)));
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

Result<std::string> listing(const MachineCode& code, const ListingOptions& options) {
  auto program = decode(code);
  if (!program) return program.error();
  auto listed = disassemble(code);
  if (!listed) return listed.error();
  Writer writer(code, *program, options);
  for (const ListedInstruction& instruction : *listed) writer.instruction(instruction);
  writer.pool();
  writer.totals();
  return writer.take();
}

}  // namespace castor::jit
