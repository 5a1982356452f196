// SPDX-License-Identifier: Apache-2.0
// What every emitted kernel must be, on tiers that this machine cannot run as well: made of its
// tier's instructions, small, and the same when it is emitted again.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "jit/conv/dot_product.hpp"
#include "jit/listing/listing.hpp"

namespace castor::test {

/// In the order of `Tier`.
inline constexpr auto all_tiers = [] {
  std::array<jit::Tier, jit::tier_count> tiers{};
  for (size_t i = 0; i < tiers.size(); ++i) tiers[i] = static_cast<jit::Tier>(i);
  return tiers;
}();

/// Names the rows of a suite over tiers.
inline std::string name_of_row(const testing::TestParamInfo<jit::Tier>& row) {
  return std::string(jit::name_of(row.param));
}

/// The most that a kernel may have; nothing: any number.
struct CodeLimits {
  std::optional<size_t> instructions = 1500;
  size_t bytes = size_t{16} << 10;
};

/// Checks the code that `emit` gives, each time that it is called; failures fail the running test.
template <class Emit>
void check_kernel_code(const Emit& emit, const jit::Target& target, std::string_view name,
                       const CodeLimits& max = {}) {
  const Result<jit::MachineCode> code = emit();
  ASSERT_TRUE(code.ok()) << name << ": " << code.error().message;
  const Status status = jit::check_features(*code, target);
  ASSERT_TRUE(status.ok()) << name << ": " << status.error().message;
  const Status hardened = jit::check_hardening(*code);
  ASSERT_TRUE(hardened.ok()) << name << ": " << hardened.error().message;
  const Status unwinding = jit::check_unwinding(*code);
  ASSERT_TRUE(unwinding.ok()) << name << ": " << unwinding.error().message;
  if (max.instructions) {
    const auto instructions = jit::disassemble(*code);
    ASSERT_TRUE(instructions.ok()) << name << ": " << instructions.error().message;
    EXPECT_LE(instructions->size(), *max.instructions) << name;
  }
  EXPECT_LE(code->bytes.size(), max.bytes) << name;
  EXPECT_EQ(emit()->bytes, code->bytes) << name;
}

/// The instructions that multiply as the tier can; saturating ones fail the running test.
inline int64_t dot_products_in(const jit::MachineCode& code, const jit::Target& target) {
  const auto instructions = jit::disassemble(code);
  EXPECT_TRUE(instructions.ok()) << instructions.error().message;
  if (!instructions.ok()) return 0;
  const auto count = [&](std::string_view mnemonic) {
    return std::ranges::count(*instructions, mnemonic, &jit::ListedInstruction::mnemonic);
  };
  EXPECT_EQ(count("vpmaddubsw"), 0);
  const bool bytes = jit::product_engine_of(target) == jit::ProductEngine::u8_i8_dot;
  return count(bytes ? "vpdpbusd" : "vpmaddwd");
}

}  // namespace castor::test
