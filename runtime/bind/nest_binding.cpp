// SPDX-License-Identifier: Apache-2.0
#include "runtime/bind/nest_binding.hpp"

#include <algorithm>

#include "ir/support/integer_math.hpp"
#include "jit/emit/chunk_plan.hpp"
#include "jit/plan/access_pattern.hpp"
#include "runtime/bind/bind_tiles.hpp"
#include "runtime/bind/work_estimate.hpp"
#include "runtime/cache/code_store.hpp"
#include "runtime/compiled.hpp"

namespace castor::detail {

namespace {

/// Tensors below this many bytes are never stored past the caches, and rows neither.
constexpr int64_t min_streaming_bytes = int64_t{1} << 20;
constexpr int64_t min_streaming_row_bytes = 1024;

/// Which period the n-th element from a period's beginning is in, for all n that chunks ask for.
std::vector<uint8_t> period_numbers(int64_t period) {
  constexpr int64_t longest_chunk = 64;
  std::vector<uint8_t> numbers;
  for (int64_t n = 0; n < period + 2 * longest_chunk; ++n) {
    numbers.push_back(static_cast<uint8_t>(n / period));
  }
  return numbers;
}

/// Bytes that the operands have, each element counted once.
int64_t bytes_of(const jit::Nest& nest, const Dims& extents, std::span<const Dims> strides) {
  int64_t bytes = 0;
  for (size_t k = 0; k < nest.operands(); ++k) {
    Dims own;
    for (int axis = 0; axis < extents.rank(); ++axis) {
      if (strides[k][axis] != 0) own.push_back(extents[axis]);
    }
    const std::optional<int64_t> count = element_count(own);
    const std::optional<int64_t> more = count ? byte_size(nest.element(k), *count) : std::nullopt;
    if (!more || __builtin_add_overflow(bytes, *more, &bytes)) return INT64_MAX;
  }
  return bytes;
}

/// Whether rows are long (a table needs no long ones), and their outputs all equally far from the
/// alignment.
bool rows_align(const jit::Nest& nest, const jit::IterationSpace& space, bool by_table) {
  if (space.form.rank == 1) return true;
  for (size_t k = nest.inputs.size(); k < nest.operands(); ++k) {
    const int64_t bytes = bits_of(nest.element(k)) / 8;
    if (!by_table && space.extents[0] * bytes < min_streaming_row_bytes) return false;
    const bool all_alike = by_table || nest.outputs.size() > 1;
    for (int axis = 1; axis < space.form.rank && all_alike; ++axis) {
      const int64_t step = space.strides[k][static_cast<size_t>(axis)] * bytes;
      if (step % jit::streaming_alignment != 0) return false;
    }
  }
  return true;
}

/// Whether every tile's outputs are as far from the alignment as the tensors'.
bool tiles_align(const jit::Nest& nest, const jit::IterationSpace& space, const jit::Tiles& tiles) {
  const bool writes_copies = std::ranges::any_of(tiles.copies, [&](const jit::CopiedOperand& copy) {
    return copy.operand >= nest.inputs.size();
  });
  const bool whole_lines = tiles.columns % jit::streaming_alignment == 0;
  const bool columns_align = whole_lines || tiles.columns == space.extents[0];
  return !writes_copies && columns_align && rows_align(nest, space, false);
}

/// What binding knows of a nest besides its operands and code.
void describe(const jit::Nest& nest, const jit::IterationSpace& space, LaneStep& result) {
  result.sub_byte = nest.has_sub_byte_operand();
  result.first_output = nest.inputs.size();
  result.first_base = jit::ArgumentLayout(nest.operands(), space.form.rank).base(0);
}

/// The estimated time of a nest over these extents, whose operands have this access and bytes.
int64_t estimate(const jit::Nest& nest, std::span<const jit::Access> access,
                 const jit::Target& target, const Dims& extents, int64_t bytes) {
  double elements = 1;
  for (const int64_t extent : extents) elements *= static_cast<double>(extent);
  return nest_ns(nest, access, target, elements, bytes);
}

/// Has code read the numbers of periods, which must stay where they are.
void point_to(const std::vector<uint8_t>& period_numbers, const jit::ArgumentLayout& layout,
              BoundCode& code) {
  code.arguments[layout.period_numbers()] =
      static_cast<int64_t>(reinterpret_cast<uintptr_t>(period_numbers.data()));
}

}  // namespace

Status NestBinding::bind(const jit::Nest& nest, const LikelyCode* likely, const Dims& extents,
                         std::span<const Dims> strides, ElementwiseStep& result) {
  result.space = jit::nest_space(nest, extents, strides, compiled_.target);
  const jit::IterationSpace& space = result.space;
  describe(nest, space, result);
  const int64_t bytes = bytes_of(nest, extents, strides);
  result.bytes = bytes_of_call(result, bytes);
  if (const auto tiles = jit::plan_tiles(nest, space, compiled_.target)) {
    result.main.nanoseconds = estimate(nest, space.form.access, compiled_.target, extents, bytes);
    return bind_tiles(nest, likely, *tiles, result);
  }
  plan_periods(nest, space, result);
  if (Status status = bind_code(nest, likely, space, result.main); !status) return status;
  if (Status status = bind_streaming(nest, space, result); !status) return status;
  if (Status status = bind_any_start(nest, space, result); !status) return status;
  const jit::ArgumentLayout layout(nest.operands(), space.form.rank);
  for (BoundCode* code : {&result.main, result.any_start ? &*result.any_start : nullptr}) {
    if (code == nullptr) continue;
    point_to(result.period_numbers, layout, *code);
    code->nanoseconds = estimate(nest, code->access, compiled_.target, extents, bytes);
  }
  for (const PeriodCopy& copy : result.periods) plan_.give_back(copy.offset);
  return {};
}

/// Bytes that a call moves through the step. Scratch is the same at every repetition.
int64_t NestBinding::bytes_of_call(const ElementwiseStep& step, int64_t bytes) const {
  const auto is_result = [](const StepOperand& operand) {
    return operand.origin.kind == OperandOrigin::Kind::output;
  };
  const std::span outputs = std::span(step.operands).subspan(step.first_output);
  return std::ranges::all_of(outputs, is_result) ? saturated_product(bytes, repetitions_) : bytes;
}

Status NestBinding::bind_fold(const jit::Nest& nest, const LikelyCode* likely,
                              FoldStep& result) const {
  if (Status status = bind_code(nest, likely, result.space, result.main); !status) return status;
  int64_t elements = 1;
  for (const int64_t extent : result.space.extents) elements = saturated_product(elements, extent);
  int64_t bytes = 0;
  for (size_t k = 0; k < nest.inputs.size(); ++k) {
    bytes = saturated_sum(bytes, jit::operand_bytes(nest, result.space, k));
  }
  result.main.nanoseconds =
      nest_ns(nest, result.main.access, compiled_.target, static_cast<double>(elements), bytes);
  return {};
}

Status NestBinding::bind_epilogue(const jit::Nest& nest, const LikelyCode* likely,
                                  const jit::IterationSpace& space, LaneStep& result) const {
  describe(nest, space, result);
  if (Status status = bind_code(nest, likely, space, result.main); !status) return status;
  return bind_any_start(nest, space, result);
}

/// Where the nest runs tile by tile: code for one tile, and for the copies.
Status NestBinding::bind_tiles(const jit::Nest& nest, const LikelyCode* likely,
                               const jit::Tiles& tiles, ElementwiseStep& result) {
  const jit::IterationSpace space = std::move(result.space);
  Result<TileLoops> walk = bind_tile_loops(nest, space, tiles, compiled_, plan_);
  if (!walk.ok()) return walk.error();
  for (const BoundTileCopy& copy : walk->copies) plan_.give_back(copy.offset);
  result.space = tiles.space;
  describe(nest, tiles.space, result);
  if (Status status = bind_code(nest, likely, tiles.space, result.main); !status) return status;
  if (tiles_align(nest, space, tiles)) {
    if (Status status = bind_streaming(nest, tiles.space, result); !status) return status;
  }
  result.tiles = std::move(walk).value();
  return {};
}

/// Plans scratch for the copies of periods.
void NestBinding::plan_periods(const jit::Nest& nest, const jit::IterationSpace& space,
                               ElementwiseStep& result) {
  if (!space.form.has_periods()) return;
  const jit::ChunkPlan chunks = jit::plan_chunks(nest, space.form, compiled_.target);
  const int64_t length = space.period + int64_t{chunks.lanes} * std::max(chunks.chunks, 1);
  for (size_t k = 0; k < nest.inputs.size(); ++k) {
    if (space.form.access[k] != jit::Access::periodic) continue;
    PeriodCopy copy;
    copy.operand = k;
    copy.element = nest.element(k);
    copy.length = length;
    copy.extents = space.period_extents;
    copy.strides = Dims(
        std::span(space.period_strides[k]).first(static_cast<size_t>(space.period_extents.rank())));
    const int bytes = jit::lane_bits_of(copy.element) / 8;
    copy.offset = plan_.take(static_cast<size_t>(length * bytes));
    result.periods.push_back(copy);
  }
  if (space.form.has(jit::Access::repeated)) result.period_numbers = period_numbers(space.period);
}

/// The code of a nest in a form: what compiling made ahead, or from the cache.
Status NestBinding::find_code(const jit::Nest& nest, const LikelyCode* likely,
                              const jit::NestForm& form, KernelCodePtr<jit::NestSpec>& code) const {
  if (likely != nullptr && form == likely->form) {
    code = likely->code;
    return {};
  }
  Result<KernelCodePtr<jit::NestSpec>> found =
      compiled_.store->cache.get(nest, form, compiled_.target, compiled_.canonical.get());
  if (!found.ok()) return found.error();
  code = std::move(found).value();
  return {};
}

/// The code of a nest in a form, with its argument block.
Status NestBinding::bind_code(const jit::Nest& nest, const LikelyCode* likely,
                              const jit::IterationSpace& space, BoundCode& code) const {
  if (Status status = find_code(nest, likely, space.form, code.code); !status) return status;
  code.arguments = jit::pack_arguments(nest.storage(), space);
  code.access = space.form.access;
  return {};
}

bool NestBinding::can_stream(const jit::Nest& nest, const jit::IterationSpace& space,
                             int64_t bytes) const {
  if (bytes < min_streaming_bytes || !jit::has_whole_chunks(space.form)) return false;
  jit::NestForm dense = nest.dense_form();
  dense.prefetch = space.form.prefetch;
  const bool is_dense = space.form == dense;
  const jit::ChunkPlan plan = jit::plan_chunks(nest, space.form, compiled_.target);
  const bool by_table = plan.has_row_tables();
  if (nest.has_sub_byte_operand() && !is_dense && !by_table && !plan.does_blocks()) return false;
  return rows_align(nest, space, by_table) &&
         std::ranges::any_of(nest.program.sinks, [&](const jit::MemoryOperand& sink) {
           return jit::has_streaming_stores(compiled_.target, sink.element);
         });
}

/// Code with streaming stores, where the tensors are large enough to profit.
Status NestBinding::bind_streaming(const jit::Nest& nest, const jit::IterationSpace& space,
                                   ElementwiseStep& result) const {
  if (!can_stream(nest, space, result.bytes)) return {};
  const jit::NestForm form = jit::streaming_form(nest, space.form, compiled_.target);
  return find_code(nest, nullptr, form, result.streaming);
}

/// Code for sub-byte operands that begin at any element, where the main code cannot take them.
Status NestBinding::bind_any_start(const jit::Nest& nest, jit::IterationSpace space,
                                   LaneStep& result) const {
  const jit::NestForm form = jit::bitwise_form(space.form, nest.storage());
  if (form == space.form) return {};
  space.form = form;
  return bind_code(nest, nullptr, space, result.any_start.emplace());
}

}  // namespace castor::detail
