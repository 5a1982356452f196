// SPDX-License-Identifier: Apache-2.0
#include "jit/emit/block_emitter.hpp"

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

bool has_blocks(const NestForm& form, int32_t elements, int32_t scales) {
  return form.access[static_cast<size_t>(elements)] == Access::contiguous &&
         form.access[static_cast<size_t>(scales)] == Access::repeated &&
         form.access.back() == Access::contiguous;
}

void emit_signed_nibbles(Assembler& code, const Xbyak::Zmm& codes, const Xbyak::Zmm& signs,
                         const Xbyak::Operand& sign_bits, const Xbyak::Zmm& order,
                         BytesApart form) {
  const Section section = code.section(CodeSection::encoded_products);
  constexpr uint8_t a_or_b_and_c = 0xf8;
  code.vpsrlw(signs, signs, 4);
  code.vpternlogd(codes, signs, sign_bits, a_or_b_and_c);
  if (form == BytesApart::by_permutation) {
    code.vpmaddubsw(codes, codes, code.constant(vector_constant<uint8_t>(512, [](int i) {
      return i % 2 == 0 ? 1 : 1 << 4;
    })));
  } else {  // the codes of a pair are 16 bits from each other
    code.vpsrld(signs, codes, 16 - 4);
    code.vpord(codes, codes, signs);
  }
  code.vpermb(codes, order, codes);
}

std::vector<uint8_t> order_of_pairs(BytesApart form) {
  if (form == BytesApart::by_permutation) return every_second<uint8_t>(512, 0);
  return vector_constant<uint8_t>(512, [](int i) { return 4 * (i % 16) + i / 16 % 2; });
}

BlockEmitter::BlockEmitter(const Nest& nest, const NestForm& form, Assembler& code,
                           const Frame& frame, NestLoops& loops)
    : code_(code),
      frame_(frame),
      loops_(loops),
      stores_(form.stores),
      sink_(nest.inputs.size()),
      block_(form.baked_period) {}

void BlockEmitter::emit_blocks() {
  emit_by_alignment([&](Stores stores) { emit_blocks_loop(stores); });
}

void BlockEmitter::emit_result(const Xbyak::Address& to, const Xbyak::Xmm& from, Stores stores) {
  const Section section = code_.section(CodeSection::stores);
  stores == Stores::streaming ? code_.vmovntps(to, from) : code_.vmovups(to, from);
}

}  // namespace castor::jit
