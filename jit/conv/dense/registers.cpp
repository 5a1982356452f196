// SPDX-License-Identifier: Apache-2.0
#include "jit/conv/dense/registers.hpp"

#include <cstddef>

namespace castor::jit::dense {

void RegisterTile::emit_zero(const Xmm& to) {
  target_.has_avx512() ? code_.vpxord(to, to, to) : code_.vpxor(to, to, to);
}

void RegisterTile::emit_output_of(int of_vector) {
  const Section address = code_.section(CodeSection::output_address);
  code_.mov(reg::output, store(of_vector, offsetof(TileOrigin, pixel)));
  code_.shl(reg::output, 2);
  code_.add(reg::output, argument(offsetof(DenseArguments, output)));
}

void RegisterTile::emit_add_output_step(const Reg64& to) {
  const Section address = code_.section(CodeSection::output_address);
  takes_input() ? code_.add(to, argument(offsetof(DenseArguments, output_step)))
                : code_.add(to, reg::output_step);
}

}  // namespace castor::jit::dense
