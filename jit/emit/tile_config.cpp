// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/tile_config.hpp"

namespace castor::jit {

void emit_enter_tiles(Assembler& code, const TileConfig& config, const Xbyak::RegExp& kept) {
  const Section configuration = code.section(CodeSection::tile_configuration);
  code.sttilecfg(code.ptr[kept]);
  code.ldtilecfg(code.constant(config.bytes()));
}

void emit_leave_tiles(Assembler& code, const Xbyak::RegExp& kept) {
  const Section configuration = code.section(CodeSection::tile_configuration);
  Xbyak::Label none;
  Xbyak::Label done;
  code.cmp(code.byte[kept], 0);  // the palette
  code.je(none, Xbyak::CodeGenerator::T_NEAR);
  code.ldtilecfg(code.ptr[kept]);
  code.jmp(done, Xbyak::CodeGenerator::T_NEAR);
  code.L(none);
  code.tilerelease();
  code.L(done);
}

}  // namespace castor::jit
