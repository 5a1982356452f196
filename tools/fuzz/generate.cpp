// SPDX-License-Identifier: Apache-2.0
#include "tools/fuzz/generate.hpp"

#include "tools/fuzz/generate_convolution.hpp"
#include "tools/fuzz/generate_directed.hpp"
#include "tools/fuzz/generate_operations.hpp"
#include "tools/fuzz/generate_requantize.hpp"

namespace castor::fuzz {

namespace {

constexpr int number_bits = 16;  // bits of a cell's number, after the topmost bit
constexpr int random_bits = 63 - number_bits;

constexpr std::array bad_call_kinds = {BadCall::Kind::shape, BadCall::Kind::bytes,
                                       BadCall::Kind::overlap, BadCall::Kind::null,
                                       BadCall::Kind::extents};
constexpr size_t bad_scale_percent = 50;  // where a program has one to spoil

Program generate_random(Random& random) {
  Program program;
  const size_t kind = random.below(100);
  const bool has_all_ops = kind < 80;
  if (kind < 60) {
    draw_operations(random, program);
  } else if (kind < 70) {
    draw_convolutions(random, program);
  } else if (has_all_ops) {
    draw_requantizations(random, program);
  } else {
    draw_conversions(random, program);
    draw_results(random, program);
  }
  draw_in_place(random, program);
  draw_interleaving(random, program, 10);
  draw_placements(random, program, random.percent(5) ? StrideKind::spread : StrideKind::any);
  draw_data(random, program, has_all_ops ? 45 : 5);
  if (random.percent(4)) {
    draw_bad_call(random, program, random.pick(bad_call_kinds));
  } else if (!scale_inputs(program).empty() && random.percent(bad_scale_percent)) {
    draw_bad_call(random, program, BadCall::Kind::scale);
  }
  return program;
}

/// How the call is split. Drawn from other numbers than everything else, so that programs are what
/// they were before calls could be split.
void draw_tasks(uint64_t seed, Program& program) {
  constexpr uint64_t other = 0x7461736b73;
  Random random(mix(seed) ^ other);
  if (!random.percent(35)) return;
  program.tasks = static_cast<int>(random.between(2, random.percent(80) ? 7 : 40));
  program.runs_threads = random.percent(5);  // a run with threads takes the time of many others
}

/// Whether a program that nearly agrees is bound before. Drawn from other numbers as well.
void draw_neighbour(uint64_t seed, Program& program) {
  constexpr uint64_t other = 0x6e65617262;
  Random random(mix(seed) ^ other);
  if (random.percent(20)) program.neighbour = random.next() | 1;
}

}  // namespace

uint64_t program_seed(uint64_t run_seed, uint64_t index) {
  return index == 0 ? run_seed : mix(mix(run_seed) + index) >> 1;
}

uint64_t directed_seed(size_t cell_index, uint64_t seed) {
  const uint64_t drawn = mix(seed) >> (64 - random_bits);
  return uint64_t{1} << 63 | static_cast<uint64_t>(cell_index) << random_bits | drawn;
}

Program generate(uint64_t seed) {
  Random random(seed);
  const size_t cell = seed >> random_bits & ((size_t{1} << number_bits) - 1);
  const bool is_directed = seed >> 63 != 0 && cell < cell_count();
  Program program = is_directed ? generate_for(random, cell_at(cell)) : generate_random(random);
  program.seed = seed;
  draw_tasks(seed, program);
  draw_neighbour(seed, program);
  return program;
}

}  // namespace castor::fuzz
