// SPDX-License-Identifier: Apache-2.0
// What a process makes once (the key of its hashes, what its CPU can do, a runtime), where a child
// is forked while another thread makes it: the child must not wait for that thread, which it lacks.
#include <gtest/gtest.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "castor/castor.hpp"
#include "castor/mli.h"
#include "ir/support/process_key.hpp"

namespace castor::test {
namespace {

constexpr int seconds_to_wait = 10;

/// Ends the process after a while, as one that waits for ever is ended.
void end_if_it_waits() {
  itimerval time = {};
  time.it_value.tv_sec = seconds_to_wait;
  ::setitimer(ITIMER_REAL, &time, nullptr);
}

bool ends_well(pid_t child) {
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// In a process that has not used castor: one thread does so while another one forks, `delay`
/// rounds later. Whether the child that it forks can use castor as well.
bool child_can(bool (*use)(), int delay) {
  std::atomic<bool> begins = false;
  std::thread user([&] {
    begins.store(true);
    (void)use();
  });
  while (!begins.load()) {
  }
  for (int i = 0; i < delay; ++i) __asm__ volatile("");
  const pid_t child = ::fork();
  if (child == 0) {
    end_if_it_waits();
    ::_exit(use() ? 0 : 1);
  }
  const bool is_well = ends_well(child);
  user.join();
  return is_well;
}

/// Fresh processes, which fork at all moments of the first use.
void expect_no_child_waits(bool (*use)(), int steps, int step) {
  for (int i = 0; i < steps; ++i) {
    const pid_t fresh = ::fork();
    if (fresh == 0) ::_exit(child_can(use, i * step) ? 0 : 1);
    ASSERT_TRUE(ends_well(fresh)) << "after " << i * step << " rounds";
  }
}

bool hashes_a_constant() {
  const auto data = std::make_shared<const ConstantData>(ConstantData{{}, {std::byte{1}}});
  return ContentId(data).same_content(ContentId(data));
}

bool asks_the_cpu() { return !jit::host().cpu.empty(); }

bool converts_by_mli() {
  std::array<int8_t, 2> elements = {1, 2};
  mli_tensor tensor = {};
  tensor.data.capacity = elements.size();
  tensor.data.mem.pi8 = elements.data();
  tensor.rank = 1;
  tensor.shape[0] = 2;
  tensor.mem_stride[0] = 1;
  tensor.el_type = MLI_EL_FX_8;
  std::array<int8_t, 2> results = {};
  mli_tensor result = tensor;
  result.data.mem.pi8 = results.data();
  return mli_hlp_convert_tensor(&tensor, &result) == MLI_STATUS_OK && results == elements;
}

TEST(ForkFirstUse, WhileTheKeyIsDrawn) { expect_no_child_waits(hashes_a_constant, 1500, 4); }
TEST(ForkFirstUse, WhileTheCpuIsAsked) { expect_no_child_waits(asks_the_cpu, 400, 40); }
TEST(ForkFirstUse, WhileTheRuntimeIsMade) { expect_no_child_waits(converts_by_mli, 400, 100); }

/// Threads that draw the key at the same time all get the same one.
TEST(ForkFirstUse, EveryThreadHasOneKey) {
  for (int i = 0; i < 50; ++i) {
    const pid_t fresh = ::fork();
    if (fresh == 0) {
      std::array<SipHash::Key, 4> keys = {};
      std::atomic<int> ready = 0;
      std::vector<std::thread> threads;
      for (SipHash::Key& key : keys) {
        threads.emplace_back([&] {
          ++ready;
          while (ready.load() < static_cast<int>(keys.size())) {
          }
          key = process_key();
        });
      }
      for (std::thread& thread : threads) thread.join();
      bool is_one = true;
      for (const SipHash::Key& key : keys) {
        is_one = is_one && key.low == keys[0].low && key.high == keys[0].high && key.low != 0 &&
                 key.high != 0 && key.low != key.high;
      }
      ::_exit(is_one ? 0 : 1);
    }
    ASSERT_TRUE(ends_well(fresh));
  }
}

/// Processes draw keys of their own.
TEST(ForkFirstUse, EveryProcessHasAnotherKey) {
  std::set<std::pair<uint64_t, uint64_t>> keys;
  for (int i = 0; i < 20; ++i) {
    int ends[2] = {};
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t fresh = ::fork();
    if (fresh == 0) {
      const SipHash::Key key = process_key();
      ::_exit(::write(ends[1], &key, sizeof key) == ssize_t{sizeof key} ? 0 : 1);
    }
    SipHash::Key key = {};
    ASSERT_EQ(::read(ends[0], &key, sizeof key), ssize_t{sizeof key});
    ASSERT_TRUE(ends_well(fresh));
    EXPECT_TRUE(keys.insert({key.low, key.high}).second);
    ::close(ends[0]);
    ::close(ends[1]);
  }
}

/// getrandom of old kernels, of filters, of pools that are not filled, and one that gives less than
/// it was asked for.
ssize_t is_absent(void*, size_t, unsigned) {
  errno = ENOSYS;
  return -1;
}
ssize_t is_forbidden(void*, size_t, unsigned) {
  errno = EPERM;
  return -1;
}
ssize_t is_not_ready(void*, size_t, unsigned flags) {
  errno = EAGAIN;
  return (flags & GRND_NONBLOCK) != 0 ? -1 : 0;
}
ssize_t gives_half(void* bytes, size_t count, unsigned) {
  std::memset(bytes, 0, count / 2);
  return static_cast<ssize_t>(count / 2);
}

TEST(RandomWord, IsThereWithoutGetrandom) {
  std::set<uint64_t> words;
  size_t drawn = 0;
  for (GetRandom get : {is_absent, is_forbidden, is_not_ready, gives_half}) {
    for (uint64_t index = 0; index < 100; ++index) {
      words.insert(random_word(index, get));
      ++drawn;
    }
  }
  EXPECT_EQ(words.size(), drawn);
  EXPECT_FALSE(words.contains(0));
  EXPECT_NE(random_word(0), random_word(0));
}

}  // namespace
}  // namespace castor::test
