// SPDX-License-Identifier: Apache-2.0
#include "runtime/cache/code_cache.hpp"

#include "jit/emit/tile_copy.hpp"

namespace castor {

namespace {

template <class T>
void append(std::string& key, const T& value) {
  static_assert(std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>);
  key.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

}  // namespace

std::string specialisation_key(const jit::Nest& nest, const jit::NestForm& form,
                               const jit::Target& target) {
  std::string key;
  key.reserve(nest.program.code.size() * 28 + nest.operands() * 2 + 16);
  append(key, target.tier);
  append(key, form.rank);
  append(key, form.stores);
  append(key, form.baked_period);
  append(key, static_cast<uint32_t>(nest.inputs.size()));
  for (size_t k = 0; k < nest.operands(); ++k) {
    append(key, nest.element(k));
    append(key, form.access[k]);
  }
  for (const jit::LaneInst& inst : nest.program.code) {
    append(key, inst.op);
    append(key, inst.type);
    append(key, inst.narrowing);
    for (jit::LaneId id : {inst.a, inst.b, inst.c, inst.mask}) append(key, id);
    append(key, inst.imm);
    append(key, inst.table);
  }
  for (const jit::ByteTable& table : nest.program.tables) append(key, table);
  for (const jit::I32Table& table : nest.program.i32_tables) append(key, table);
  for (const jit::ThresholdTable& table : nest.program.threshold_tables) append(key, table);
  return key;
}

std::string epilogue_key(const jit::Nest& nest, const jit::NestForm& form,
                         const jit::Target& target, const jit::TileEpilogue& epilogue) {
  std::string key = specialisation_key(nest, form, target);
  append(key, epilogue.source);
  append(key, static_cast<uint8_t>(epilogue.rows_of_channels));
  for (const jit::TileOperand& of : epilogue.operands) {
    append(key, static_cast<uint8_t>(of.repeats));
    append(key, static_cast<uint8_t>(of.same_in_rows));
  }
  return key;
}

/// Found, or made by the recipe.
Result<NestCodePtr> CodeCache::find_or_emit(const std::string& key, const CodeRecipe& recipe) {
  const uint64_t hash = std::hash<std::string>()(key);
  return codes_.get().get(hash, key, [&]() -> Result<Codes::Made> {
    Result<jit::MachineCode> emitted = recipe.emit();
    if (!emitted.ok()) return emitted.error();
    Result<jit::CodeBlock> block = memory_.publish(*emitted);
    if (!block.ok()) return block.error();
    auto code = std::make_shared<NestCode>(NestCode{std::move(block).value()});
    if (watcher_ != nullptr) {
      code->watch = watcher_->code_made(recipe, key, *emitted, code->block);
    }
    const size_t bytes = code->held_bytes() + block_bytes(key.size() + 1);
    return Codes::Made{std::move(code), bytes};
  });
}

Result<NestCodePtr> CodeCache::get(const jit::Nest& nest, const jit::NestForm& form,
                                   const jit::Target& target, const Function* function) {
  return find_or_emit(specialisation_key(nest, form, target),
                      NestRecipe(nest, form, target, function));
}

Result<NestCodePtr> CodeCache::get_tile_copy(int element_bytes) {
  std::string key = "tile copy";  // shorter than the key of any nest
  append(key, element_bytes);
  return find_or_emit(key, KernelRecipe(TileCopyForm{element_bytes}, nullptr, nullptr,
                                        [&] { return jit::emit_tile_copy(element_bytes); }));
}

Result<NestCodePtr> CodeCache::get_convolution(const jit::ConvTile& tile, const jit::Target& target,
                                               const jit::TileEpilogue* epilogue) {
  std::string key = "convolution";
  append(key, target.tier);
  append(key, tile.channels);
  append(key, tile.vectors);
  append(key, tile.window_sums);
  append(key, static_cast<uint8_t>(tile.has_gaps));
  append(key, static_cast<uint8_t>(tile.prefetches_output));
  append(key, tile.source);
  append(key, tile.last_taps);
  append(key, static_cast<uint8_t>(tile.loops_k_groups));
  if (epilogue != nullptr) key += epilogue->key;
  return find_or_emit(key, KernelRecipe(tile, &target, epilogue, [&] {
                        return jit::emit_conv_kernel(tile, target, epilogue);
                      }));
}

Result<NestCodePtr> CodeCache::get_convolution(const jit::ChannelTile& tile,
                                               const jit::Target& target,
                                               const jit::TileEpilogue* epilogue) {
  std::string key = "convolution, channels";
  append(key, target.tier);
  for (int value : {tile.channels, tile.rows, tile.columns}) append(key, value);
  append(key, tile.pixel_step);
  append(key, tile.row_step);
  append(key, tile.window_sums);
  append(key, static_cast<uint8_t>(tile.turns));
  append(key, tile.last_taps);
  if (epilogue != nullptr) key += epilogue->key;
  return find_or_emit(key, KernelRecipe(tile, &target, epilogue, [&] {
                        return jit::emit_channel_kernel(tile, target, epilogue);
                      }));
}

Result<NestCodePtr> CodeCache::get_depthwise(const jit::DepthwiseForm& form,
                                             const jit::Target& target,
                                             const jit::TileEpilogue* epilogue) {
  std::string key = "depthwise convolution";
  append(key, target.tier);
  for (int value : {form.rows, form.row_stride, form.dwords, form.dword_step, form.source_bytes}) {
    append(key, value);
  }
  for (bool value : {form.repeats_last_tap, form.flips_input, form.signed_input,
                     form.subtracts_window_sums, form.adds}) {
    append(key, static_cast<uint8_t>(value));
  }
  for (const jit::DepthwiseBlock& block : form.blocks) {
    for (int value : {block.outputs, block.above, block.guarded_above, block.guarded_below,
                      block.below, int{block.masks_rows}}) {
      append(key, value);
    }
  }
  if (epilogue != nullptr) key += epilogue->key;
  return find_or_emit(key, KernelRecipe(form, &target, epilogue, [&] {
                        return jit::emit_depthwise_kernel(form, target, epilogue);
                      }));
}

Result<NestCodePtr> CodeCache::get_grouped(const jit::GroupedNhwcForm& form,
                                           const jit::Target& target,
                                           const jit::TileEpilogue* epilogue) {
  std::string key = "grouped convolution, channels";
  append(key, target.tier);
  for (int value :
       {form.rows, form.row_stride, form.columns, form.column_stride, form.outputs, form.parts}) {
    append(key, value);
  }
  for (bool value : {form.repeats, form.is_partial, form.masks_lanes, form.flips_input,
                     form.signed_input, form.subtracts_window_sums, form.adds}) {
    append(key, static_cast<uint8_t>(value));
  }
  for (const jit::GroupedNhwcBlock& block : form.blocks) {
    for (int value : {block.outputs, block.above, block.below}) append(key, value);
  }
  if (epilogue != nullptr) key += epilogue->key;
  return find_or_emit(key, KernelRecipe(form, &target, epilogue, [&] {
                        return jit::emit_grouped_nhwc_kernel(form, target, epilogue);
                      }));
}

Result<NestCodePtr> CodeCache::get_byte_table() {
  return find_or_emit("byte table", KernelRecipe(ByteTableForm{}, nullptr, nullptr,
                                                 [] { return jit::emit_byte_table(); }));
}

Result<NestCodePtr> CodeCache::get_weight_packer(const jit::WeightUnit& unit,
                                                 const jit::Target& target) {
  std::string key = "weights";
  append(key, target.tier);
  append(key, unit.positions);
  append(key, unit.parts);
  append(key, unit.input_step);
  return find_or_emit(key, KernelRecipe(unit, &target, nullptr,
                                        [&] { return jit::emit_pack_weights(unit, target); }));
}

Result<NestCodePtr> CodeCache::get_plane_filler(const jit::PlaneForm& form,
                                                const jit::Target& target) {
  std::string key = "planes";
  append(key, target.tier);
  append(key, form.column_stride);
  append(key, static_cast<uint8_t>(form.is_plain));
  append(key, static_cast<uint8_t>(form.holds_columns));
  return find_or_emit(key, KernelRecipe(form, &target, nullptr,
                                        [&] { return jit::emit_fill_planes(form, target); }));
}

Result<NestCodePtr> CodeCache::get_window_filler(const jit::WindowForm& form,
                                                 const jit::Target& target) {
  std::string key = "windows";
  append(key, target.tier);
  for (int value : {form.rows, form.columns, form.column_stride, form.dilation}) {
    append(key, value);
  }
  return find_or_emit(key, KernelRecipe(form, &target, nullptr,
                                        [&] { return jit::emit_fill_windows(form, target); }));
}

}  // namespace castor
