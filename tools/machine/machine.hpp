// SPDX-License-Identifier: Apache-2.0
// A machine that runs castor's code from entry to return, instruction by instruction, over either
// domain: with numbers it is an emulator of whole functions, with terms it says what each stored
// byte is. Vector, mask and tile instructions do what the table says; of the others it has what
// castor emits. Branches depend on numbers only.
#pragma once

#include <optional>

#include "jit/code.hpp"
#include "jit/listing/decoder.hpp"
#include "tools/machine/scalar.hpp"
#include "tools/machine/step.hpp"
#include "tools/machine/tiles.hpp"

namespace castor::machine {

template <class D>
class Machine {
 public:
  using Domain = D;
  using Bits = typename D::Bits;
  using Byte = typename D::Byte;

  /// Fails where the code does not decode.
  static Result<Machine> create(D& domain, const jit::MachineCode& code);
  /// A function of this process, given by its instructions and the address that their offsets count
  /// from: what it touches is memory of the process. For numbers alone.
  static Machine of_process(D& domain, std::vector<jit::DecodedInstruction> program,
                            uint64_t address);

  Memory<D>& memory() { return memory_; }
  const Memory<D>& memory() const { return memory_; }
  const std::vector<jit::DecodedInstruction>& program() const { return program_; }

  /// What a caller leaves in registers: the general ones by their numbers in instructions.
  struct Entry {
    std::array<uint64_t, 16> general;
    uint32_t mxcsr;
  };
  /// Ready to run the function from there; its return address is pushed. Vectors are unknown.
  void begin(const Entry& entry);
  /// With that argument, and MXCSR not as kernels want it.
  void begin(uint64_t argument);
  bool is_done() const { return is_done_; }
  /// Offset of the next instruction.
  uint32_t offset() const { return program_[next_].offset; }
  void jump(uint32_t offset);
  /// Fails, naming the instruction, where it has no meaning, touches other memory, or branches on
  /// data.
  Status step();
  /// Whether the next instruction jumps, where that is data: a bit of the domain.
  std::optional<Bits> jump_on_data() const;
  /// Carries out such a jump, or goes on after it.
  void decide_jump(bool is_taken);
  /// Whether both are at one instruction, or have returned, with the same MXCSR.
  bool is_at_same_point(const Machine& other) const {
    return next_ == other.next_ && is_done_ == other.is_done_ && mxcsr_ == other.mxcsr_;
  }
  /// Becomes the other's state, at the same point, where the bit `is_own` is 0. Numbers that
  /// differ become data.
  void merge(const Machine& other, const Bits& is_own);
  /// What callers want of the state at a return.
  Status check_return() const;
  /// Steps to the return, or to where `stops` says of an offset; after `most` instructions it
  /// fails.
  template <class Stops>
  Status run(Stops stops, int64_t most = 20'000'000) {
    for (int64_t count = 0; !is_done_; ++count) {
      if (count == most) return Error{ErrorCode::internal, "the code does not return"};
      if (Status status = step(); !status) return status;
      if (!is_done_ && stops(offset())) return {};
    }
    return check_return();
  }
  Status run() {
    return run([](uint32_t) { return false; });
  }

  // Registers, as Stepper wants them.
  D& domain() { return *domain_; }
  Rounding rounding() const;
  const Vector<D>& vector(int index) const { return vectors_[static_cast<size_t>(index)]; }
  void set_vector(int index, const Vector<D>& value) {
    vectors_[static_cast<size_t>(index)] = value;
  }
  const Mask<D>& mask(int index) const { return masks_[static_cast<size_t>(index)]; }
  void set_mask(int index, const Mask<D>& value) { masks_[static_cast<size_t>(index)] = value; }
  Bits general(ZydisRegister reg);
  Status set_general(ZydisRegister reg, Bits bits);
  void set_flags(Bits zero, Bits carry);
  Status load(const ZydisDecodedOperand& operand, int offset, std::span<Byte> to);
  Status store(const ZydisDecodedOperand& operand, int offset, std::span<const Byte> from);

  const Scalar<D>& register_at(int id) const { return general_[static_cast<size_t>(id)]; }
  void set_register(int id, Scalar<D> value) { general_[static_cast<size_t>(id)] = value; }

  /// From here on, numbers may grow with several indices at once, each of which may be any. Those
  /// with one of these slopes are counts: where they move away from 0, they are not 0. Parts of
  /// what grows are unknown.
  void grow_independently(std::vector<int64_t> slopes_of_counts) {
    slopes_of_counts_ = std::move(slopes_of_counts);
  }

  void forget_flags() {
    flags_ = {};
    zero_on_data_.reset();
    carry_on_data_.reset();
  }

  static constexpr uint64_t code_base = 0x4000'0000;
  static constexpr uint64_t stack_base = 0x7000'0000;
  static constexpr size_t stack_bytes = size_t{32} << 10;

 private:
  using Operand = ZydisDecodedOperand;

  Machine(D& domain, std::vector<jit::DecodedInstruction> program);
  const jit::DecodedInstruction& now() const { return *now_; }
  Status carry_out();
  Status scalar();
  Status tile(const Row* row);
  Scalar<D> merged(const Scalar<D>& own, const Scalar<D>& its, const Bits& is_own);
  Error unknown(std::string_view why) const;

  /// An address, to which data may add `scale` times an index of few bits.
  struct Address {
    Word word;
    std::optional<Bits> index;
    uint64_t scale = 1;
  };

  // Addresses and operands.
  Result<Address> indexed_address_of(const Operand& operand) const;
  Result<Word> address_of(const Operand& operand) const;
  Status load_entry(const Address& entries, std::span<Byte> to);
  Result<Scalar<D>> read(const Operand& operand);
  Result<Scalar<D>> read_memory(const Operand& operand);
  Flags flags_of_result(const Scalar<D>& result, bool is_logic) const;
  /// The value's bits; unknown ones where numbers grow independently, and this one does.
  Bits bits_of(const Scalar<D>& value) const;
  Scalar<D> read_register(ZydisRegister reg) const;
  Status write(const Operand& operand, const Scalar<D>& value);
  void write_register(ZydisRegister reg, const Scalar<D>& value);
  Status push(const Scalar<D>& value);
  Result<Scalar<D>> pop();

  // Families of instructions.
  Status move();
  Status arithmetic();
  Status swap_bytes();
  Status multiply();
  Status divide();
  Status x87();
  Status branch();
  Status call();
  Status return_();
  Status conditional_move();
  Status mxcsr(bool loads);
  Result<Scalar<D>> combined(const Scalar<D>& a, const Scalar<D>& b);
  std::optional<Word> combined_words(const Scalar<D>& a, const Scalar<D>& b) const;
  std::optional<Bits> combined_data(Bits a, Bits b);
  Bits extracted_data(Bits a, uint64_t mask);
  Bits deposited_data(Bits a, uint64_t mask);

  // Tiles.
  Status load_tile_config(const Operand& operand);
  Status store_tile_config(const Operand& operand);
  Status move_tile(const Operand& tile, const Operand& memory, bool loads);

  D* domain_;
  std::vector<jit::DecodedInstruction> program_;
  uint64_t code_base_ = code_base;
  const jit::DecodedInstruction* now_ = nullptr;
  size_t next_ = 0;
  bool is_done_ = false;
  std::optional<std::vector<int64_t>> slopes_of_counts_;  ///< none: there is one index
  Memory<D> memory_;
  std::array<Vector<D>, 32> vectors_{};
  std::array<Mask<D>, 8> masks_{};
  std::array<Scalar<D>, 16> general_{};
  std::array<Scalar<D>, 16> at_entry_{};
  Flags flags_;
  /// ZF and CF as the last vector or mask instruction has set them, until a scalar one.
  std::optional<Bits> zero_on_data_;
  std::optional<Bits> carry_on_data_;
  std::vector<double> x87_;  ///< the last one is ST(0)
  uint32_t mxcsr_ = 0;
  uint32_t mxcsr_at_entry_ = 0;
  TileConfigBytes tile_config_{};
  std::array<Tile<D>, tile_count> tiles_{};
};

}  // namespace castor::machine
