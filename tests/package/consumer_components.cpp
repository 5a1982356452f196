// SPDX-License-Identifier: Apache-2.0
// Uses the optional components: listings of a kernel, a pool of threads.
#include <castor/castor.hpp>
#include <castor/listing.hpp>
#include <castor/thread_pool.hpp>
#include <cstdio>

int main() {
  const castor::Result<castor::Runtime> runtime = castor::Runtime::create();
  if (!runtime) return 1;
  const castor::Result<castor::Kernel> kernel =
      runtime->compile("func @f(%x: u8[?n]) -> (f32[?n]) { %y = convert %x : f32 return %y }");
  if (!kernel) return 2;
  const castor::Result<castor::BoundKernel> bound = kernel->bind({castor::Dims{100}});
  if (!bound) return 3;
  const castor::Result<std::string> listing = castor::listing(*bound);
  const auto pool = castor::make_thread_pool(2);
  if (!listing || !pool) return 4;
  std::printf("%s, %d tasks\n", listing->find("vzeroupper") != std::string::npos ? "listed" : "?",
              (*pool)->tasks());
  return 0;
}
