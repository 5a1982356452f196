// SPDX-License-Identifier: Apache-2.0
#include "bench/elementwise_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ir/interpreter/interpreter.hpp"
#include "tools/testing/samples.hpp"

namespace castor::bench {

namespace {

constexpr int64_t end_elements = 1024;  // checked at either end

struct RowRange {
  int64_t first;
  int64_t count;
};

/// The view of those rows of an input that has them; of another one, all of it.
ConstView rows_of(ConstView view, const InputShape& shape, const RowRange& range) {
  if (shape.extents.empty() || shape.extents[0] != rows) return view;
  view.offset += range.first * view.strides[0];
  view.shape[0] = range.count;
  return view;
}

/// The interpreter's result for those rows, dense.
Result<std::vector<std::byte>> interpreted_rows(const BoundCall& call, const ElementwiseCase& each,
                                                const RowRange& range) {
  std::vector<ConstView> inputs;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    inputs.push_back(rows_of(call.inputs[i], each.row.inputs[i], range));
  }
  const View& result = call.outputs.front();
  Dims shape = result.shape;
  shape[0] = range.count;
  const int64_t count = element_count(shape).value_or(0);
  std::vector<std::byte> bytes(static_cast<size_t>(byte_size(result.element, count).value_or(0)));
  const View view(bytes.data(), result.element, shape, bytes.size());
  if (Status status = interpret(*each.function, inputs, {&view, 1}); !status) {
    return status.error();
  }
  return bytes;
}

Status check_rows(const BoundCall& call, const ElementwiseCase& each, const RowRange& range) {
  const Result<std::vector<std::byte>> expected = interpreted_rows(call, each, range);
  if (!expected) return expected.error();
  const View& result = call.outputs.front();
  const auto row_elements = static_cast<size_t>(result.strides[0]);
  const std::span found(static_cast<const std::byte*>(result.data), result.bytes);
  const size_t begin = static_cast<size_t>(range.first) * row_elements;
  for (size_t i = 0; i < static_cast<size_t>(range.count) * row_elements; ++i) {
    const uint64_t right = samples::load_pattern(*expected, result.element, i);
    const uint64_t ours = samples::load_pattern(found, result.element, begin + i);
    if (ours == right) continue;
    return Error{ErrorCode::internal,
                 fmt::format("{}, result {}, element {}: expected {:#x}, found {:#x}",
                             each.row.name, to_string(result.shape), begin + i, right, ours)};
  }
  return {};
}

}  // namespace

Status run_and_check(const BoundCall& call, const ElementwiseCase& each) {
  const View& result = call.outputs.front();
  std::memset(result.data, 0xA5, result.bytes);
  if (Status status = call.run(); !status) return status;
  const int64_t all = result.shape[0];
  const int64_t count = std::clamp<int64_t>(end_elements / result.strides[0], 1, all);
  if (Status status = check_rows(call, each, {0, count}); !status) return status;
  return check_rows(call, each, {all - count, count});
}

Status check_all_tiers(const Session& session, const ElementwiseCase& each) {
  constexpr std::array sizes = {Extents{5, 3}, Extents{7, 67}, Extents{19, 19}};
  std::vector<std::byte> memory(size_t{1} << 20);
  for (const Extents& extents : sizes) {
    const Result<ElementwiseTensors> tensors = place_tensors(each, extents, memory);
    if (!tensors) return tensors.error();
    fill_inputs_with_patterns(each, extents, *tensors);
    const Result<View> result = result_view(each, extents, *tensors);
    if (!result) return result.error();
    for (const TierRuntime& on : session.all_tiers()) {
      const Result<BoundCall> call =
          bind_call(on.runtime, each.function, input_views(each, extents, *tensors), {*result});
      if (!call) return call.error();
      if (Status status = run_and_check(*call, each); !status) {
        const Error& error = status.error();
        return Error{error.code, fmt::format("tier {}: {}", name_of(on.tier), error.message)};
      }
    }
  }
  return {};
}

}  // namespace castor::bench
