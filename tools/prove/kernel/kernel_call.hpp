// SPDX-License-Identifier: Apache-2.0
// A call of a kernel on the symbolic machine: operands in memory whose elements are inputs of the
// terms, and what the kernel stores. Regions have exactly the bytes that a kernel may touch.
#pragma once

#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "jit/code.hpp"
#include "tools/machine/machine.hpp"

namespace castor::prove {

using Symbols = machine::Symbols;

/// Elements that follow each other from `address` on.
struct CallOperand {
  uint64_t address = 0;
  std::vector<Term> elements;
};

/// The pointer that a kernel's argument has for an address of the machine; not to be read here.
template <class T>
T* pointer_to(uint64_t address) {
  return std::bit_cast<T*>(address);
}

/// Gives a region its bytes: elements of one width.
void set_elements(machine::Region<Symbols>& region, std::span<const Term> elements);

class KernelCall {
 public:
  using Machine = machine::Machine<Symbols>;

  /// Fails where the code does not decode.
  static Result<KernelCall> create(const jit::MachineCode& code, Symbols& symbols);

  Terms& terms() { return machine_.domain().terms(); }

  /// `count` inputs of 8, 16 or 32 bits.
  CallOperand add_inputs(std::string name, int64_t count, int bits, bool is_writable = false);
  /// Terms of that width.
  CallOperand add_elements(std::string name, std::vector<Term> elements, int bits,
                           bool is_writable = false);
  /// Numbers and structs: what code branches by, and addresses.
  template <class T>
  uint64_t add_numbers(std::string name, std::span<const T> numbers) {
    static_assert(std::is_trivially_copyable_v<T>);
    return add_bytes(std::move(name), std::as_bytes(numbers));
  }
  /// A region to be written, of which nothing is known.
  uint64_t add_output(std::string name, int64_t bytes);

  /// Ready to call the code.
  template <class Arguments>
  void begin(const Arguments& arguments) {
    static_assert(std::is_trivially_copyable_v<Arguments>);
    machine_.begin(add_numbers("the arguments", std::span(&arguments, 1)));
  }
  Machine& machine() { return machine_; }
  /// Goes on from another state of the call, as if nothing had been stored before.
  void go_on_from(Machine machine);
  /// Calls the code. Fails, naming the instruction, where it touches anything else, or does not
  /// return as functions must.
  template <class Arguments>
  Status run(const Arguments& arguments) {
    begin(arguments);
    return machine_.run();
  }

  /// What was stored from an address on, which then counts as expected; no term where a byte of it
  /// was not.
  Term stored(uint64_t address, int bits);
  /// Those bytes may be stored: nothing is asked of them.
  void allow(uint64_t address, int64_t bytes);
  /// Fails (internal), naming the first byte, where more was stored.
  Status check_nothing_else() const;

 private:
  explicit KernelCall(Machine machine) : machine_(std::move(machine)) {}
  uint64_t add_bytes(std::string name, std::span<const std::byte> bytes);
  machine::Region<Symbols>& add_region(std::string name, int64_t bytes, bool is_writable);
  size_t region_of(uint64_t address) const;

  Machine machine_;
  size_t first_region_ = 0;                  ///< after the machine's own
  std::vector<std::vector<bool>> expected_;  ///< by the call's region, then by byte
};

/// Proves one call, with terms of its own: `of.lay_out(call)` adds the operands, `of.arguments()`
/// are the code's, and `of.compare(call)` says whether what was stored is right.
template <class Call>
Status prove_call(const jit::MachineCode& code, Call&& of) {
  Terms terms;
  Symbols symbols(terms);
  auto call = KernelCall::create(code, symbols);
  if (!call) return call.error();
  of.lay_out(*call);
  if (Status status = call->run(of.arguments()); !status) return status;
  if (Status status = of.compare(*call); !status) return status;
  return call->check_nothing_else();
}

}  // namespace castor::prove
