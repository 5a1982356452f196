// SPDX-License-Identifier: Apache-2.0
#include "tests/support/placed_tensors.hpp"

#include <algorithm>

#include "ir/interpreter/interpreter.hpp"
#include "tests/support/on_every_engine.hpp"

namespace castor::test {

namespace {

constexpr std::byte filler{0xc5};

Dims strides_of(const Dims& shape, Placing placing) {
  Dims strides = dense_strides(shape);
  const int rank = shape.rank();
  int64_t step = placing == Placing::spaced ? 2 : 1;
  if (placing == Placing::transposed) {
    for (int axis = 0; axis < rank; ++axis) {
      strides[axis] = step;
      step *= std::max<int64_t>(shape[axis], 1);
    }
  } else if (placing == Placing::exchanged && rank > 1) {
    strides[rank - 2] = 1;
    strides[rank - 1] = std::max<int64_t>(shape[rank - 2], 1);
  } else if (placing == Placing::spaced || placing == Placing::inside) {
    for (int axis = rank - 1; axis >= 0; --axis) {
      strides[axis] = step;
      const bool is_row = axis == rank - 1;
      step = step * std::max<int64_t>(shape[axis], 1) + (placing == Placing::spaced ? 1
                                                         : is_row                   ? 3
                                                                                    : 0);
    }
  }
  return strides;
}

}  // namespace

PlacedTensor::PlacedTensor(ElementType type, const Dims& shape, Placing placing)
    : type_(type), shape_(shape), strides_(strides_of(shape, placing)) {
  const auto size = static_cast<size_t>(bits_of(type) / 8);
  int64_t elements = element_count(shape).value() > 0 ? 1 : 0;
  for (int axis = 0; axis < shape.rank() && elements > 0; ++axis) {
    elements += (shape[axis] - 1) * strides_[axis];
  }
  if (placing == Placing::inside) {
    offset_ = 5;
    elements += offset_ + 7;
  }
  bytes_ = static_cast<size_t>(elements) * size;
  pages_ = std::make_unique<GuardedPages>(std::max<size_t>(bytes_, 1));
  pages_->fill(filler);
  data_ = placing == Placing::at_begin ? pages_->at_begin() : pages_->at_end(bytes_);
}

PlacedTensor::PlacedTensor(const Placed& source)
    : PlacedTensor(source.tensor.type, source.tensor.shape, source.placing) {
  const std::vector<std::byte> packed = samples::pack(type_, source.tensor.elements);
  const auto size = static_cast<size_t>(bits_of(type_) / 8);
  size_t next = 0;
  for_each_element([&](std::byte* at) {
    std::memcpy(at, packed.data() + next, size);
    next += size;
  });
}

View PlacedTensor::view() { return {data_, type_, shape_, strides_, offset_, bytes_}; }

/// In row-major order.
template <class Visit>
void PlacedTensor::for_each_element(Visit visit) {
  const auto size = static_cast<int64_t>(bits_of(type_) / 8);
  const int64_t count = element_count(shape_).value();
  Dims at = shape_;
  std::fill(at.begin(), at.end(), 0);
  int64_t element = offset_;
  for (int64_t i = 0; i < count; ++i) {
    visit(data_ + element * size);
    for (int axis = shape_.rank() - 1; axis >= 0; --axis) {
      element += strides_[axis];
      if (++at[axis] < shape_[axis]) break;
      element -= strides_[axis] * shape_[axis];
      at[axis] = 0;
    }
  }
}

Patterns PlacedTensor::take() {
  Patterns found{type_, shape_, {}};
  found.elements.reserve(static_cast<size_t>(element_count(shape_).value()));
  const auto size = static_cast<size_t>(bits_of(type_) / 8);
  for_each_element([&](std::byte* at) {
    uint64_t bits = 0;
    std::memcpy(&bits, at, size);
    std::memset(at, static_cast<int>(filler), size);
    found.elements.push_back(bits);
  });
  return found;
}

bool PlacedTensor::is_clean() const { return pages_->is_filled_but({}, filler); }

std::string run_placed(const Runtime& runtime, const FunctionPtr& function,
                       const std::vector<Placed>& operands, std::vector<Placed>& results) {
  std::vector<PlacedTensor> sources, destinations;
  std::vector<ConstView> inputs;
  std::vector<View> outputs;
  for (const Placed& operand : operands) {
    inputs.emplace_back(sources.emplace_back(operand).view());
  }
  for (const Placed& result : results) {
    const Patterns& tensor = result.tensor;
    outputs.push_back(destinations.emplace_back(tensor.type, tensor.shape, result.placing).view());
  }
  const Result<Kernel> kernel = runtime.compile(function);
  if (!kernel) return kernel.error().to_string();
  const Result<BoundKernel> bound = kernel->bind(inputs, outputs);
  if (!bound) return bound.error().to_string();
  if (bound->engine() != Engine::jit) return "interpreted: " + std::string(kernel->engine_reason());
  if (const Status status = bound->run(inputs, outputs); !status) return status.error().to_string();
  for (size_t i = 0; i < operands.size(); ++i) {
    if (sources[i].take() != operands[i].tensor) return fmt::format("input {} has changed", i);
    if (!sources[i].is_clean()) return fmt::format("wrote outside input {}", i);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    results[i].tensor = destinations[i].take();
    if (!destinations[i].is_clean()) return fmt::format("wrote outside result {}", i);
  }
  return {};
}

std::string mistake_on_tiers(const FunctionPtr& function, const std::vector<Placed>& operands,
                             const std::vector<Placed>& expected) {
  for (const auto& [tier, runtime] : tier_runtimes()) {
    std::vector<Placed> results = expected;
    std::string mistake = run_placed(runtime, function, operands, results);
    for (size_t i = 0; i < results.size() && mistake.empty(); ++i) {
      mistake = first_difference(expected[i].tensor, results[i].tensor);
      if (!mistake.empty()) mistake = fmt::format("result {}: {}", i, mistake);
    }
    if (!mistake.empty()) return fmt::format("{}: {}", name_of(tier), mistake);
  }
  return {};
}

std::vector<Patterns> interpreted_results(const Function& function,
                                          const std::vector<Patterns>& operands) {
  std::vector<std::vector<std::byte>> memory;
  std::vector<ConstView> inputs;
  std::vector<Dims> shapes;
  for (const Patterns& operand : operands) {
    memory.push_back(samples::pack(operand.type, operand.elements));
    inputs.emplace_back(memory.back().data(), operand.type, operand.shape, memory.back().size());
    shapes.push_back(operand.shape);
  }
  const Result<BoundShapes> bound = bind_shapes(function, shapes);
  EXPECT_TRUE(bound) << bound.error().to_string();
  if (!bound) return {};
  std::vector<Patterns> results;
  std::vector<View> outputs;
  for (ValueId value : function.results) {
    results.push_back({function.type_of(value).element, bound->values[value], {}});
    const Patterns& result = results.back();
    const auto count = static_cast<size_t>(element_count(result.shape).value());
    memory.emplace_back(samples::storage_bytes(result.type, count));
    outputs.emplace_back(memory.back().data(), result.type, result.shape, memory.back().size());
  }
  const Status status = interpret(function, inputs, outputs);
  EXPECT_TRUE(status) << status.error().to_string();
  for (size_t i = 0; i < results.size(); ++i) {
    const std::vector<std::byte>& bytes = memory[operands.size() + i];
    const auto count = static_cast<size_t>(element_count(results[i].shape).value());
    for (size_t k = 0; k < count; ++k) {
      results[i].elements.push_back(samples::load_pattern(bytes, results[i].type, k));
    }
  }
  return results;
}

}  // namespace castor::test
