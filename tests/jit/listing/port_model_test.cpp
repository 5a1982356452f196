// SPDX-License-Identifier: Apache-2.0
// The port model: single instructions against measured figures, combinations by hand.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <array>

#include "jit/listing/decoder.hpp"
#include "jit/listing/listing.hpp"
#include "jit/listing/port_core.hpp"
#include "tests/support/snippet.hpp"

namespace castor::jit {
namespace {

using namespace test;
using namespace Xbyak::util;

PortCycles cycles_of(const MachineCode& code) {
  const auto cycles = port_cycles(code, whole(code));
  EXPECT_TRUE(cycles.ok()) << (cycles ? "" : cycles.error().message);
  return cycles ? *cycles : PortCycles{};
}

struct Measured {
  const char* name;
  double cycles;  // each, in a loop of 24 independent ones, on the reference machine
  Emit emit;
};

/// The figures of the notes on the reference machine; a bound may be a little below, never above.
TEST(PortModel, AgreesWithMeasuredThroughputs) {
  const Measured rows[] = {
      {"vpaddd zmm", 0.49, [](auto& s) { s.vpaddd(zmm0, zmm1, zmm2); }},
      {"vpternlogd zmm", 0.60, [](auto& s) { s.vpternlogd(zmm0, zmm1, zmm2, 1); }},
      {"vpslld zmm", 0.99, [](auto& s) { s.vpslld(zmm0, zmm1, 3); }},
      {"vpsllvw zmm", 0.99, [](auto& s) { s.vpsllvw(zmm0, zmm1, zmm2); }},
      {"vpmultishiftqb zmm", 0.99, [](auto& s) { s.vpmultishiftqb(zmm0, zmm1, zmm2); }},
      {"vpshufb zmm", 0.99, [](auto& s) { s.vpshufb(zmm0, zmm1, zmm2); }},
      {"vpermb zmm", 0.99, [](auto& s) { s.vpermb(zmm0, zmm1, zmm2); }},
      {"vpermi2b zmm", 0.99, [](auto& s) { s.vpermi2b(zmm0, zmm1, zmm2); }},
      {"vpermps zmm", 0.99, [](auto& s) { s.vpermps(zmm0, zmm1, zmm2); }},
      {"vpunpcklbw zmm", 0.66, [](auto& s) { s.vpunpcklbw(zmm0, zmm1, zmm2); }},
      {"vshufi32x4 zmm", 0.99, [](auto& s) { s.vshufi32x4(zmm0, zmm1, zmm2, 1); }},
      {"vpalignr zmm", 0.99, [](auto& s) { s.vpalignr(zmm0, zmm1, zmm2, 1); }},
      {"gf2p8affineqb zmm", 0.99, [](auto& s) { s.vgf2p8affineqb(zmm0, zmm1, zmm2, 1); }},
      {"vpmovzxbd zmm, xmm", 0.99, [](auto& s) { s.vpmovzxbd(zmm0, xmm1); }},
      {"vpmovzxbd zmm, m", 0.99, [](auto& s) { s.vpmovzxbd(zmm0, s.ptr[rsi]); }},
      {"vpmovsdb xmm, zmm", 0.99, [](auto& s) { s.vpmovsdb(xmm0, zmm1); }},
      {"vpmovsdb m128, zmm", 0.99, [](auto& s) { s.vpmovsdb(s.ptr[rdi], zmm1); }},
      {"vpackssdw zmm", 0.99, [](auto& s) { s.vpackssdw(zmm0, zmm1, zmm2); }},
      {"vcvtdq2ps zmm", 0.99, [](auto& s) { s.vcvtdq2ps(zmm0, zmm1); }},
      {"vcvttps2udq zmm", 0.99, [](auto& s) { s.vcvttps2udq(zmm0, zmm1); }},
      {"vcvtps2ph ymm, zmm", 1.36, [](auto& s) { s.vcvtps2ph(ymm0, zmm1, 0); }},
      {"vcvtph2ps zmm, ymm", 1.32, [](auto& s) { s.vcvtph2ps(zmm0, ymm1); }},
      {"vcvtneps2bf16 zmm", 1.32, [](auto& s) { s.vcvtneps2bf16(ymm0, zmm1); }},
      {"vcvtps2pd zmm, ymm", 1.32, [](auto& s) { s.vcvtps2pd(zmm0, ymm1); }},
      {"vcvtpd2ps ymm, zmm", 1.32, [](auto& s) { s.vcvtpd2ps(ymm0, zmm1); }},
      {"vcvtqq2pd zmm", 0.99, [](auto& s) { s.vcvtqq2pd(zmm0, zmm1); }},
      {"vcvtqq2ps ymm, zmm", 1.33, [](auto& s) { s.vcvtqq2ps(ymm0, zmm1); }},
      {"vcvttps2qq zmm, ymm", 1.32, [](auto& s) { s.vcvttps2qq(zmm0, ymm1); }},
      {"vminps zmm", 0.99, [](auto& s) { s.vminps(zmm0, zmm1, zmm2); }},
      {"vaddps zmm", 0.99, [](auto& s) { s.vaddps(zmm0, zmm1, zmm2); }},
      {"vaddps zmm rounding", 0.99, [](auto& s) { s.vaddps(zmm0 | s.T_rd_sae, zmm1, zmm2); }},
      {"vfmadd231ps zmm", 0.99, [](auto& s) { s.vfmadd231ps(zmm0, zmm1, zmm2); }},
      {"vdivps zmm", 5.97, [](auto& s) { s.vdivps(zmm0, zmm1, zmm2); }},
      {"vrangeps zmm", 0.99, [](auto& s) { s.vrangeps(zmm0, zmm1, zmm2, 1); }},
      {"vfixupimmps zmm", 0.99, [](auto& s) { s.vfixupimmps(zmm0, zmm1, zmm2, 1); }},
      {"vrndscaleps zmm", 0.99, [](auto& s) { s.vrndscaleps(zmm0, zmm1, 1); }},
      {"vcmpps k", 0.99, [](auto& s) { s.vcmpps(k1, zmm1, zmm2, 1); }},
      {"vpcmpub k", 0.99, [](auto& s) { s.vpcmpub(k1, zmm1, zmm2, 1); }},
      {"vpcmpeqb k", 0.99, [](auto& s) { s.vpcmpeqb(k1, zmm1, zmm2); }},
      {"vptestnmd k", 0.99, [](auto& s) { s.vptestnmd(k1, zmm1, zmm2); }},
      {"vpblendmd zmm{k}", 0.49, [](auto& s) { s.vpblendmd(zmm0 | k1, zmm1, zmm2); }},
      {"vpmovm2b zmm", 0.49, [](auto& s) { s.vpmovm2b(zmm0, k1); }},
      {"vpmovb2m k", 0.99, [](auto& s) { s.vpmovb2m(k1, zmm0); }},
      {"kmovq k, m64", 0.99, [](auto& s) { s.kmovq(k1, s.ptr[rsi]); }},
      {"vpmaddwd zmm", 0.99, [](auto& s) { s.vpmaddwd(zmm0, zmm1, zmm2); }},
      {"vpmullq zmm", 0.99, [](auto& s) { s.vpmullq(zmm0, zmm1, zmm2); }},
      {"vpdpbusd zmm", 0.99, [](auto& s) { s.vpdpbusd(zmm0, zmm1, zmm2); }},
      {"vpdpbusd zmm, m32", 0.99, [](auto& s) { s.vpdpbusd(zmm0, zmm1, s.ptr_b[rsi]); }},
      {"vpbroadcastd zmm, m32", 0.49, [](auto& s) { s.vpbroadcastd(zmm0, s.ptr[rsi]); }},
      {"vpcompressb zmm", 1.32, [](auto& s) { s.vcompressb(zmm0 | k1, zmm1); }},
      {"vpexpandb zmm", 1.32, [](auto& s) { s.vpexpandb(zmm0 | k1, zmm1); }},
      {"masked load", 1.00, [](auto& s) { s.vmovdqu8(zmm0 | k1 | s.T_z, s.ptr[rsi]); }},
      {"masked store", 1.98, [](auto& s) { s.vmovdqu8(s.ptr[rdi] | k1, zmm0); }},
      {"store m512", 1.98, [](auto& s) { s.vmovdqu64(s.ptr[rdi], zmm0); }},
      {"store m256", 0.99, [](auto& s) { s.vmovdqu(s.ptr[rdi], ymm0); }},
      {"vpgatherdd zmm", 16.90, [](auto& s) { s.vpgatherdd(zmm0 | k1, s.ptr[rsi + zmm1 * 4]); }},
      {"vpaddd ymm", 0.25, [](auto& s) { s.vpaddd(ymm0, ymm1, ymm2); }},
      {"vpshufb ymm", 0.49, [](auto& s) { s.vpshufb(ymm0, ymm1, ymm2); }},
      {"vpmaddwd ymm", 0.49, [](auto& s) { s.vpmaddwd(ymm0, ymm1, ymm2); }},
      {"vcvtph2ps ymm, xmm", 0.67, [](auto& s) { s.vcvtph2ps(ymm0, xmm1); }},
      {"vcvtps2ph xmm, ymm", 0.67, [](auto& s) { s.vcvtps2ph(xmm0, ymm1, 0); }},
  };
  for (const Measured& row : rows) {
    const MachineCode code = assemble([&](Assembler& s) {
      for (int i = 0; i < 24; ++i) row.emit(s);
    });
    EXPECT_NEAR(cycles_of(code).bound() / 24, row.cycles, 0.02 * row.cycles + 0.005) << row.name;
  }
}

struct Combined {
  const char* name;
  Emit emit;
  double load, store, pipes, front_end;
  const char* busiest;
  const char* limit;
};

TEST(PortModel, CombinesInstructions) {
  const Combined rows[] = {
      {"24 vpaddd zmm",
       [](auto& s) {
         for (int i = 0; i < 24; ++i) s.vpaddd(Xbyak::Zmm(i), zmm30, zmm31);
       },
       0, 0, 12, 4, "FP0 FP1 FP2 FP3", "pipes"},
      {"shuffles and packs share two pipes, adds take the others",
       [](auto& s) {
         for (int i = 0; i < 4; ++i) s.vpshufb(zmm0, zmm1, zmm2);
         for (int i = 0; i < 2; ++i) s.vpackssdw(zmm0, zmm1, zmm2);
         for (int i = 0; i < 6; ++i) s.vpaddd(zmm0, zmm1, zmm2);
       },
       0, 0, 6, 2, "FP1 FP2", "pipes"},
      {"many adds make all four pipes the limit",
       [](auto& s) {
         for (int i = 0; i < 4; ++i) s.vpshufb(zmm0, zmm1, zmm2);
         for (int i = 0; i < 10; ++i) s.vpaddd(zmm0, zmm1, zmm2);
       },
       0, 0, 7, 14.0 / 6, "FP0 FP1 FP2 FP3", "pipes"},
      {"float multiply and add do not meet",
       [](auto& s) {
         for (int i = 0; i < 4; ++i) s.vmulps(zmm0, zmm1, zmm2);
         for (int i = 0; i < 4; ++i) s.vaddps(zmm0, zmm1, zmm2);
       },
       0, 0, 4, 8.0 / 6, "FP0 FP1", "pipes"},
      {"f32 to i8 by 64: load, min, ordered compare, convert under mask, packs, store",
       [](auto& s) {
         for (int i = 0; i < 4; ++i) {
           s.vmovups(Xbyak::Zmm(i), s.ptr[rsi + 64 * i]);
           s.vminps(Xbyak::Zmm(i), Xbyak::Zmm(i), zmm31);
           s.vcmpps(k1, Xbyak::Zmm(i), Xbyak::Zmm(i), 7);
           s.vcvttps2dq(Xbyak::Zmm(i) | k1 | s.T_z, Xbyak::Zmm(i));
         }
         s.vpackssdw(zmm0, zmm0, zmm1);
         s.vpackssdw(zmm2, zmm2, zmm3);
         s.vpacksswb(zmm0, zmm0, zmm2);
         s.vpermd(zmm0, zmm30, zmm0);
         s.vmovups(s.ptr[rdi], zmm0);
       },
       // FP2 FP3: 8 x 2 / 2 = 8; FP0 to FP3: (8 + 4 + 4) x 2 / 4 = 8.
       4, 2, 8, 21.0 / 6, "FP2 FP3", "pipes"},
      {"halves: a conversion and a shuffle each",
       [](auto& s) {
         s.vcvtph2ps(zmm0, s.ptr[rsi]);
         s.vpshufb(zmm1, zmm1, zmm2);
         s.vpshufb(zmm3, zmm1, zmm2);
       },
       0.5, 0, 3, 4.0 / 6, "FP1 FP2", "pipes"},
      {"copy of 64 bytes",
       [](auto& s) {
         s.vmovups(zmm0, s.ptr[rsi]);
         s.vmovups(s.ptr[rdi], zmm0);
       },
       1, 2, 0, 2.0 / 6, "", "store"},
      {"masks: logic and a test of the flags",
       [](auto& s) {
         s.kandq(k1, k2, k3);
         s.kmovq(rax, k1);
         s.kortestq(k1, k1);
       },
       0, 0, (4.0 + 1) / 2, 3.0 / 6, "FP4 FP5", "pipes"},
      {"general registers",
       [](auto& s) {
         for (int i = 0; i < 3; ++i) s.mov(eax, s.dword[rsi]);
         for (int i = 0; i < 6; ++i) s.add(eax, ecx);
         for (int i = 0; i < 2; ++i) s.imul(eax, ecx);
         s.mov(s.dword[rdi], eax);
       },
       1, 0.5, 2, 2, "ALU1", "pipes"},
      {"zeroing and register moves take no pipe",
       [](auto& s) {
         s.vpxor(xmm0, xmm0, xmm0);
         s.vxorps(xmm1, xmm1, xmm1);
         s.xor_(eax, eax);
         s.vmovdqa64(zmm3, zmm4);
         s.mov(rax, rcx);
         s.nop(9);
       },
       0, 0, 0, 1, "", "front end"},
      {"an exclusive or of two registers, and a move under a mask, do",
       [](auto& s) {
         s.vpxord(zmm0, zmm0, zmm1);
         s.vpxord(zmm0 | k1, zmm0, zmm0);
         s.vmovdqa64(zmm3 | k1, zmm4);
         s.vpxor(ymm0, ymm0, s.ptr[rsi]);
       },
       0.5, 0, 7.0 / 4, 4.0 / 6, "FP0 FP1 FP2 FP3", "pipes"},
      {"operands in memory",
       [](auto& s) {
         s.vpaddd(ymm0, ymm1, s.ptr[rsi]);
         for (int i = 0; i < 2; ++i) s.vpaddd(zmm0, zmm1, s.ptr[rsi]);
         s.vpaddd(zmm0, zmm1, s.ptr_b[rsi]);
         s.vextracti128(s.ptr[rdi], ymm0, 1);
         s.add(s.dword[rdi], 4);
         s.push(rax);
         s.pop(rax);
       },
       // Ports for vectors: 0.5 + 2 x 1 + 0.5 = 3; all ports: 1/3 + 2 x 2/3 + 3 x 1/3 < 3.
       3, 1 + 0.5 + 0.5, 8.0 / 4, 8.0 / 6, "FP0 FP1 FP2 FP3", "load"},
  };
  for (const Combined& row : rows) {
    const PortCycles cycles = cycles_of(assemble(row.emit));
    EXPECT_NEAR(cycles.load, row.load, 1e-9) << row.name;
    EXPECT_NEAR(cycles.store, row.store, 1e-9) << row.name;
    EXPECT_NEAR(cycles.pipes, row.pipes, 1e-9) << row.name;
    EXPECT_NEAR(cycles.front_end, row.front_end, 1e-9) << row.name;
    EXPECT_EQ(cycles.busiest, row.busiest) << row.name;
    EXPECT_EQ(cycles.limited_by(), row.limit) << row.name;
    EXPECT_EQ(cycles.bound(),
              std::max({cycles.load, cycles.store, cycles.pipes, cycles.front_end}));
  }
}

/// Loads of each kind, and the least time of all of them by core: narrow ones take the ports that
/// wide ones leave.
struct Loads {
  const char* name;
  int gpr, mask, ymm, zmm;
  double zen4, zen5, golden_cove;
};

TEST(PortModel, NarrowLoadsTakeThePortsThatWideOnesLeave) {
  const Loads rows[] = {
      {"general registers", 12, 0, 0, 0, 4, 3, 4},
      {"masks", 0, 6, 0, 0, 3, 3, 2},
      {"256 bits", 0, 0, 12, 0, 6, 6, 4},
      {"512 bits", 0, 0, 0, 12, 12, 6, 6},
      {"256 bits leave a port to general registers", 6, 0, 12, 0, 6, 6, 6},
      {"more of general registers than that", 12, 0, 6, 0, 6, 4.5, 6},
      {"512 bits leave one of Golden Cove's ports", 3, 0, 0, 6, 6, 3.75, 3},
      {"and to 256 bits", 0, 0, 3, 6, 7.5, 4.5, 3},
      {"as many of 256 bits as of 512", 0, 0, 12, 12, 18, 12, 8},
  };
  for (const Loads& row : rows) {
    const MachineCode code = assemble([&](Assembler& s) {
      for (int i = 0; i < row.gpr; ++i) s.mov(eax, s.dword[rsi]);
      for (int i = 0; i < row.mask; ++i) s.kmovq(k1, s.ptr[rsi]);
      for (int i = 0; i < row.ymm; ++i) s.vmovups(ymm0, s.ptr[rsi]);
      for (int i = 0; i < row.zmm; ++i) s.vmovups(zmm0, s.ptr[rsi]);
    });
    const std::pair<PortModel, double> cores[] = {{PortModel::zen4, row.zen4},
                                                  {PortModel::zen5, row.zen5},
                                                  {PortModel::golden_cove, row.golden_cove},
                                                  {PortModel::redwood_cove, row.golden_cove}};
    for (const auto& [model, expected] : cores) {
      EXPECT_NEAR(port_cycles(code, whole(code), model)->load, expected, 1e-9)
          << row.name << " on " << port_core(model).name;
    }
  }
}

TEST(PortModel, ALoopTakesACycleForItsBranchAndFusesIt) {
  const MachineCode code = assemble([](Assembler& s) {
    Xbyak::Label top;
    s.L(top);
    s.dec(rcx);
    s.jnz(top);
  });
  const PortCycles cycles = cycles_of(code);
  EXPECT_EQ(cycles.front_end, 1);
  const MachineCode longer = assemble([](Assembler& s) {
    Xbyak::Label top;
    s.L(top);
    for (int i = 0; i < 11; ++i) s.mov(rax, rdx);
    s.cmp(rcx, rdx);
    s.jb(top);
  });
  EXPECT_EQ(cycles_of(longer).front_end, 2);
}

TEST(PortModel, AnIterationHasTheRoutinesThatItCalls) {
  uint32_t end = 0;
  const MachineCode code = assemble([&](Assembler& s) {
    Xbyak::Label top;
    Xbyak::Label routine;
    Xbyak::Label inner;
    s.L(top);
    s.call(routine);
    s.dec(rcx);
    s.jnz(top);
    end = static_cast<uint32_t>(s.getSize());
    s.ret();
    s.L(routine);
    for (int i = 0; i < 3; ++i) s.vpaddd(zmm0, zmm1, zmm2);
    s.call(inner);
    s.ret();
    s.L(inner);
    s.vpaddd(zmm0, zmm1, zmm2);
    s.ret();
  });
  const auto program = decode(code);
  ASSERT_TRUE(program.ok());
  std::vector<std::string> names;
  const CodeLoop loop = {.begin = 0, .end = end, .name = "loop"};
  for (const DecodedInstruction& each : iteration_of(*program, loop)) {
    names.emplace_back(each.mnemonic());
  }
  EXPECT_EQ(fmt::format("{}", fmt::join(names, " ")),
            "call vpaddd vpaddd vpaddd call vpaddd ret ret dec jnz");
  EXPECT_EQ(port_cycles(code, loop)->pipes, 2.5);  // five branches, which two ports do
}

TEST(PortModel, ARecursiveRoutineEnds) {
  uint32_t end = 0;
  const MachineCode code = assemble([&](Assembler& s) {
    Xbyak::Label routine;
    s.call(routine);
    end = static_cast<uint32_t>(s.getSize());
    s.L(routine);
    s.call(routine);
    s.ret();
  });
  const auto program = decode(code);
  ASSERT_TRUE(program.ok());
  EXPECT_LT(iteration_of(*program, {.begin = 0, .end = end, .name = "loop"}).size(), 32u);
}

/// What follows `mov rax, rdx`, and whether the two are one macro-operation on a Zen 5.
struct Copied {
  const char* second;
  Emit emit;
  bool fuses_on_zen5;
};

TEST(PortModel, Zen5FusesACopyWithWhatOverwritesIt) {
  const Copied rows[] = {
      {"sub of a register", [](auto& s) { s.sub(rax, rcx); }, true},
      {"add of an immediate", [](auto& s) { s.add(rax, 8); }, true},
      {"shift by an immediate", [](auto& s) { s.shr(rax, 3); }, true},
      {"not", [](auto& s) { s.not_(rax); }, true},
      {"neg", [](auto& s) { s.neg(rax); }, false},
      {"compare", [](auto& s) { s.cmp(rax, rcx); }, false},
      {"sub of memory", [](auto& s) { s.sub(rax, s.qword[rsi]); }, false},
      {"add of itself", [](auto& s) { s.add(rax, rax); }, false},
      {"sub of another register", [](auto& s) { s.sub(rbx, rcx); }, false},
      {"three operands", [](auto& s) { s.bzhi(rax, rax, rcx); }, false},
  };
  for (const Copied& row : rows) {
    const MachineCode code = assemble([&](Assembler& s) {
      for (int i = 0; i < 16; ++i) {
        s.mov(rax, rdx);
        row.emit(s);
      }
    });
    EXPECT_EQ(port_cycles(code, whole(code), PortModel::zen5)->front_end, row.fuses_on_zen5 ? 2 : 4)
        << row.second;
    EXPECT_NEAR(port_cycles(code, whole(code), PortModel::golden_cove)->front_end, 32.0 / 6, 1e-9)
        << row.second;
  }
  const MachineCode constants = assemble([](Assembler& s) {
    for (int i = 0; i < 16; ++i) {
      s.mov(eax, 5);
      s.sub(eax, ecx);
    }
  });
  EXPECT_EQ(port_cycles(constants, whole(constants), PortModel::zen5)->front_end, 4);
}

// ---- tile registers

/// Code that configures tile 0 with `rows` rows, the others with 16, and a loop after that.
MachineCode tile_loop(uint8_t rows, const Emit& emit) {
  Snippet s;
  s.ldtilecfg(s.ptr[rip + s.constants]);
  const auto begin = static_cast<uint32_t>(s.getSize());
  emit(s);
  const auto end = static_cast<uint32_t>(s.getSize());
  s.begin_pool();
  std::array<uint8_t, 64> config = {1};
  for (size_t tile = 0; tile < 8; ++tile) {
    config[16 + 2 * tile] = 64;
    config[48 + tile] = tile == 0 ? rows : 16;
  }
  for (const uint8_t byte : config) s.db(byte);
  MachineCode code = s.code();
  code.loops.push_back({begin, end, 1, 64, 0, "main loop"});
  return code;
}

PortCycles tile_cycles_of(uint8_t rows, const Emit& emit) {
  const MachineCode code = tile_loop(rows, emit);
  const auto cycles = port_cycles(code, code.loops[0]);
  EXPECT_TRUE(cycles.ok()) << (cycles ? "" : cycles.error().message);
  return cycles ? *cycles : PortCycles{};
}

/// Against Granite Rapids: a bound may be a little below, never above.
TEST(PortModel, WeighsTilesByTheirRows) {
  struct Row {
    uint8_t rows;
    double product, load;
  };
  for (const Row& row : {Row{1, 9.25, 2.5}, Row{8, 10.0, 4.2}, Row{12, 13.3, 6.7},
                         Row{14, 14.7, 7.3}, Row{16, 16.0, 8.1}}) {
    const double product = tile_cycles_of(row.rows, [](auto& s) {
                             s.tdpbusd(Xbyak::Tmm(0), Xbyak::Tmm(1), Xbyak::Tmm(2));
                           }).pipes;
    EXPECT_LE(product, row.product) << int{row.rows};
    EXPECT_GE(product, 0.9 * row.product) << int{row.rows};
    const double load = tile_cycles_of(row.rows, [](auto& s) {
                          s.tileloadd(Xbyak::Tmm(0), s.ptr[rsi + rcx]);
                        }).load;
    EXPECT_LE(load, row.load) << int{row.rows};
    EXPECT_GE(load, row.rows < 8 ? 0 : 0.85 * row.load) << int{row.rows};
    const double store = tile_cycles_of(row.rows, [](auto& s) {
                           s.tilestored(s.ptr[rsi + rcx], Xbyak::Tmm(0));
                         }).store;
    EXPECT_DOUBLE_EQ(store, 15.6);
  }
}

TEST(PortModel, WeighsAKStepOfTiles) {
  const PortCycles cycles = tile_cycles_of(14, [](auto& s) {
    s.tilezero(Xbyak::Tmm(0));
    for (int i = 4; i < 8; ++i) s.tileloaddt1(Xbyak::Tmm(i), s.ptr[rsi + rcx]);
    for (int i = 0; i < 4; ++i) s.tdpbssd(Xbyak::Tmm(i), Xbyak::Tmm(4), Xbyak::Tmm(6));
    s.vaddps(zmm0, zmm1, zmm2);
  });
  EXPECT_TRUE(cycles.has_tiles);
  EXPECT_DOUBLE_EQ(cycles.load, 4 * 8);
  EXPECT_DOUBLE_EQ(cycles.pipes, 14 + 3 * 16);
  EXPECT_EQ(cycles.busiest, "TMUL");
  EXPECT_EQ(cycles.limited_by(), "pipes");
  const MachineCode alone =
      assemble([](Assembler& s) { s.tdpbuud(Xbyak::Tmm(0), Xbyak::Tmm(1), Xbyak::Tmm(2)); });
  EXPECT_DOUBLE_EQ(port_cycles(alone, whole(alone))->pipes, 16);  // nothing is configured
  const MachineCode with_config = tile_loop(16, [](Assembler& s) { s.nop(); });
  EXPECT_FALSE(port_cycles(with_config, whole(with_config)).ok());
}

TEST(PortModel, WeighsOnlyTheLoop) {
  const MachineCode code = scaling_loop();
  const auto cycles = port_cycles(code, code.loops[0]);
  ASSERT_TRUE(cycles.ok());
  EXPECT_DOUBLE_EQ(cycles->load, 1.5);
  EXPECT_DOUBLE_EQ(cycles->store, 2);
  EXPECT_DOUBLE_EQ(cycles->pipes, 1);
  EXPECT_DOUBLE_EQ(cycles->front_end, 1);
}

TEST(PortModel, RefusesALoopOfPartsOfInstructions) {
  MachineCode code = scaling_loop();
  for (auto [begin, end] : {std::pair{3u, code.loops[0].end}, {2u, 4u}, {2u, 2u}, {2u, 4000u}}) {
    const auto cycles = port_cycles(code, {.begin = begin, .end = end, .name = "main loop"});
    ASSERT_FALSE(cycles.ok()) << begin << " " << end;
    EXPECT_PRED2(contains, cycles.error().message, "the loop 'main loop' from 0x");
  }
}

TEST(PortModel, RefusesInstructionsWithoutAFigure) {
  const std::pair<Emit, const char*> rows[] = {
      {[](auto& s) { s.cpuid(); }, "no cost for cpuid at offset 0x4"},
      {[](auto& s) { s.vpcompressd(s.ptr[rdi], zmm0); },
       "no cost for vpcompressd with a memory operand at offset 0x4"},
      {[](auto& s) { s.movaps(xmm0, xmm1); }, "no cost for movaps at offset 0x4"},
  };
  for (const auto& [emit, message] : rows) {
    const MachineCode code = assemble([&emit_last = emit](Assembler& s) {
      s.vpaddd(ymm0, ymm1, ymm2);
      emit_last(s);
    });
    const auto cycles = port_cycles(code, whole(code));
    ASSERT_FALSE(cycles.ok()) << message;
    EXPECT_EQ(cycles.error().code, ErrorCode::internal);
    EXPECT_PRED2(contains, cycles.error().message, message);
  }
}

}  // namespace
}  // namespace castor::jit
