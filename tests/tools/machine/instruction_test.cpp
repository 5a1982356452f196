// SPDX-License-Identifier: Apache-2.0
// The table of instructions against the CPU: each form that castor emits is run on random and
// boundary inputs, and carried out by its row's meaning on numbers. --long: a million lanes a form.
#include <gtest/gtest.h>
#include <xbyak/xbyak.h>

#include <cstring>
#include <random>

#include "jit/listing/listing.hpp"
#include "tests/support/instruction_forms.hpp"
#include "tests/support/kernel_code.hpp"
#include "tests/support/long_form.hpp"
#include "tools/emulator/emulator.hpp"
#include "tools/machine/step.hpp"

namespace castor::test {
namespace {

using machine::Mask;
using machine::Number;
using machine::Numbers;
using machine::Vector;

constexpr int vectors = 4;
constexpr int masks = 8;

/// What a form reads and writes: vectors from FormRegisters::first_vector on.
struct alignas(64) Registers {
  std::array<std::array<uint8_t, 64>, vectors> zmm;
  alignas(64) std::array<uint8_t, 64> memory;  ///< at FormRegisters::memory_offset
  std::array<uint64_t, masks> opmasks;
  uint64_t rcx;
  uint8_t zero_flag;
  uint8_t carry_flag;
};
static_assert(offsetof(Registers, memory) == FormRegisters::memory_offset);

/// The CPU's side: loads all registers, runs one instruction, stores them.
class Runner : public Xbyak::CodeGenerator {
 public:
  explicit Runner(const InstructionForm& form) {
    using namespace Xbyak::util;
    for (int i = 0; i < vectors; ++i) vmovdqu64(zmm_at(i), ptr[rdi + 64 * i]);
    for (int i = 0; i < masks; ++i) kmovq(Xbyak::Opmask(i), ptr[rdi + opmask_offset(i)]);
    mov(rcx, ptr[rdi + offsetof(Registers, rcx)]);
    db(form.bytes.data(), form.bytes.size());
    setz(ptr[rdi + offsetof(Registers, zero_flag)]);
    setc(ptr[rdi + offsetof(Registers, carry_flag)]);
    mov(ptr[rdi + offsetof(Registers, rcx)], rcx);
    for (int i = 0; i < vectors; ++i) vmovdqu64(ptr[rdi + 64 * i], zmm_at(i));
    for (int i = 0; i < masks; ++i) kmovq(ptr[rdi + opmask_offset(i)], Xbyak::Opmask(i));
    vzeroupper();
    ret();
  }
  void run(Registers& registers) { getCode<void (*)(Registers*)>()(&registers); }

 private:
  static Xbyak::Zmm zmm_at(int i) { return Xbyak::Zmm(FormRegisters::first_vector + i); }
  static size_t opmask_offset(int i) {
    return offsetof(Registers, opmasks) + 8 * static_cast<size_t>(i);
  }
};

/// The table's side: a state of Registers for machine::Stepper.
class NumberState {
 public:
  using Domain = Numbers;

  explicit NumberState(Registers& registers) : registers_(registers) {}

  Numbers& domain() { return domain_; }
  static machine::Rounding rounding() { return machine::Rounding::nearest_even; }
  Vector<Numbers> vector(int i) {
    return registers_.zmm[static_cast<size_t>(i - FormRegisters::first_vector)];
  }
  void set_vector(int i, const Vector<Numbers>& value) {
    registers_.zmm[static_cast<size_t>(i - FormRegisters::first_vector)] = value;
  }
  Mask<Numbers> mask(int i) {
    Mask<Numbers> mask;
    for (size_t k = 0; k < mask.size(); ++k) {
      mask[k] = {registers_.opmasks[static_cast<size_t>(i)] >> k & 1, 1};
    }
    return mask;
  }
  void set_mask(int i, const Mask<Numbers>& mask) {
    uint64_t& bits = registers_.opmasks[static_cast<size_t>(i)];
    bits = 0;
    for (size_t k = 0; k < mask.size(); ++k) bits |= mask[k].value << k;
  }
  Number general(ZydisRegister reg) {
    const int width = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg);
    return Numbers::constant(width, registers_.rcx);
  }
  Status set_general(ZydisRegister, Number value) {
    registers_.rcx = value.value;
    return {};
  }
  void set_flags(Number zero, Number carry) {
    registers_.zero_flag = static_cast<uint8_t>(zero.value);
    registers_.carry_flag = static_cast<uint8_t>(carry.value);
  }
  Status load(const ZydisDecodedOperand&, int offset, std::span<uint8_t> bytes) {
    std::memcpy(bytes.data(), registers_.memory.data() + offset, bytes.size());
    return {};
  }
  Status store(const ZydisDecodedOperand&, int offset, std::span<const uint8_t> bytes) {
    std::memcpy(registers_.memory.data() + offset, bytes.data(), bytes.size());
    return {};
  }

 private:
  Registers& registers_;
  Numbers domain_;
};

// ---- inputs

constexpr uint16_t halves[] = {0,      0x8000, 1,      0x8001, 0x03ff, 0x0400, 0x3800,
                               0x3c00, 0xbc00, 0x6400, 0x77ff, 0x7800, 0x7bff, 0x7c00,
                               0xfc00, 0x7e00, 0xfe00, 0x7c01, 0xfd01, 0x3555};
constexpr uint32_t singles[] = {
    0,          0x80000000, 1,          0x007fffff, 0x00800000, 0x33000000, 0x38800000, 0x3effffff,
    0x3f000000, 0x3f800000, 0xbf800000, 0x3fc00000, 0x40200000, 0x477fefff, 0x477ff000, 0x4b000000,
    0x4effffff, 0x4f000000, 0xcf000000, 0x4f800000, 0x5f000000, 0x5f800000, 0x7f7fffff, 0x7f800000,
    0xff800000, 0x7fc00000, 0xffc12345, 0x7f812345, 0xffa00000};
constexpr uint64_t doubles[] = {0,
                                0x8000000000000000,
                                1,
                                0x000fffffffffffff,
                                0x3fe0000000000000,
                                0x3ff0000000000000,
                                0xbff8000000000000,
                                0x4004000000000000,
                                0x40efffffffffffff,
                                0x41dfffffffc00000,
                                0x41e0000000000000,
                                0xc1e0000000200000,
                                0x41efffffffe00000,
                                0x43dfffffffffffff,
                                0x43e0000000000000,
                                0xc3e0000000000000,
                                0x43f0000000000000,
                                0x47efffffffffffff,
                                0x36a0000000000000,
                                0x7fefffffffffffff,
                                0x7ff0000000000000,
                                0xfff0000000000000,
                                0x7ff8000000000000,
                                0x7ff0000000000001,
                                0xfff4123412341234};

/// Bits of one width that are special to integers or floats, or that have any length.
uint64_t drawn_lane(int bits, std::mt19937_64& random) {
  const uint64_t any = random();
  switch (any % 8) {
    case 0:
      return bits == 16   ? halves[random() % std::size(halves)]
             : bits == 32 ? singles[random() % std::size(singles)]
             : bits == 64 ? doubles[random() % std::size(doubles)]
                          : random();
    case 1: return uint64_t{1} << random() % 64;
    case 2: return (uint64_t{1} << random() % 64) - 1;
    case 3: return ~(random() >> random() % 64);
    case 4: return random() >> random() % 64;
    case 5: {  // a float of a middling exponent
      if (bits == 16) return (random() & 0x87ff) | (12 + random() % 8) << 10;
      if (bits == 32) return (random() & 0x807fffff) | (96 + random() % 68) << 23;
      return (random() & 0x800fffffffffffff) | (980 + random() % 120) << 52;
    }
    default: return random();
  }
}

void draw(std::array<uint8_t, 64>& bytes, std::mt19937_64& random) {
  constexpr int widths[] = {8, 16, 32, 64};
  const int bits = widths[random() % 4];
  for (int i = 0; i < 512 / bits; ++i) {
    const uint64_t lane = drawn_lane(bits, random);
    std::memcpy(bytes.data() + i * bits / 8, &lane, static_cast<size_t>(bits) / 8);
  }
}

void draw(Registers& registers, std::mt19937_64& random) {
  for (auto& vector : registers.zmm) draw(vector, random);
  if (random() % 8 == 0) registers.zmm[1] = registers.zmm[2];
  draw(registers.memory, random);
  for (uint64_t& mask : registers.opmasks) mask = random() % 4 == 0 ? ~uint64_t{0} : random();
  if (random() % 4 == 0) registers.opmasks[2] = ~registers.opmasks[1];
  registers.rcx = random() >> random() % 64;
}

// ---- comparison

struct Decoded {
  ZydisDecodedInstruction instruction;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
};
Decoded decoded(const InstructionForm& form) {
  Decoded decoded;
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  ZydisDecoderDecodeFull(&decoder, form.bytes.data(), form.bytes.size(), &decoded.instruction,
                         decoded.operands.data());
  return decoded;
}

std::string difference(const Registers& cpu, const Registers& table) {
  for (size_t v = 0; v < vectors; ++v) {
    for (size_t i = 0; i < 64; ++i) {
      if (cpu.zmm[v][i] == table.zmm[v][i]) continue;
      return fmt::format("vector {}, byte {}: the CPU gives {:#x}, the table {:#x}", v, i,
                         cpu.zmm[v][i], table.zmm[v][i]);
    }
  }
  for (size_t i = 0; i < masks; ++i) {
    if (cpu.opmasks[i] != table.opmasks[i]) {
      return fmt::format("k{}: {:#x}, {:#x}", i, cpu.opmasks[i], table.opmasks[i]);
    }
  }
  if (cpu.memory != table.memory) return "memory";
  if (cpu.rcx != table.rcx) return fmt::format("rcx: {:#x}, {:#x}", cpu.rcx, table.rcx);
  return "";
}

std::string input_text(const Registers& registers) {
  std::string text;
  for (const auto& vector : registers.zmm) {
    for (size_t i = 64; i-- > 0;) text += fmt::format("{:02x}", vector[i]);
    text += '\n';
  }
  return text + fmt::format("k5 {:#x}", registers.opmasks[FormRegisters::writemask]);
}

/// Whether the CPU itself, not an emulator, has the form's instruction.
bool cpu_has(const InstructionForm& form) {
  jit::MachineCode code;
  for (const uint8_t byte : form.bytes) code.bytes.push_back(static_cast<std::byte>(byte));
  code.instruction_bytes = static_cast<uint32_t>(code.bytes.size());
  return std::ranges::any_of(all_tiers, [&](jit::Tier tier) {
    return jit::host().runs(tier) && !jit::host().emulates(tier) &&
           jit::check_features(code, jit::Target{tier}).ok();
  });
}

/// Runs until that many lanes are compared.
void compare(const InstructionForm& form, const machine::Row& row, const Decoded& instruction,
             int64_t lanes) {
  Runner runner(form);
  std::mt19937_64 random(1);
  const int64_t of_one =
      std::max(row.lanes(std::max<int>(128, instruction.instruction.avx.vector_length)), 1);
  for (int64_t done = 0; done < lanes; done += of_one) {
    Registers before = {};
    draw(before, random);
    Registers cpu = before;
    runner.run(cpu);
    Registers table = before;
    NumberState state(table);
    const Status status =
        machine::Stepper(state, instruction.instruction, instruction.operands.data(), row).run();
    ASSERT_TRUE(status.ok()) << form.text << ": " << status.error().message;
    if (row.effect != machine::Effect::flags) {
      cpu.zero_flag = table.zero_flag;
      cpu.carry_flag = table.carry_flag;
    }
    const std::string found = difference(cpu, table);
    ASSERT_EQ(found, "") << form.text << " after " << done << " lanes\n" << input_text(before);
    ASSERT_EQ(cpu.zero_flag, table.zero_flag) << form.text;
    ASSERT_EQ(cpu.carry_flag, table.carry_flag) << form.text;
  }
}

const InstructionForms& emitted_forms() {
  static const InstructionForms forms = [] {
    auto made = forms_that_castor_emits();
    EXPECT_TRUE(made.ok()) << made.error().message;
    return made.ok() ? std::move(made).value() : InstructionForms();
  }();
  return forms;
}

TEST(Instructions, HaveMeaningsInEveryFormThatCastorEmits) {
  const auto& forms = emitted_forms().all();
  ASSERT_GT(forms.size(), 300u);
  std::set<int> mnemonics;
  std::set<const machine::Row*> used;
  for (const auto& [text, form] : forms) {
    if (form.bytes.empty()) continue;  // a tile instruction
    const Decoded instruction = decoded(form);
    mnemonics.insert(instruction.instruction.mnemonic);
    used.insert(machine::row_of(instruction.instruction, instruction.operands.data()));
    EXPECT_NE(machine::row_of(instruction.instruction, instruction.operands.data()), nullptr)
        << text;
  }
  for (const machine::Row* row : machine::all_rows()) {
    const bool is_tile = row->effect == machine::Effect::tile_product;
    EXPECT_TRUE(is_tile || used.contains(row))
        << "no form has the row of " << ZydisMnemonicGetString(row->mnemonic);
  }
  RecordProperty("forms", static_cast<int>(forms.size()));
  RecordProperty("mnemonics", static_cast<int>(mnemonics.size()));
  fmt::print("{} forms of {} mnemonics\n", forms.size(), mnemonics.size());
}

/// Instructions that the CPU lacks go by the signal handler of tools/emulator to the same table:
/// what is compared is that it reads and writes the registers and memory of the frame.
TEST(Instructions, AreCarriedOutInASignalHandler) {
  if (!jit::host().runs(jit::Tier::avx512_fp16)) {
    GTEST_SKIP() << "the CPU has no AVX-512 with VBMI, on which the instructions build";
  }
  const uint64_t count = emulator::instruction_count();
  uint64_t runs = 0;
  for (const auto& [text, form] : emitted_forms().all()) {
    if (form.bytes.empty() || cpu_has(form)) continue;
    const Decoded instruction = decoded(form);
    const machine::Row* row = machine::row_of(instruction.instruction, instruction.operands.data());
    ASSERT_NE(row, nullptr) << text;
    constexpr int64_t lanes = 3200;
    compare(form, *row, instruction, lanes);
    runs += static_cast<uint64_t>(lanes / row->lanes(instruction.instruction.avx.vector_length));
  }
  EXPECT_EQ(emulator::instruction_count() - count, runs);
}

TEST(Instructions, DoOnTheCpuWhatTheTableSays) {
  if (!jit::host().runs(jit::Tier::avx512_vbmi)) {
    GTEST_SKIP() << "the CPU has no AVX-512 VBMI, whose registers the comparison loads";
  }
  const int64_t lanes = long_form() ? 1'000'000 : 2'000;
  int compared = 0;
  int left = 0;
  for (const auto& [text, form] : emitted_forms().all()) {
    if (form.bytes.empty()) continue;
    const Decoded instruction = decoded(form);
    const machine::Row* row = machine::row_of(instruction.instruction, instruction.operands.data());
    ASSERT_NE(row, nullptr) << text;
    if (!cpu_has(form)) {
      ++left;
      continue;
    }
    ++compared;
    compare(form, *row, instruction, lanes);
  }
  fmt::print("{} forms compared on the CPU, {} that it lacks, {} lanes each\n", compared, left,
             lanes);
  EXPECT_GT(compared, left);
}

}  // namespace
}  // namespace castor::test
