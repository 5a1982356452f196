// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/kernel/nest_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ir/types/storage.hpp"

namespace castor::prove {

using jit::Access;
using machine::SymbolByte;

castor::Status check_form(const NestSubject& code) {
  const auto left_out = [](std::string_view what) {
    return Error(ErrorCode::unsupported, fmt::format("no layout of {}", what));
  };
  if (code.form.has_periods()) return left_out("periods");
  if (code.form.has(Access::table) || code.form.has(Access::tables)) return left_out("tables");
  if (code.form.folded_row != 0 || code.nest.program.folds()) return left_out("accumulators");
  return {};
}

namespace {

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

int64_t NestTensor::bytes() const {
  const bool is_split = !is_bit_string(type);
  const int64_t whole = is_split ? round_up(count, aligned_elements(type)) : count;
  return (whole * bits_of(type) + 7) / 8;
}

int64_t NestTensor::number_of(std::span<const int64_t> index) const {
  int64_t number = first;
  for (size_t axis = 0; axis < index.size(); ++axis) number += strides[axis] * index[axis];
  return number;
}

namespace {

/// Strides of an operand of that access: rows of strided ones are apart, and those of sub-byte
/// elements that begin at bytes do so.
NestTensor tensor_of(const NestSubject& code, size_t k, std::span<const int64_t> extents) {
  const Access access = code.form.access[k];
  NestTensor tensor{.type = code.nest.element(k), .is_output = k >= code.nest.inputs.size()};
  int64_t stride = access == Access::uniform ? 0 : access == Access::contiguous ? 1 : 2;
  if (access == Access::bitwise) tensor.first = 3;
  int64_t last = tensor.first;
  for (const int64_t extent : extents) {
    tensor.strides.push_back(stride);
    last += stride * std::max<int64_t>(extent - 1, 0);
    stride = std::max<int64_t>(stride, 1) * std::max<int64_t>(extent, 1);
    if (access == Access::contiguous && is_sub_byte(tensor.type)) stride = round_up(stride, 8);
    if (access == Access::strided || access == Access::bitwise) ++stride;
  }
  const bool is_empty = std::ranges::count(extents, 0) > 0;
  tensor.count = is_empty ? 0 : last + 1;
  return tensor;
}

}  // namespace

Result<NestRun> NestRun::create(const NestSubject& code, std::vector<int64_t> extents,
                                Symbols& symbols, RepeatedElements& repeated) {
  if (castor::Status status = check_form(code); !status) return status.error();
  auto machine = Machine::create(symbols, code.code);
  if (!machine) return machine.error();
  NestRun run(std::move(machine).value(), std::move(extents));
  run.lay_out(code, repeated);
  run.fill_arguments(code);
  run.machine_.begin(arguments);
  return run;
}

void NestRun::lay_out(const NestSubject& code, RepeatedElements& repeated) {
  for (size_t k = 0; k < code.nest.operands(); ++k) {
    NestTensor tensor = tensor_of(code, k, extents_);
    tensor.address = (k + 1) << 36;
    tensors_.push_back(std::move(tensor));
    skipped_bytes_.push_back(0);
    machine_.memory().add(fmt::format("operand {}", k), tensors_[k].address,
                          static_cast<size_t>(tensors_[k].bytes()), tensors_[k].is_output);
    if (tensors_[k].is_output) continue;
    make_elements(k, repeated);
    fill(k);
  }
}

machine::Region<Symbols>& NestRun::region_of(size_t operand) {
  return *machine_.memory().find(fmt::format("operand {}", operand));
}

void NestRun::make_elements(size_t operand, RepeatedElements& repeated) {
  NestTensor& tensor = tensors_[operand];
  Terms& terms = machine_.domain().terms();
  const bool repeats = tensor.strides[0] == 0;
  std::vector<Term>& shared = repeated[operand];
  for (int64_t i = 0; i < tensor.count; ++i) {
    const auto at = static_cast<size_t>(i);
    const bool is_made = repeats && at < shared.size();
    tensor.elements.push_back(
        is_made ? shared[at]
                : terms.input(fmt::format("x{}[{}]", operand, i), bits_of(tensor.type)));
    if (repeats && !is_made) shared.push_back(tensor.elements.back());
  }
}

/// The bytes that elements make.
void NestRun::fill(size_t operand) {
  const NestTensor& tensor = tensors_[operand];
  machine::Region<Symbols>& region = region_of(operand);
  region.is_known.assign(region.size(), true);
  const int bits = bits_of(tensor.type);
  if (bits >= 8) {
    for (size_t i = 0; i < tensor.elements.size(); ++i) {
      Symbols::split(tensor.elements[i], region.bytes.data() + i * static_cast<size_t>(bits) / 8);
    }
    return;
  }
  std::vector<Term> stored(8 * region.size());
  for (int64_t i = 0; i < tensor.count; ++i) {
    for (int b = 0; b < bits; ++b) {
      stored[static_cast<size_t>(storage_bit(tensor.type, i, b))] =
          bit(tensor.elements[static_cast<size_t>(i)], b);
    }
  }
  for (size_t at = 0; at < region.size(); ++at) {
    Term byte;
    for (size_t b = 8 * at; b < 8 * at + 8; ++b) {
      if (!stored[b]) stored[b] = machine_.domain().terms().input("padding", 1);
      byte = byte ? concat(stored[b], byte) : stored[b];
    }
    region.bytes[at] = {byte, 0};
  }
}

void NestRun::fill_arguments(const NestSubject& code) {
  jit::IterationSpace space;
  space.form = code.form;
  for (const int64_t extent : extents_) space.extents.push_back(extent);
  for (const NestTensor& tensor : tensors_) {
    std::array<int64_t, max_rank> strides{};
    std::ranges::copy(tensor.strides, strides.begin());
    space.strides.push_back(strides);
  }
  std::vector<int64_t> words = pack_arguments(code.nest.storage(), space);
  const jit::ArgumentLayout layout(tensors_.size(), code.form.rank);
  for (size_t k = 0; k < tensors_.size(); ++k) {
    const NestTensor& tensor = tensors_[k];
    const bool counts = jit::counts_elements(code.form.access[k], tensor.type);
    words[layout.pointer(k)] = counts ? tensor.first : static_cast<int64_t>(tensor.address);
    words[layout.base(k)] = static_cast<int64_t>(tensor.address);
  }
  machine::Region<Symbols>& region =
      machine_.memory().add("the arguments", arguments, 8 * words.size(), false);
  for (size_t i = 0; i < region.size(); ++i) {
    const auto word = static_cast<uint64_t>(words[i / 8]);
    region.bytes[i] = machine_.domain().byte(static_cast<uint8_t>(word >> (8 * (i % 8))));
    region.is_known[i] = true;
  }
}

Term NestRun::stored_element(size_t operand, int64_t number) {
  const machine::Region<Symbols>& region = region_of(operand);
  const ElementType type = tensors_[operand].type;
  const int bits = bits_of(type);
  if (bits >= 8) {
    const auto first = static_cast<size_t>(number * bits / 8 - skipped_bytes_[operand]);
    for (size_t i = 0; i < static_cast<size_t>(bits) / 8; ++i) {
      if (!region.is_written[first + i]) return {};
    }
    return Symbols::join(region.bytes.data() + first, bits / 8);
  }
  Term element;
  for (int b = 0; b < bits; ++b) {
    const int64_t position = storage_bit(type, number, b) - 8 * skipped_bytes_[operand];
    const auto at = static_cast<size_t>(position / 8);
    if (!region.is_written[at]) return {};
    const Term stored = bit(Symbols::join(&region.bytes[at], 1), static_cast<int>(position % 8));
    element = element ? concat(stored, element) : stored;
  }
  return element;
}

}  // namespace castor::prove
