// SPDX-License-Identifier: Apache-2.0
#include "runtime/check/check_overlap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory_resource>
#include <optional>
#include <vector>

namespace castor {

namespace {

/// Up to this number of tensors, each is compared with each.
constexpr size_t few_tensors = 16;

Error invalid(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

/// One tensor of a call.
struct Placed {
  Footprint at;
  bool is_output = false;
  size_t index = 0;  ///< among inputs or outputs
};

/// Steps that deciding a pair takes without being counted. What further steps the pairs of a call
/// take comes out of one account, of max_overlap_steps: many pairs take no longer than one.
constexpr int64_t free_steps = 128;

/// Pairs of a call whose ranges of addresses meet, and that are decided: about 360 outputs that all
/// interleave.
constexpr int64_t max_pairs = int64_t{1} << 16;

/// Compares the memory of an output and of another tensor. Takes steps out of the account.
Overlap compare(const OverlapRules& rules, const Placed& output, const Placed& other,
                int64_t& account) {
  const BoundTensor& written = rules.outputs[output.index];
  const BoundTensor& second =
      other.is_output ? rules.outputs[other.index] : rules.inputs[other.index];
  int64_t steps = account + free_steps;
  const Overlap found = find_overlap(written, output.at, second, other.at, steps);
  account = std::min(account, std::max<int64_t>(steps, 0));
  return found;
}

/// Whether an output may have exactly another tensor's memory, and has its first element there.
bool is_in_place(const OverlapRules& rules, const Placed& output, const Placed& other) {
  if (other.is_output || !output.at.begins_with(other.at)) return false;
  if (output.at.empty() || other.at.empty()) return false;
  return rules.allows_in_place(other.index, output.index);
}

Error refusal(const OverlapRules& rules, size_t output, const Placed& other, bool is_certain) {
  const std::string& what = rules.outputs[output].what;
  const BoundTensor& second =
      other.is_output ? rules.outputs[other.index] : rules.inputs[other.index];
  if (!is_certain) {
    return invalid(fmt::format(
        "{} may overlap {}: their ranges of addresses meet, and {} steps for the {} pairs of a "
        "call "
        "do not tell whether strides {} over shape {} and {} over {} share a byte; expected ranges "
        "apart",
        what, second.what, max_overlap_steps, max_pairs, to_string(rules.outputs[output].strides),
        to_string(rules.outputs[output].shape), to_string(second.strides),
        to_string(second.shape)));
  }
  if (other.is_output) {
    return invalid(fmt::format("{} overlaps {}; outputs must be apart", what, second.what));
  }
  return invalid(
      fmt::format("{} overlaps {}; in place needs the same address, element size, "
                  "storage order, shape and strides, and no later use of the input",
                  what, second.what));
}

/// The pair that is reported of all that are refused: the first output, its first input, else the
/// first output before it.
struct Refused {
  size_t output;
  Placed other;
  bool is_certain;  ///< that they share a byte
  bool is_before(const Refused& later) const {
    if (output != later.output) return output < later.output;
    if (other.is_output != later.other.is_output) return later.other.is_output;
    return other.index < later.other.index;
  }
};

/// Compares pairs and remembers what comes of it.
class Comparison {
 public:
  explicit Comparison(const OverlapRules& rules) : rules_(rules) {}

  /// At least one of the two is an output.
  void add(const Placed& a, const Placed& b) {
    const bool b_is_later = b.is_output && (!a.is_output || b.index > a.index);
    const Placed& output = b_is_later ? b : a;
    const Placed& other = b_is_later ? a : b;
    if (is_in_place(rules_, output, other)) {
      in_place_ = true;
      return;
    }
    Refused pair{output.index, other, false};
    if (refused_ && !pair.is_before(*refused_)) return;
    Overlap found = Overlap::undecided;
    if (pairs_++ < max_pairs) found = compare(rules_, output, other, account_);
    if (found == Overlap::apart) return;
    pair.is_certain = found == Overlap::shared;
    refused_ = pair;
  }

  Status finish(bool& in_place) const {
    if (refused_) {
      return refusal(rules_, refused_->output, refused_->other, refused_->is_certain);
    }
    in_place = in_place || in_place_;
    return {};
  }

 private:
  const OverlapRules& rules_;
  std::optional<Refused> refused_;
  int64_t account_ = max_overlap_steps;
  int64_t pairs_ = 0;
  bool in_place_ = false;
};

/// The tensors of a call, inputs first.
struct Tensors {
  const OverlapRules& rules;
  std::span<const ConstView> inputs;
  std::span<const View> outputs;

  size_t count() const { return inputs.size() + outputs.size(); }
  bool is_output(size_t i) const { return i >= inputs.size(); }
  Footprint at(size_t i) const {
    if (!is_output(i)) return footprint(rules.inputs[i], inputs[i]);
    return footprint(rules.outputs[i - inputs.size()], outputs[i - inputs.size()]);
  }
  Placed operator[](size_t i) const {
    return {at(i), is_output(i), is_output(i) ? i - inputs.size() : i};
  }
};

/// Most calls have few tensors, and their ranges of addresses are apart.
bool are_ranges_apart(const Tensors& tensors) {
  if (tensors.count() == 2)
    return tensors.outputs.size() == 1 && !tensors.at(0).meets(tensors.at(1));
  uintptr_t begin[few_tensors];
  uintptr_t end[few_tensors];
  for (size_t i = 0; i < tensors.count(); ++i) {
    const Footprint at = tensors.at(i);
    begin[i] = at.begin;
    end[i] = at.end;
  }
  bool meet = false;  // whether any pair does: branches for each would be mispredicted now and then
  for (size_t i = tensors.inputs.size(); i < tensors.count(); ++i) {
    for (size_t other = 0; other < i; ++other) {
      meet |= static_cast<bool>(static_cast<int>(begin[i] < end[other]) &
                                static_cast<int>(begin[other] < end[i]));
    }
  }
  return !meet;
}

void compare_each_with_each(const Tensors& tensors, Comparison& found) {
  for (size_t i = tensors.inputs.size(); i < tensors.count(); ++i) {
    for (size_t other = 0; other < i; ++other) found.add(tensors[i], tensors[other]);
  }
}

/// Drops what ends before `address`, and compares `tensor` with what is left.
void compare_with_open(std::pmr::vector<Placed>& open, const Placed& tensor, Comparison& found) {
  std::erase_if(open, [&](const Placed& one) { return one.at.end <= tensor.at.begin; });
  for (const Placed& one : open) found.add(tensor, one);
}

/// Goes from low to high addresses; open is what begins before the current one and may reach it.
/// Inputs are not compared with inputs.
void sweep(const Tensors& tensors, std::pmr::memory_resource& memory, Comparison& found) {
  std::pmr::vector<Placed> sorted(&memory);
  std::pmr::vector<Placed> open_inputs(&memory);
  std::pmr::vector<Placed> open_outputs(&memory);
  for (auto* list : {&sorted, &open_inputs, &open_outputs}) list->reserve(tensors.count());
  for (size_t i = 0; i < tensors.count(); ++i) sorted.push_back(tensors[i]);
  std::erase_if(sorted, [](const Placed& one) { return one.at.empty(); });
  std::sort(sorted.begin(), sorted.end(),
            [](const Placed& a, const Placed& b) { return a.at.begin < b.at.begin; });
  for (const Placed& tensor : sorted) {
    compare_with_open(open_outputs, tensor, found);
    if (tensor.is_output) compare_with_open(open_inputs, tensor, found);
    (tensor.is_output ? open_outputs : open_inputs).push_back(tensor);
  }
}

/// Out of line: most calls do without it.
[[gnu::noinline]] Status compare_tensors(const Tensors& tensors, std::span<std::byte> work,
                                         bool& in_place) {
  Comparison found(tensors.rules);
  if (tensors.count() <= few_tensors) {
    compare_each_with_each(tensors, found);
  } else if (work.empty()) {
    sweep(tensors, *std::pmr::new_delete_resource(), found);
  } else {
    std::pmr::monotonic_buffer_resource memory(work.data(), work.size(),
                                               std::pmr::null_memory_resource());
    sweep(tensors, memory, found);
  }
  return found.finish(in_place);
}

}  // namespace

size_t overlap_work_bytes(size_t tensors) {
  constexpr size_t lists = 3;
  constexpr size_t to_alignment = alignof(Placed);
  return tensors <= few_tensors ? 0 : lists * (tensors * sizeof(Placed) + to_alignment);
}

Status check_overlap(const OverlapRules& rules, std::span<const ConstView> inputs,
                     std::span<const View> outputs, std::span<std::byte> work, bool& in_place) {
  const Tensors tensors{rules, inputs, outputs};
  const bool has_few = tensors.count() <= few_tensors;
  if (has_few && are_ranges_apart(tensors)) return {};
  return compare_tensors(tensors, work, in_place);
}

}  // namespace castor
