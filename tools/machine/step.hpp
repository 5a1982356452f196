// SPDX-License-Identifier: Apache-2.0
// One vector or mask instruction carried out on a state: operands are read, the row's meaning runs,
// and its result is written under the writemask.
//
// A State has a Domain and gives and takes registers and memory:
//   Domain& domain();  Rounding rounding();
//   Vector<Domain> vector(int);  void set_vector(int, const Vector<Domain>&);
//   Mask<Domain> mask(int);      void set_mask(int, const Mask<Domain>&);
//   Bits general(ZydisRegister); Status set_general(ZydisRegister, Bits);
//   void set_flags(Bits zero, Bits carry);
//   Status load(operand, int offset, std::span<Byte>);   offset and size in bytes
//   Status store(operand, int offset, std::span<const Byte>);
#pragma once

#include <fmt/format.h>

#include "ir/support/result.hpp"
#include "tools/machine/meaning.hpp"

namespace castor::machine {

inline Error no_meaning(const ZydisDecodedInstruction& instruction, std::string_view why) {
  return {ErrorCode::unsupported,
          fmt::format("{}: {}", ZydisMnemonicGetString(instruction.mnemonic), why)};
}

template <class State>
class Stepper {
 public:
  using D = typename State::Domain;
  using Bits = typename D::Bits;
  using Byte = typename D::Byte;

  Stepper(State& state, const ZydisDecodedInstruction& instruction,
          const ZydisDecodedOperand* operands, const Row& row)
      : state_(state),
        domain_(state.domain()),
        instruction_(instruction),
        operands_(operands),
        row_(row),
        step_{.domain = domain_} {}

  Status run() {
    step_.vector_bits = std::max<int>(instruction_.avx.vector_length, 128);
    step_.rounding = rounding();
    step_.immediate = -1;
    step_.from.fill(zero_vector(domain_));
    step_.masks.fill(zero_mask(domain_));
    step_.old = step_.result = zero_vector(domain_);
    step_.result_mask = zero_mask(domain_);
    read_writemask();
    if (Status status = read_operands(); !status) return status;
    if (row_.admits != nullptr && !row_.admits(step_.immediate)) {
      return no_meaning(instruction_,
                        fmt::format("no meaning with immediate {:#x}", step_.immediate));
    }
    row_.template on<D>()(step_, row_);
    return write_result();
  }

 private:
  const ZydisDecodedOperand& to() const { return operands_[0]; }
  bool is_masked() const {
    const ZydisRegister mask = instruction_.avx.mask.reg;
    return mask != ZYDIS_REGISTER_NONE && mask != ZYDIS_REGISTER_K0;
  }
  bool zeroes() const { return instruction_.avx.mask.mode == ZYDIS_MASK_MODE_ZEROING; }

  Rounding rounding() const {
    switch (instruction_.avx.rounding.mode) {
      case ZYDIS_ROUNDING_MODE_RN: return Rounding::nearest_even;
      case ZYDIS_ROUNDING_MODE_RD: return Rounding::down;
      case ZYDIS_ROUNDING_MODE_RU: return Rounding::up;
      case ZYDIS_ROUNDING_MODE_RZ: return Rounding::toward_zero;
      default: return state_.rounding();
    }
  }

  void read_writemask() {
    if (is_masked()) {
      step_.writemask = state_.mask(ZydisRegisterGetId(instruction_.avx.mask.reg));
    } else {
      step_.writemask.fill(domain_.constant(1, 1));
    }
  }

  /// All that stand after the destination; instructions that set flags have none.
  Status read_operands() {
    int vectors = 0;
    int masks = 0;
    for (int i = 0; i < instruction_.operand_count_visible; ++i) {
      const ZydisDecodedOperand& operand = operands_[i];
      if (operand.encoding == ZYDIS_OPERAND_ENCODING_MASK) continue;
      if (i == 0 && row_.effect != Effect::flags) {
        read_destination();
      } else if (operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
        step_.immediate = static_cast<uint8_t>(operand.imm.value.u);
      } else if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) {
        if (Status status = read_memory(operand, vectors); !status) return status;
        const bool is_mask = row_.effect == Effect::mask && operand.size <= 64;
        if (is_mask) step_.masks[0] = mask_of(step_.general);
        ++vectors;
      } else if (ZydisRegisterGetClass(operand.reg.value) == ZYDIS_REGCLASS_MASK) {
        step_.masks[static_cast<size_t>(masks++)] =
            state_.mask(ZydisRegisterGetId(operand.reg.value));
      } else if (is_vector(operand.reg.value)) {
        step_.from[static_cast<size_t>(vectors++)] =
            state_.vector(ZydisRegisterGetId(operand.reg.value));
      } else {
        read_general(operand, vectors++);
        step_.masks[0] = mask_of(step_.general);
      }
    }
    return {};
  }

  static bool is_vector(ZydisRegister reg) {
    const ZydisRegisterClass type = ZydisRegisterGetClass(reg);
    return type == ZYDIS_REGCLASS_XMM || type == ZYDIS_REGCLASS_YMM || type == ZYDIS_REGCLASS_ZMM;
  }

  void read_destination() {
    if (to().type == ZYDIS_OPERAND_TYPE_REGISTER && is_vector(to().reg.value)) {
      step_.old = state_.vector(ZydisRegisterGetId(to().reg.value));
    }
  }

  void read_general(const ZydisDecodedOperand& operand, int index) {
    step_.general = state_.general(operand.reg.value);
    set_lane(domain_, step_.from[static_cast<size_t>(index)], 0, step_.general);
  }
  Mask<D> mask_of(Bits bits) {
    Mask<D> mask = zero_mask(domain_);
    for (int i = 0; i < D::width(bits); ++i) {
      mask[static_cast<size_t>(i)] = domain_.extract(bits, i, 1);
    }
    return mask;
  }
  bool is_surely_zero(const Bits& bit) const { return domain_.value_of(bit) == uint64_t{0}; }
  bool is_any_active() const {
    const int lanes = row_.lanes(step_.vector_bits);
    for (int i = 0; i < lanes; ++i) {
      if (!is_surely_zero(step_.writemask[static_cast<size_t>(i)])) return true;
    }
    return false;
  }

  /// The bit that says whether a lane of a memory operand is touched.
  Bits touches(int i) {
    if (row_.touched != Touched::by_vector) return step_.writemask[static_cast<size_t>(i)];
    return domain_.extract(step_.source(0, row_.bits, i), row_.bits - 1, 1);
  }

  Status read_memory(const ZydisDecodedOperand& operand, int index) {
    Vector<D>& vector = step_.from[static_cast<size_t>(index)];
    const bool repeats =
        instruction_.avx.broadcast.mode != 0 && !instruction_.avx.broadcast.is_static;
    const int bytes = repeats ? row_.source_bits / 8 : operand.size / 8;
    if (repeats || row_.touched == Touched::all) {
      if (!is_any_active()) {
        step_.general = domain_.constant(std::min(8 * bytes, 64), 0);
        return {};
      }
      const std::span<Byte> all(vector.data(), static_cast<size_t>(bytes));
      if (Status status = state_.load(operand, 0, all); !status) return status;
      if (repeats) repeat(vector, bytes);
    } else {
      const int lanes = row_.lanes(step_.vector_bits);
      const int lane_bytes = bytes / lanes;
      for (int i = 0; i < lanes; ++i) {
        if (is_surely_zero(touches(i))) continue;
        const std::span<Byte> lane(vector.data() + i * lane_bytes, static_cast<size_t>(lane_bytes));
        if (Status status = state_.load(operand, i * lane_bytes, lane); !status) return status;
      }
    }
    if (bytes <= 8) step_.general = domain_.join(vector.data(), bytes);
    return {};
  }
  void repeat(Vector<D>& vector, int bytes) {
    for (int i = bytes; i < step_.vector_bits / 8; ++i) {
      vector[static_cast<size_t>(i)] = vector[static_cast<size_t>(i % bytes)];
    }
  }

  Status write_result() {
    switch (row_.effect) {
      case Effect::flags: state_.set_flags(step_.zero_flag, step_.carry_flag); return {};
      case Effect::general: return write_bits(step_.result_general);
      case Effect::mask: return write_mask();
      case Effect::tile_product: return no_meaning(instruction_, "a tile's product is no vector's");
      case Effect::lanes:
      case Effect::all: break;
    }
    const auto end = step_.result.begin() + step_.vector_bits / 8;
    std::fill(end, step_.result.end(), domain_.byte(0));
    if (to().type == ZYDIS_OPERAND_TYPE_MEMORY) return write_memory();
    if (!is_vector(to().reg.value)) {
      return write_bits(lane(domain_, step_.result, to().size, 0));
    }
    if (row_.effect == Effect::all && is_masked() &&
        instruction_.avx.mask.mode == ZYDIS_MASK_MODE_MERGING) {
      return no_meaning(instruction_, "no meaning with a destination that is merged");
    }
    if (row_.effect == Effect::lanes && is_masked()) merge();
    state_.set_vector(ZydisRegisterGetId(to().reg.value), step_.result);
    return {};
  }

  void merge() {
    const int lanes = row_.result_lanes(step_.vector_bits);
    const Vector<D> computed = step_.result;
    const Vector<D> other = zeroes() ? zero_vector(domain_) : step_.old;
    for (int i = 0; i < lanes; ++i) {
      step_.choose(row_.bits, i, step_.writemask[static_cast<size_t>(i)], computed, other);
    }
  }

  Status write_mask() {
    if (is_masked()) {
      for (size_t i = 0; i < step_.result_mask.size(); ++i) {
        step_.result_mask[i] = domain_.bit_and(step_.result_mask[i], step_.writemask[i]);
      }
    }
    const bool is_register = to().type == ZYDIS_OPERAND_TYPE_REGISTER;
    if (is_register && ZydisRegisterGetClass(to().reg.value) == ZYDIS_REGCLASS_MASK) {
      state_.set_mask(ZydisRegisterGetId(to().reg.value), step_.result_mask);
      return {};
    }
    Bits bits = step_.result_mask[0];
    for (int i = 1; i < row_.bits; ++i) {
      bits = domain_.concat(step_.result_mask[static_cast<size_t>(i)], bits);
    }
    return write_bits(bits);
  }

  /// Writes to a general register, or to memory of the value's width.
  Status write_bits(Bits bits) {
    if (to().type == ZYDIS_OPERAND_TYPE_REGISTER) {
      const int width = std::max<int>(to().size, D::width(bits));
      return state_.set_general(to().reg.value, domain_.extend_zero(bits, width));
    }
    std::array<Byte, 8> bytes;
    domain_.split(bits, bytes.data());
    return state_.store(to(), 0, std::span(bytes).first(static_cast<size_t>(D::width(bits) / 8)));
  }

  Status write_memory() {
    const int bytes = to().size / 8;
    if (!is_masked() && row_.touched != Touched::by_vector) {
      return state_.store(to(), 0, std::span(step_.result).first(static_cast<size_t>(bytes)));
    }
    const int lanes = row_.result_lanes(step_.vector_bits);
    const int lane_bytes = bytes / lanes;
    for (int i = 0; i < lanes; ++i) {
      if (Status status = write_lane(i, lane_bytes); !status) return status;
    }
    return {};
  }
  /// A lane whose mask is a term keeps its old value where that is 0, and is touched all the same.
  Status write_lane(int i, int lane_bytes) {
    const Bits touched = touches(i);
    if (is_surely_zero(touched)) return {};
    const std::span<Byte> stored(step_.result.data() + i * lane_bytes,
                                 static_cast<size_t>(lane_bytes));
    if (!domain_.value_of(touched)) {
      std::array<Byte, 8> before;
      const std::span<Byte> old = std::span(before).first(stored.size());
      if (Status status = state_.load(to(), i * lane_bytes, old); !status) return status;
      const Bits value = domain_.select(touched, domain_.join(stored.data(), lane_bytes),
                                        domain_.join(old.data(), lane_bytes));
      domain_.split(value, stored.data());
    }
    return state_.store(to(), i * lane_bytes, stored);
  }

  State& state_;
  D& domain_;
  const ZydisDecodedInstruction& instruction_;
  const ZydisDecodedOperand* operands_;
  const Row& row_;
  Step<D> step_;
};

}  // namespace castor::machine
