// SPDX-License-Identifier: Apache-2.0
// Which machines' tiles kernels can use.
#include "jit/tile_detection.hpp"

#include <gtest/gtest.h>

#include "jit/target.hpp"

namespace castor::jit {
namespace {

constexpr uint64_t states = uint64_t{3} << 17;
constexpr TileMachine usable = {.has_tiles = true,
                                .registers = 8,
                                .rows = 16,
                                .row_bytes = 64,
                                .saved_states = 0xe7 | states,
                                .offered_states = states};

TileMachine with(void (*change)(TileMachine&)) {
  TileMachine machine = usable;
  change(machine);
  return machine;
}

TEST(TileDetection, FindsNothingWantingInWholeMachinesAndOthers) {
  EXPECT_EQ(tiles_unusable_because(usable), "");
  EXPECT_EQ(tiles_unusable_because({}), "");
}

TEST(TileDetection, SaysWhatIsWanting) {
  struct Row {
    TileMachine machine;
    std::string_view fragment;
  };
  const Row rows[] = {
      {with([](TileMachine& it) { it.registers = 4; }), "fewer than 8"},
      {with([](TileMachine& it) { it.rows = 8; }), "fewer than 8 of 16 rows"},
      {with([](TileMachine& it) { it.row_bytes = 32; }), "of 64 bytes"},
      {with([](TileMachine& it) { it.registers = 0; }), "fewer"},  // there is no leaf 0x1d
      {with([](TileMachine& it) { it.saved_states = 0xe7; }), "XCR0"},
      {with([](TileMachine& it) { it.saved_states = uint64_t{1} << 17; }), "XCR0"},
      {with([](TileMachine& it) { it.saved_states = uint64_t{1} << 18; }), "XCR0"},
      {with([](TileMachine& it) { it.offered_states = 0; }), "ARCH_GET_XCOMP_SUPP"},
  };
  for (const Row& row : rows) {
    EXPECT_NE(tiles_unusable_because(row.machine).find(row.fragment), std::string_view::npos)
        << tiles_unusable_because(row.machine);
  }
}

TEST(TileDetection, IsWhatTheHostHas) {
  if (!host().features.has(Feature::avx512f)) GTEST_SKIP() << "the CPU has no AVX-512";
  const TileMachine machine = detect_tiles();
  const bool is_usable = machine.has_tiles && tiles_unusable_because(machine).empty();
  const bool is_left_alone = host().emulated.has(Feature::amx_tile);
  EXPECT_EQ(host().features.has(Feature::amx_tile), is_usable && !is_left_alone);
}

}  // namespace
}  // namespace castor::jit
