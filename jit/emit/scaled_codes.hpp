// SPDX-License-Identifier: Apache-2.0
// Floats of 8 bits times scales as bf16, 64 codes at a time, without arithmetic on them: block
// formats and fp8 with scales (AVX512-VBMI).
//
// The products of a scale fill a table in a vector register: one f32 product, rounded to bf16, for
// each class of codes (code_words.hpp). A code's bytes are looked up as a word of 16 bits:
//
//   sign << 15 | exponent << 7 | number of the class's product in the table
//
// vpermw finds the product by the low bits of the word, and its sum with the word, from which the
// table has the number subtracted, is the result: the exponent and the sign add up. Scales for
// which a result could be below the normal numbers, or beyond the largest, are left to the lane
// program: they are compared first.
#pragma once

#include <vector>

#include "jit/emit/block_emitter.hpp"
#include "jit/emit/code_words.hpp"

namespace castor::jit {

/// Whether a nest's codes are scaled in this way: it wants VBMI, contiguous codes of 8 bits, and
/// for each row one scale, or one for each block of 32.
bool scales_codes(const Nest& nest, const NestForm& form, const Target& target);

class CodeScaler final : public BlockEmitter {
 public:
  /// The registers that have one meaning for the whole function, which LaneEmitter must leave
  /// alone.
  static constexpr uint32_t taken_vectors = 0xfffc0000;
  static constexpr uint32_t taken_masks = 0xc0;

  CodeScaler(const Nest& nest, const NestForm& form, Assembler& code, const Frame& frame,
             NestLoops& loops);

  void emit_constants() override;
  /// Does groups of 64 elements of a row with one scale, from gpr::index on, as many as are whole:
  /// none where the scale is out of range.
  void emit_row();

 private:
  const CodeClass* class_of_lane(int lane) const;
  std::vector<uint8_t> words_byte(int vector, int byte) const;
  std::vector<uint8_t> order_of_codes() const;
  template <class ValueOf>
  std::vector<uint8_t> table_constant(ValueOf value) const;
  void emit_row_loop(int groups, Stores stores);
  void emit_row_loops(Stores stores);
  void emit_blocks_loop(Stores stores) override;
  void emit_group(int group, Stores stores);
  void emit_words(int group);
  void emit_table(int first_block);
  void emit_half(int group, int half, Stores stores);

  const size_t codes_;
  const size_t scales_;
  const bool are_powers_;
  const CodeWords words_;
};

}  // namespace castor::jit
