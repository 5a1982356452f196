// SPDX-License-Identifier: Apache-2.0
// LookUp/<codes>/<elements>/<what has a table>: 256 KiB of codes and elements; the table, whose
// bytes are not counted, is an operand or a constant.
#include <cstring>
#include <random>

#include "bench/benchmarks.hpp"
#include "bench/cases/look_up_case.hpp"
#include "bench/plain_contest.hpp"
#include "bench/stream_report.hpp"
#include "ir/interpreter/interpreter.hpp"

namespace castor::bench {

namespace {

void fill_with_random_bits(std::span<std::byte> bytes, uint32_t seed) {
  std::mt19937 random(seed);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
}

Dims dense_extents(const LookUpCell& cell, const Workspace& tensors) {
  constexpr int64_t unit = 4096;
  return cell.extents(tensors.elements / unit * unit);
}

/// Compares all bytes with the interpreter's.
Status check_result(const FunctionPtr& function, const BoundCall& call) {
  if (Status status = call.run(); !status) return status;
  const View& found = call.outputs.front();
  std::vector<std::byte> bytes(found.bytes);
  const View expected(bytes.data(), found.element, found.shape, bytes.size());
  if (Status status = interpret(*function, call.inputs, {&expected, 1}); !status) return status;
  if (std::memcmp(bytes.data(), found.data, bytes.size()) == 0) return {};
  return Error{ErrorCode::internal, "the result differs from the interpreter's"};
}

Status run_cell(benchmark::State& state, Session& session, const LookUpCell& cell) {
  const Result<Workspace> tensors = session.workspace(cell.pair(), l2_footprint);
  if (!tensors) return tensors.error();
  const Dims extents = dense_extents(cell, *tensors);
  const int64_t count = element_count(extents).value();
  const std::span<std::byte> source =
      tensors->source.first(static_cast<size_t>(*byte_size(cell.codes, count)));
  const std::span<std::byte> destination =
      tensors->destination.first(static_cast<size_t>(*byte_size(cell.element, count)));
  const Dims table_extents = cell.table_extents();
  std::vector<std::byte> table(
      static_cast<size_t>(*byte_size(cell.element, element_count(table_extents).value())));
  fill_with_random_bits(source, 7);
  fill_with_random_bits(table, 8);

  const Result<FunctionPtr> function = cell.function(extents, table);
  if (!function) return function.error();
  std::vector<ConstView> inputs = {{source.data(), cell.codes, extents, source.size()}};
  if (!cell.is_constant) {
    inputs.push_back({table.data(), cell.element, table_extents, table.size()});
  }
  Result<BoundCall> call =
      bind_call(session.runtime(), *function, inputs,
                {{destination.data(), cell.element, extents, destination.size()}});
  if (!call) return call.error();
  call->options = session.run_options(l2_footprint);
  if (Status status = check_result(*function, *call); !status) return status;

  std::vector<Contender> all = {call->contender(), session.clock().contender()};
  const PlainTensors plain = {{source}, destination};
  const PlainContest contest(session.plain_kernels(),
                             streams_of(Ratio{bits_of(cell.codes), bits_of(cell.element)}),
                             l2_footprint, plain, all);
  measure_in_turn(all, session.effort(l2_footprint));
  StreamFigures figures;
  figures.ns = all[0].median_ns();
  figures.bytes = static_cast<double>(source.size() + destination.size());
  figures.gigahertz = CoreClock::gigahertz(all[1]);
  figures.stream_fraction = contest.stream_fraction(all);
  figures.plain_name = contest.fastest_name(all);
  report_stream(state, "", figures, nullptr);
  return {};
}

}  // namespace

void register_look_up(Session& session, const Selection& selected) {
  register_cells(session, selected, look_up_cells(), run_cell);
}

}  // namespace castor::bench
