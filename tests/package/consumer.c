/* SPDX-License-Identifier: Apache-2.0 */
/* Uses the C interface from C11. */
#include <castor/castor.h>
#include <stdio.h>

int main(void) {
  castor_runtime* runtime = NULL;
  castor_error error;
  if (castor_runtime_create(NULL, &runtime, &error) != CASTOR_OK) return 1;
  const castor_tier tier = castor_runtime_tier(runtime);
  castor_runtime_destroy(runtime);
  printf("castor %s: %s\n", castor_version_string(), tier > 0 ? "machine code" : "interpreter");
  return 0;
}
