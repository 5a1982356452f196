// SPDX-License-Identifier: Apache-2.0
// Floats of 4 bits times scales as bf16, 128 codes at a time, without arithmetic on them: MXFP4 and
// NVFP4 (AVX512-VBMI).
//
// The 16 results that a scale has fill half a vector of words, and vpermw looks codes up in it. A
// power of two adds its exponent to the words of the codes; for other scales one product, rounded
// to bf16, for each significand of the format is looked up first (code_words.hpp). Codes come to
// the words that look them up in two steps: vpermb brings each 16 bits of them to the quarter of
// the vector that its results are in, and vpmultishiftqb cuts a quarter's codes out of them. What
// is above a code in its word does not matter where one scale fills the vector, and is replaced by
// the number of the half where there are two.
//
// Scales for which a result could be below the normal numbers or beyond the largest are left to the
// lane program: they are compared first.
#pragma once

#include <vector>

#include "jit/emit/block_emitter.hpp"
#include "jit/emit/code_words.hpp"

namespace castor::jit {

/// Whether a nest's codes are scaled in this way: it wants VBMI, contiguous codes of 4 bits, one
/// scale for each block of 16 or 32, and at most two significands (f4e2m1).
bool scales_nibbles(const Nest& nest, const NestForm& form, const Target& target);

class NibbleScaler final : public BlockEmitter {
 public:
  /// The registers that have one meaning for the whole function, which LaneEmitter must leave
  /// alone.
  static constexpr uint32_t taken_vectors = 0xfffff000;
  static constexpr uint32_t taken_masks = 0xe0;

  NibbleScaler(const Nest& nest, const NestForm& form, Assembler& code, const Frame& frame,
               NestLoops& loops);

  void emit_constants() override;

 private:
  int scales_of_vector() const { return vector_elements / block_; }
  int scales_of_group() const { return group_elements / block_; }
  template <class ValueOf>
  std::vector<uint8_t> words_constant(ValueOf value) const;
  std::vector<uint8_t> lanes_by_code(int vector) const;
  std::vector<uint8_t> exponents_by_code(int group, int vector) const;
  void emit_blocks_loop(Stores stores) override;
  void emit_group(int group, Stores stores);
  void emit_load_scales();
  void emit_products(int group);
  void emit_table(int group, int vector);

  static constexpr int vector_elements = 32;
  static constexpr int group_elements = 128;

  const size_t codes_;
  const size_t scales_;
  const bool are_powers_;
  const CodeWords words_;
};

}  // namespace castor::jit
