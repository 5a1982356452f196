// SPDX-License-Identifier: Apache-2.0
#include "tools/machine/meaning.hpp"

#include <unordered_map>

namespace castor::machine {

namespace {

using PartOfTable = std::span<const Row> (*)();
constexpr PartOfTable parts[] = {integer_rows, integer_mask_rows, shift_rows,     product_rows,
                                 move_rows,    shuffle_rows,      resize_rows,    mask_rows,
                                 float_rows,   float_mask_rows,   conversion_rows};

/// Rows by mnemonic, of those that write an opmask or of the others.
using RowsByMnemonic = std::unordered_map<int, const Row*>;

RowsByMnemonic find_rows(bool write_masks) {
  RowsByMnemonic found;
  for (const Row* row : all_rows()) {
    if ((row->effect == Effect::mask) == write_masks) found.emplace(row->mnemonic, row);
  }
  return found;
}

bool writes_mask(const ZydisDecodedInstruction& instruction, const ZydisDecodedOperand* operands) {
  if (instruction.operand_count_visible == 0) return false;
  const ZydisDecodedOperand& to = operands[0];
  const bool is_mask_register = to.type == ZYDIS_OPERAND_TYPE_REGISTER &&
                                ZydisRegisterGetClass(to.reg.value) == ZYDIS_REGCLASS_MASK;
  // Those that move a mask elsewhere have no other row.
  return is_mask_register || instruction.meta.category == ZYDIS_CATEGORY_KMASK;
}

}  // namespace

std::vector<const Row*> all_rows() {
  std::vector<const Row*> all;
  for (const PartOfTable& part : parts) {
    for (const Row& row : part()) all.push_back(&row);
  }
  return all;
}

const Row* row_of(const ZydisDecodedInstruction& instruction, const ZydisDecodedOperand* operands) {
  static const RowsByMnemonic of_masks = find_rows(true);
  static const RowsByMnemonic of_others = find_rows(false);
  const bool is_mask = writes_mask(instruction, operands);
  for (const RowsByMnemonic* rows : {is_mask ? &of_masks : &of_others, &of_others}) {
    const auto row = rows->find(instruction.mnemonic);
    if (row != rows->end()) return row->second;
  }
  return nullptr;
}

}  // namespace castor::machine
