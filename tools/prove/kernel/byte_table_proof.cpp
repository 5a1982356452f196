// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/kernel/byte_table_proof.hpp"

#include <fmt/format.h>

#include <array>
#include <set>

#include "jit/requantize/byte_table_kernel.hpp"
#include "tools/prove/kernel/kernel_call.hpp"
#include "tools/prove/term/evaluate.hpp"

namespace castor::prove {

namespace {

constexpr int entries = 256;

/// All entries differ, so that none can stand for another.
constexpr std::array<uint8_t, entries> table = [] {
  std::array<uint8_t, entries> made{};
  for (int i = 0; i < entries; ++i) {
    made[static_cast<size_t>(i)] = static_cast<uint8_t>(167 * i + 13);
  }
  return made;
}();

/// Compares bytes with entries; terms of one byte are the same for all and are run once.
class ByteTableProver {
 public:
  explicit ByteTableProver(const jit::MachineCode& code) : code_(code) {}

  Status prove(int64_t count, bool is_in_place) {
    CallOperand x;
    uint64_t to = 0;
    const auto lay_out = [&](KernelCall& call) -> jit::ByteTableCall {
      x = call.add_inputs("x", count, 8, is_in_place);
      to = is_in_place ? x.address : call.add_output("the result", count);
      const uint64_t entries_at = call.add_numbers<uint8_t>("the table", table);
      return {.source = pointer_to<const std::byte>(x.address),
              .destination = pointer_to<std::byte>(to),
              .count = count,
              .table = pointer_to<const std::byte>(entries_at)};
    };
    return prove_call(code_, lay_out, [&](KernelCall& call) -> Status {
      for (int64_t i = 0; i < count; ++i) {
        const Term found = call.stored(to + static_cast<uint64_t>(i), 8);
        if (!found || !is_looked_up(found, x.elements[static_cast<size_t>(i)])) {
          return Error(ErrorCode::internal,
                       fmt::format("byte {} of {} is not its entry of the table", i, count));
        }
        ++bytes_;
      }
      return {};
    });
  }

  size_t bytes() const { return bytes_; }

 private:
  /// Whether the term is the table's entry whose number `x` is, whatever it is.
  bool is_looked_up(const Term& found, const Term& x) {
    std::vector<Term> replacements(found.terms().input_count());
    replacements[x.node().detail] = x_;
    for (const uint32_t id : reachable_nodes(std::span(&found, 1))) {
      const Node& node = found.terms().node(id);
      if (node.op == TermOp::input && !replacements[node.detail]) return false;
    }
    const Term of_x = substitute(found, replacements, terms_);
    if (known_.contains(of_x.id())) return true;
    Evaluator run(std::array{of_x});
    for (int value = 0; value < entries; ++value) {
      const std::array inputs = {static_cast<Bits>(value)};
      if (run(inputs)[0] != table[static_cast<size_t>(value)]) return false;
    }
    known_.insert(of_x.id());
    return true;
  }

  const jit::MachineCode& code_;
  Terms terms_;
  const Term x_ = terms_.input("x", 8);
  std::set<uint32_t> known_;
  size_t bytes_ = 0;
};

}  // namespace

Result<size_t> prove_byte_table(const jit::MachineCode& code) {
  ByteTableProver prover(code);
  for (const int64_t count : {0, 1, 63, 64, 65, 128, 255, 256, 257, 511, 512, 600}) {
    for (const bool is_in_place : {false, true}) {
      if (Status status = prover.prove(count, is_in_place); !status) return status.error();
    }
  }
  return prover.bytes();
}

}  // namespace castor::prove
