// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/kernel/kernel_call.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace castor::prove {

namespace {

constexpr int address_bits = 36;  ///< regions are so far apart that none is met by mistake

}  // namespace

void set_elements(machine::Region<Symbols>& region, std::span<const Term> elements) {
  const size_t bytes = elements.empty() ? 0 : region.size() / elements.size();
  for (size_t i = 0; i < elements.size(); ++i) {
    Symbols::split(elements[i], region.bytes.data() + i * bytes);
  }
  region.is_known.assign(region.size(), true);
}

Result<KernelCall> KernelCall::create(const jit::MachineCode& code, Symbols& symbols) {
  auto machine = Machine::create(symbols, code);
  if (!machine) return machine.error();
  KernelCall call(std::move(machine).value());
  call.first_region_ = call.machine_.memory().regions().size();
  return call;
}

machine::Region<Symbols>& KernelCall::add_region(std::string name, int64_t bytes,
                                                 bool is_writable) {
  const uint64_t address = (expected_.size() + 1) << address_bits;
  expected_.emplace_back(static_cast<size_t>(bytes), false);
  return machine_.memory().add(std::move(name), address, static_cast<size_t>(bytes), is_writable);
}

CallOperand KernelCall::add_inputs(std::string name, int64_t count, int bits, bool is_writable) {
  std::vector<Term> inputs;
  for (int64_t i = 0; i < count; ++i) {
    inputs.push_back(terms().input(fmt::format("{}[{}]", name, i), bits));
  }
  return add_elements(std::move(name), std::move(inputs), bits, is_writable);
}

CallOperand KernelCall::add_elements(std::string name, std::vector<Term> elements, int bits,
                                     bool is_writable) {
  const size_t bytes = static_cast<size_t>(bits) / 8;
  machine::Region<Symbols>& region =
      add_region(std::move(name), static_cast<int64_t>(elements.size() * bytes), is_writable);
  set_elements(region, elements);
  return {.address = region.base, .elements = std::move(elements)};
}

uint64_t KernelCall::add_bytes(std::string name, std::span<const std::byte> bytes) {
  machine::Region<Symbols>& region = add_region(std::move(name), std::ssize(bytes), false);
  machine::fill(machine_.domain(), region, bytes);
  return region.base;
}

uint64_t KernelCall::add_output(std::string name, int64_t bytes) {
  return add_region(std::move(name), bytes, true).base;
}

void KernelCall::go_on_from(Machine machine) {
  machine_ = std::move(machine);
  for (auto& region : machine_.memory().regions()) region.is_written.assign(region.size(), false);
  for (std::vector<bool>& expected : expected_) expected.assign(expected.size(), false);
}

size_t KernelCall::region_of(uint64_t address) const { return (address >> address_bits) - 1; }

Term KernelCall::stored(uint64_t address, int bits) {
  const size_t index = region_of(address);
  const machine::Region<Symbols>& region = machine_.memory().regions()[first_region_ + index];
  const size_t first = address - region.base;
  const auto count = static_cast<size_t>(bits) / 8;
  if (first + count > region.size()) return {};
  for (size_t i = first; i < first + count; ++i) {
    if (!region.is_written[i]) return {};
    expected_[index][i] = true;
  }
  return Symbols::join(region.bytes.data() + first, static_cast<int>(count));
}

void KernelCall::allow(uint64_t address, int64_t bytes) {
  const size_t index = region_of(address);
  const size_t first = address & ((uint64_t{1} << address_bits) - 1);
  std::fill_n(expected_[index].begin() + static_cast<int64_t>(first), bytes, true);
}

Status KernelCall::check_nothing_else() const {
  const auto& regions = machine_.memory().regions();
  for (size_t index = 0; index < expected_.size(); ++index) {
    const machine::Region<Symbols>& region = regions[first_region_ + index];
    for (size_t i = 0; i < region.size(); ++i) {
      if (!region.is_written[i] || expected_[index][i]) continue;
      return Error(ErrorCode::internal,
                   fmt::format("byte {} of {} is stored, which should stay", i, region.name));
    }
  }
  return {};
}

}  // namespace castor::prove
