// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/epilogue/epilogue.hpp"

#include <algorithm>

#include "jit/lane/unsigned_stores.hpp"
#include "jit/plan/access_pattern.hpp"

namespace castor::jit {

namespace {

constexpr size_t max_instructions = 64;
constexpr int max_lane_bits = 32;

/// Whether the operation goes lane by lane, through general registers.
bool is_scalar(LaneOp op) {
  return op == LaneOp::divide_each || op == LaneOp::remainder_each ||
         op == LaneOp::float_remainder_each;
}

bool is_simple(const LaneProgram& program) {
  return program.code.size() <= max_instructions && program.widest_bits() <= max_lane_bits &&
         std::ranges::none_of(program.code,
                              [](const LaneInst& inst) { return is_scalar(inst.op); });
}

/// Registers that an epilogue has at least, and one that encodes by tables or looks up.
constexpr int min_vectors = 10;
constexpr int min_table_vectors = 16;

}  // namespace

bool is_packable(const TileEpilogue& epilogue, const LaneInst& inst) {
  if (inst.op != LaneOp::store || looks_up(inst.narrowing) || encodes(inst.narrowing)) return false;
  const TileOperand& to = epilogue.operands[epilogue.inputs + static_cast<size_t>(inst.imm)];
  return bits_of(inst.type) == 32 && bits_of(to.element) == 8;
}

namespace {

int count_packable(const TileEpilogue& epilogue) {
  const auto packs = [&](const LaneInst& inst) { return is_packable(epilogue, inst); };
  return static_cast<int>(std::ranges::count_if(epilogue.program.code, packs));
}

}  // namespace

TileEpilogue packed_epilogue(const TileEpilogue& epilogue) {
  TileEpilogue packed = epilogue;
  if (count_packable(epilogue) == 0) return packed;
  packed.program = epilogue.packed;
  packed.packs = true;
  return packed;
}

/// Two chunks in one vector, and a third.
int vectors_of_packs(const TileEpilogue& epilogue) { return 2 * count_packable(epilogue); }

std::vector<LoopLevel> levels_of_chunks(const TileEpilogue& epilogue, bool TileOperand::*is_same) {
  std::vector<LoopLevel> sources;
  for (size_t k = 0; k < epilogue.inputs; ++k) {
    const bool is_of_row = k != epilogue.source && epilogue.operands[k].*is_same;
    sources.push_back(is_of_row ? LoopLevel::row : LoopLevel::chunk);
  }
  return loop_levels(epilogue.program, sources);
}

int vectors_for(const TileEpilogue* epilogue) {
  if (epilogue == nullptr) return 0;
  const bool by_tables = std::ranges::any_of(epilogue->program.code, [](const LaneInst& inst) {
    return looks_up(inst.narrowing) || encodes(inst.narrowing);
  });
  return by_tables ? min_table_vectors : min_vectors;
}

std::optional<TileEpilogue> tile_epilogue(const Nest& nest, const EpilogueWalk& walk,
                                          const Target& target) {
  if (!target.has_avx512() || !is_simple(nest.program)) return std::nullopt;
  if (nest.operands() > max_tile_operands + 1) return std::nullopt;
  TileEpilogue epilogue;
  epilogue.inputs = nest.inputs.size();
  epilogue.source = nest.epilogue->source;
  for (size_t k = 0; k < nest.operands(); ++k) {
    const TileOperand operand = {nest.element(k), walk.operands[k].element == 0,
                                 walk.operands[k].row == 0};
    const bool is_repeated_input = operand.repeats && k < epilogue.inputs;
    if (is_sub_byte(operand.element)) return std::nullopt;
    if (is_repeated_input && bits_of(operand.element) != max_lane_bits) return std::nullopt;
    if (operand.repeats && k >= epilogue.inputs) return std::nullopt;
    epilogue.operands.push_back(operand);
  }
  epilogue.program = nest.program;
  epilogue.packed = nest.program;
  store_from_unsigned(epilogue.program);
  epilogue.rows_of_channels = walk.rows_of_channels;
  return epilogue;
}

std::optional<TileEpilogue> likely_tile_epilogue(const Function& function, const Nest& nest,
                                                 const Target& target) {
  const Result<BoundShapes> shapes = likely_shapes(function);
  if (!shapes) return std::nullopt;
  const Dims& space = shapes->values[nest.space];
  std::vector<Dims> strides;
  for (const NestInput& input : nest.inputs) {
    const Dims& extents = shapes->values[input.value];
    strides.push_back(strides_in_space(input.axes, extents, dense_strides(extents), space));
  }
  strides.resize(nest.operands(), dense_strides(space));
  const std::optional<EpilogueWalk> walk = epilogue_walk(nest, space, strides);
  return walk ? tile_epilogue(nest, *walk, target) : std::nullopt;
}

}  // namespace castor::jit
