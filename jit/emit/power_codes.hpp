// SPDX-License-Identifier: Apache-2.0
// bf16 times powers of two as small floats, 64 at a time in bytes, without arithmetic on floats:
// how block formats are written (AVX512-VBMI).
//
// A product with a power of two is x with another exponent, so a code follows from the eight
// exponent bits of x, less those of its block, and from its seven mantissa bits. Both are gathered
// as bytes. With e the exponent that the result has in its format, 1 for the least normal one:
//
//   e >= 1: code = (e - 1) << mantissa bits | code of the mantissa at e = 1, rounded, which may
//           carry into the exponent as it should; the largest code at most
//   e <= 0: the result is below the normal numbers. Where it is rounded to depends on e and on
//           which of 16 classes the mantissa is in: multiples of 16, and what is between them
//
// The codes of f4e2m1, which has three normal exponents, are all looked up by e and one of 8
// classes. 8-bit results below the normal ones are seldom, so that code is deferred; zeros are
// among them. Infinities, NaNs, and powers with which exponents are not bytes are left to the lane
// program, which does the whole iteration: an output never has the memory of floats, which are
// wider.
#pragma once

#include <memory>
#include <vector>

#include "jit/emit/block_emitter.hpp"

namespace castor::jit {

/// Whether a nest's products are encoded in this way: it wants VBMI, contiguous operands, and one
/// power for each block of 32.
bool encodes_powers(const Nest& nest, const NestForm& form, const Target& target);

/// What codes are made of.
struct PowerCodeTables {
  explicit PowerCodeTables(ElementType type);

  int mantissa_bits;
  int first_exponent;  ///< e of the smallest results that are not zero, whatever the mantissa
  int normal_exponents;
  int bias;
  int largest_code;
  /// By mantissa: the code at e = 1.
  std::vector<uint8_t> mantissas;
  /// By mantissa: the number of its class, times the exponents of `codes`.
  std::vector<uint8_t> classes;
  /// By class and e - first_exponent, where the exponents of a class are 8 or 4.
  std::vector<uint8_t> codes;
  ScaleRange powers;
};

class PowerCoder final : public BlockEmitter {
 public:
  /// The registers that have one meaning for the whole function, which LaneEmitter must leave
  /// alone.
  static constexpr uint32_t taken_vectors = 0xfffe0000;
  static constexpr uint32_t taken_masks = 0xc0;

  PowerCoder(const Nest& nest, const NestForm& form, Assembler& code, const Frame& frame,
             NestLoops& loops, BytesApart apart);

  void emit_constants() override;

 private:
  using SharedLabel = std::shared_ptr<Xbyak::Label>;

  bool has_narrow_codes() const { return code_bits_ == 4; }
  void emit_blocks_loop(Stores stores) override;
  void emit_bases();
  void emit_exponents(int group);
  void emit_wide_codes(const SharedLabel& exit);
  void emit_subnormal_codes(Xbyak::Label& exit);
  void emit_narrow_codes(int group);
  void emit_store(int group, Stores stores);
  Xbyak::Address bytes(int value);

  const size_t floats_;
  const size_t powers_;
  const int code_bits_;
  const BytesApart apart_;
  const PowerCodeTables tables_;
};

}  // namespace castor::jit
