// SPDX-License-Identifier: Apache-2.0
// What was unlinked is freed when the readers who may see it are gone, no sooner and no later; and
// a look-up that finds its value writes to nothing that others read.
#include "runtime/cache/read_sections.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <new>
#include <optional>
#include <thread>

#include "tests/support/numbers_cache.hpp"

namespace {

/// Pages that take what this program allocates while `in_use`; but for single cache lines, which
/// hold reference counts.
struct Pages {
  static constexpr size_t size = size_t{1} << 16;
  std::byte* const begin = static_cast<std::byte*>(
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  size_t used = 0;
  bool in_use = false;

  bool hold(const void* at) const { return at >= begin && at < begin + size; }
  void* take(size_t bytes) {
    void* const at = begin + used;
    used += (bytes + 63) / 64 * 64;
    return used <= size ? at : nullptr;
  }
  void protect(int protection) const {
    if (::mprotect(begin, size, protection) != 0) std::abort();
  }
};

Pages& pages() {
  static Pages only;
  return only;
}

}  // namespace

void* operator new(size_t bytes) {
  void* const at = pages().in_use ? pages().take(bytes) : std::malloc(bytes);
  if (at == nullptr) throw std::bad_alloc();
  return at;
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  const bool in_pages = pages().in_use && bytes > castor::cache_line_size;
  void* const at =
      in_pages ? pages().take(bytes)
               : std::aligned_alloc(static_cast<size_t>(alignment), (bytes + 127) / 128 * 128);
  if (at == nullptr) throw std::bad_alloc();
  return at;
}
void operator delete(void* at) noexcept {
  if (!pages().hold(at)) std::free(at);
}
void operator delete(void* at, size_t) noexcept { operator delete(at); }
void operator delete(void* at, std::align_val_t) noexcept { operator delete(at); }
void operator delete(void* at, size_t, std::align_val_t) noexcept { operator delete(at); }

namespace castor {
namespace {

struct Flagged : Retired {
  explicit Flagged(int& count) : freed(count) {}
  ~Flagged() override { ++freed; }
  int& freed;
};

TEST(ReadSections, FreesAtOnceWithoutReaders) {
  ReadSections sections;
  int freed = 0;
  EXPECT_TRUE(sections.reclaim().empty());
  for (int round = 1; round < 5; ++round) {
    sections.retire(std::make_unique<Flagged>(freed));
    sections.retire(std::make_unique<Flagged>(freed));
    {
      const RetiredList list = sections.reclaim();
      EXPECT_EQ(freed, 2 * round - 2);  // left to the caller
    }
    EXPECT_EQ(freed, 2 * round);
  }
}

TEST(ReadSections, WaitsForReadersWhoCameBeforeAndForNoOthers) {
  ReadSections sections;
  int freed = 0;
  for (int round = 0; round < 4; ++round) {  // in either phase
    std::optional<ReadSections::Section> before(sections);
    sections.retire(std::make_unique<Flagged>(freed));
    static_cast<void>(sections.reclaim());
    EXPECT_EQ(freed, 0);
    std::optional<ReadSections::Section> after(sections);
    static_cast<void>(sections.reclaim());
    EXPECT_EQ(freed, 0);
    before.reset();
    static_cast<void>(sections.reclaim());
    EXPECT_EQ(freed, 1) << "round " << round;
    after.reset();
    freed = 0;
  }
}

TEST(ReadSections, FreesTheOthersWithTheObject) {
  int freed = 0;
  {
    ReadSections sections;
    const ReadSections::Section reader(sections);
    sections.retire(std::make_unique<Flagged>(freed));
    static_cast<void>(sections.reclaim());
    sections.retire(std::make_unique<Flagged>(freed));
    EXPECT_EQ(freed, 0);
  }
  EXPECT_EQ(freed, 2);
}

/// A writer who replaces an object again and again, and readers who look at it.
TEST(ReadSections, NobodySeesWhatWasFreed) {
  struct Object : Retired {
    explicit Object(int first) : value(first) {}
    ~Object() override { value = -1; }
    int value;
  };
  ReadSections sections;
  std::atomic<Object*> current = new Object(0);
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 4; ++reader) {
    readers.emplace_back([&] {
      while (!stop) {
        const ReadSections::Section section(sections);
        const Object* const object = current.load(std::memory_order_seq_cst);
        for (int look = 0; look < 10; ++look) {
          if (object->value < 0) ++wrong;
        }
      }
    });
  }
  for (int value = 1; value < 50000; ++value) {
    Object* const old = current.exchange(new Object(value), std::memory_order_seq_cst);
    sections.retire(std::unique_ptr<Retired>(old));
    static_cast<void>(sections.reclaim());
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  delete current.load();
  EXPECT_EQ(wrong, 0);
}

/// The table and the entries are in pages that are then made read-only. (Reference counts and the
/// readers' announcements, which look-ups do write, are elsewhere.)
TEST(ReadOnlyHits, WriteNoEntryButItsBitWhereThatIsClear) {
  test::NumbersCache numbers(100);
  for (int number : {100, 101, 102, 103, 104, 105, 106, 107, 108}) numbers.get(number);
  pages().in_use = true;
  for (int number = 0; number < 10; ++number) numbers.get(number);  // the table grows, too
  pages().in_use = false;
  ASSERT_GT(pages().used, 10 * 2 * cache_line_size);
  for (int number = 0; number < 9; ++number) numbers.get(number);  // but for 9
  pages().protect(PROT_READ);
  std::thread other([&] {
    for (int number = 0; number < 9; ++number) EXPECT_EQ(numbers.get(number)->number(), number);
  });
  for (int number = 0; number < 9; ++number) EXPECT_EQ(numbers.get(number)->number(), number);
  other.join();
  EXPECT_DEATH(static_cast<void>(numbers.get(9)), "");  // the bit of 9 is clear yet
  pages().protect(PROT_READ | PROT_WRITE);
  EXPECT_EQ(numbers.made, 19);
}

}  // namespace
}  // namespace castor
