/* SPDX-License-Identifier: Apache-2.0 */
/* Uses the embARC MLI interface from C11. */
#include <castor/mli.h>
#include <stdio.h>

int main(void) {
  float values[4] = {0.5f, -0.25f, 0.125f, 1.0f};
  int8_t codes[4] = {0};
  mli_tensor source = {0};
  mli_tensor destination = {0};
  source.data.capacity = sizeof values;
  source.data.mem.pf32 = values;
  source.el_type = MLI_EL_FP_32;
  destination.data.capacity = sizeof codes;
  destination.data.mem.pi8 = codes;
  destination.el_type = MLI_EL_FX_8;
  destination.el_params.fx.frac_bits = 7;
  source.rank = destination.rank = 1;
  source.shape[0] = destination.shape[0] = 4;
  source.mem_stride[0] = destination.mem_stride[0] = 1;
  if (mli_hlp_convert_tensor(&source, &destination) != MLI_STATUS_OK) return 1;
  printf("mli: %d %d %d %d\n", codes[0], codes[1], codes[2], codes[3]);
  return 0;
}
