// SPDX-License-Identifier: Apache-2.0
#include "tests/support/golden_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>
#include <vector>

#include "jit/requantize/byte_table_kernel.hpp"
#include "tests/support/golden_spec_fields.hpp"

namespace castor::test {

namespace {

// ---- reading

Error unknown(std::string_view word, std::string_view kind) {
  return {ErrorCode::invalid_argument, fmt::format("'{}' is no field of {}", word, kind)};
}

template <class Value, size_t count>
bool read_word(std::string_view text, const std::pair<std::string_view, Value> (&known)[count],
               Value& value) {
  for (const auto& [word, meant] : known) {
    if (text != word) continue;
    value = meant;
    return true;
  }
  return false;
}

/// A switch has no text after its word.
bool read_value(std::optional<std::string_view> text, bool& value) {
  value = true;
  return !text;
}

bool read_value(std::optional<std::string_view> text, int& value) {
  if (!text) return false;
  const char* const end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, value);
  return error == std::errc() && rest == end;
}

bool read_value(std::optional<std::string_view> text, jit::WindowSums& value) {
  return text && read_word(*text, window_sums_words, value);
}

bool read_value(std::optional<std::string_view> text, jit::PixelSource& value) {
  return text && read_word(*text, source_words, value);
}

/// Reads one "word" or "word=value".
template <class Spec>
Status read_field(std::string_view text, Spec& spec) {
  const size_t equals = text.find('=');
  const std::string_view word = text.substr(0, equals);
  std::optional<std::string_view> value;
  if (equals != std::string_view::npos) value = text.substr(equals + 1);
  for (const Field<Spec>& field : fields_of<Spec>) {
    if (field.word != word) continue;
    const bool is_read =
        std::visit([&](auto member) { return read_value(value, spec.*member); }, field.member);
    if (is_read) return {};
  }
  return unknown(text, kind_of<Spec>);
}

template <class Spec>
Status read_fields(std::istringstream& words, Spec& spec) {
  for (std::string word; words >> word;) {
    if (Status status = read_field<Spec>(word, spec); !status) return status;
  }
  return {};
}

template <class Block>
Status append_blocks(const std::string& text, std::vector<Block>& blocks) {
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    std::istringstream words(part);
    if (Status status = read_fields(words, blocks.emplace_back()); !status) return status;
  }
  return {};
}

/// Reads a spec of the first of the variant's types whose kind it is.
template <size_t index = 0>
Result<KernelSpec> read_spec_of(const std::string& kind, std::istringstream& words) {
  if constexpr (index == std::variant_size_v<KernelSpec>) {
    return Error{ErrorCode::invalid_argument, fmt::format("'{}' is no kind of kernel", kind)};
  } else {
    std::variant_alternative_t<index, KernelSpec> spec;
    if (kind != kind_of<decltype(spec)>) return read_spec_of<index + 1>(kind, words);
    if (Status status = read_fields(words, spec); !status) return status.error();
    return KernelSpec(std::move(spec));
  }
}

// ---- emitting

template <class Spec>
constexpr bool is_microkernel = false;
template <>
constexpr bool is_microkernel<ConvTile> = true;
template <>
constexpr bool is_microkernel<ChannelTile> = true;
template <>
constexpr bool is_microkernel<DepthwiseForm> = true;
template <>
constexpr bool is_microkernel<GroupedNhwcForm> = true;

using jit::Target;

bool has_code(const PlaneForm& spec, const Target& target) { return can_fill(spec, target); }
bool has_code(const WindowForm& spec, const Target& target) { return can_fill(spec, target); }
bool has_code(const WeightUnit& spec, const Target& target) { return can_pack(spec, target); }
bool has_code(const ByteTableSpec&, const Target& target) { return has_byte_tables(target); }
template <class Microkernel>
bool has_code(const Microkernel& spec, const Target& target) {
  return fits(spec, target);
}

Result<jit::MachineCode> emit(const PlaneForm& spec, const Target& target) {
  return emit_fill_planes(spec, target);
}
Result<jit::MachineCode> emit(const WindowForm& spec, const Target& target) {
  return emit_fill_windows(spec, target);
}
Result<jit::MachineCode> emit(const WeightUnit& spec, const Target& target) {
  return emit_pack_weights(spec, target);
}
Result<jit::MachineCode> emit(const ByteTableSpec&, const Target&) {
  return jit::emit_byte_table();
}

using jit::TileEpilogue;

Result<jit::MachineCode> emit(const ConvTile& spec, const Target& target,
                              const TileEpilogue* epilogue) {
  return emit_conv_kernel(spec, target, epilogue);
}
Result<jit::MachineCode> emit(const ChannelTile& spec, const Target& target,
                              const TileEpilogue* epilogue) {
  return emit_channel_kernel(spec, target, epilogue);
}
Result<jit::MachineCode> emit(const DepthwiseForm& spec, const Target& target,
                              const TileEpilogue* epilogue) {
  return emit_depthwise_kernel(spec, target, epilogue);
}
Result<jit::MachineCode> emit(const GroupedNhwcForm& spec, const Target& target,
                              const TileEpilogue* epilogue) {
  return emit_grouped_nhwc_kernel(spec, target, epilogue);
}

// ---- what is shown

template <size_t count, class Value>
std::string_view word_of(const std::pair<std::string_view, Value> (&known)[count], Value value) {
  const auto* const found =
      std::ranges::find(known, value, &std::pair<std::string_view, Value>::second);
  return found == std::end(known) ? "?" : found->first;
}

/// The field with its value, where it tells anything.
template <class Spec>
std::string text_of(const Field<Spec>& field, const Spec& spec) {
  const auto text = [&](auto member) -> std::string {
    const auto& value = spec.*member;
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, bool>) {
      return value ? std::string(field.word) : "";
    } else if constexpr (std::is_same_v<Value, jit::WindowSums>) {
      return fmt::format("{}={}", field.word, word_of(window_sums_words, value));
    } else if constexpr (std::is_same_v<Value, jit::PixelSource>) {
      return fmt::format("{}={}", field.word, word_of(source_words, value));
    } else if (field.is_choice) {
      return fmt::format("{}={}", field.word, value);
    } else {
      return value == Spec{}.*member ? "" : std::string(field.word);
    }
  };
  return std::visit(text, field.member);
}

template <class Spec>
void add_switches(const Spec& spec, std::set<std::string>& shown) {
  shown.emplace(kind_of<Spec>);
  for (const Field<Spec>& field : fields_of<Spec>) {
    const std::string text = text_of(field, spec);
    if (!text.empty()) shown.insert(fmt::format("{} {}", kind_of<Spec>, text));
  }
  if constexpr (requires { spec.blocks; }) {
    for (const auto& block : spec.blocks) add_switches(block, shown);
    if (spec.blocks.size() > 1) shown.insert(fmt::format("{} several blocks", kind_of<Spec>));
  }
}

}  // namespace

Result<KernelSpec> read_kernel_spec(const std::string& words) {
  std::istringstream stream(words);
  std::string kind;
  stream >> kind;
  return read_spec_of(kind, stream);
}

Status read_blocks(const std::string& words, KernelSpec& spec) {
  return std::visit(
      [&](auto& of) -> Status {
        if constexpr (requires { of.blocks; }) {
          return append_blocks(words, of.blocks);
        } else {
          return unknown("blocks", kind_of<std::remove_cvref_t<decltype(of)>>);
        }
      },
      spec);
}

Result<jit::MachineCode> emit_spec(const KernelSpec& spec, const Target& target,
                                   const TileEpilogue* epilogue) {
  return std::visit(
      [&](const auto& of) -> Result<jit::MachineCode> {
        using Spec = std::remove_cvref_t<decltype(of)>;
        if (!has_code(of, target)) {
          return Error{ErrorCode::invalid_argument,
                       fmt::format("{} has no such {}", name_of(target.tier), kind_of<Spec>)};
        }
        if constexpr (is_microkernel<Spec>) {
          return emit(of, target, epilogue);
        } else {
          if (epilogue == nullptr) return emit(of, target);
          return Error{ErrorCode::invalid_argument,
                       fmt::format("{} takes no epilogue", kind_of<Spec>)};
        }
      },
      spec);
}

std::set<std::string> switches_of(const KernelSpec& spec, const Target& target) {
  std::set<std::string> shown;
  std::visit(
      [&](const auto& of) {
        using Spec = std::remove_cvref_t<decltype(of)>;
        add_switches(of, shown);
        if constexpr (is_microkernel<Spec>) {
          const bool is_u8 = dot_product_of(target) == jit::DotProduct::bytes;
          shown.insert(fmt::format("{} k_group={}", kind_of<Spec>, is_u8 ? "4xu8" : "2xi16"));
        }
      },
      spec);
  return shown;
}

}  // namespace castor::test
