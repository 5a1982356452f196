// SPDX-License-Identifier: Apache-2.0
#include "tests/support/golden_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>
#include <vector>

#include "jit/kernel/spec_words.hpp"

namespace castor::test {

namespace {

// ---- reading

Error unknown(std::string_view word, std::string_view kind) {
  return {ErrorCode::invalid_argument, fmt::format("'{}' is no field of {}", word, kind)};
}

/// Reads what stands after a field's word and '='. A switch has nothing there; a list is not read.
template <class Value>
bool read_value(std::optional<std::string_view> text, Value& value) {
  if constexpr (std::is_same_v<Value, bool>) {
    value = true;
    return !text;
  } else if constexpr (std::is_enum_v<Value>) {
    const auto names = names_of(value);
    const auto* const found = text ? std::ranges::find(names, *text) : names.end();
    if (found == names.end()) return false;
    value = static_cast<Value>(found - names.begin());
    return true;
  } else if constexpr (std::is_integral_v<Value>) {
    if (!text) return false;
    const char* const end = text->data() + text->size();
    const auto [next, error] = std::from_chars(text->data(), end, value);
    return error == std::errc() && next == end;
  } else {
    return false;
  }
}

/// Reads one "word" or "word=value".
template <class Spec>
Status read_field(std::string_view text, std::string_view kind, Spec& spec) {
  const size_t equals = text.find('=');
  const std::string_view word = text.substr(0, equals);
  std::optional<std::string_view> value;
  if (equals != std::string_view::npos) value = text.substr(equals + 1);
  bool is_read = false;
  jit::for_each_field(spec, [&](std::string_view name, auto& member) {
    if (name == word) is_read = read_value(value, member);
  });
  return is_read ? Status() : Status(unknown(text, kind));
}

template <class Spec>
Status read_fields(std::istringstream& words, std::string_view kind, Spec& spec) {
  for (std::string word; words >> word;) {
    if (Status status = read_field(word, kind, spec); !status) return status;
  }
  return {};
}

template <class Block>
Status append_blocks(const std::string& text, std::string_view kind, std::vector<Block>& blocks) {
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    std::istringstream words(part);
    if (Status status = read_fields(words, kind, blocks.emplace_back()); !status) return status;
  }
  return {};
}

/// Reads a spec of the first of the variant's types whose kind it is.
template <size_t index = 0>
Result<KernelSpec> read_spec_of(const std::string& kind, std::istringstream& words) {
  if constexpr (index == std::variant_size_v<KernelSpec>) {
    return Error{ErrorCode::invalid_argument, fmt::format("'{}' is no kind of kernel", kind)};
  } else {
    using Spec = std::variant_alternative_t<index, KernelSpec>;
    if (kind != Spec::name) return read_spec_of<index + 1>(kind, words);
    Spec spec;
    if (Status status = read_fields(words, Spec::name, spec); !status) return status.error();
    return KernelSpec(std::move(spec));
  }
}

// ---- emitting

using jit::Target;

bool has_code(const jit::ByteTableSpec&, const Target& target) { return has_byte_tables(target); }
bool has_code(const jit::TileCopySpec&, const Target&) { return true; }
template <class Spec>
bool has_code(const Spec& spec, const Target& target) {
  return fits(spec, target);
}

// ---- what is shown

/// Numbers of which each value is something else to show.
constexpr std::string_view choices[] = {"pixel_vectorised peeled_k_steps",
                                        "channel_vectorised peeled_k_steps",
                                        "depthwise row_stride",
                                        "depthwise k_groups",
                                        "depthwise source_bytes",
                                        "grouped_nhwc row_stride",
                                        "grouped_nhwc column_stride",
                                        "grouped_nhwc k_groups",
                                        "pack_input column_stride"};

template <class Spec>
std::string kind_of(const Spec&) {
  return std::string(Spec::name);
}
std::string kind_of(const jit::DenseTile& tile) {
  return tile.vectorised == jit::Vectorised::pixels ? "pixel_vectorised" : "channel_vectorised";
}

/// What the fields of a spec of that kind show: choices always, others where they differ from
/// their defaults.
template <class Spec>
void add_switches(const std::string& kind, const Spec& spec, std::set<std::string>& shown) {
  shown.insert(kind);
  const auto add = [&]<class Value>(const jit::SpecField<Spec, Value>& field) {
    const Value& value = spec.*field.member;
    const std::string name = fmt::format("{} {}", kind, field.word);
    if constexpr (requires { value.begin(); }) {
      for (const auto& element : value) add_switches(kind + " block", element, shown);
      if (value.size() > 1) shown.insert(fmt::format("{} several {}", kind, field.word));
    } else if (std::is_enum_v<Value> || std::ranges::count(choices, name) > 0) {
      shown.insert(fmt::format("{}={}", name, jit::value_text(value)));
    } else if (value != Spec{}.*field.member) {
      shown.insert(name);
    }
  };
  const auto add_listed = [&]<class Listed>(const Listed& listed) {
    if constexpr (requires { listed.word; }) add(listed);
  };
  Spec::fields([&](const auto&... listed) { (add_listed(listed), ...); });
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
      [&]<class Spec>(Spec& of) -> Status {
        if constexpr (requires { of.ranges; }) {
          return append_blocks(words, fmt::format("{} block", Spec::name), of.ranges);
        } else {
          return unknown("blocks", Spec::name);
        }
      },
      spec);
}

Result<jit::MachineCode> emit_spec(const KernelSpec& spec, const Target& target,
                                   const jit::TileEpilogue* epilogue,
                                   const jit::EmitOptions& options) {
  return std::visit(
      [&]<class Spec>(const Spec& of) -> Result<jit::MachineCode> {
        if (!has_code(of, target)) {
          return Error{ErrorCode::invalid_argument,
                       fmt::format("{} has no such {}", name_of(target.tier), Spec::name)};
        }
        if (!jit::AppliesEpilogues<Spec> && epilogue != nullptr) {
          return Error{ErrorCode::invalid_argument,
                       fmt::format("{} takes no epilogue", Spec::name)};
        }
        return jit::emit_any_kernel(of, target, epilogue, options);
      },
      spec);
}

std::set<std::string> switches_of(const KernelSpec& spec) {
  std::set<std::string> shown;
  std::visit([&]<class Spec>(const Spec& of) { add_switches(kind_of(of), of, shown); }, spec);
  return shown;
}

}  // namespace castor::test
