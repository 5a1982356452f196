// SPDX-License-Identifier: Apache-2.0
// Running code: fetching, vectors, tiles, memory operands. Scalar instructions:
// machine_scalar.cpp.
#include "tools/machine/machine.hpp"

#include <algorithm>
#include <cstring>

namespace castor::machine {

namespace {

constexpr uint64_t return_address = 0x1234'5678;
/// Rounding down, all exceptions masked: what a caller may have set, and no kernel wants.
constexpr uint32_t mxcsr_of_caller = 0x3f80;
constexpr int rsp = 4;
constexpr int rdi = 7;

/// Registers that a function keeps for its caller (System V): RBX, RSP, RBP, R12 to R15.
constexpr int kept_registers[] = {3, 4, 5, 12, 13, 14, 15};

/// A vector, or 64 bits, of which nothing is known.
Vector<Numbers> unknown_vector(Numbers&) {
  Vector<Numbers> vector;
  vector.fill(0xcc);
  return vector;
}
Vector<Symbols> unknown_vector(Symbols& symbols) {
  Vector<Symbols> vector;
  for (size_t i = 0; i < vector.size(); i += 8) {
    symbols.split(symbols.terms().input("unknown", 64), vector.data() + i);
  }
  return vector;
}

}  // namespace

template <class D>
Machine<D>::Machine(D& domain, std::vector<jit::DecodedInstruction> program)
    : domain_(&domain), program_(std::move(program)) {}

template <class D>
Result<Machine<D>> Machine<D>::create(D& domain, const jit::MachineCode& code) {
  auto program = jit::decode(code);
  if (!program) return program.error();
  Machine machine(domain, std::move(program).value());
  const size_t pool_bytes = code.bytes.size() - code.pool_begin;
  Region<D>& pool =
      machine.memory_.add("the pool of constants", code_base + code.pool_begin, pool_bytes, false);
  fill(domain, pool, std::span(code.bytes).subspan(code.pool_begin));
  machine.memory_.add("the stack", stack_base, stack_bytes, true);
  return machine;
}

template <class D>
Machine<D> Machine<D>::of_process(D& domain, std::vector<jit::DecodedInstruction> program,
                                  uint64_t address) {
  Machine machine(domain, std::move(program));
  machine.code_base_ = address;
  machine.memory_.use_process();
  return machine;
}

template <class D>
void Machine<D>::begin(uint64_t argument) {
  Entry entry = {.general = {}, .mxcsr = mxcsr_of_caller};
  for (size_t i = 0; i < entry.general.size(); ++i) entry.general[i] = 0x5555'0000'0000 + i;
  entry.general[rdi] = argument;
  entry.general[rsp] = stack_base + stack_bytes - 128;
  begin(entry);
}

template <class D>
void Machine<D>::begin(const Entry& entry) {
  for (Vector<D>& vector : vectors_) vector = unknown_vector(*domain_);
  for (Mask<D>& mask : masks_) mask = zero_mask(*domain_);
  for (size_t i = 0; i < general_.size(); ++i) {
    general_[i] = Scalar<D>::number(64, entry.general[i]);
  }
  at_entry_ = general_;
  mxcsr_ = mxcsr_at_entry_ = entry.mxcsr;
  x87_.clear();
  next_ = 0;
  is_done_ = false;
  tile_config_ = {};
  for (Tile<D>& tile : tiles_) {
    tile.shape = {};
    tile.clear(*domain_);
  }
  static_cast<void>(push(Scalar<D>::number(64, return_address)));
}

template <class D>
Status Machine<D>::check_return() const {
  if (mxcsr_ != mxcsr_at_entry_) {
    return Error{ErrorCode::internal,
                 fmt::format("returns with MXCSR {:#x}, found {:#x}", mxcsr_, mxcsr_at_entry_)};
  }
  for (const int id : kept_registers) {
    const Scalar<D>& found = general_[static_cast<size_t>(id)];
    if (found.is_number() && found.word == at_entry_[static_cast<size_t>(id)].word) continue;
    return Error{ErrorCode::internal,
                 fmt::format("returns with another value in general register {}", id)};
  }
  return {};
}

template <class D>
Rounding Machine<D>::rounding() const {
  constexpr Rounding modes[] = {Rounding::nearest_even, Rounding::down, Rounding::up,
                                Rounding::toward_zero};
  return modes[mxcsr_ >> 13 & 3];
}

template <class D>
Error Machine<D>::unknown(std::string_view why) const {
  return {ErrorCode::unsupported, std::string(why)};
}

template <class D>
void Machine<D>::jump(uint32_t offset) {
  const auto found =
      std::ranges::lower_bound(program_, offset, {}, &jit::DecodedInstruction::offset);
  next_ = static_cast<size_t>(found - program_.begin());
}

template <class D>
Status Machine<D>::step() {
  now_ = &program_[next_++];
  Status status = carry_out();
  if (status.ok()) return status;
  return Error{status.error().code, fmt::format("{} at offset {:#x}: {}", now().mnemonic(),
                                                now().offset, status.error().message)};
}

template <class D>
Status Machine<D>::carry_out() {
  if (now().instruction.mnemonic == ZYDIS_MNEMONIC_VZEROUPPER) {
    for (size_t i = 0; i < 16; ++i) {
      std::fill(vectors_[i].begin() + 16, vectors_[i].end(), domain_->byte(0));
    }
    return {};
  }
  const bool is_tile = now().instruction.meta.category == ZYDIS_CATEGORY_AMX_TILE;
  const Row* row = row_of(now().instruction, now().operands.data());
  if (is_tile) return tile(row);
  if (row == nullptr) {
    zero_on_data_.reset();
    carry_on_data_.reset();
    return scalar();
  }
  return Stepper(*this, now().instruction, now().operands.data(), *row).run();
}

// ---- memory operands

template <class D>
Result<typename Machine<D>::Address> Machine<D>::indexed_address_of(const Operand& operand) const {
  constexpr int max_index_bits = 8;
  Address address = {.word = {static_cast<uint64_t>(operand.mem.disp.value), 0},
                     .index = std::nullopt};
  const auto add = [&](ZydisRegister reg, uint64_t scale) -> Status {
    if (reg == ZYDIS_REGISTER_NONE) return {};
    if (reg == ZYDIS_REGISTER_RIP) {
      address.word.value += code_base_ + now().end();
      return {};
    }
    const Scalar<D>& value = general_[static_cast<size_t>(ZydisRegisterGetId(reg))];
    if (value.is_number()) {
      address.word.value += value.word.value * scale;
      address.word.slope += value.word.slope * static_cast<int64_t>(scale);
      return {};
    }
    const auto index = D::narrowed(*value.data, max_index_bits);
    if (!index || address.index) return unknown("the address depends on data of many bits");
    address.index = index;
    address.scale = scale;
    return {};
  };
  if (Status status = add(operand.mem.base, 1); !status) return status.error();
  if (Status status = add(operand.mem.index, operand.mem.scale); !status) return status.error();
  return address;
}

template <class D>
Result<Word> Machine<D>::address_of(const Operand& operand) const {
  Result<Address> address = indexed_address_of(operand);
  if (!address) return address.error();
  if (address->index) return unknown("the address depends on data");
  return address->word;
}

/// What is at the address, whatever the index: all that it may be must be there.
template <class D>
Status Machine<D>::load_entry(const Address& entries, std::span<Byte> to) {
  if (!entries.index) return memory_.load(*domain_, entries.word, to);
  const auto count = static_cast<int>(to.size());
  std::vector<Bits> all;
  for (uint64_t i = 0; i < uint64_t{1} << D::width(*entries.index); ++i) {
    const Word address = {entries.word.value + i * entries.scale, entries.word.slope};
    if (Status status = memory_.load(*domain_, address, to); !status) return status;
    all.push_back(domain_->join(to.data(), count));
  }
  domain_->split(domain_->look_up(all, *entries.index), to.data());
  return {};
}

template <class D>
Status Machine<D>::load(const ZydisDecodedOperand& operand, int offset, std::span<Byte> to) {
  Result<Address> address = indexed_address_of(operand);
  if (!address) return address.error();
  address->word.value += static_cast<uint64_t>(static_cast<int64_t>(offset));
  return load_entry(*address, to);
}

template <class D>
Status Machine<D>::store(const ZydisDecodedOperand& operand, int offset,
                         std::span<const Byte> from) {
  Result<Word> address = address_of(operand);
  if (!address) return address.error();
  address->value += static_cast<uint64_t>(static_cast<int64_t>(offset));
  return memory_.store(*address, from);
}

// ---- general registers and flags, for vector instructions

template <class D>
typename D::Bits Machine<D>::general(ZydisRegister reg) {
  return bits_of(read_register(reg));
}

template <class D>
Status Machine<D>::set_general(ZydisRegister reg, Bits bits) {
  write_register(reg, Scalar<D>::of(bits));
  return {};
}

template <class D>
void Machine<D>::set_flags(Bits zero, Bits carry) {
  const auto known = [](const Bits& bits) -> std::optional<bool> {
    const auto value = D::value_of(bits);
    if (!value) return std::nullopt;
    return *value != 0;
  };
  flags_ = {.zero = known(zero), .sign = false, .carry = known(carry), .overflow = false};
  zero_on_data_ = zero;
  carry_on_data_ = carry;
}

// ---- branches on data

template <class D>
std::optional<typename D::Bits> Machine<D>::jump_on_data() const {
  const auto opposite = [](const Bits& bit) { return D::bit_not(bit); };
  const bool zero_is_known = !zero_on_data_ || flags_.zero;
  const bool carry_is_known = !carry_on_data_ || flags_.carry;
  switch (program_[next_].instruction.mnemonic) {
    case ZYDIS_MNEMONIC_JZ: return zero_is_known ? std::nullopt : zero_on_data_;
    case ZYDIS_MNEMONIC_JB: return carry_is_known ? std::nullopt : carry_on_data_;
    case ZYDIS_MNEMONIC_JNZ:
      if (zero_is_known) return std::nullopt;
      return opposite(*zero_on_data_);
    case ZYDIS_MNEMONIC_JNB:
      if (carry_is_known) return std::nullopt;
      return opposite(*carry_on_data_);
    default: return std::nullopt;
  }
}

template <class D>
void Machine<D>::decide_jump(bool is_taken) {
  now_ = &program_[next_++];
  if (is_taken) jump(*jit::branch_target(now()));
}

template <class D>
Scalar<D> Machine<D>::merged(const Scalar<D>& own, const Scalar<D>& its, const Bits& is_own) {
  if (own.is_number() && its.is_number() && own.word == its.word) return own;
  const auto grows = [](const Scalar<D>& value) {
    return value.is_number() && !value.is_constant();
  };
  if (grows(own) || grows(its)) {
    Scalar<D> unknown;
    std::array<Byte, 8> bytes;
    for (Byte& byte : bytes) byte = unknown_byte(*domain_);
    unknown.data = domain_->join(bytes.data(), 8);
    return unknown;
  }
  return Scalar<D>::of(domain_->select(is_own, own.bits(*domain_), its.bits(*domain_)));
}

template <class D>
void Machine<D>::merge(const Machine& other, const Bits& is_own) {
  memory_.merge(*domain_, is_own, other.memory_);
  for (size_t i = 0; i < general_.size(); ++i) {
    general_[i] = merged(general_[i], other.general_[i], is_own);
  }
  for (size_t i = 0; i < vectors_.size(); ++i) {
    merge_bytes<D>(*domain_, is_own, vectors_[i], other.vectors_[i]);
  }
  for (size_t i = 0; i < masks_.size(); ++i) {
    for (size_t bit = 0; bit < masks_[i].size(); ++bit) {
      masks_[i][bit] = domain_->select(is_own, masks_[i][bit], other.masks_[i][bit]);
    }
  }
  forget_flags();
}

// ---- tiles

template <class D>
Status Machine<D>::load_tile_config(const Operand& operand) {
  std::array<Byte, 64> bytes;
  if (Status status = load(operand, 0, bytes); !status) return status;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto value = D::value_of(domain_->join(&bytes[i], 1));
    if (!value) return unknown("the configuration depends on data");
    tile_config_[i] = static_cast<uint8_t>(*value);
  }
  const auto shapes = tile_shapes(tile_config_);
  if (!shapes) return unknown("the configuration is none");
  for (size_t t = 0; t < tile_count; ++t) {
    tiles_[t].shape = (*shapes)[t];
    tiles_[t].clear(*domain_);
  }
  return {};
}

template <class D>
Status Machine<D>::store_tile_config(const Operand& operand) {
  std::array<Byte, 64> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = domain_->byte(tile_config_[i]);
  return store(operand, 0, bytes);
}

/// The index register, scaled, is the step from row to row.
template <class D>
Status Machine<D>::move_tile(const Operand& reg, const Operand& memory, bool loads) {
  Tile<D>& tile = tiles_[static_cast<size_t>(ZydisRegisterGetId(reg.reg.value))];
  if (!tile.is_configured()) return unknown("the tile is not configured");
  ZydisDecodedOperand first = memory;
  first.mem.index = ZYDIS_REGISTER_NONE;
  Result<Word> address = address_of(first);
  if (!address) return address.error();
  const Scalar<D>& step = general_[static_cast<size_t>(ZydisRegisterGetId(memory.mem.index))];
  if (!step.is_constant()) return unknown("the step between rows is no constant");
  if (loads) tile.clear(*domain_);
  const auto bytes = static_cast<size_t>(tile.shape.row_bytes);
  for (size_t row = 0; row < static_cast<size_t>(tile.shape.rows); ++row) {
    const std::span<Byte> data(tile.rows[row].data(), bytes);
    Status status = loads ? memory_.load(*domain_, *address, data) : memory_.store(*address, data);
    if (!status) return status;
    address->value += step.word.value * memory.mem.scale;
  }
  return {};
}

template <class D>
Status Machine<D>::tile(const Row* row) {
  const auto& operands = now().operands;
  switch (now().instruction.mnemonic) {
    case ZYDIS_MNEMONIC_LDTILECFG: return load_tile_config(operands[0]);
    case ZYDIS_MNEMONIC_STTILECFG: return store_tile_config(operands[0]);
    case ZYDIS_MNEMONIC_TILERELEASE:
      tile_config_ = {};
      for (Tile<D>& each : tiles_) each.shape = {};
      return {};
    case ZYDIS_MNEMONIC_TILEZERO:
      tiles_[static_cast<size_t>(ZydisRegisterGetId(operands[0].reg.value))].clear(*domain_);
      return {};
    case ZYDIS_MNEMONIC_TILELOADD:
    case ZYDIS_MNEMONIC_TILELOADDT1: return move_tile(operands[0], operands[1], true);
    case ZYDIS_MNEMONIC_TILESTORED: return move_tile(operands[1], operands[0], false);
    default: break;
  }
  if (row == nullptr || row->effect != Effect::tile_product) return unknown("no meaning");
  const auto tile_at = [&](size_t i) -> Tile<D>& {
    return tiles_[static_cast<size_t>(ZydisRegisterGetId(operands[i].reg.value))];
  };
  if (!are_factors(tile_at(0).shape, tile_at(1).shape, tile_at(2).shape)) {
    return unknown("the tiles' shapes do not fit");
  }
  multiply_tiles(*domain_, *row, tile_at(0), tile_at(1), tile_at(2));
  return {};
}

template class Machine<Numbers>;
template class Machine<Symbols>;

}  // namespace castor::machine
