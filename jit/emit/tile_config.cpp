// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/tile_config.hpp"

namespace castor::jit {

namespace {

/// Goes on at `same` if the configuration at `kept` is that one.
void emit_if_same(Assembler& code, const TileConfig& config, const Xbyak::RegExp& kept,
                  Xbyak::Label& same) {
  const Xbyak::Zmm bytes(0);
  const Xbyak::Opmask differences(1);
  code.vmovdqu64(bytes, code.ptr[kept]);
  constexpr uint8_t not_equal = 4;
  code.vpcmpq(differences, bytes, code.constant(config.bytes()), not_equal);
  code.kortestw(differences, differences);
  code.jz(same, Xbyak::CodeGenerator::T_NEAR);
}

}  // namespace

void emit_enter_tiles(Assembler& code, const TileConfig& config, const Xbyak::RegExp& kept) {
  const Section configuration = code.section(CodeSection::tile_configuration);
  Xbyak::Label same;
  code.sttilecfg(code.ptr[kept]);
  emit_if_same(code, config, kept, same);
  code.ldtilecfg(code.constant(config.bytes()));
  code.L(same);
}

void emit_leave_tiles(Assembler& code, const TileConfig& config, const Xbyak::RegExp& kept) {
  const Section configuration = code.section(CodeSection::tile_configuration);
  Xbyak::Label none;
  Xbyak::Label done;
  emit_if_same(code, config, kept, done);
  code.cmp(code.byte[kept + TileConfig::palette], 0);
  code.je(none, Xbyak::CodeGenerator::T_NEAR);
  code.ldtilecfg(code.ptr[kept]);
  code.jmp(done, Xbyak::CodeGenerator::T_NEAR);
  code.L(none);
  code.tilerelease();
  code.L(done);
}

}  // namespace castor::jit
