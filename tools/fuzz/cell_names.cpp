// SPDX-License-Identifier: Apache-2.0
// Coverage cells in words.
#include <fmt/format.h>

#include <array>

#include "ir/op.hpp"
#include "tools/fuzz/cells.hpp"

namespace castor::fuzz {

namespace {

constexpr std::array<std::string_view, call_count> call_names = {"in place",
                                                                 "no elements",
                                                                 "function compiled before",
                                                                 "code emitted before",
                                                                 "code emitted",
                                                                 "stores past the caches",
                                                                 "interleaved outputs",
                                                                 "refused: shape",
                                                                 "refused: too few bytes",
                                                                 "refused: overlap",
                                                                 "refused: null",
                                                                 "refused: extents",
                                                                 "refused: in place",
                                                                 "refused: scale"};

constexpr std::array<std::string_view, nest_cell_count> nest_names = {
    "one nest",
    "two nests",
    "three nests",
    "four nests and more",
    "through scratch",
    "copied periods",
    "any start",
    "excess precision",
    "transposed tiles",
    "strided tiles",
    "packed tiles",
    "several tiles",
    "row table",
    "block table",
    "scaled rows",
    "scaled blocks",
    "encoded blocks",
    "divided blocks",
    "baked period",
    "bytes by tables",
    "bytes by a call's tables",
    "slices by a method",
    "slices by a method of the call"};

std::string describe_conversion(const ConversionCell& cell) {
  const std::string options = to_string(cell.options);
  return fmt::format("{} -> {}{}", name_of(cell.from), name_of(cell.to),
                     options.empty() ? "" : " {" + options + "}");
}

std::string describe_mode(const ModeCell& cell) {
  constexpr std::array<std::string_view, 6> modes = {"numpy",         "none",     "pdpd",
                                                     "bidirectional", "explicit", "blocked"};
  const std::string_view op = cell.op == OpKind::add ? "two operands" : name_of(cell.op);
  return fmt::format("{}, {}{}{}{}", op, modes[static_cast<size_t>(cell.mode)],
                     cell.with_axis ? " with an axis" : "",
                     cell.trailing_ones ? ", trailing ones" : "",
                     cell.both_repeat ? ", both repeat" : "");
}

std::string describe_access(const AccessCell& cell) {
  const std::string size =
      cell.element_bytes == 0 ? "sub-byte" : fmt::format("{}-byte", cell.element_bytes);
  return fmt::format("{} {}, {} elements", cell.of_output ? "output" : "input",
                     jit::name_of(cell.access), size);
}

std::string describe_epilogue(const EpilogueCell& cell) {
  constexpr std::array<std::string_view, 3> kinds = {"dense", "grouped", "depthwise"};
  constexpr std::array<std::string_view, 2> layouts = {"nchw", "nhwc"};
  constexpr std::array<std::string_view, epilogue_forms> forms = {"by slices to sub-byte elements",
                                                                  "by slices to 1-byte elements",
                                                                  "by slices to 2-byte elements",
                                                                  "by slices to 4-byte elements",
                                                                  "by slices to 8-byte elements",
                                                                  "the function's result",
                                                                  "reshaped",
                                                                  "several nests",
                                                                  "two convolutions",
                                                                  "another shape",
                                                                  "repeated along some axes",
                                                                  "rows that end inside bytes",
                                                                  "views that have no slices"};
  return fmt::format("{}, {}, {}", kinds[static_cast<size_t>(cell.kind)],
                     layouts[static_cast<size_t>(cell.layout)],
                     forms[static_cast<size_t>(cell.form)]);
}

std::string describe_lanes(const LaneCell& cell) {
  return fmt::format("{} of {} bits, {} lanes of {} bits", cell.of_sink ? "sink" : "source",
                     cell.element_bits, cell.lanes, cell.lane_bits);
}

}  // namespace

std::string describe(const Cell& cell) {
  switch (cell.group) {
    case CellGroup::conversions: return describe_conversion(conversion_cells()[cell.number]);
    case CellGroup::layouts: {
      const LayoutCell layout = layout_cell(cell.number);
      return fmt::format("{} {}", layout.as_destination ? "to" : "from", name_of(layout.layout));
    }
    case CellGroup::operations: return std::string(op_table()[cell.number].name);
    case CellGroup::operation_types: {
      const OperationTypeCell& operation = operation_type_cells()[cell.number];
      return fmt::format("{} of {}", name_of(operation.op), name_of(operation.type));
    }
    case CellGroup::modes: return describe_mode(mode_cells()[cell.number]);
    case CellGroup::periods: {
      const PeriodCell period = period_cell(cell.number);
      const std::string length = period.length == 0 ? "other" : fmt::format("{}", period.length);
      return fmt::format("{}, {} elements", period.repeated ? "repeated" : "periodic", length);
    }
    case CellGroup::nests: return std::string(nest_names[cell.number]);
    case CellGroup::access: return describe_access(access_cell(cell.number));
    case CellGroup::lanes: return describe_lanes(lane_cell(cell.number));
    case CellGroup::ranks: return fmt::format("rank {}", cell.number);
    case CellGroup::loops: return fmt::format("{} loops", cell.number + 1);
    case CellGroup::tails: {
      const TailCell tail = tail_cells()[cell.number];
      return fmt::format("{} modulo {}", tail.remainder, tail.lanes);
    }
    case CellGroup::alignments: {
      const AlignmentCell cell_of = alignment_cell(cell.number);
      return fmt::format("{} at {} modulo 64", cell_of.of_output ? "output" : "input",
                         cell_of.misalignment);
    }
    case CellGroup::calls: return std::string(call_names[cell.number]);
    case CellGroup::epilogues: return describe_epilogue(epilogue_cell(cell.number));
    case CellGroup::requantizations: return describe(requantize_cell(cell.number));
    case CellGroup::slices: return describe(slice_cell(cell.number));
  }
  return {};
}

}  // namespace castor::fuzz
