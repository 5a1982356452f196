// SPDX-License-Identifier: Apache-2.0
#include "tools/libfuzzer/small_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ir/interpreter/interpreter.hpp"
#include "ir/verify/infer.hpp"
#include "tools/testing/samples.hpp"

namespace castor::libfuzzer {

namespace {

constexpr int64_t max_elements = 1 << 14;  // for all values together
constexpr int64_t max_products = 1 << 19;  // per function, for convolutions
constexpr std::byte untouched{0xA5};

Dims draw_extents(const Shape& shape, std::map<std::string, int64_t>& named, fuzz::Random& random) {
  Dims extents;
  for (const Dim& dim : shape) {
    const int64_t drawn = random.percent(10) ? random.between(0, 70) : random.between(1, 9);
    const bool is_named = !dim.is_fixed() && !dim.name.empty();
    extents.push_back(dim.is_fixed() ? dim.extent
                      : is_named     ? named.try_emplace(dim.name, drawn).first->second
                                     : drawn);
  }
  return extents;
}

/// Whether the interpreter is done with it soon.
bool is_small(const Function& function, const BoundShapes& shapes) {
  int64_t elements = 0;
  for (const Dims& extents : shapes.values) {
    elements += element_count(extents).value_or(max_elements);
    if (elements > max_elements) return false;
  }
  for (const Operation& operation : function.operations) {
    if (operation.op != OpKind::conv_integer) continue;
    const int64_t outputs = element_count(shapes.values[operation.results[0]]).value_or(0);
    const int64_t weights = element_count(shapes.values[operation.operands[1]]).value_or(0);
    if (outputs * weights > max_products) return false;
  }
  return true;
}

/// A quarter of the elements from the boundaries of the type, the others random.
std::vector<std::byte> draw_data(ElementType element, size_t count, fuzz::Random& random) {
  std::vector<uint64_t> patterns = samples::random_patterns(element, count, random.next());
  static std::map<ElementType, std::vector<uint64_t>> boundaries;
  std::vector<uint64_t>& boundary = boundaries[element];
  if (boundary.empty()) boundary = samples::boundary_patterns(element);
  for (uint64_t& pattern : patterns) {
    if (random.percent(25)) pattern = random.pick(boundary);
  }
  return samples::pack(element, patterns);
}

size_t bytes_of(ElementType element, const Dims& extents) {
  return samples::storage_bytes(element, static_cast<size_t>(*element_count(extents)));
}

}  // namespace

std::optional<std::vector<Dims>> small_shapes(const Function& function, fuzz::Random& random) {
  for (int attempt = 0; attempt < 8; ++attempt) {
    std::map<std::string, int64_t> named;
    std::vector<Dims> extents;
    for (const ValueId parameter : function.parameters) {
      extents.push_back(draw_extents(function.type_of(parameter).shape, named, random));
    }
    const Result<BoundShapes> bound = bind_shapes(function, extents);
    if (bound && is_small(function, *bound)) return extents;
  }
  return std::nullopt;
}

SmallCall::SmallCall(const FunctionPtr& function, std::span<const Dims> inputs,
                     std::span<const Dims> outputs, fuzz::Random& random)
    : function_(function) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ElementType element = function->type_of(function->parameters[i]).element;
    const std::vector<std::byte> data =
        draw_data(element, static_cast<size_t>(*element_count(inputs[i])), random);
    std::byte* at = pages_.emplace_back(data.size()).at_end(data.size());
    std::copy(data.begin(), data.end(), at);
    inputs_.emplace_back(at, element, inputs[i], data.size());
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    const ElementType element = function->type_of(function->results[o]).element;
    const size_t bytes = bytes_of(element, outputs[o]);
    test::GuardedPages& pages = pages_.emplace_back(bytes);
    pages.fill(untouched);
    outputs_.push_back({std::vector<std::byte>(bytes, untouched),
                        View(pages.at_end(bytes), element, outputs[o], bytes), &pages});
  }
}

Status SmallCall::interpret() {
  std::vector<View> views;
  for (Output& output : outputs_) {
    views.push_back(output.view);
    views.back().data = output.expected.data();
  }
  return castor::interpret(*function_, inputs_, views);
}

Status SmallCall::run(const BoundKernel& kernel) {
  std::vector<View> views;
  for (const Output& output : outputs_) views.push_back(output.view);
  return kernel.run(inputs_, views);
}

std::string SmallCall::difference() const {
  for (size_t o = 0; o < outputs_.size(); ++o) {
    const Output& output = outputs_[o];
    const auto* data = static_cast<const std::byte*>(output.view.data);
    const auto [expected, at] = std::mismatch(output.expected.begin(), output.expected.end(), data);
    if (expected != output.expected.end()) {
      return fmt::format("output {}: byte {} is {:#04x}, expected {:#04x}", o, at - data,
                         std::to_integer<int>(*at), std::to_integer<int>(*expected));
    }
    if (!output.pages->is_filled_but({data, output.expected.size()}, untouched)) {
      return fmt::format("output {}: bytes before it were written", o);
    }
  }
  return {};
}

}  // namespace castor::libfuzzer
