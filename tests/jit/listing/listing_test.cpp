// SPDX-License-Identifier: Apache-2.0
// Listings: disassembly, and features by tier.
#include <gtest/gtest.h>

#include <memory>

#include "jit/listing/listing.hpp"
#include "tests/support/snippet.hpp"

namespace castor::jit {
namespace {

using namespace test;
using namespace Xbyak::util;
using Texts = std::vector<std::string>;

Texts texts(const MachineCode& code) {
  Texts result;
  const auto listed = disassemble(code);
  EXPECT_TRUE(listed.ok()) << (listed ? "" : listed.error().message);
  if (listed.ok()) {
    for (const auto& instruction : *listed) result.push_back(instruction.text);
  }
  return result;
}

TEST(Disassemble, TextHasLabelsAndPoolOffsets) {
  const MachineCode code = scaling_loop();
  EXPECT_EQ(texts(code),
            (Texts{"xor eax, eax", "vmovups zmm0, zmmword ptr [rsi+rax]",
                   "vmulps zmm0, zmm0, [pool+0x0] {1to16}", "vmovups zmmword ptr [rdi+rax], zmm0",
                   "add rax, 0x40", "cmp rax, rdx", "jb L0", "vzeroupper", "ret"}));
  const auto listed = disassemble(code);
  EXPECT_EQ((*listed)[1].label, 0);
  EXPECT_EQ((*listed)[0].label, std::nullopt);
  EXPECT_EQ((*listed)[1].offset, 2u);
  EXPECT_EQ((*listed)[1].mnemonic, "vmovups");
  EXPECT_EQ((*listed)[2].comment, "0x437f0000 = 255");
}

TEST(Disassemble, CommentShowsTheConstantByItsElements) {
  Snippet s;
  s.vmovdqu8(zmm0, s.ptr[rip + s.constants]);
  s.vpand(ymm0, ymm1, s.ptr[rip + s.constants]);
  s.vmulpd(ymm0, ymm1, s.ptr_b[rip + s.constants + 64]);
  s.vpaddd(zmm0, zmm1, s.ptr[rip + s.constants + 72]);
  s.lea(rax, s.ptr[rip + s.constants]);
  s.begin_pool();
  for (int i = 0; i < 64; ++i) s.db(i);
  s.dq(0xbfe0000000000000);
  for (int i = 0; i < 16; ++i) s.dd(7);
  const auto listed = disassemble(s.code());
  ASSERT_TRUE(listed.ok());
  EXPECT_EQ((*listed)[0].comment, "0x00 0x01 0x02 0x03 ..");
  EXPECT_EQ((*listed)[1].comment, "0x03020100 0x07060504 0x0b0a0908 0x0f0e0d0c ..");
  EXPECT_EQ((*listed)[2].comment, "0xbfe0000000000000 = -0.5");
  EXPECT_EQ((*listed)[3].comment, "0x00000007 (x16)");
  EXPECT_EQ((*listed)[4].text, "lea rax, [pool+0x0]");
  EXPECT_EQ((*listed)[4].comment, "");
}

TEST(Disassemble, LabelsAreNumberedByOffset) {
  const MachineCode code = assemble([](Assembler& s) {
    Xbyak::Label a, b;
    s.L(a);
    s.dec(rcx);
    s.jz(b);
    s.jmp(a);
    s.L(b);
    s.ret();
  });
  EXPECT_EQ(texts(code), (Texts{"dec rcx", "jz L1", "jmp L0", "ret"}));
}

TEST(Disassemble, DoesNotDependOnTheHostAddress) {
  std::vector<MachineCode> codes(2);
  std::vector<std::unique_ptr<Snippet>> alive;
  for (MachineCode& code : codes) {
    alive.push_back(std::make_unique<Snippet>());
    Snippet& s = *alive.back();
    s.vaddps(ymm0, ymm1, s.ptr[rip + s.constants]);
    s.ret();
    s.begin_pool();
    for (int i = 0; i < 8; ++i) s.dd(0x3f800000);
    code = s.code();
  }
  EXPECT_EQ(texts(codes[0]), texts(codes[1]));
  EXPECT_EQ(*listing(codes[0]), *listing(codes[1]));
}

struct BadCode {
  MachineCode code;
  std::string message;
};

TEST(Disassemble, RefusesBrokenCode) {
  MachineCode too_long = raw({0xc3});
  too_long.instruction_bytes = 2;
  const BadCode rows[] = {
      {raw({0x90, 0x06, 0xff}), "expected an x86-64 instruction, found other bytes at offset 0x1"},
      {raw({0x90, 0x62, 0xf1}), "the instruction part ends within an instruction at offset 0x1"},
      {raw({0xeb, 0x7f}), "jmp at offset 0x0 goes to 0x81, where no instruction begins"},
      {raw({0xeb, 0xff}), "jmp at offset 0x0 goes to 0x1, where no instruction begins"},
      {raw({0xc5, 0xfc, 0x58, 0x05, 0, 0, 0, 0}),
       "vaddps at offset 0x0 names 32 bytes at 0x8, outside the 8 of the code"},
      {too_long, "code of 1 bytes claims 2 bytes of instructions"},
  };
  for (const BadCode& row : rows) {
    const auto listed = disassemble(row.code);
    ASSERT_FALSE(listed.ok()) << row.message;
    EXPECT_EQ(listed.error().code, ErrorCode::internal);
    EXPECT_PRED2(contains, listed.error().message, row.message);
    EXPECT_FALSE(listing(row.code).ok());
    EXPECT_FALSE(check_features(row.code, {Tier::avx512_vbmi}).ok());
    EXPECT_FALSE(port_cycles(row.code, whole(row.code)).ok());
  }
}

TEST(Disassemble, NoCodeIsAnEmptyListing) {
  EXPECT_TRUE(disassemble(MachineCode{})->empty());
  EXPECT_PRED2(contains, *listing(MachineCode{}), "0 bytes: 0 in 0 instructions");
}

// ---- features

struct FeatureRow {
  Emit emit;
  Tier tier;
  const char* missing;  // null: allowed
};

TEST(CheckFeatures, InstructionsBelongToTheirTiers) {
  const FeatureRow rows[] = {
      {[](auto& s) { s.ldmxcsr(s.ptr[rsp]); }, Tier::avx2, nullptr},
      {[](auto& s) { s.vfmadd231ps(ymm0, ymm1, ymm2); }, Tier::avx2, nullptr},
      {[](auto& s) { s.vcvtph2ps(ymm0, xmm1); }, Tier::avx2, nullptr},
      {[](auto& s) { s.bzhi(eax, ecx, edx); }, Tier::avx2, nullptr},
      {[](auto& s) { s.tzcnt(eax, ecx); }, Tier::avx2, nullptr},
      {[](auto& s) { s.popcnt(eax, ecx); }, Tier::avx2, nullptr},
      {[](auto& s) { s.vpgatherdd(ymm0, s.ptr[rsi + ymm1 * 4], ymm2); }, Tier::avx2, nullptr},
      {[](auto& s) { s.prefetcht0(s.ptr[rsi]); }, Tier::avx2, nullptr},
      {[](auto& s) { s.nop(9); }, Tier::avx2, nullptr},
      {[](auto& s) { s.cmovl(eax, ecx); }, Tier::avx2, nullptr},
      {[](auto& s) { s.vpaddd(zmm0, zmm1, zmm2); }, Tier::avx2, "avx512f"},
      {[](auto& s) { s.vpaddd(ymm16, ymm1, ymm2); }, Tier::avx2, "avx512f, avx512vl"},
      {[](auto& s) { s.vpaddd(ymm0 | k1, ymm1, ymm2); }, Tier::avx2_vnni, "avx512f, avx512vl"},
      {[](auto& s) { s.vpaddb(xmm16, xmm1, xmm2); }, Tier::avx2, "avx512f, avx512bw, avx512vl"},
      {[](auto& s) { s.vmovd(xmm16, eax); }, Tier::avx2, "avx512f"},
      {[](auto& s) { s.vaddss(xmm16, xmm1, xmm2); }, Tier::avx2, "avx512f"},
      {[](auto& s) { s.kmovd(k1, eax); }, Tier::avx2, "avx512f, avx512bw"},
      {[](auto& s) { s.vpdpbusd(ymm0, ymm1, ymm2, Xbyak::VexEncoding); }, Tier::avx2, "avx_vnni"},
      {[](auto& s) { s.vpdpbusd(ymm0, ymm1, ymm2, Xbyak::VexEncoding); }, Tier::avx2_vnni, nullptr},
      {[](auto& s) { s.vpdpbusd(ymm0, ymm1, ymm2, Xbyak::VexEncoding); }, Tier::avx512_vbmi,
       "avx_vnni"},
      {[](auto& s) { s.vpdpbusd(zmm0, zmm1, zmm2); }, Tier::avx512, "avx512_vnni"},
      {[](auto& s) { s.vpdpbusd(zmm0, zmm1, zmm2); }, Tier::avx512_vnni, nullptr},
      {[](auto& s) { s.vpmullq(zmm0, zmm1, zmm2); }, Tier::avx512, nullptr},
      {[](auto& s) { s.vplzcntd(ymm0, ymm1); }, Tier::avx512, nullptr},
      {[](auto& s) { s.kandq(k1, k2, k3); }, Tier::avx512, nullptr},
      {[](auto& s) { s.vpermb(zmm0, zmm1, zmm2); }, Tier::avx512, "avx512_vbmi"},
      {[](auto& s) { s.vpermb(ymm0, ymm1, ymm2); }, Tier::avx512_vnni, "avx512_vbmi"},
      {[](auto& s) { s.vpermb(ymm0, ymm1, ymm2); }, Tier::avx512_vbmi, nullptr},
      {[](auto& s) { s.vcompressb(zmm0 | k1, zmm1); }, Tier::avx512_vnni, "avx512_vbmi2"},
      {[](auto& s) { s.vpopcntb(zmm0, zmm1); }, Tier::avx512_vnni, "avx512_bitalg"},
      {[](auto& s) { s.vgf2p8affineqb(zmm0, zmm1, zmm2, 0); }, Tier::avx512, "gfni"},
      {[](auto& s) { s.vgf2p8affineqb(ymm0, ymm1, ymm2, 0); }, Tier::avx512_vbmi, nullptr},
      {[](auto& s) { s.vcvtneps2bf16(ymm0, zmm1); }, Tier::avx512_vbmi, "AVX512_BF16"},
      {[](auto& s) { s.vpopcntd(zmm0, zmm1); }, Tier::avx512_vbmi, "AVX512_VPOPCNTDQ"},
      {[](auto& s) { s.vpmadd52luq(zmm0, zmm1, zmm2); }, Tier::avx512_vbmi, "AVX512_IFMA"},
      {[](auto& s) { s.movbe(eax, s.ptr[rsi]); }, Tier::avx512_vbmi, "MOVBE"},
  };
  for (const FeatureRow& row : rows) {
    const MachineCode code = assemble(row.emit);
    const std::string text = texts(code).at(0);
    const Status status = check_features(code, {row.tier});
    ASSERT_EQ(status.ok(), row.missing == nullptr) << text << " for " << name_of(row.tier);
    if (status.ok()) continue;
    EXPECT_PRED2(contains, status.error().message, std::string("needs ") + row.missing) << text;
  }
}

TEST(CheckFeatures, NamesTheFirstOffenderAndItsOffset) {
  const MachineCode code = assemble([](Assembler& s) {
    s.vpaddd(ymm0, ymm1, ymm2);
    s.vpaddd(zmm0, zmm1, zmm2);
    s.vpermb(zmm0, zmm1, zmm2);
  });
  const Status status = check_features(code, {Tier::avx2});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message,
            "instruction at offset 0x4 'vpaddd zmm0, zmm1, zmm2' needs avx512f, which tier avx2 "
            "does not have");
}

}  // namespace
}  // namespace castor::jit
