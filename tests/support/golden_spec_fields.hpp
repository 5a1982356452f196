// SPDX-License-Identifier: Apache-2.0
// The fields of kernels' specs with their words. Private to golden_spec.cpp.
#pragma once

#include <array>
#include <string_view>
#include <utility>
#include <variant>

#include "tests/support/golden_spec.hpp"

namespace castor::test {

inline constexpr std::pair<std::string_view, jit::WindowSums> window_sums_words[] = {
    {"none", jit::WindowSums::none},
    {"i32", jit::WindowSums::dwords},
    {"i16_pairs", jit::WindowSums::words}};
inline constexpr std::pair<std::string_view, jit::PixelSource> source_words[] = {
    {"packed", jit::PixelSource::planes},
    {"input", jit::PixelSource::input},
    {"signed_input", jit::PixelSource::signed_input}};

/// A field of a spec, and its word: "channels=4", "window_sums=i32", or, where it is a switch that
/// is on, the word alone.
template <class Spec>
struct Field {
  std::string_view word;
  std::variant<int Spec::*, bool Spec::*, jit::WindowSums Spec::*, jit::PixelSource Spec::*> member;
  bool is_choice = false;  ///< a number of which each value is something else to show
};

/// The fields of a kind of kernel: `kind_of<Spec>` is its word, `fields_of<Spec>` has all of them.
template <class Spec>
constexpr std::string_view kind_of = "";
template <class Spec>
constexpr std::array<Field<Spec>, 0> fields_of = {};

using jit::ConvTile;
template <>
inline constexpr std::string_view kind_of<ConvTile> = "pixel_vectorised";
template <>
inline constexpr std::array fields_of<ConvTile> = {
    Field<ConvTile>{"channels", &ConvTile::channels},
    Field<ConvTile>{"vectors", &ConvTile::vectors},
    Field<ConvTile>{"window_sums", &ConvTile::window_sums},
    Field<ConvTile>{"dead_lanes", &ConvTile::has_gaps},
    Field<ConvTile>{"peeled_k_steps", &ConvTile::last_taps, true},
    Field<ConvTile>{"prefetch", &ConvTile::prefetches_output},
    Field<ConvTile>{"source", &ConvTile::source},
    Field<ConvTile>{"loops_k_groups", &ConvTile::loops_k_groups},
};

using jit::ChannelTile;
template <>
inline constexpr std::string_view kind_of<ChannelTile> = "channel_vectorised";
template <>
inline constexpr std::array fields_of<ChannelTile> = {
    Field<ChannelTile>{"channels", &ChannelTile::channels},
    Field<ChannelTile>{"rows", &ChannelTile::rows},
    Field<ChannelTile>{"columns", &ChannelTile::columns},
    Field<ChannelTile>{"pixel_step", &ChannelTile::pixel_step},
    Field<ChannelTile>{"row_step", &ChannelTile::row_step},
    Field<ChannelTile>{"window_sums", &ChannelTile::window_sums},
    Field<ChannelTile>{"transposes", &ChannelTile::turns},
    Field<ChannelTile>{"peeled_k_steps", &ChannelTile::last_taps, true},
};

using jit::DepthwiseForm;
template <>
inline constexpr std::string_view kind_of<DepthwiseForm> = "depthwise";
template <>
inline constexpr std::array fields_of<DepthwiseForm> = {
    Field<DepthwiseForm>{"filter_rows", &DepthwiseForm::rows},
    Field<DepthwiseForm>{"row_stride", &DepthwiseForm::row_stride, true},
    Field<DepthwiseForm>{"k_groups", &DepthwiseForm::dwords, true},
    Field<DepthwiseForm>{"repeats_last_tap", &DepthwiseForm::repeats_last_tap},
    Field<DepthwiseForm>{"k_group_step", &DepthwiseForm::dword_step},
    Field<DepthwiseForm>{"source_bytes", &DepthwiseForm::source_bytes, true},
    Field<DepthwiseForm>{"flips_sign", &DepthwiseForm::flips_input},
    Field<DepthwiseForm>{"signed_input", &DepthwiseForm::signed_input},
    Field<DepthwiseForm>{"subtracts_window_sums", &DepthwiseForm::subtracts_window_sums},
    Field<DepthwiseForm>{"adds", &DepthwiseForm::adds},
};

using jit::DepthwiseBlock;
template <>
inline constexpr std::string_view kind_of<DepthwiseBlock> = "depthwise block";
template <>
inline constexpr std::array fields_of<DepthwiseBlock> = {
    Field<DepthwiseBlock>{"outputs", &DepthwiseBlock::outputs},
    Field<DepthwiseBlock>{"above", &DepthwiseBlock::above},
    Field<DepthwiseBlock>{"border_above", &DepthwiseBlock::guarded_above},
    Field<DepthwiseBlock>{"border_below", &DepthwiseBlock::guarded_below},
    Field<DepthwiseBlock>{"below", &DepthwiseBlock::below},
    Field<DepthwiseBlock>{"masks_rows", &DepthwiseBlock::masks_rows},
};

using jit::GroupedNhwcForm;
template <>
inline constexpr std::string_view kind_of<GroupedNhwcForm> = "grouped_nhwc";
template <>
inline constexpr std::array fields_of<GroupedNhwcForm> = {
    Field<GroupedNhwcForm>{"filter_rows", &GroupedNhwcForm::rows},
    Field<GroupedNhwcForm>{"row_stride", &GroupedNhwcForm::row_stride, true},
    Field<GroupedNhwcForm>{"filter_columns", &GroupedNhwcForm::columns},
    Field<GroupedNhwcForm>{"column_stride", &GroupedNhwcForm::column_stride, true},
    Field<GroupedNhwcForm>{"outputs", &GroupedNhwcForm::outputs},
    Field<GroupedNhwcForm>{"k_groups", &GroupedNhwcForm::parts, true},
    Field<GroupedNhwcForm>{"repeats", &GroupedNhwcForm::repeats},
    Field<GroupedNhwcForm>{"is_partial", &GroupedNhwcForm::is_partial},
    Field<GroupedNhwcForm>{"masks_lanes", &GroupedNhwcForm::masks_lanes},
    Field<GroupedNhwcForm>{"flips_sign", &GroupedNhwcForm::flips_input},
    Field<GroupedNhwcForm>{"signed_input", &GroupedNhwcForm::signed_input},
    Field<GroupedNhwcForm>{"subtracts_window_sums", &GroupedNhwcForm::subtracts_window_sums},
    Field<GroupedNhwcForm>{"adds", &GroupedNhwcForm::adds},
};

using jit::GroupedNhwcBlock;
template <>
inline constexpr std::string_view kind_of<GroupedNhwcBlock> = "grouped_nhwc block";
template <>
inline constexpr std::array fields_of<GroupedNhwcBlock> = {
    Field<GroupedNhwcBlock>{"outputs", &GroupedNhwcBlock::outputs},
    Field<GroupedNhwcBlock>{"above", &GroupedNhwcBlock::above},
    Field<GroupedNhwcBlock>{"below", &GroupedNhwcBlock::below},
};

using jit::PlaneForm;
template <>
inline constexpr std::string_view kind_of<PlaneForm> = "pack_input";
template <>
inline constexpr std::array fields_of<PlaneForm> = {
    Field<PlaneForm>{"column_stride", &PlaneForm::column_stride, true},
    Field<PlaneForm>{"plain", &PlaneForm::is_plain},
    Field<PlaneForm>{"columns4", &PlaneForm::holds_columns},
};

using jit::WindowForm;
template <>
inline constexpr std::string_view kind_of<WindowForm> = "pack_im2col";
template <>
inline constexpr std::array fields_of<WindowForm> = {
    Field<WindowForm>{"rows", &WindowForm::rows},
    Field<WindowForm>{"columns", &WindowForm::columns},
    Field<WindowForm>{"column_stride", &WindowForm::column_stride},
    Field<WindowForm>{"dilation", &WindowForm::dilation},
};

using jit::WeightUnit;
template <>
inline constexpr std::string_view kind_of<WeightUnit> = "pack_weights";
template <>
inline constexpr std::array fields_of<WeightUnit> = {
    Field<WeightUnit>{"positions", &WeightUnit::positions},
    Field<WeightUnit>{"k_groups", &WeightUnit::parts},
    Field<WeightUnit>{"input_step", &WeightUnit::input_step},
};

template <>
inline constexpr std::string_view kind_of<ByteTableSpec> = "byte_table";

}  // namespace castor::test
