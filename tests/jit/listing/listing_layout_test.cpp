// SPDX-License-Identifier: Apache-2.0
// The annotated listing: its layout, in full and compact.
#include <gtest/gtest.h>

#include "jit/listing/listing.hpp"
#include "tests/support/snippet.hpp"

namespace castor::jit {
namespace {

using namespace test;
using namespace Xbyak::util;

constexpr const char* scaling_listing =
    R"(; entry
  0000  31c0                  xor eax, eax

; ---- main loop: 16 elements an iteration, 64 B read, 64 B written; 6 instructions, 33 B
;      2.00 cycles (Zen 4, L1) by store: load 1.50, store 2.00, pipes 1.00 (FP0 FP1), front end 1.00
;      2.00 cycles per 64 B written, 0.125 per element
; chunk 0: %y = mul %x, 255
L0:
  0002  62f17c48100406        vmovups zmm0, zmmword ptr [rsi+rax]                 ; %0: f32 = load x
  0009  62f17c58590514000000  vmulps zmm0, zmm0, [pool+0x0] {1to16}               ; %1: f32 = mul %0 255 | 0x437f0000 = 255
  0013  62f17c48110407        vmovups zmmword ptr [rdi+rax], zmm0
  001a  4883c040              add rax, 0x40
  001e  4839d0                cmp rax, rdx
  0021  72df                  jb L0
; ---- end of main loop

  0023  c5f877                vzeroupper
  0026  c3                    ret

; constant pool
  pool+0x0000  0x437f0000 = 255

; 43 bytes: 39 in 9 instructions, 4 of constants; 2 spills
)";

TEST(Listing, ShowsNotesLoopsPoolAndTotals) {
  const auto text = listing(scaling_loop());
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, scaling_listing);
}

constexpr const char* compact_scaling_listing =
    R"(; entry
  xor eax, eax

; ---- main loop: 16 elements an iteration, 64 B read, 64 B written; 6 instructions, 33 B
;      2.00 cycles (Zen 4, L1) by store: load 1.50, store 2.00, pipes 1.00 (FP0 FP1), front end 1.00
;      2.00 cycles per 64 B written, 0.125 per element
; chunk 0: %y = mul %x, 255
L0:
  vmovups zmm0, zmmword ptr [rsi+rax]                 ; %0: f32 = load x
  vmulps zmm0, zmm0, [pool+0x0] {1to16}               ; %1: f32 = mul %0 255 | 0x437f0000 = 255
  vmovups zmmword ptr [rdi+rax], zmm0
  add rax, 0x40
  cmp rax, rdx
  jb L0
; ---- end of main loop

  vzeroupper
  ret

; constant pool
  pool+0x0000  0x437f0000 = 255

; 43 bytes: 39 in 9 instructions, 4 of constants; 2 spills
)";

TEST(Listing, CompactLeavesOutWhatMoves) {
  const auto text = listing(scaling_loop(), {.compact = true});
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, compact_scaling_listing);
}

/// A nop before each of these, and one note for each.
MachineCode noted(std::vector<CodeNote> notes) {
  MachineCode code = assemble([&](Assembler& s) {
    for (CodeNote& note : notes) {
      s.nop(1, false);
      note.offset = static_cast<uint32_t>(s.getSize());
      s.inc(eax);
    }
  });
  code.notes = std::move(notes);
  return code;
}

TEST(Listing, GroupsByPartAndNamesWhatWasWrittenOut) {
  const CodeSection chunk = CodeSection::chunk;
  const MachineCode code = noted({{0, chunk, 0, "%0: i8 = load source0:i8", "%y = f %x"},
                                  {0, chunk, 0, "sink0: i8 = store %0", "%y = f %x"},
                                  {0, chunk, 0, "%2: i8 = not %0", "%z = g %x"},
                                  {0, chunk, 1, "%0: i8 = load source0:i8", "%z = g %x"},
                                  {0, chunk, 1, "sink0: i8 = store %0", "%y = f %x"},
                                  {0, CodeSection::exit, -1, "", ""}});
  const std::string text = *listing(code);
  for (const char* lines : {
           "; chunk 0: %y = f %x\n  0001  ffc0                  inc eax",
           "  ; %0: i8 = load source0:i8\n",
           "  ; sink0: i8 = store %0\n",
           "; chunk 0: %z = g %x\n  0007  ffc0                  inc eax",
           "  ; %2: i8 = not %0\n",
           "; chunk 1\n  000a  ffc0                  inc eax",
           "  ; %0\n",
           "; chunk 1: %y = f %x\n  000d  ffc0                  inc eax",
           "  ; sink0\n",
           "; exit\n  0010  ffc0                  inc eax\n",
       }) {
    EXPECT_PRED2(contains, text, lines);
  }
  const std::string compact = *listing(code, {.compact = true});
  EXPECT_PRED2(contains, compact, "; chunk 1\n  inc eax\n");
  EXPECT_FALSE(contains(compact, "; %0\n"));
}

TEST(Listing, OfNotesOnOneInstructionTheLastStands) {
  MachineCode code = noted({{0, CodeSection::chunk, 0, "%0: i8 = kept", ""}});
  code.notes.insert(code.notes.begin(),
                    {code.notes[0].offset, CodeSection::chunk, 0, "%1: i8 = gone", ""});
  const std::string text = *listing(code);
  EXPECT_PRED2(contains, text, "; %0: i8 = kept");
  EXPECT_FALSE(contains(text, "gone"));
}

TEST(Listing, PaddingIsOneLineWhereCompact) {
  const MachineCode code = assemble([](Assembler& s) {
    s.nop(25);
    s.ret();
    s.nop(3);
  });
  const std::string padding = "  nop                                                 ; padding\n";
  EXPECT_TRUE(listing(code, {.compact = true})->starts_with(padding + "  ret\n" + padding + "\n"))
      << *listing(code, {.compact = true});
  EXPECT_FALSE(contains(*listing(code), "padding"));
}

TEST(Listing, LongEncodingsTakeTwoLines) {
  const MachineCode code =
      assemble([](Assembler& s) { s.vpaddd(zmm0 | k1, zmm1, s.ptr[rax + rbx * 4 + 0x12345]); });
  EXPECT_PRED2(contains, *listing(code), "  0000  62f17549fe8498452301  vpaddd zmm0 {k1}, zmm1, ");
  EXPECT_PRED2(contains, *listing(code), "\n        00\n");
}

TEST(Listing, SaysWhyALoopHasNoCycles) {
  MachineCode code = assemble([](Assembler& s) { s.cpuid(); });
  code.loops.push_back(whole(code));
  EXPECT_PRED2(contains, *listing(code), "no cycles: the port model has no cost for cpuid");
}

TEST(Listing, PoolShowsTablesByLineAndWhatNothingReads) {
  Snippet s;
  s.vpermb(zmm0, zmm1, s.ptr[rip + s.constants + 8]);
  s.vpshufb(ymm0, ymm1, s.ptr[rip + s.constants + 40]);  // the table's upper half, printed once
  s.ret();
  s.begin_pool();
  s.dq(0x1122334455667788);
  for (int i = 0; i < 64; ++i) s.db(i);
  s.db(0xab);
  const auto text = listing(s.code());
  ASSERT_TRUE(text.ok());
  EXPECT_PRED2(contains, *text,
               "  pool+0x0000  55667788 11223344\n"
               "  pool+0x0008  00 01 02 03 04 05 06 07 08 09 0a");
  EXPECT_PRED2(contains, *text, "\n  pool+0x0028  20 21 22");
  EXPECT_PRED2(contains, *text, "3f\n  pool+0x0048  0xab\n");
  EXPECT_EQ(text->find("pool+0x0028"), text->rfind("pool+0x0028"));
}

}  // namespace
}  // namespace castor::jit
