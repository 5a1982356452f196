// SPDX-License-Identifier: Apache-2.0
// The attributes of convolutions.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "ir/shape/convolution_axis.hpp"
#include "ir/support/enumeration.hpp"

namespace castor {

using detail::window_mistake;

namespace {

constexpr std::array<std::string_view, 4> auto_pad_names = {"notset", "same_upper", "same_lower",
                                                            "valid"};
constexpr std::array<std::string_view, 2> layout_names = {"nchw", "nhwc"};

Error wrong_kind(OpKind op, std::string_view name, const AttributeValue& value,
                 std::string_view expected) {
  return window_mistake(op, fmt::format("{} = {} is {}, expected {}", name, to_string(value),
                                        kind_name(value), expected));
}

/// An identifier among `names`, which are in the order of the enumeration.
template <class Choice, size_t count>
Status read_choice(OpKind op, const Attributes& attributes, std::string_view name,
                   const std::array<std::string_view, count>& names, Choice& choice) {
  const AttributeValue* value = find(attributes, name);
  if (!value) return {};
  const auto* identifier = std::get_if<Identifier>(&value->value);
  if (!identifier) return wrong_kind(op, name, *value, "an identifier");
  const auto at = std::ranges::find(names, identifier->name);
  if (at == names.end()) {
    return window_mistake(
        op, fmt::format("{} = {}, expected {}", name, identifier->name, fmt::join(names, ", ")));
  }
  choice = static_cast<Choice>(at - names.begin());
  return {};
}

Status read_group(OpKind op, const Attributes& attributes, int64_t& group) {
  const AttributeValue* value = find(attributes, "group");
  if (!value) return {};
  const auto* integer = std::get_if<int64_t>(&value->value);
  if (!integer) return wrong_kind(op, "group", *value, "an integer");
  if (*integer < 1)
    return window_mistake(op, fmt::format("group = {}, expected 1 or more", *integer));
  group = *integer;
  return {};
}

/// What an attribute that is a list holds.
struct ListRule {
  std::string_view name;
  int each;             ///< entries for each spatial axis
  int64_t min;          ///< smallest value of an entry
  bool has_default;     ///< whether it stands in full length if it is not written
  int64_t otherwise{};  ///< entries then
};

Status read_entries(OpKind op, const ListRule& rule, const AttributeValue::List& list,
                    std::vector<int64_t>& entries) {
  for (size_t i = 0; i < list.size(); ++i) {
    const auto* integer = std::get_if<int64_t>(&list[i].value);
    if (!integer) {
      return wrong_kind(op, fmt::format("{}[{}]", rule.name, i), list[i], "an integer");
    }
    if (*integer < rule.min) {
      return window_mistake(
          op, fmt::format("{}[{}] = {}, expected {} or more", rule.name, i, *integer, rule.min));
    }
    entries.push_back(*integer);
  }
  return {};
}

Status read_list(OpKind op, const Attributes& attributes, const ListRule& rule, int spatial_axes,
                 std::vector<int64_t>& entries) {
  const auto length = static_cast<size_t>(spatial_axes * rule.each);
  const AttributeValue* value = find(attributes, rule.name);
  if (!value) {
    if (rule.has_default) entries.assign(length, rule.otherwise);
    return {};
  }
  const auto* list = std::get_if<AttributeValue::List>(&value->value);
  if (!list) return wrong_kind(op, rule.name, *value, "a list of integers");
  if (list->size() != length) {
    return window_mistake(
        op, fmt::format("{} has {} entries, expected {}: {} for each spatial axis", rule.name,
                        list->size(), length, rule.each == 1 ? "one" : "two"));
  }
  return read_entries(op, rule, *list, entries);
}

constexpr ListRule dilations{"dilations", 1, 1, true, 1};
constexpr ListRule kernel_shape{"kernel_shape", 1, 1, false};
constexpr ListRule pads{"pads", 2, 0, true, 0};
constexpr ListRule strides{"strides", 1, 1, true, 1};

Status check_together(OpKind op, const Attributes& attributes, AutoPad auto_pad) {
  if (auto_pad == AutoPad::notset || !find(attributes, "pads")) return {};
  return window_mistake(
      op, fmt::format("found pads with auto_pad = {}, expected it with auto_pad = notset only",
                      auto_pad_names[static_cast<size_t>(auto_pad)]));
}

}  // namespace

Result<ConvolutionOptions> convolution_options(const Operation& operation, int spatial_axes) {
  const OpKind op = operation.op;
  const Attributes& given = operation.attributes;
  ConvolutionOptions options;
  Status status = read_choice(op, given, "auto_pad", auto_pad_names, options.auto_pad);
  if (status) status = read_choice(op, given, "layout", layout_names, options.layout);
  if (status) status = read_group(op, given, options.group);
  if (status) status = read_list(op, given, dilations, spatial_axes, options.dilations);
  if (status) status = read_list(op, given, kernel_shape, spatial_axes, options.kernel_shape);
  if (status) status = check_together(op, given, options.auto_pad);
  if (status) status = read_list(op, given, pads, spatial_axes, options.pads);
  if (status) status = read_list(op, given, strides, spatial_axes, options.strides);
  if (!status) return status.error();
  return options;
}

Attributes attributes_of(const ConvolutionOptions& options) {
  Attributes attributes;
  const auto add_list = [&](const ListRule& rule, const std::vector<int64_t>& entries) {
    if (entries.empty()) return;
    AttributeValue::List list;
    for (int64_t entry : entries) list.push_back({entry});
    attributes.push_back({std::string(rule.name), {std::move(list)}});
  };
  const auto add_choice = [&](const char* name, std::string_view choice) {
    attributes.push_back({name, {Identifier{std::string(choice)}}});
  };
  if (options.auto_pad != AutoPad::notset) {
    add_choice("auto_pad", name_in(auto_pad_names, options.auto_pad));
  }
  add_list(dilations, options.dilations);
  if (options.group != 1) attributes.push_back({"group", {options.group}});
  add_list(kernel_shape, options.kernel_shape);
  add_list(pads, options.pads);
  add_list(strides, options.strides);
  if (options.layout == ConvolutionLayout::nhwc) add_choice("layout", "nhwc");
  return attributes;
}

}  // namespace castor
