// SPDX-License-Identifier: Apache-2.0
// Loads the plugin of ONNX Runtime by the path that its target has.
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
  void* const plugin = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
  if (plugin == NULL) {
    puts(dlerror());
    return 1;
  }
  const int is_whole =
      dlsym(plugin, "CreateEpFactories") != NULL && dlsym(plugin, "ReleaseEpFactory") != NULL;
  puts(is_whole ? "plugin loaded" : "the plugin lacks a function");
  return is_whole ? 0 : 1;
}
