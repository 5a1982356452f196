// SPDX-License-Identifier: Apache-2.0
#include "tests/support/golden_loops.hpp"

#include <algorithm>

#include "tests/support/golden.hpp"
#include "tests/support/golden_kernel.hpp"

namespace castor::test {

namespace {

GoldenLoop weighed(const jit::MachineCode& code, const jit::CodeLoop& loop) {
  GoldenLoop made{.listing = {}, .tier = {}, .nest = 0, .loop = loop, .cycles = {}};
  for (size_t i = 0; i < jit::port_model_count; ++i) {
    const auto cycles = port_cycles(code, loop, static_cast<jit::PortModel>(i));
    if (cycles) made.cycles[i] = *cycles;
  }
  return made;
}

}  // namespace

Result<std::vector<GoldenLoops>> golden_loops(std::string_view only) {
  std::vector<GoldenLoops> all;
  for (const std::filesystem::path& file : listing_files()) {
    GoldenLoops made{.listing = file.stem().string(), .codes = {}, .loops = {}};
    if (!made.listing.starts_with(only)) continue;
    const auto kernel = read_golden_kernel(text_of_file(file));
    if (!kernel) return kernel.error();
    auto codes = golden_codes(*kernel);
    if (!codes) return codes.error();
    made.codes = std::move(*codes);
    for (size_t nest = 0; nest < made.codes.size(); ++nest) {
      std::vector<jit::CodeLoop> loops = made.codes[nest].loops;
      std::ranges::sort(loops, {}, &jit::CodeLoop::begin);
      for (const jit::CodeLoop& loop : loops) {
        GoldenLoop& each = made.loops.emplace_back(weighed(made.codes[nest], loop));
        each.listing = made.listing;
        each.tier = kernel->target.tier;
        each.nest = nest;
      }
    }
    all.push_back(std::move(made));
  }
  return all;
}

}  // namespace castor::test
