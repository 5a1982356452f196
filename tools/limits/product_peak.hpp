// SPDX-License-Identifier: Apache-2.0
// The most products of 8-bit integers that the multiply units sum on one tier.
#pragma once

#include <xbyak/xbyak.h>

#include <string_view>

#include "jit/target.hpp"
#include "jit/tile_config.hpp"
#include "tools/limits/measure.hpp"

namespace castor::limits {

/// A loop of independent multiplications and additions in registers, of the tier's longest vectors:
/// vpdpbusd, or, without VNNI, vpmaddwd and vpaddd; with AMX of tile registers: tdpbusd.
class ProductPeak {
 public:
  explicit ProductPeak(jit::Tier tier);

  /// Measures the loop beside other contenders; valid while this object lives.
  Contender contender() const;
  /// Products that are summed in one repetition.
  double products() const;
  /// "vpdpbusd zmm".
  std::string_view name() const;

 private:
  bool has_tiles() const { return target_.supports(jit::Feature::amx_int8); }
  bool has_vnni() const;
  /// Accumulators, as many as there are registers for: two multiplications a cycle of five cycles'
  /// latency keep ten busy only when the scheduler makes no mistake.
  int accumulators() const;
  Xbyak::Xmm vector(int index) const;
  void emit();
  void emit_begin();
  void emit_tile_begin();
  void emit_product(int index);
  void emit_vector_product(int index);

  jit::Target target_;
  jit::TileConfig tile_config_;
  Xbyak::CodeGenerator code_;
};

}  // namespace castor::limits
