// SPDX-License-Identifier: Apache-2.0
// Comparing and hashing functions by what they compute.
#include "ir/function.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "ir/support/enumeration.hpp"
#include "ir/support/process_key.hpp"
#include "ir/support/sip_hash.hpp"

namespace castor {

namespace {

__extension__ using Wide = unsigned __int128;

/// Mixes one word into a state: a 64 x 64 -> 128 bit product folded to 64 bits. Both factors
/// depend on the state, and the second is never zero.
uint64_t mixed(uint64_t state, uint64_t word) {
  const uint64_t a = state ^ word ^ 0x9E3779B97F4A7C15;
  const uint64_t b = std::rotl(state, 29) + 0xD6E8FEB86659FD93;
  const auto product = static_cast<Wide>(a) * (b | 1);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64) ^ word;
}

/// Words in sequence; `finish` spreads the last ones over all bits.
class Hasher {
 public:
  Hasher& add(uint64_t word) {
    state_ = mixed(state_, word);
    return *this;
  }
  Hasher& add(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return add(content_hash(bytes));
  }
  uint64_t finish() const { return mixed(mixed(state_, 1), 2); }

 private:
  uint64_t state_ = 0x243F6A8885A308D3;
};

uint64_t hash_of(const AttributeValue& value) {
  return Hasher().add(value.value.index()).add(to_string(value)).finish();
}

/// Independent of the order of attributes: their names are unique.
uint64_t hash_of(const Attributes& attributes) {
  uint64_t sum = attributes.size();
  for (const Attribute& attribute : attributes) {
    sum += Hasher().add(attribute.name).add(hash_of(attribute.value)).finish();
  }
  return sum;
}

uint64_t hash_of(const Shape& shape) {
  Hasher hasher;
  hasher.add(shape.size());
  for (const Dim& dim : shape) {
    hasher.add(static_cast<uint64_t>(dim.extent)).add(dim.name);
  }
  return hasher.finish();
}

uint64_t hash_of(const TensorType& type) {
  Hasher hasher;
  hasher.add(static_cast<uint64_t>(type.element)).add(hash_of(type.shape));
  if (type.quantization) hasher.add(to_string(*type.quantization));
  return hasher.finish();
}

/// By ValueId, the position of each value in the order of definition: parameters, then results of
/// operations. Absent and undefined operands have the position `no_value`.
class Positions {
 public:
  explicit Positions(const Function& function) : positions_(function.values.size(), no_value) {
    uint32_t next = 0;
    const auto define = [&](ValueId id) {
      if (id < positions_.size()) positions_[id] = next++;
    };
    std::ranges::for_each(function.parameters, define);
    for (const Operation& operation : function.operations) {
      std::ranges::for_each(operation.results, define);
    }
  }
  uint32_t of(ValueId id) const { return id < positions_.size() ? positions_[id] : no_value; }

 private:
  std::vector<uint32_t> positions_;
};

bool same_attributes(const Attributes& a, const Attributes& b) {
  return a.size() == b.size() && std::all_of(a.begin(), a.end(), [&](const Attribute& attribute) {
           const AttributeValue* other = find(b, attribute.name);
           return other && *other == attribute.value;
         });
}

bool same_data(const Operation& a, const Operation& b) {
  if (a.data == b.data) return true;
  if (!a.data || !b.data || a.data->bytes.size() != b.data->bytes.size()) return false;
  if (a.data_id.is_of(a.data) && b.data_id.is_of(b.data)) {
    return a.data_id.same_content(b.data_id);
  }
  return a.data->bytes == b.data->bytes;
}

/// Compares two functions value by value, each numbered by its own positions.
class Comparison {
 public:
  Comparison(const Function& a, const Function& b)
      : a_(a), b_(b), positions_a_(a), positions_b_(b) {}

  /// Functions that nobody has verified yet may name values that there are not.
  bool same() const {
    return names_values(a_) && names_values(b_) && same_definitions(a_.parameters, b_.parameters) &&
           same_results() && same_attributes(a_.attributes, b_.attributes) &&
           std::equal(a_.operations.begin(), a_.operations.end(), b_.operations.begin(),
                      b_.operations.end(),
                      [&](const Operation& x, const Operation& y) { return same_operation(x, y); });
  }

 private:
  static bool names_values(const Function& function) {
    const auto all = [&](const std::vector<ValueId>& ids) {
      return std::ranges::all_of(ids, [&](ValueId id) { return id < function.values.size(); });
    };
    return all(function.parameters) && all(function.results) &&
           std::ranges::all_of(function.operations,
                               [&](const Operation& each) { return all(each.results); });
  }
  bool same_uses(const std::vector<ValueId>& x, const std::vector<ValueId>& y) const {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [&](ValueId i, ValueId j) {
      return positions_a_.of(i) == positions_b_.of(j);
    });
  }
  bool same_definitions(const std::vector<ValueId>& x, const std::vector<ValueId>& y) const {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [&](ValueId i, ValueId j) { return a_.type_of(i) == b_.type_of(j); });
  }
  bool same_results() const {
    return same_uses(a_.results, b_.results) && a_.result_types == b_.result_types;
  }
  bool same_operation(const Operation& x, const Operation& y) const {
    return x.op == y.op && same_uses(x.operands, y.operands) &&
           same_definitions(x.results, y.results) && same_attributes(x.attributes, y.attributes) &&
           x.target == y.target && same_data(x, y);
  }

  const Function& a_;
  const Function& b_;
  Positions positions_a_;
  Positions positions_b_;
};

/// Contents of at least these bytes are hashed in parts, at the same time.
constexpr size_t long_content = 65536;

/// A key for parts of contents, which follows from the process's own and is no content's id.
SipHash::Key part_key(uint64_t part) {
  const SipHash::Key key = process_key();
  SipHash hash({~key.low, ~key.high});
  hash.add(std::as_bytes(std::span(&part, 1)));
  const uint64_t low = hash.low();
  return {low, hash.high()};
}

/// The hashes of a long content's halves, its last byte, and whether its length is odd.
std::array<std::byte, 5 * sizeof(uint64_t)> hashes_of_halves(std::span<const std::byte> bytes) {
  SipHash first(part_key(1));
  SipHash second(part_key(2));
  const size_t half = bytes.size() / 2;
  SipHash::add_both(first, bytes.first(half), second, bytes.subspan(half, half));
  const uint64_t last = std::to_integer<uint64_t>(bytes.back()) | bytes.size() % 2 << 8;
  // The elements of a list are evaluated in their order.
  const std::array<uint64_t, 5> hashes = {first.low(), first.high(), second.low(), second.high(),
                                          last};
  return std::bit_cast<std::array<std::byte, sizeof hashes>>(hashes);
}

/// content_hash of a long content: four states take words in turn.
uint64_t hash_of_lanes(std::span<const std::byte> bytes) {
  constexpr size_t lanes = 4;
  constexpr size_t step = lanes * sizeof(uint64_t);
  std::array<uint64_t, lanes> states = {0xA4093822299F31D0, 0x082EFA98EC4E6C89, 0x452821E638D01377,
                                        0xBE5466CF34E90C6C};
  std::array<uint64_t, lanes> words;
  const size_t whole = bytes.size() / step * step;
  for (size_t at = 0; at < whole; at += step) {
    std::memcpy(words.data(), bytes.data() + at, step);
    for (size_t i = 0; i < lanes; ++i) states[i] = mixed(states[i], words[i]);
  }
  words = {};
  if (whole < bytes.size()) std::memcpy(words.data(), bytes.data() + whole, bytes.size() - whole);
  Hasher all;
  all.add(bytes.size());
  for (size_t i = 0; i < lanes; ++i) all.add(states[i]).add(words[i]);
  return all.finish();
}

std::string_view identifier_of(const Attributes& attributes, std::string_view name) {
  const AttributeValue* value = find(attributes, name);
  const Identifier* identifier = value ? std::get_if<Identifier>(&value->value) : nullptr;
  return identifier ? std::string_view(identifier->name) : std::string_view();
}

}  // namespace

ContentId::ContentId(std::shared_ptr<const ConstantData> data) : data_(std::move(data)) {
  if (!data_) return;
  const std::span<const std::byte> bytes = data_->bytes;
  SipHash hash(process_key());
  if (bytes.size() < long_content) {
    hash.add(bytes);
  } else {
    hash.add(hashes_of_halves(bytes));
  }
  low_ = hash.low();
  high_ = hash.high();
}

uint64_t content_hash(std::span<const std::byte> bytes) {
  if (bytes.size() >= long_content) return hash_of_lanes(bytes);
  uint64_t state = mixed(0x13198A2E03707344, bytes.size());
  while (!bytes.empty()) {
    const size_t count = std::min<size_t>(bytes.size(), sizeof(uint64_t));
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), count);
    state = mixed(state, word);
    bytes = bytes.subspan(count);
  }
  return mixed(mixed(state, 1), 2);
}

uint64_t structural_hash(const Function& function) {
  const Positions positions(function);
  Hasher hasher;
  hasher.add(function.parameters.size());
  for (ValueId id : function.parameters) hasher.add(hash_of(function.type_of(id)));
  for (const Operation& operation : function.operations) {
    hasher.add(static_cast<uint64_t>(operation.op)).add(operation.operands.size());
    for (ValueId id : operation.operands) hasher.add(positions.of(id));
    hasher.add(hash_of(operation.attributes)).add(operation.data ? operation.data_hash : 0);
    if (operation.target) hasher.add(hash_of(*operation.target));
    for (ValueId id : operation.results) hasher.add(hash_of(function.type_of(id)));
  }
  hasher.add(function.results.size());
  for (ValueId id : function.results) hasher.add(positions.of(id));
  for (const TensorType& type : function.result_types) hasher.add(hash_of(type));
  return hasher.add(hash_of(function.attributes)).finish();
}

bool same_computation(const Function& a, const Function& b) {
  return &a == &b || (a.hash == b.hash && Comparison(a, b).same());
}

ConvertOptions convert_options(const Operation& operation) {
  const Attributes& attributes = operation.attributes;
  ConvertOptions options;
  options.overflow = overflow_named(identifier_of(attributes, "overflow")).value_or(Overflow{});
  options.rounding = rounding_named(identifier_of(attributes, "rounding")).value_or(Rounding{});
  options.nan = nan_mode_named(identifier_of(attributes, "nan")).value_or(NanMode{});
  return options;
}

Attributes attributes_of(const ConvertOptions& options) {
  Attributes attributes;
  const auto add = [&](const char* name, std::string_view value) {
    if (!value.empty()) attributes.push_back({name, {Identifier{std::string(value)}}});
  };
  add("overflow", name_in(overflow_names, options.overflow));
  add("rounding", name_in(rounding_names, options.rounding));
  add("nan", name_in(nan_mode_names, options.nan));
  return attributes;
}

}  // namespace castor
