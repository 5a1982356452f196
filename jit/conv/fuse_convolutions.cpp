// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/fuse_convolutions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <unordered_map>

#include "ir/types/storage.hpp"

namespace castor::jit {

namespace {

bool is_one(const Dim& dim) { return dim.is_fixed() && dim.extent == 1; }

/// Whether the axes surely have different extents.
bool differ(const Dim& a, const Dim& b) {
  return a.is_fixed() && b.is_fixed() && a.extent != b.extent;
}

/// How an operand surely lies along some axes of the space.
struct Lie {
  bool along_one = false;    ///< along an axis of more than one element
  bool repeats_one = false;  ///< it repeats its elements there
};

/// One operand of a nest.
struct Reader {
  size_t nest;
  size_t input;
};

/// Who reads the results of convolutions, or reshapes of them: by root, in the order of nests.
using Readers = std::unordered_map<ValueId, std::vector<Reader>>;

Readers readers_of(const Function& function, const std::vector<Nest>& nests) {
  Readers readers;
  for (const Nest& nest : nests) {
    if (nest.convolution) readers.try_emplace(nest.outputs[0].value);
  }
  if (readers.empty()) return readers;
  const std::vector<ValueId> roots = reshape_roots(function);
  for (size_t n = 0; n < nests.size(); ++n) {
    for (size_t k = 0; k < nests[n].inputs.size(); ++k) {
      const auto found = readers.find(roots[nests[n].inputs[k].value]);
      if (found != readers.end()) found->second.push_back({n, k});
    }
  }
  return readers;
}

/// The nests of one function around one convolution among them.
class FusionChoice {
 public:
  /// `fused[n]`: the result that nest n takes piece by piece already, or no_value.
  FusionChoice(const Function& function, const Readers& readers, const std::vector<Nest>& nests,
               std::span<const ValueId> fused, size_t convolution)
      : function_(function), readers_(readers), nests_(nests), fused_(fused), at_(convolution) {
    const Operation& operation = function.operations[*nests[at_].convolution];
    const auto axes = static_cast<int>(function.type_of(operation.results[0]).shape.size()) - 2;
    const Result<ConvolutionOptions> options = convolution_options(operation, axes);
    layout_ = options.ok() ? options->layout : ConvolutionLayout::nchw;
  }

  Fusion choose() {
    const NestOutput& output = nests_[at_].outputs[0];
    if (!output.is_scratch()) return {Fusion::Kind::is_result};
    value_ = output.value;
    for (const Reader& reader : readers_.at(value_)) {
      const NestInput& input = nests_[reader.nest].inputs[reader.input];
      if (input.value != value_) return {Fusion::Kind::reshaped, input.value};
      if (consumer_ != 0 && consumer_ != reader.nest) return {Fusion::Kind::several_nests};
      consumer_ = reader.nest;
    }
    return consumer_ == 0 ? Fusion{Fusion::Kind::is_result} : of_consumer();
  }

  /// The nest that reads the result, where it is fused.
  size_t consumer() const { return consumer_; }
  Epilogue epilogue() const {
    const std::vector<NestInput>& inputs = nests_[consumer_].inputs;
    const auto source = std::ranges::find(inputs, value_, &NestInput::value);
    return {layout_, static_cast<size_t>(source - inputs.begin())};
  }

 private:
  Fusion of_consumer() const {
    const Nest& nest = nests_[consumer_];
    if (fused_[consumer_] != no_value) {
      return {Fusion::Kind::other_convolution, fused_[consumer_]};
    }
    for (const NestInput& input : nest.inputs) {
      if (input.value == value_ && !is_in_place(input, nest)) {
        return {Fusion::Kind::other_shape, nest.space};
      }
    }
    for (const NestInput& input : nest.inputs) {
      if (repeats_in_part(input, nest)) return {Fusion::Kind::partly_repeated, input.value};
    }
    for (size_t k = 0; k < nest.operands(); ++k) {
      if (!has_whole_bytes(nest, k)) return {Fusion::Kind::split_bytes, value_of(nest, k)};
    }
    return {Fusion::Kind::fused, nest.outputs[0].value};
  }

  const Shape& shape_of(ValueId value) const { return function_.type_of(value).shape; }

  bool is_in_place(const NestInput& input, const Nest& nest) const {
    const Shape& own = shape_of(input.value);
    const Shape& space = shape_of(nest.space);
    if (own.size() != space.size()) return false;
    for (size_t axis = 0; axis < own.size(); ++axis) {
      if (input.axes[static_cast<int>(axis)] != static_cast<int64_t>(axis)) return false;
      if (differ(own[axis], space[axis])) return false;
    }
    return true;
  }

  bool is_last() const { return layout_ == ConvolutionLayout::nhwc; }
  size_t first_spatial() const { return is_last() ? 1 : 2; }
  size_t spatial_end() const { return shape_of(value_).size() - (is_last() ? 1 : 0); }

  /// How the input lies along the spatial axes.
  Lie spatial_lie(const NestInput& input, const Nest& nest) const {
    const Shape& space = shape_of(nest.space);
    const Shape& own = shape_of(input.value);
    Lie lie;
    for (size_t axis = first_spatial(); axis < spatial_end(); ++axis) {
      if (is_one(space[axis])) continue;
      const auto* const at = std::ranges::find(input.axes, static_cast<int64_t>(axis));
      const bool is_there = at != input.axes.end();
      const Dim dim = is_there ? own[static_cast<size_t>(at - input.axes.begin())] : Dim(1);
      (is_one(dim) ? lie.repeats_one : lie.along_one) |= dim.is_fixed();
    }
    return lie;
  }

  bool repeats_in_part(const NestInput& input, const Nest& nest) const {
    const Lie lie = spatial_lie(input, nest);
    return lie.along_one && lie.repeats_one;
  }

  /// Whether rows of a sub-byte operand may end where bytes do: rows of the last axis of more than
  /// one element.
  bool has_whole_bytes(const Nest& nest, size_t k) const {
    if (!is_sub_byte(nest.element(k))) return true;
    const Shape& space = shape_of(nest.space);
    size_t row = space.size() - 1;
    while (row > 1 && is_one(space[row])) --row;
    if (k < nest.inputs.size() && !lies_along(nest.inputs[k], row)) return true;
    return !space[row].is_fixed() || space[row].extent % aligned_elements(nest.element(k)) == 0;
  }

  bool lies_along(const NestInput& input, size_t space_axis) const {
    const auto* const at = std::ranges::find(input.axes, static_cast<int64_t>(space_axis));
    if (at == input.axes.end()) return false;
    return !is_one(shape_of(input.value)[static_cast<size_t>(at - input.axes.begin())]);
  }

  static ValueId value_of(const Nest& nest, size_t operand) {
    const size_t inputs = nest.inputs.size();
    return operand < inputs ? nest.inputs[operand].value : nest.outputs[operand - inputs].value;
  }

  const Function& function_;
  const Readers& readers_;
  const std::vector<Nest>& nests_;
  const std::span<const ValueId> fused_;
  const size_t at_;
  ConvolutionLayout layout_;
  ValueId value_ = no_value;
  size_t consumer_ = 0;
};

/// Moves each convolution that is fused in front of the nest that takes its result: `before[n]` is
/// the convolution's index, or `none`.
std::vector<Nest> in_order(std::vector<Nest> nests, std::span<const size_t> before, size_t none) {
  std::vector<Nest> ordered;
  ordered.reserve(nests.size());
  for (size_t n = 0; n < nests.size(); ++n) {
    if (nests[n].fusion && nests[n].fusion->is_fused()) continue;
    if (before[n] != none) ordered.push_back(std::move(nests[before[n]]));
    ordered.push_back(std::move(nests[n]));
  }
  return ordered;
}

}  // namespace

void fuse_convolutions(const Function& function, std::vector<Nest>& nests) {
  const Readers readers = readers_of(function, nests);
  if (readers.empty()) return;
  const size_t none = nests.size();
  std::vector<size_t> before(nests.size(), none);
  std::vector<ValueId> fused(nests.size(), no_value);
  for (size_t i = nests.size(); i-- > 0;) {
    if (!nests[i].convolution) continue;
    FusionChoice choice(function, readers, nests, fused, i);
    nests[i].fusion = choice.choose();
    if (!nests[i].fusion->is_fused()) continue;
    nests[choice.consumer()].epilogue = choice.epilogue();
    before[choice.consumer()] = i;
    fused[choice.consumer()] = nests[i].outputs[0].value;
  }
  nests = in_order(std::move(nests), before, none);
}

std::string text_of(const Function& function, const Fusion& fusion) {
  const auto name = [&] { return function.values[fusion.value].name; };
  switch (fusion.kind) {
    case Fusion::Kind::fused: return "the next nest, piece by piece";
    case Fusion::Kind::is_result: return "none: the i32 result is the function's";
    case Fusion::Kind::reshaped:
      return fmt::format("none: %{} is a reshape of the i32 result", name());
    case Fusion::Kind::several_nests: return "none: several nests read the i32 result";
    case Fusion::Kind::other_convolution:
      return fmt::format("none: the nest that reads the i32 result is that of %{}", name());
    case Fusion::Kind::other_shape:
      return fmt::format("none: %{}, which is computed from the i32 result, has another shape",
                         name());
    case Fusion::Kind::partly_repeated:
      return fmt::format("none: %{} lies along some of the spatial axes only", name());
    case Fusion::Kind::split_bytes:
      return fmt::format("none: rows of %{} end inside bytes", name());
  }
  return "";
}

}  // namespace castor::jit
