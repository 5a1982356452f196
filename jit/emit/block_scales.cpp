// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/block_scales.hpp"

#include "jit/emit/vector_constant.hpp"

namespace castor::jit {

void emit_leave_if_out_of_range(Assembler& code, const Xbyak::Reg64& from, const ScaleRange& range,
                                ScaleSigns signs, const Xbyak::Zmm& scales,
                                const Xbyak::Opmask& out_of_range, const Xbyak::Label& exit) {
  const Section check = code.section(CodeSection::scale_check);
  constexpr int scale_bytes = 4;
  constexpr uint8_t not_less = 5;
  const auto all = [&](uint32_t bits) {
    return code.constant(repeated_constant<uint32_t>(512, static_cast<int>(bits)));
  };
  code.vmovups(scales, code.ptr[from + gpr::period * scale_bytes]);
  if (signs == ScaleSigns::ignored) {
    code.vpslld(scales, scales, 1);
    code.vpsrld(scales, scales, 1);
  }
  code.vpsubd(scales, scales, all(range.min));
  code.vpcmpud(out_of_range, scales, all(range.limit - range.min), not_less);
  code.kortestw(out_of_range, out_of_range);
  code.jnz(exit, Xbyak::CodeGenerator::T_NEAR);
}

}  // namespace castor::jit
