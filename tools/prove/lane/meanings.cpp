// SPDX-License-Identifier: Apache-2.0
// Which family gives a lane operation its meaning.
#include "tools/prove/lane/step.hpp"

namespace castor::prove {

using jit::LaneOp;

Term meaning_of(LaneStep& step) {
  const LaneOp op = step.inst.op;
  if (op == LaneOp::look_up_i32 || op == LaneOp::look_up) return integer_meaning(step);
  if (op >= LaneOp::f16_to_f32) return conversion_meaning(step);
  if (op >= LaneOp::float_add) return float_meaning(step);
  return integer_meaning(step);
}

FloatFormat lane_format(int bits) {
  return bits == 16 ? f16_format : bits == 32 ? f32_format : f64_format;
}

}  // namespace castor::prove
