// SPDX-License-Identifier: Apache-2.0
// The notes on frames: right at every instruction of every kind of kernel, with frame pointers and
// without; and wrong notes are found.
#include <gtest/gtest.h>

#include "jit/emit/assembler.hpp"
#include "jit/listing/listing.hpp"
#include "tests/support/conversion_code.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/golden_kernel.hpp"

namespace castor {
namespace {

using jit::FrameChange;
using jit::MachineCode;

std::string found_in(const MachineCode& code) {
  const Status status = jit::check_unwinding(code);
  return status.ok() ? "" : status.error().message;
}

/// Whether rbp leads to the caller's frame wherever there is a frame: between the three first
/// instructions (endbr64, push, mov) and the return.
bool keeps_frame_pointer(const MachineCode& code) {
  constexpr uint8_t rbp = 6;
  constexpr uint32_t entered = 8;
  return std::ranges::any_of(code.frame, [](const FrameChange& change) {
    return change.kind == FrameChange::Kind::cfa_register && change.reg == rbp &&
           change.value == 16 && change.offset == entered;
  });
}

// ---- all kernels

TEST(Unwinding, FindsTheCallerFromEveryInstructionOfGoldenKernels) {
  int codes = 0;
  for (const auto& file : test::listing_files()) {
    auto kernel = test::read_golden_kernel(test::text_of_file(file));
    ASSERT_TRUE(kernel.ok()) << file;
    for (const bool frame_pointers : {false, true}) {
      kernel->target.frame_pointers = frame_pointers;
      const auto emitted = golden_codes(*kernel);
      ASSERT_TRUE(emitted.ok()) << file << ": " << emitted.error().message;
      for (const MachineCode& code : *emitted) {
        EXPECT_EQ(found_in(code), "") << file << (frame_pointers ? ", frame pointers" : "");
        EXPECT_EQ(keeps_frame_pointer(code), frame_pointers) << file;
        const Status features = check_features(code, kernel->target);
        EXPECT_TRUE(features.ok()) << file << ": " << features.error().message;
        const Status hardened = check_hardening(code);
        EXPECT_TRUE(hardened.ok()) << file << ": " << hardened.error().message;
        ++codes;
      }
    }
  }
  EXPECT_GE(codes, 240);
}

TEST(Unwinding, FindsTheCallerFromCopiesOfTiles) {
  for (const int bytes : {1, 2, 4, 8}) {
    for (const bool frame_pointers : {false, true}) {
      const jit::Target target = {.tier = jit::Tier::avx2, .frame_pointers = frame_pointers};
      const auto code = emit_kernel(jit::TileCopySpec{bytes}, target);
      ASSERT_TRUE(code.ok()) << code.error().message;
      EXPECT_EQ(found_in(*code), "") << bytes;
      EXPECT_EQ(keeps_frame_pointer(*code), frame_pointers);
    }
  }
}

/// Loops, staging buffers and windows of every kind: sub-byte rows borrow registers to copy.
void check_conversions(const jit::Target& target, size_t first, size_t step) {
  const auto conversions = test::all_conversions();
  for (size_t i = first; i < conversions.size(); i += step) {
    for (const jit::Nest& nest : plan_nests(*test::function_of(conversions[i]), target)) {
      for (const jit::NestForm& form : test::forms_of(nest, target)) {
        const auto code = emit_nest(nest, form, target);
        ASSERT_TRUE(code.ok()) << code.error().message;
        ASSERT_EQ(found_in(*code), "") << conversions[i].name() << " on " << name_of(target.tier);
      }
    }
  }
}

TEST(Unwinding, FindsTheCallerFromConversionsInAllForms) {
  constexpr size_t step = 23;  // there are more than 3,000
  size_t first = 0;
  for (const jit::TierInfo& row : jit::tier_table()) {
    for (const bool frame_pointers : {false, true}) {
      check_conversions({.tier = row.tier, .frame_pointers = frame_pointers}, first++, step);
    }
  }
}

// ---- wrong notes

using namespace Xbyak::util;

MachineCode small_kernel() {
  std::vector<uint8_t> buffer(4096);
  jit::Assembler code(buffer, false);
  code.push(rbx);
  code.push(r12);
  code.enter_aligned_frame(r12, 128);
  code.mov(rbx, rdi);
  code.leave_aligned_frame(r12);
  code.pop(r12);
  code.pop(rbx);
  code.emit_return();
  return code.finish();
}

/// The changes of that kernel. Of each: whether the code can do without it, and whether it may come
/// an instruction late, since what was true before it is still true there.
struct ChangeRow {
  std::string_view instruction;
  FrameChange::Kind kind;
  bool is_needed;
  bool is_urgent;
};
constexpr ChangeRow rows[] = {
    {"push rbx", FrameChange::Kind::cfa_register, true, true},
    {"push rbx", FrameChange::Kind::saved, true, false},  // which is overwritten later
    {"push r12", FrameChange::Kind::cfa_register, true, true},
    {"push r12", FrameChange::Kind::saved, true, false},
    {"mov r12, rsp", FrameChange::Kind::cfa_register, true, false},
    {"mov rsp, r12", FrameChange::Kind::cfa_register, false, false},  // r12 still has it
    {"pop r12", FrameChange::Kind::restored, false, false},           // memory still has it
    {"pop r12", FrameChange::Kind::cfa_register, true, true},
    {"pop rbx", FrameChange::Kind::restored, false, false},
    {"pop rbx", FrameChange::Kind::cfa_register, true, true},
};

/// The changes with one an instruction later, which is where others are noted as well.
std::vector<FrameChange> delayed(std::vector<FrameChange> frame, size_t index) {
  ++frame[index].offset;
  std::ranges::stable_sort(frame, {}, &FrameChange::offset);
  return frame;
}

TEST(CheckUnwinding, TakesNoChangeLessAndNoneLater) {
  const MachineCode right = small_kernel();
  EXPECT_EQ(found_in(right), "");
  ASSERT_EQ(right.frame.size(), std::size(rows));
  for (size_t i = 0; i < right.frame.size(); ++i) {
    EXPECT_EQ(right.frame[i].kind, rows[i].kind) << rows[i].instruction;
    MachineCode wrong = right;
    wrong.frame.erase(wrong.frame.begin() + static_cast<ptrdiff_t>(i));
    EXPECT_EQ(!found_in(wrong).empty(), rows[i].is_needed)
        << rows[i].instruction << ": " << found_in(wrong);
    wrong.frame = delayed(right.frame, i);
    EXPECT_EQ(!found_in(wrong).empty(), rows[i].is_urgent)
        << rows[i].instruction << ": " << found_in(wrong);
  }
}

TEST(CheckUnwinding, TakesNoOtherNumber) {
  const MachineCode right = small_kernel();
  for (size_t i = 0; i < right.frame.size(); ++i) {
    if (right.frame[i].kind == FrameChange::Kind::restored) continue;
    MachineCode wrong = right;
    wrong.frame[i].value += 8;
    EXPECT_NE(found_in(wrong), "") << i;
  }
}

TEST(CheckUnwinding, NamesWhereItIsLost) {
  const auto assembled = [](auto emit) {
    std::vector<uint8_t> buffer(4096);
    jit::Assembler code(buffer, false);
    emit(code);
    return code.finish();
  };
  EXPECT_EQ(found_in(assembled([](jit::Assembler& code) {
              code.sub(rsp, 8);  // nobody notes it
              code.nop();
              code.add(rsp, 8);
              code.emit_return();
            })),
            "unwinding from nop at offset 0x8 does not find the frame of the caller");
  EXPECT_EQ(found_in(assembled([](jit::Assembler& code) {
              code.mov(rbx, rdi);
              code.emit_return();
            })),
            "offset 0x7: register 3 is not the caller's");
  EXPECT_EQ(found_in(assembled([](jit::Assembler& code) {
              code.mov(rsp, rdi);
              code.emit_return();
            })),
            "offset 0x7: the stack pointer is unknown");
}

}  // namespace
}  // namespace castor
