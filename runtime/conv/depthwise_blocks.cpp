// SPDX-License-Identifier: Apache-2.0
#include "runtime/conv/depthwise_blocks.hpp"

#include <algorithm>

namespace castor::detail {

namespace {

/// How many of `count` numbers, beginning at `first` and `step` apart, lie below `end`.
int64_t count_below(int64_t first, int64_t step, int64_t count, int64_t end) {
  if (end <= first) return 0;
  return std::min(count, (end - first + step - 1) / step);
}

/// The blocks of a band that lie in the part.
void add_band(const jit::DepthwisePlan& plan, const jit::DepthwiseBand& band,
              const DepthwisePart& part, const DepthwiseWrites& writes, DepthwiseBlockList& to) {
  const jit::DepthwiseBlock& block = plan.form.blocks[band.block];
  const int64_t rows = block.outputs * plan.output_step();
  const int64_t begin = count_below(band.row, rows, band.blocks, part.row);
  const int64_t end = count_below(band.row, rows, band.blocks, part.row_end);
  if (begin >= end) return;
  const int64_t row = band.row + begin * rows;
  const int64_t output_row = writes.output_bytes * plan.columns.output;
  const int64_t input = (row * plan.rows.stride - plan.rows.pad_begin) * plan.columns.input;
  const int64_t output = (row - part.row) * output_row;
  const jit::DepthwiseColumns* columns = plan.columns_of_bands.data() + band.first_columns;
  jit::DepthwiseBlocks& blocks = to.blocks[to.count++];
  blocks = {.block = static_cast<int64_t>(band.block),
            .count = end - begin,
            .input = input - to.input_end,
            .output = output - to.output_end,
            .input_block_step = rows * plan.rows.stride * plan.columns.input,
            .output_block_step = rows * output_row,
            .input_column_step =
                plan.lanes * plan.columns.stride - plan.form.input_rows(block) * plan.row_step,
            .output_column_step =
                writes.output_bytes * plan.lanes - block.outputs * plan.output_step() * output_row,
            .columns = columns + part.columns,
            .columns_end = columns + (part.is_whole_row ? band.columns : part.columns_end),
            .rows_loaded = plan.rows_loaded.data() + band.first_rows_loaded};
  if (writes.prefetches) {
    const int outputs = std::min(block.outputs, jit::DepthwisePlan::max_prefetched);
    blocks.prefetched = outputs * plan.output_step() * output_row;
  }
  to.input_end = input + blocks.count * blocks.input_block_step;
  to.output_end = output + blocks.count * blocks.output_block_step;
}

}  // namespace

void list_blocks(const jit::DepthwisePlan& plan, const DepthwisePart& part,
                 const DepthwiseWrites& writes, DepthwiseBlockList& to) {
  to.count = 0;
  to.input_end = 0;
  to.output_end = 0;
  for (const jit::DepthwiseBand& band : plan.bands) add_band(plan, band, part, writes, to);
}

}  // namespace castor::detail
