// SPDX-License-Identifier: Apache-2.0
#include "tools/emulator/permission.hpp"

#include <atomic>
#include <cerrno>

#include "jit/tile_permission.hpp"

namespace castor::emulator {

namespace {

constexpr uint64_t tile_data = uint64_t{1} << jit::xstate::tile_data;

constinit std::atomic<uint64_t> permitted{0};
constinit std::atomic<int> refusal{0};

int64_t fail(int error) {
  errno = error;
  return -1;
}

int64_t answer(uint64_t argument, uint64_t states) {
  *reinterpret_cast<uint64_t*>(argument) = states;
  return 0;
}

}  // namespace

int64_t arch_prctl(int request, uint64_t argument) {
  switch (request) {
    case jit::xstate::get_supported: return answer(argument, tile_data);
    case jit::xstate::get_permitted: return answer(argument, permitted.load());
    case jit::xstate::request_permission: break;
    default: return fail(EINVAL);
  }
  if (argument != jit::xstate::tile_data) return fail(EINVAL);
  if (const int error = refusal.load(); error != 0) return fail(error);
  permitted.store(tile_data);
  return 0;
}

bool is_tile_data_permitted() { return permitted.load() != 0; }

void refuse_tile_data(int error) { refusal.store(error); }

}  // namespace castor::emulator
