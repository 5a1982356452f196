// SPDX-License-Identifier: Apache-2.0
// Whatever the distance, every n-th element begins at the same bit of a byte, n being
// aligned_elements, and these are a constant number of bytes apart. So elements are copied in n
// passes, each with a shift of its own; in the split layouts, whose groups have n elements, each
// with a mask of its own for a group's three bytes. Where the distance is a multiple of n, as in
// most transposed matrices, one pass does all. (In the split layouts pext and pdep do one element,
// for which AMD before Zen 3 takes many cycles.)
#include "jit/emit/bit_element_copy.hpp"

#include <bit>

#include "ir/types/storage.hpp"
#include "jit/emit/bit_fields.hpp"
#include "jit/emit/control_flow.hpp"
#include "jit/emit/shifted_window.hpp"

namespace castor::jit {

namespace {

using namespace copying;

const Xbyak::Reg64& step = last;    ///< bytes from an element of a pass to the next
const Xbyak::Reg64& step_3 = more;  ///< three of them
const Xbyak::Reg64& end = count;    ///< after the window's elements

/// The bits of each element of a group, in the number that the group's bytes are.
std::array<uint32_t, storage_group> masks_of(ElementType type) {
  std::array<uint32_t, storage_group> masks = {};
  for (int i = 0; i < static_cast<int>(aligned_elements(type)); ++i) {
    for (const BitField& field : bit_fields(type)) {
      masks[static_cast<size_t>(i)] |= ((1u << field.width) - 1) << field_position(type, field, i);
    }
  }
  return masks;
}

class ElementCopy {
 public:
  ElementCopy(Assembler& code, const Frame& frame, const WindowOperand& at, bool in, int passes)
      : code_(code),
        frame_(frame),
        at_(at),
        in_(in),
        bits_(bits_of(at.element)),
        passes_(passes),
        is_split_(!is_bit_string(at.element)),
        straddles_(!is_split_ && 8 % bits_ != 0),
        block_elements_(straddles_ ? 4 : 8),
        stride_(in || is_split_ ? 1 : 2) {}

  void emit();

 private:
  void emit_locate();
  void emit_locate_group();
  void emit_pass();
  void emit_elements(bool straddle);
  void emit_block(bool straddle);
  void emit_element(const Xbyak::RegExp& memory, const Xbyak::RegExp& window, bool straddle);
  void emit_read(const Xbyak::Address& memory, const Xbyak::RegExp& window);
  void emit_write(const Xbyak::Address& memory, const Xbyak::RegExp& shifted, bool straddle);
  void emit_read_of_group(const Xbyak::RegExp& group, const Xbyak::RegExp& window);
  void emit_write_of_group(const Xbyak::RegExp& group, const Xbyak::RegExp& window);

  uint32_t element_mask() const { return (1u << bits_) - 1; }

  Assembler& code_;
  const Frame& frame_;
  const WindowOperand& at_;
  const bool in_;
  const int bits_;
  const int passes_;
  const bool is_split_;
  const bool straddles_;      ///< some elements straddle two bytes
  const int block_elements_;  ///< fewer where there are two loops of them
  const int stride_;          ///< bytes of the window that an element takes
};

/// Copies every n-th element, from the first one on, then from the second, and so on.
void ElementCopy::emit() {
  const int begin = frame_.staging_offset(at_.operand) + (stride_ > 1 ? at_.window_elements : 0);
  code_.imul(step, at_.step, passes_ * bits_);
  code_.shr(step, 3);
  code_.lea(first, code_.ptr[gpr::stack + begin]);
  code_.lea(end, code_.ptr[first + count * stride_]);
  if (passes_ == 1) return emit_pass();
  emit_loop_until_exit(code_, [&](Xbyak::Label& exit) {
    emit_pass();
    code_.add(element, at_.step);
    code_.add(first, stride_);
    code_.lea(value, code_.ptr[gpr::stack + (begin + passes_ * stride_)]);
    code_.cmp(first, value);
    emit_jump_if(code_, Condition::equal, exit);
    code_.cmp(first, end);
    emit_jump_if(code_, Condition::greater_equal, exit);
  });
}

/// next, bit = where the pass's first element begins; mask = all other bits of its bytes.
void ElementCopy::emit_locate() {
  code_.imul(next, element, bits_);
  code_.mov(bit.cvt32(), next.cvt32());
  code_.shr(next, 3);
  code_.add(next, at_.base);
  code_.and_(bit.cvt32(), 7);
  if (info(at_.element).order == StorageOrder::msb_first) code_.xor_(bit.cvt32(), 8 - bits_);
  if (in_) return;
  code_.mov(mask.cvt32(), element_mask());
  code_.shlx(mask.cvt32(), mask.cvt32(), bit.cvt32());
  code_.not_(mask.cvt32());
}

/// next, mask = the group of the pass's first element, and the element's bits there.
void ElementCopy::emit_locate_group() {
  code_.lea(more, code_.constant_of(masks_of(at_.element)));
  code_.mov(next, element);
  const auto group = static_cast<unsigned>(aligned_elements(at_.element));
  code_.and_(next.cvt32(), group - 1);
  code_.mov(mask.cvt32(), code_.dword[more + next * 4]);
  code_.mov(next, element);
  code_.shr(next, std::countr_zero(group));
  code_.lea(next, code_.ptr[next + next * 2]);
  code_.add(next, at_.base);
}

void ElementCopy::emit_pass() {
  is_split_ ? emit_locate_group() : emit_locate();
  if (!straddles_) return emit_elements(false);
  Xbyak::Label done;
  code_.cmp(bit.cvt32(), 8 - bits_);
  emit_unless(code_, Condition::less_equal, [&] {
    emit_elements(true);
    code_.jmp(done, Xbyak::CodeGenerator::T_NEAR);
  });
  emit_elements(false);
  code_.L(done);
}

/// The elements of a pass: a block at a time while there are that many, then one by one.
void ElementCopy::emit_elements(bool straddle) {
  const int next_element = passes_ * stride_;
  const auto emit_compare = [&] {
    code_.lea(value, code_.ptr[offset + (block_elements_ - 1) * next_element]);
    code_.cmp(value, end);
  };
  code_.mov(offset, first);
  code_.lea(step_3, code_.ptr[step + step * 2]);
  emit_compare();
  emit_unless(code_, Condition::greater_equal, [&] {
    code_.align_to(32);
    emit_loop_while(code_, Condition::less, [&] {
      emit_block(straddle);
      emit_compare();
    });
  });
  code_.cmp(offset, end);
  emit_unless(code_, Condition::greater_equal, [&] {
    emit_loop_while(code_, Condition::less, Jump::shortest, [&] {
      emit_element(next, offset, straddle);
      code_.add(next, step);
      code_.add(offset, next_element);
      code_.cmp(offset, end);
    });
  });
}

void ElementCopy::emit_block(bool straddle) {
  const int next_element = passes_ * stride_;
  const Xbyak::RegExp ahead[] = {next, next + step, next + step * 2, next + step_3};
  for (int i = 0; i < block_elements_; ++i) {
    emit_element(ahead[i % 4], offset + i * next_element, straddle);
    if (i % 4 == 3) code_.lea(next, code_.ptr[next + step * 4]);
  }
  code_.add(offset, block_elements_ * next_element);
}

/// `straddle`: the element straddles two bytes.
void ElementCopy::emit_element(const Xbyak::RegExp& memory, const Xbyak::RegExp& window,
                               bool straddle) {
  if (is_split_)
    return in_ ? emit_read_of_group(memory, window) : emit_write_of_group(memory, window);
  const Xbyak::Address bytes = straddle ? code_.word[memory] : code_.byte[memory];
  in_ ? emit_read(bytes, window) : emit_write(bytes, window, straddle);
}

void ElementCopy::emit_read(const Xbyak::Address& memory, const Xbyak::RegExp& window) {
  code_.movzx(value.cvt32(), memory);
  code_.shrx(value.cvt32(), value.cvt32(), bit.cvt32());
  code_.and_(value.cvt32(), element_mask());
  code_.mov(code_.byte[window], value.cvt8());
}

/// All other bits of memory stay as they are. `shifted`: a word of the shifted window.
void ElementCopy::emit_write(const Xbyak::Address& memory, const Xbyak::RegExp& shifted,
                             bool straddle) {
  code_.movzx(value.cvt32(), memory);
  code_.and_(value.cvt32(), mask.cvt32());
  if (straddle) {
    code_.or_(value.cvt16(), code_.word[shifted]);
    return code_.mov(memory, value.cvt16());
  }
  code_.or_(value.cvt8(), code_.byte[shifted]);
  code_.mov(memory, value.cvt8());
}

void ElementCopy::emit_read_of_group(const Xbyak::RegExp& group, const Xbyak::RegExp& window) {
  code_.movzx(value.cvt32(), code_.word[group]);
  code_.movzx(before.cvt32(), code_.byte[group + 2]);
  code_.shl(before.cvt32(), 16);
  code_.or_(value.cvt32(), before.cvt32());
  code_.pext(value.cvt32(), value.cvt32(), mask.cvt32());
  code_.mov(code_.byte[window], value.cvt8());
}

/// (The group's other elements are written as they were.)
void ElementCopy::emit_write_of_group(const Xbyak::RegExp& group, const Xbyak::RegExp& window) {
  code_.movzx(before.cvt32(), code_.byte[group + 2]);
  code_.shl(before.cvt32(), 16);
  code_.or_(before.cvt16(), code_.word[group]);
  code_.andn(before.cvt32(), mask.cvt32(), before.cvt32());
  code_.movzx(value.cvt32(), code_.byte[window]);
  code_.pdep(value.cvt32(), value.cvt32(), mask.cvt32());
  code_.or_(value.cvt32(), before.cvt32());
  code_.mov(code_.word[group], value.cvt16());
  code_.shr(value.cvt32(), 16);
  code_.mov(code_.byte[group + 2], value.cvt8());
}

}  // namespace

void emit_copy_elements(LaneEmitter& emitter, const Frame& frame, const WindowOperand& at,
                        bool in) {
  Assembler& code = emitter.code();
  if (!in && is_bit_string(at.element)) emit_shift_window(emitter, frame, at);
  const int passes = static_cast<int>(aligned_elements(at.element));
  Xbyak::Label done;
  code.mov(value, at.step);
  code.test(value.cvt32(), passes - 1);
  emit_unless(code, Condition::not_equal, [&] {
    ElementCopy(code, frame, at, in, 1).emit();
    code.jmp(done, Xbyak::CodeGenerator::T_NEAR);
  });
  ElementCopy(code, frame, at, in, passes).emit();
  code.L(done);
}

}  // namespace castor::jit
