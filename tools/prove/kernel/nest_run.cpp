// SPDX-License-Identifier: Apache-2.0
#include "tools/prove/kernel/nest_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ir/types/storage.hpp"
#include "jit/emit/chunk_plan.hpp"
#include "jit/emit/fold_ops.hpp"
#include "tools/prove/lane/execute.hpp"

namespace castor::prove {

using jit::Access;
using machine::SymbolByte;

bool advance(std::vector<int64_t>& index, const std::vector<int64_t>& extents) {
  for (size_t axis = 0; axis < index.size(); ++axis) {
    if (++index[axis] < extents[axis]) return true;
    index[axis] = 0;
  }
  return false;
}

castor::Status check_form(const NestSubject& code) {
  const auto left_out = [](std::string_view what) {
    return Error(ErrorCode::unsupported, fmt::format("no layout of {}", what));
  };
  if (code.form.folded_row != 0) return left_out("blocks of rows that are folded");
  if (code.form.has(Access::column)) return left_out("loops over columns around rows");
  if (jit::finds_nans(code.nest.program)) return left_out("NaNs that are folded into opmasks");
  return {};
}

int input_bits(const NestSubject& code, size_t input) {
  const jit::LaneProgram* maker = code.maker(input);
  return bits_of(maker != nullptr ? maker->sources[0].element : code.nest.element(input));
}

Result<Term> element_of(const NestSubject& code, size_t input, const Term& bits) {
  const jit::LaneProgram* maker = code.maker(input);
  if (maker == nullptr) return bits;
  const auto made = execute(*maker, std::span(&bits, 1), bits.terms());
  if (!made) return made.error();
  return made->elements[0];
}

namespace {

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

int NestTensor::bits_each() const {
  return access == Access::periodic ? jit::lane_bits_of(type) : bits_of(type);
}

int64_t NestTensor::bytes() const {
  const bool is_split = !is_bit_string(type);
  const int64_t whole = is_split ? round_up(count, aligned_elements(type)) : count;
  return (whole * bits_each() + 7) / 8;
}

int64_t NestTensor::number_of(std::span<const int64_t> index) const {
  if (access == Access::periodic) return index[0] % period;
  int64_t number = first + strides[0] * (index[0] / period);
  for (size_t axis = 1; axis < index.size(); ++axis) number += strides[axis] * index[axis];
  return number;
}

int64_t NestTensor::bits_along(int64_t steps) const {
  return steps / period * strides[0] * bits_each();
}

namespace {

/// Elements from one to the next along the innermost axis.
int64_t innermost_stride(const NestTensor& tensor, int64_t stride) {
  switch (tensor.access) {
    case Access::uniform:
    case Access::periodic:
    case Access::table: return 0;
    case Access::contiguous:
    case Access::repeated: return 1;
    case Access::tables: return tensor.entries;
    default: return stride;
  }
}

/// As binding makes them: a period and an iteration.
int64_t elements_of_copy(const NestSubject& code) {
  const jit::ChunkPlan chunks = jit::plan_chunks(code.nest, code.form, code.target);
  return code.period + int64_t{chunks.lanes} * std::max(chunks.chunks, 1);
}

/// Strides of an operand of its access: rows of strided ones are apart, and those of sub-byte
/// elements that begin at bytes do so.
NestTensor tensor_of(const NestSubject& code, size_t k, std::span<const int64_t> extents) {
  const Access access = code.form.access[k];
  NestTensor tensor{
      .type = code.nest.element(k), .is_output = k >= code.nest.inputs.size(), .access = access};
  if (access == Access::repeated || access == Access::periodic) tensor.period = code.period;
  if (code.nest.is_table(k)) {
    tensor.entries = int64_t{1} << code.nest.program.sources[k].index_bits;
  }
  int64_t stride = innermost_stride(tensor, code.stride);
  if (access == Access::bitwise) tensor.first = code.first;
  int64_t last = tensor.first;
  for (const int64_t extent : extents) {
    const bool is_innermost = tensor.strides.empty();
    const int64_t steps = is_innermost ? round_up(extent, tensor.period) / tensor.period : extent;
    tensor.strides.push_back(stride);
    last += stride * std::max<int64_t>(steps - 1, 0);
    stride = std::max(stride, tensor.entries) * std::max<int64_t>(steps, 1);
    if (access == Access::contiguous && is_sub_byte(tensor.type)) stride = round_up(stride, 8);
    if (access == Access::strided || access == Access::bitwise) ++stride;
  }
  const bool is_empty = std::ranges::count(extents, 0) > 0;
  tensor.count = is_empty ? 0 : last + tensor.entries;
  if (access == Access::periodic) tensor.count = elements_of_copy(code);
  return tensor;
}

}  // namespace

Result<NestRun> NestRun::create(const NestSubject& code, std::vector<int64_t> extents,
                                Symbols& symbols, RepeatedElements& repeated) {
  if (castor::Status status = check_form(code); !status) return status.error();
  auto machine = Machine::create(symbols, code.code);
  if (!machine) return machine.error();
  NestRun run(std::move(machine).value(), std::move(extents));
  if (castor::Status status = run.lay_out(code, repeated); !status) return status.error();
  run.fill_arguments(code);
  run.machine_.begin(arguments);
  return run;
}

castor::Status NestRun::lay_out(const NestSubject& code, RepeatedElements& repeated) {
  for (size_t k = 0; k < code.nest.operands(); ++k) {
    NestTensor tensor = tensor_of(code, k, extents_);
    tensor.address = (k + 1) << 36;
    tensors_.push_back(std::move(tensor));
    skipped_bytes_.push_back(0);
    before_.emplace_back();
    kept_.emplace_back();
    machine_.memory().add(fmt::format("operand {}", k), tensors_[k].address,
                          static_cast<size_t>(tensors_[k].bytes()), tensors_[k].is_output);
    if (tensors_[k].is_output) {
      fill_output(k);
      continue;
    }
    if (castor::Status status = make_elements(code, k, repeated); !status) return status;
    fill(k);
  }
  return {};
}

machine::Region<Symbols>& NestRun::region_of(size_t operand) {
  return *machine_.memory().find(fmt::format("operand {}", operand));
}

castor::Status NestRun::make_elements(const NestSubject& code, size_t operand,
                                      RepeatedElements& repeated) {
  NestTensor& tensor = tensors_[operand];
  Terms& terms = machine_.domain().terms();
  const bool repeats = tensor.strides[0] == 0;
  const bool is_copy = tensor.access == Access::periodic;
  std::vector<Term>& shared = repeated[operand];
  for (int64_t i = 0; i < tensor.count; ++i) {
    const auto at = static_cast<size_t>(is_copy ? i % tensor.period : i);
    const bool is_made = repeats && at < shared.size();
    tensor.inputs.push_back(
        is_made ? shared[at]
                : terms.input(fmt::format("x{}[{}]", operand, at), input_bits(code, operand)));
    if (repeats && !is_made) shared.push_back(tensor.inputs.back());
    const auto element = element_of(code, operand, tensor.inputs.back());
    if (!element) return element.error();
    tensor.elements.push_back(*element);
  }
  return {};
}

/// Bytes that may be anything, and are remembered.
void NestRun::fill_output(size_t operand) {
  machine::Region<Symbols>& region = region_of(operand);
  for (SymbolByte& byte : region.bytes) byte = {machine_.domain().terms().input("before", 8), 0};
  region.is_known.assign(region.size(), true);
  before_[operand] = region.bytes;
}

/// The bytes that elements make.
void NestRun::fill(size_t operand) {
  const NestTensor& tensor = tensors_[operand];
  machine::Region<Symbols>& region = region_of(operand);
  region.is_known.assign(region.size(), true);
  const int bits = tensor.bits_each();
  if (bits >= 8) {
    for (size_t i = 0; i < tensor.elements.size(); ++i) {
      Symbols::split(extend_zero(tensor.elements[i], bits),
                     region.bytes.data() + i * static_cast<size_t>(bits) / 8);
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

void NestRun::add_constants(std::string name, uint64_t address, std::span<const uint8_t> bytes) {
  machine::Region<Symbols>& region =
      machine_.memory().add(std::move(name), address, bytes.size(), false);
  machine::fill(machine_.domain(), region, std::as_bytes(bytes));
}

namespace {

/// Which period the n-th element from a period's beginning is in, for all n that chunks ask for.
std::vector<uint8_t> numbers_of_periods(int64_t period) {
  constexpr int64_t longest_chunk = 64;
  std::vector<uint8_t> numbers;
  for (int64_t n = 0; n < period + 2 * longest_chunk; ++n) {
    numbers.push_back(static_cast<uint8_t>(n / period));
  }
  return numbers;
}

}  // namespace

void NestRun::fill_arguments(const NestSubject& code) {
  jit::IterationSpace space;
  space.form = code.form;
  space.period = code.period;
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
  if (code.form.has(Access::repeated)) {
    words[layout.period_numbers()] = period_numbers;
    add_constants("the numbers of periods", period_numbers, numbers_of_periods(code.period));
  }
  std::vector<uint8_t> bytes(8 * words.size());
  std::memcpy(bytes.data(), words.data(), bytes.size());
  add_constants("the arguments", arguments, bytes);
}

/// What each bit of the region is.
std::vector<NestRun::BitUse> NestRun::uses_of_bits(size_t operand) {
  const NestTensor& tensor = tensors_[operand];
  std::vector<BitUse> uses(8 * region_of(operand).size(), BitUse::gap);
  std::vector<int64_t> index(extents_.size(), 0);
  do {
    const BitUse use = index[0] < begun_ ? BitUse::earlier_element : BitUse::element;
    for (int b = 0; b < bits_of(tensor.type); ++b) {
      const int64_t at =
          storage_bit(tensor.type, tensor.number_of(index), b) - 8 * skipped_bytes_[operand];
      if (at >= 0) uses[static_cast<size_t>(at)] = use;
    }
  } while (advance(index, extents_));
  return uses;
}

Term NestRun::gaps_change() {
  Term changes = machine_.domain().terms().truth(false);
  for (size_t k = 0; k < tensors_.size(); ++k) {
    const bool has_gaps =
        tensors_[k].access == Access::strided || tensors_[k].access == Access::bitwise;
    if (!tensors_[k].is_output || !has_gaps || tensors_[k].count == 0) continue;
    const std::vector<BitUse> uses = uses_of_bits(k);
    const machine::Region<Symbols>& region = region_of(k);
    for (size_t i = 0; i < uses.size(); ++i) {
      const bool is_kept = uses[i] == BitUse::earlier_element && i < 8 && begun_ > 0;
      if (uses[i] != BitUse::gap && !is_kept) continue;
      const SymbolByte& was = is_kept ? kept_[k] : before_[k][i / 8];
      const int b = static_cast<int>(i % 8);
      changes = changes | not_equal(bit(Symbols::join(&region.bytes[i / 8], 1), b),
                                    bit(Symbols::join(&was, 1), b));
    }
  }
  return changes;
}

Term NestRun::element_before(size_t operand, int64_t number) const {
  const int bytes = bits_of(tensors_[operand].type) / 8;
  const auto first = static_cast<size_t>(number * bytes - skipped_bytes_[operand]);
  return Symbols::join(&before_[operand][first], bytes);
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
