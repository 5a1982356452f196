// SPDX-License-Identifier: Apache-2.0
// The loops of the packers of input, for every count, step and address.
#include <algorithm>
#include <cstddef>

#include "tools/prove/kernel/kernel_call.hpp"
#include "tools/prove/kernel/loop_memory.hpp"
#include "tools/prove/kernel/loop_model.hpp"
#include "tools/prove/kernel/packed_layout.hpp"

namespace castor::prove {

using namespace packed_layout;

namespace {

class InputLoops : public LoopModel {
 public:
  InputLoops(const jit::PackInput& spec, uint32_t flips)
      : LoopModel(variable_count, arguments_of_call(), loops_of(spec), bytes_of_call(flips)),
        spec_(spec),
        flips_(flips) {
    for (int left_out = 0; left_out < loaded_bytes(); ++left_out) {
      ways_.push_back({.first = left_out});
      ways_.push_back({.last = left_out + 1});
    }
    for (int stored = 1; stored < lanes; ++stored) ways_.push_back({.stored = stored});
    if (!is_im2col()) return;
    for (int i = 0; i < spec_.filter_rows; ++i) ways_.push_back({.padding_rows = 1u << i});
    ways_.push_back({.padding_rows = ~0u});
  }

  void lay_out_operands(SymbolMachine& machine) const override {
    const Variables all = numbers();
    const size_t apart = is_im2col() ? static_cast<size_t>(spec_.filter_rows) : 0;
    add_region(machine, "all input", all[source], 0x2'0000 + apart * filter_row_step);
    add_region(machine, "all planes", all[planes], 0x4'0000, true);
    const jit::PackedVector whole = {.bytes = jit::first_bits(loaded_bytes()),
                                     .lanes = jit::first_bits(lanes)};
    const std::vector<jit::PackedVector> table(all[vector_count].value, whole);
    fill(machine.domain(),
         add_region(machine, "all vectors", all[vectors], table.size() * sizeof whole),
         std::as_bytes(std::span(table)));
    add_filter_rows(machine, {});
  }

  int ways() const override { return static_cast<int>(ways_.size()); }

  void lay_out_iteration(SymbolMachine& machine, const Variables& variables, int way) override {
    const Way& here = ways_[static_cast<size_t>(way)];
    const int present = loaded_bytes() - here.first - here.last;
    const jit::PackedVector entry = {.bytes = jit::first_bits(present) << here.first,
                                     .lanes = jit::first_bits(here.stored)};
    fill(machine.domain(), add_region(machine, "the vector", variables[vector], sizeof entry),
         std::as_bytes(std::span(&entry, 1)));
    add_filter_rows(machine, here);
    x_.clear();
    for (int i = 0; i < input_rows(); ++i) {
      const Word at = variables[from] + row_offset(i, variables) + number(here.first);
      x_.push_back(add_inputs(machine, fmt::format("x{}", i), at, present));
    }
    for (int k_group = 0; k_group < k_groups_at_once(); ++k_group) {
      add_region(machine, name_of(k_group), variables[to] + k_group * variables[plane_step],
                 static_cast<size_t>(4 * here.stored), true);
    }
  }

  Status compare(SymbolMachine& machine, const Variables&, int way, bool) override {
    const Way& here = ways_[static_cast<size_t>(way)];
    for (int k_group = 0; k_group < k_groups_at_once(); ++k_group) {
      for (int byte = 0; byte < 4 * here.stored; ++byte) {
        const int lane = byte / elements;
        const int element = byte % elements;
        if (is_im2col() && elements * k_group + element >= spec_.taps()) continue;  // anything
        const Term found = stored_in(machine, name_of(k_group), byte);
        const Term x = element_of(machine.domain().terms(), here, k_group, lane, element);
        if (found && found.same_as(x ^ (flips_ >> (8 * element) & 0xff))) continue;
        return wrong_layout(
            fmt::format("byte {} of lane {} of k group {}", element, lane, k_group));
      }
    }
    return {};
  }

 protected:
  void derive(Variables& variables) const override {
    if (is_im2col()) begin_k_groups(variables);  // it has no loop over them
  }

  void begin(size_t loop, Variables& variables) const override {
    switch (kind_of(loop)) {
      case LoopKind::k_groups: return begin_k_groups(variables);
      case LoopKind::rows:
        variables[row_source] = variables[k_source];
        variables[row] = variables[plane];
        return;
      case LoopKind::vectors:
        variables[vector] = variables[vectors];
        variables[from] = variables[row_source];
        variables[to] = variables[row];
        return;
    }
  }

  void advance(size_t loop, Variables& variables) const override {
    const auto add = [&](Variable moved, const Word& by) {
      variables[moved] = variables[moved] + by;
    };
    switch (kind_of(loop)) {
      case LoopKind::k_groups:
        add(k_source, variables[source_k_step]);
        return add(plane, variables[plane_step]);
      case LoopKind::rows:
        add(row_source, variables[source_row_step]);
        return add(row, variables[row_step]);
      case LoopKind::vectors:
        add(from, number(spec_.vector_step()));
        add(to, number(vector_bytes));
        return add(vector, number(sizeof(jit::PackedVector)));
    }
  }

 private:
  enum Variable : size_t {
    k_source,
    plane,
    k_left,
    row_source,
    row,
    rows_left,
    vector,
    vectors_left,
    from,
    to,
    source,  // the call's arguments, from here on
    first_column,
    channel_1,
    channel_2,
    channel_3,
    source_k_step,
    source_row_step,
    planes,
    plane_step,
    row_step,
    k_groups,
    rows,
    vectors,
    vector_count,
    variable_count
  };
  enum class LoopKind { k_groups, rows, vectors };

  /// One iteration of the loop over vectors.
  struct Way {
    int first = 0;  ///< bytes before and after the input, which are padding
    int last = 0;
    int stored = lanes;
    uint32_t padding_rows = 0;  ///< im2col: a bit for each of the filter's
  };

  static std::vector<Argument> arguments_of_call() {
    using Call = jit::PackInputArguments;
    constexpr size_t channels = offsetof(Call, channels);
    return {{offsetof(Call, source), source, 0x1'0000'0000},
            {offsetof(Call, first_column), first_column, 0x11},
            {channels, channel_1, 0x1000},
            {channels + 8, channel_2, 0x2100},
            {channels + 16, channel_3, 0x3300},
            {offsetof(Call, source_k_group_step), source_k_step, 0x5000},
            {offsetof(Call, source_row_step), source_row_step, 0x780},
            {offsetof(Call, planes), planes, 0x2'0000'0000},
            {offsetof(Call, plane_step), plane_step, 0x9000},
            {offsetof(Call, row_step), row_step, 0xb00},
            {offsetof(Call, k_groups), k_groups, 4},
            {offsetof(Call, rows), rows, 6},
            {offsetof(Call, vectors), vectors, 0x3'0000'0000},
            {offsetof(Call, vector_count), vector_count, 8}};
  }
  static std::vector<Loop> loops_of(const jit::PackInput& spec) {
    std::vector<Loop> loops = {{k_groups, k_left}, {rows, rows_left}, {vector_count, vectors_left}};
    if (spec.layout == jit::PackedLayout::im2col) loops.erase(loops.begin());
    return loops;
  }
  static std::vector<std::byte> bytes_of_call(uint32_t flips) {
    return bytes_of(jit::PackInputArguments{
        .flips = flips,
        .padding = padding,
        .filter_rows = pointer_to<const std::byte* const>(filter_rows_address)});
  }

  LoopKind kind_of(size_t loop) const {
    return static_cast<LoopKind>(loop + (is_im2col() ? 1 : 0));
  }
  void begin_k_groups(Variables& variables) const {
    variables[k_source] = variables[source] + variables[first_column];
    variables[plane] = variables[planes];
  }

  bool is_im2col() const { return spec_.layout == jit::PackedLayout::im2col; }
  bool is_nchw4c() const { return spec_.layout == jit::PackedLayout::nchw4c; }
  int loaded_bytes() const { return is_nchw4c() ? lanes * spec_.column_stride : vector_bytes; }
  int k_groups_at_once() const { return is_im2col() ? spec_.k_groups() : 1; }
  /// Rows of the input that a vector takes: of channels, or of the filter.
  int input_rows() const {
    if (is_nchw4c()) return elements;
    return is_im2col() ? spec_.filter_rows : 1;
  }
  Word row_offset(int index, const Variables& variables) const {
    if (is_im2col()) return number((index + 1) * filter_row_step);
    return index == 0 ? number(0) : variables[channel_1 + static_cast<size_t>(index) - 1];
  }
  static std::string name_of(int k_group) { return fmt::format("k group {}", k_group); }

  void add_filter_rows(SymbolMachine& machine, const Way& way) const {
    if (!is_im2col()) return;
    std::vector<uint64_t> offsets;
    for (size_t i = 0; i < static_cast<size_t>(spec_.filter_rows); ++i) {
      offsets.push_back((way.padding_rows >> i & 1) != 0 ? 0 : (i + 1) * filter_row_step);
    }
    fill(machine.domain(),
         add_region(machine, "the filter's rows", {filter_rows_address, 0}, 8 * offsets.size()),
         std::as_bytes(std::span(offsets)));
  }

  Term element_of(Terms& terms, const Way& way, int k_group, int lane, int element) const {
    int input_row = 0;
    int column = lane * spec_.column_stride;
    switch (spec_.layout) {
      case jit::PackedLayout::nchw4c: input_row = element; break;
      case jit::PackedLayout::columns4: column += element; break;
      case jit::PackedLayout::im2col: {
        const int tap = elements * k_group + element;
        input_row = tap / spec_.filter_columns;
        column += tap % spec_.filter_columns * spec_.dilation;
        break;
      }
    }
    const std::vector<Term>& x = x_[static_cast<size_t>(input_row)];
    const int at = column - way.first;
    const bool is_padding =
        at < 0 || at >= std::ssize(x) || (is_im2col() && (way.padding_rows >> input_row & 1) != 0);
    return is_padding ? terms.constant(8, padding & 0xff) : x[static_cast<size_t>(at)];
  }

  static constexpr uint32_t padding = 0x2525'2525;
  static constexpr uint64_t filter_rows_address = 0x3000'0000;
  static constexpr size_t filter_row_step = 0x1'0000;

  const jit::PackInput& spec_;
  const uint32_t flips_;
  std::vector<Way> ways_{{}};
  std::vector<std::vector<Term>> x_;  ///< by row of the input
};

}  // namespace

Status prove_every_count(const KernelSubject<jit::PackInput>& kernel, ConvProof& proof) {
  for (const uint32_t flips : {uint32_t{0}, sign_flips}) {
    InputLoops model(kernel.spec, flips);
    if (Status status = prove_loops(kernel.code, model, proof); !status) return status;
  }
  return {};
}

}  // namespace castor::prove
