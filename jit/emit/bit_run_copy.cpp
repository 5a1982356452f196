// SPDX-License-Identifier: Apache-2.0
// Eight elements are as many bytes as an element has bits, so that each eight begin at the same bit
// of a byte, and eight bytes from there hold all of them. pdep spreads them over eight bytes, pext
// gathers them. Where the first element is on top of its byte, they do so in numbers whose bytes
// are back to front. (AMD before Zen 3 takes many cycles for pdep and pext.)
#include "jit/emit/bit_run_copy.hpp"

#include "ir/types/storage.hpp"
#include "jit/emit/control_flow.hpp"

namespace castor::jit {

namespace {

using namespace copying;
using Xbyak::Reg64;

constexpr int eight = static_cast<int>(storage_group);  // elements, and bytes of a register

class BitRunCopy {
 public:
  BitRunCopy(Assembler& code, const Frame& frame, const WindowOperand& at)
      : code_(code),
        frame_(frame),
        at_(at),
        bits_(bits_of(at.element)),
        msb_first_(info(at.element).order == StorageOrder::msb_first) {}

  void emit_read();
  void emit_write();

 private:
  void emit_locate();
  void emit_locate_last();
  void emit_copy_to_stack();
  void emit_read_eight();
  void emit_keep_bits_before();
  void emit_gather();
  void emit_write_eight();
  void emit_store_eight(const Reg64& packed);
  void emit_append_tail();
  void emit_write_bytes();
  void emit_write_bits();

  Xbyak::Address in_window() const {
    return code_.qword[gpr::stack + offset + frame_.staging_offset(at_.operand)];
  }
  /// Eight bytes of the stack after the window.
  int stack_bytes() const { return frame_.staging_offset(at_.operand) + at_.window_elements; }
  uint64_t elements_mask() const {
    return ((uint64_t{1} << bits_) - 1) * uint64_t{0x0101010101010101};
  }
  int packed_bits() const { return eight * bits_; }

  Assembler& code_;
  const Frame& frame_;
  const WindowOperand& at_;
  const int bits_;
  const bool msb_first_;
};

/// next, bit = where the first element begins.
void BitRunCopy::emit_locate() {
  code_.imul(element, element, bits_);
  code_.mov(next, element);
  code_.shr(next, 3);
  code_.add(next, at_.base);
  code_.mov(bit.cvt32(), element.cvt32());
  code_.and_(bit.cvt32(), 7);
  code_.mov(mask, code_.constant_of(elements_mask()));
  code_.xor_(offset.cvt32(), offset.cvt32());
}

void BitRunCopy::emit_read() {
  emit_locate();
  emit_locate_last();
  code_.cmp(last, next);
  emit_unless(code_, Condition::greater_equal, [&] { emit_copy_to_stack(); });
  emit_loop_while(code_, Condition::greater, [&] { emit_read_eight(); });
}

/// last = the address of the eight bytes that end with the last element's byte.
void BitRunCopy::emit_locate_last() {
  code_.imul(last, count, bits_);
  code_.lea(last, code_.ptr[last + element + 7]);
  code_.shr(last, 3);
  code_.add(last, at_.base);
  code_.sub(last, eight);
}

/// Makes next and last the address of a copy of fewer than eight bytes, which has room for eight.
void BitRunCopy::emit_copy_to_stack() {
  code_.lea(more, code_.ptr[last + eight]);
  code_.sub(more, next);
  emit_loop_while(code_, Condition::not_equal, Jump::shortest, [&] {
    code_.mov(value.cvt8(), code_.ptr[next + more - 1]);
    code_.mov(code_.ptr[gpr::stack + more + (stack_bytes() - 1)], value.cvt8());
    code_.dec(more);
  });
  code_.lea(next, code_.ptr[gpr::stack + stack_bytes()]);
  code_.mov(last, next);
}

/// The flags are greater if there are more elements. Where eight bytes from the elements' first one
/// on would reach beyond the last element, `last` has them, too.
void BitRunCopy::emit_read_eight() {
  code_.mov(more, last);
  code_.cmp(next, last);
  code_.cmovl(more, next);
  code_.mov(value, next);
  code_.sub(value, more);
  code_.lea(value.cvt32(), code_.ptr[bit + value * 8]);
  code_.mov(more, code_.qword[more]);
  if (msb_first_) {
    code_.bswap(more);
    code_.shlx(more, more, value);
    code_.shr(more, 64 - packed_bits());
  } else {
    code_.shrx(more, more, value);
  }
  code_.pdep(more, more, mask);
  if (msb_first_) code_.bswap(more);
  code_.mov(in_window(), more);
  code_.add(offset, eight);
  code_.add(next, bits_);
  code_.sub(count, eight);
}

/// `more` has the bits that are to be stored at `next`: those that were there before the first
/// element, and what is left of elements. Their number is `bit`.
void BitRunCopy::emit_write() {
  emit_locate();
  emit_keep_bits_before();
  code_.sub(count, eight);
  emit_unless(code_, Condition::less, [&] {
    emit_loop_while(code_, Condition::greater_equal, [&] { emit_write_eight(); });
  });
  code_.add(count, eight);
  emit_append_tail();
  emit_write_bytes();
  emit_write_bits();
}

void BitRunCopy::emit_keep_bits_before() {
  code_.movzx(more.cvt32(), code_.byte[next]);
  if (!msb_first_) return code_.bzhi(more, more, bit);
  code_.mov(value.cvt32(), 8);
  code_.sub(value.cvt32(), bit.cvt32());
  code_.shrx(more, more, value);
}

/// value = the bits of eight elements.
void BitRunCopy::emit_gather() {
  code_.mov(value, in_window());
  if (msb_first_) code_.bswap(value);
  code_.pext(value, value, mask);
}

/// The flags are greater or equal if there are eight more elements.
void BitRunCopy::emit_write_eight() {
  emit_gather();
  if (msb_first_) {
    code_.shl(more, packed_bits());
    code_.or_(more, value);
    code_.shrx(value, more, bit);
    code_.bswap(value);
    code_.shr(value, 64 - packed_bits());
    emit_store_eight(value);
    code_.bzhi(more, more, bit);
  } else {
    code_.shlx(value, value, bit);
    code_.or_(more, value);
    emit_store_eight(more);
  }
  code_.add(offset, eight);
  code_.add(next, bits_);
  code_.sub(count, eight);
}

/// Stores the bytes that eight elements fill, and shifts them out.
void BitRunCopy::emit_store_eight(const Reg64& packed) {
  int stored = 0;
  for (const int bytes : {4, 2, 1}) {
    if ((bits_ & bytes) == 0) continue;
    const Xbyak::Address to = code_.ptr[next + stored];
    switch (bytes) {
      case 4: code_.mov(to, packed.cvt32()); break;
      case 2: code_.mov(to, packed.cvt16()); break;
      default: code_.mov(to, packed.cvt8()); break;
    }
    code_.shr(packed, 8 * bytes);
    stored += bytes;
  }
}

/// more, bit = all bits that are left, in the order of memory, and their number.
void BitRunCopy::emit_append_tail() {
  emit_gather();
  code_.imul(count, count, bits_);
  if (!msb_first_) {
    code_.bzhi(value, value, count);
    code_.shlx(value, value, bit);
    code_.or_(more, value);
    return code_.add(bit, count);
  }
  code_.mov(last.cvt32(), packed_bits());
  code_.sub(last, count);
  code_.shrx(value, value, last);
  code_.shlx(more, more, count);
  code_.or_(more, value);
  code_.add(bit, count);
  code_.mov(last.cvt32(), 64);
  code_.sub(last, bit);
  code_.shlx(more, more, last);
  code_.bswap(more);
}

void BitRunCopy::emit_write_bytes() {
  code_.sub(bit, 8);
  emit_unless(code_, Condition::less, Jump::shortest, [&] {
    emit_loop_while(code_, Condition::greater_equal, Jump::shortest, [&] {
      code_.mov(code_.ptr[next], more.cvt8());
      code_.shr(more, 8);
      code_.inc(next);
      code_.sub(bit, 8);
    });
  });
  code_.add(bit, 8);
}

/// The bits of a last byte that other elements share.
void BitRunCopy::emit_write_bits() {
  emit_unless(code_, Condition::equal, Jump::shortest, [&] {
    code_.movzx(value.cvt32(), code_.byte[next]);
    if (msb_first_) {
      code_.mov(last.cvt32(), 8);
      code_.sub(last.cvt32(), bit.cvt32());
      code_.bzhi(value, value, last);
    } else {
      code_.shrx(value, value, bit);
      code_.shlx(value, value, bit);
    }
    code_.or_(value.cvt32(), more.cvt32());
    code_.mov(code_.ptr[next], value.cvt8());
  });
}

}  // namespace

void emit_copy_run(Assembler& code, const Frame& frame, const WindowOperand& at, bool in) {
  BitRunCopy copy(code, frame, at);
  in ? copy.emit_read() : copy.emit_write();
}

}  // namespace castor::jit
