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

constexpr int entry_count = 256;

/// All entries differ, so that none can stand for another.
constexpr std::array<uint8_t, entry_count> table = [] {
  std::array<uint8_t, entry_count> made{};
  for (int i = 0; i < entry_count; ++i) {
    made[static_cast<size_t>(i)] = static_cast<uint8_t>(167 * i + 13);
  }
  return made;
}();

/// Compares terms with entries; those of one byte are the same for all and are run once.
class Entries {
 public:
  /// Whether the term is the table's entry whose number `x` is, whatever it is.
  bool are(const Term& found, const Term& x) {
    std::vector<Term> replacements(found.terms().input_count());
    replacements[x.node().detail] = x_;
    for (const uint32_t id : reachable_nodes(std::span(&found, 1))) {
      const Node& node = found.terms().node(id);
      if (node.op == TermOp::input && !replacements[node.detail]) return false;
    }
    const Term of_x = substitute(found, replacements, terms_);
    if (known_.contains(of_x.id())) return true;
    Evaluator run(std::array{of_x});
    for (int value = 0; value < entry_count; ++value) {
      const std::array inputs = {static_cast<Bits>(value)};
      if (run(inputs)[0] != table[static_cast<size_t>(value)]) return false;
    }
    known_.insert(of_x.id());
    return true;
  }

 private:
  Terms terms_;
  const Term x_ = terms_.input("x", 8);
  std::set<uint32_t> known_;
};

/// One call of the kernel.
class LookUpCall {
 public:
  LookUpCall(int64_t count, bool is_in_place, Entries& entries)
      : count_(count), is_in_place_(is_in_place), entries_(entries) {}

  void lay_out(KernelCall& call) {
    x_ = call.add_inputs("x", count_, 8, is_in_place_);
    to_ = is_in_place_ ? x_.address : call.add_output("the result", count_);
    table_ = call.add_numbers<uint8_t>("the table", table);
  }

  jit::ByteTableCall arguments() const {
    return {.source = pointer_to<const std::byte>(x_.address),
            .destination = pointer_to<std::byte>(to_),
            .count = count_,
            .table = pointer_to<const std::byte>(table_)};
  }

  Status compare(KernelCall& call) {
    for (int64_t i = 0; i < count_; ++i) {
      const Term found = call.stored(to_ + static_cast<uint64_t>(i), 8);
      if (found && entries_.are(found, x_.elements[static_cast<size_t>(i)])) continue;
      return Error(ErrorCode::internal,
                   fmt::format("byte {} of {} is not its entry of the table", i, count_));
    }
    return {};
  }

 private:
  const int64_t count_;
  const bool is_in_place_;
  Entries& entries_;
  CallOperand x_;
  uint64_t to_ = 0;
  uint64_t table_ = 0;
};

}  // namespace

Result<size_t> prove_byte_table(const jit::MachineCode& code) {
  Entries entries;
  size_t bytes = 0;
  for (const int64_t count : {0, 1, 63, 64, 65, 128, 255, 256, 257, 511, 512, 600}) {
    for (const bool is_in_place : {false, true}) {
      Status status = prove_call(code, LookUpCall(count, is_in_place, entries));
      if (!status) return status.error();
      bytes += static_cast<size_t>(count);
    }
  }
  return bytes;
}

}  // namespace castor::prove
