// SPDX-License-Identifier: Apache-2.0
// What names of all kinds of code have in common, and names of nests' code.
#include "runtime/observe/code_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "ir/types/excess_precision.hpp"

namespace castor {

namespace {

/// Maximum number of operations that a name lists; then it says how many more there are.
constexpr size_t max_named_operations = 4;

/// Words with an underscore between; runs of equal words once, with their number.
class Words {
 public:
  void add(std::string_view word) {
    if (word == last_) {
      ++times_;
      return;
    }
    flush();
    last_ = word;
    times_ = 1;
  }
  std::string take() {
    flush();
    return std::move(text_);
  }

 private:
  void flush() {
    if (times_ == 0) return;
    if (!text_.empty()) text_ += '_';
    text_ += last_;
    if (times_ > 1) text_ += fmt::format("x{}", times_);
    times_ = 0;
  }

  std::string text_;
  std::string last_;
  int times_ = 0;
};

std::string operations_text(const Function& function, std::span<const uint32_t> operations) {
  Words words;
  const size_t named = std::min(operations.size(), max_named_operations);
  for (const uint32_t index : operations.first(named)) {
    words.add(name_of(function.operations[index].op));
  }
  std::string text = words.take();
  if (operations.size() > named) text += fmt::format("_and_{}_more", operations.size() - named);
  return text;
}

/// "_saturate_down": the options of a conversion that are not its types' own.
std::string options_text(const Function& function, const Operation& operation) {
  const ElementType from = function.type_of(operation.operands[0]).element;
  const ElementType to = function.type_of(operation.results[0]).element;
  const ConvertOptions options = canonical_options(from, to, convert_options(operation));
  std::string text;
  const auto add = [&](std::string_view prefix, std::string_view word) {
    if (!word.empty()) text += fmt::format("_{}{}", prefix, word);
  };
  add(options.overflow == Overflow::nan ? "overflow_" : "",
      overflow_names[static_cast<size_t>(options.overflow)]);
  add("", rounding_names[static_cast<size_t>(options.rounding)]);
  add("nan_", nan_mode_names[static_cast<size_t>(options.nan)]);
  return text;
}

/// Whether the operation's name, its options and the operands' types say all of what is computed.
bool says_all(const Function& function, const jit::Nest& nest, const Operation& operation) {
  if (operation.op != OpKind::convert && !operation.attributes.empty()) return false;
  if (allows_excess_precision(function) || nest.outputs.size() != 1) return false;
  if (operation.operands.size() != nest.inputs.size()) return false;
  for (size_t i = 0; i < nest.inputs.size(); ++i) {  // each operand once, in order
    if (operation.operands[i] != nest.inputs[i].value) return false;
    if (std::ranges::count(operation.operands, operation.operands[i]) != 1) return false;
  }
  return true;
}

struct NestWords {
  std::string what;
  bool says_all = false;
};

NestWords words_of(const Function* function, const jit::Nest& nest) {
  if (!nest.method.empty()) return {fmt::format("requantize_{}", nest.method)};
  if (function == nullptr) return {"nest"};
  const std::vector<uint32_t> operations = operations_of(*function, nest);
  if (operations.empty()) return {"copy"};
  NestWords words{operations_text(*function, operations)};
  if (operations.size() > 1) return words;
  const Operation& operation = function->operations[operations.front()];
  words.says_all = says_all(*function, nest, operation);
  if (operation.op == OpKind::convert) words.what += options_text(*function, operation);
  return words;
}

std::string types_text(const jit::Nest& nest) {
  Words inputs;
  Words outputs;
  for (size_t k = 0; k < nest.operands(); ++k) {
    (k < nest.inputs.size() ? inputs : outputs).add(name_of(nest.element(k)));
  }
  const std::string read = inputs.take();
  return read + (read.empty() ? "" : "_") + outputs.take();
}

/// The access patterns of operands, one word where all are equal, and how loops differ from the
/// ordinary.
std::string form_text(const jit::NestForm& form) {
  Words words;
  const bool all_alike =
      std::ranges::all_of(form.access, [&](jit::Access each) { return each == form.access[0]; });
  for (const jit::Access access :
       std::span(form.access).first(all_alike ? 1 : form.access.size())) {
    words.add(name_of(access));
  }
  std::string text = words.take();
  if (form.rank > 1) text += fmt::format("_loops{}", form.rank);
  if (form.baked_period > 0) text += fmt::format("_period{}", form.baked_period);
  if (form.folded_row > 0) text += fmt::format("_rows_of{}", form.folded_row);
  if (form.stores == jit::Stores::streaming) text += "_streaming";
  if (form.prefetch != jit::Prefetch{}) text += "_prefetching";
  return text;
}

}  // namespace

std::vector<uint32_t> operations_of(const Function& function, const jit::Nest& nest) {
  std::vector<bool> needed(function.values.size(), false);
  for (const jit::NestOutput& output : nest.outputs) {
    const ValueId value = output.is_scratch() ? output.value : function.results[output.result];
    needed[value] = true;
  }
  for (const jit::NestInput& input : nest.inputs) needed[input.value] = false;
  std::vector<uint32_t> operations;
  for (size_t i = function.operations.size(); i-- > 0;) {
    const Operation& operation = function.operations[i];
    const auto is_needed = [&](ValueId value) { return needed[value]; };
    if (!std::ranges::any_of(operation.results, is_needed)) continue;
    if (info(operation.op).family == OpFamily::source) continue;
    operations.push_back(static_cast<uint32_t>(i));
    for (const ValueId operand : operation.operands) {
      const auto reads = [&](const jit::NestInput& input) { return input.value == operand; };
      if (operand != no_value && std::ranges::none_of(nest.inputs, reads)) needed[operand] = true;
    }
  }
  std::ranges::reverse(operations);
  return operations;
}

std::string code_name(const Function* function, const jit::Nest& nest, const jit::NestForm& form,
                      const jit::Target& target, std::string_view key) {
  const NestWords words = words_of(function, nest);
  const std::string front = fmt::format("{}_{}_{}", words.what, types_text(nest), form_text(form));
  return bounded_name(front, name_of(target.tier), words.says_all, key);
}

std::string as_identifier(std::string_view text) {
  std::string name;
  for (const char c : text.substr(0, max_name_characters)) {
    const bool admitted =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (admitted) name += c;
    if (!admitted && !name.ends_with('_')) name += '_';
  }
  return name;
}

std::string short_hash(std::string_view bytes) {
  const uint64_t hash = content_hash(std::as_bytes(std::span(bytes)));
  return fmt::format("{:08x}", static_cast<uint32_t>(hash ^ hash >> 32));
}

std::string bounded_name(std::string_view front, std::string_view back, bool says_all,
                         std::string_view key) {
  constexpr std::string_view prefix = "castor_";
  std::string ending = back.empty() ? "" : fmt::format("_{}", back);
  const bool is_long = prefix.size() + front.size() + ending.size() > max_name_characters;
  if (!says_all || is_long) ending += "_" + short_hash(key);
  const size_t room = max_name_characters - prefix.size() - ending.size();
  return as_identifier(fmt::format("{}{}{}", prefix, front.substr(0, room), ending));
}

}  // namespace castor
