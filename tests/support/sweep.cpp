// SPDX-License-Identifier: Apache-2.0
#include "tests/support/sweep.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>
#include <utility>

#include "tests/support/pack_codes.hpp"

namespace castor::test {

namespace {

uint8_t code_of(const Conversion& conversion, uint32_t pattern) {
  return static_cast<uint8_t>(
      numerics::convert(pattern, conversion.from, conversion.to, conversion.options));
}

/// A block's ranges, as [begin, end): zero and infinity, which begin their blocks, stand alone, and
/// in the first blocks, of subnormals, no range leaves its binade.
constexpr auto ranges = [] {
  std::array<std::pair<uint32_t, uint32_t>, std::bit_width(block_size)> made;
  made[0] = {0, 1};
  for (size_t i = 1; i < made.size(); ++i) made[i] = {made[i - 1].second, uint32_t{1} << i};
  return made;
}();
static_assert(ranges.back().second == block_size);

/// Whether the code turns in the block or at one of its ends; the first pattern follows the last.
bool turns_in_or_next_to(const Conversion& conversion, uint32_t block) {
  const uint32_t first = block * block_size;
  const uint8_t code = code_of(conversion, first);
  return code != code_of(conversion, first + block_size - 1) ||
         code != code_of(conversion, first + block_size) || code != code_of(conversion, first - 1);
}

std::string hexadecimal(uint32_t number) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%x", number);
  return text;
}

}  // namespace

ExpectedBlock::ExpectedBlock(const Conversion& conversion)
    : conversion_(conversion),
      codes_(block_size),
      bytes_(samples::storage_bytes(conversion.to, block_size)) {}

uint8_t ExpectedBlock::convert(uint32_t pattern) const { return code_of(conversion_, pattern); }

/// Most blocks have one code alone, the same as the block before: nothing to do for them.
void ExpectedBlock::compute(uint32_t block) {
  const std::optional<uint8_t> only_code = code_of_all_ranges(block);
  if (only_code.has_value() && only_code == only_code_) return;
  only_code_ = only_code;
  for (const auto& [begin, end] : ranges) {
    const uint32_t base = block * block_size;
    fill(begin, end, convert(base + begin), convert(base + end - 1), block);
  }
  pack_codes(conversion_.to, codes_, bytes_);
}

std::optional<uint8_t> ExpectedBlock::code_of_all_ranges(uint32_t block) const {
  const uint32_t base = block * block_size;
  const uint8_t code = convert(base);
  for (const auto& [begin, end] : ranges) {
    if (convert(base + begin) != code || convert(base + end - 1) != code) return std::nullopt;
  }
  return code;
}

void ExpectedBlock::fill(uint32_t begin, uint32_t end, uint8_t first, uint8_t last,
                         uint32_t block) {
  if (first == last) {
    std::memset(codes_.data() + begin, first, end - begin);
    return;
  }
  const uint32_t middle = begin + (end - begin) / 2;  // at least two patterns: the ends differ
  const uint32_t base = block * block_size;
  fill(begin, middle, first, convert(base + middle - 1), block);
  fill(middle, end, convert(base + middle), last, block);
}

std::optional<uint32_t> ExpectedBlock::wrong_sample(uint32_t block) const {
  constexpr int sample_count = 16;
  std::minstd_rand random(block + 1);
  for (int i = 0; i < sample_count; ++i) {
    const auto index = static_cast<uint32_t>(random() % block_size);
    const uint32_t pattern = block * block_size + index;
    if (convert(pattern) != codes_[index]) return pattern;
  }
  return std::nullopt;
}

/// One thread's share: its own buffers.
class Sweep::Worker {
 public:
  explicit Worker(Sweep& sweep) : sweep_(sweep), input_(block_size), actual_(block_size) {
    for (const Conversion& conversion : sweep.conversions_) expected_.emplace_back(conversion);
  }

  void check_block(uint32_t block, uint32_t every) {
    for (size_t i = 0; i < expected_.size(); ++i) {
      const Conversion& conversion = sweep_.conversions_[i];
      // Other blocks for each conversion: together they see them all.
      const bool chosen = (block + i) % every == 0 || turns_in_or_next_to(conversion, block);
      if (chosen) check(conversion, expected_[i], block);
    }
  }

  uint64_t runs() const { return runs_; }

 private:
  void fill_input(uint32_t block) {
    if (block == input_block_) return;
    std::iota(input_.begin(), input_.end(), block * block_size);
    input_block_ = block;
  }

  void check(const Conversion& conversion, ExpectedBlock& expected, uint32_t block) {
    fill_input(block);
    expected.compute(block);
    if (const auto pattern = expected.wrong_sample(block)) {
      sweep_.report("bisection, " + conversion.name(), "not monotone: " + hexadecimal(*pattern));
    }
    for (const auto& [tier, runtime] : elementwise_tier_runtimes()) {
      ++runs_;
      const std::string wrong = run_tier(runtime, conversion, expected, block);
      if (!wrong.empty()) {
        sweep_.report(std::string(name_of(tier)) + " " + conversion.name(), wrong);
      }
    }
  }

  /// What is wrong with the output of one tier, or nothing.
  std::string run_tier(const Runtime& runtime, const Conversion& conversion,
                       const ExpectedBlock& expected, uint32_t block) {
    const std::span<std::byte> actual(actual_.data(), expected.bytes().size());
    std::memset(actual.data(), 0xa5, actual.size());
    const auto source_bytes = std::as_bytes(std::span(input_));
    const ConstView source(source_bytes.data(), ElementType::f32, {int64_t{block_size}},
                           source_bytes.size());
    const View destination(actual.data(), conversion.to, {int64_t{block_size}}, actual.size());
    const Status status = runtime.convert(source, destination, conversion.options);
    if (!status.ok()) return status.error().message;
    if (std::memcmp(actual.data(), expected.bytes().data(), actual.size()) == 0) return "";
    return first_difference_in(conversion.to, actual, expected, block);
  }

  static std::string first_difference_in(ElementType to, std::span<const std::byte> actual,
                                         const ExpectedBlock& expected, uint32_t block) {
    for (uint32_t i = 0; i < block_size; ++i) {
      const auto found = static_cast<uint32_t>(samples::load_pattern(actual, to, i));
      if (found == expected.code(i)) continue;
      return "input " + hexadecimal(block * block_size + i) + ", expected " +
             hexadecimal(expected.code(i)) + ", found " + hexadecimal(found);
    }
    return "the expected bytes are packed wrongly";
  }

  Sweep& sweep_;
  std::vector<ExpectedBlock> expected_;
  std::vector<uint32_t> input_;
  std::optional<uint32_t> input_block_;  ///< whose patterns are in input_
  std::vector<std::byte> actual_;
  uint64_t runs_ = 0;
};

void Sweep::run(uint32_t every) {
  std::atomic<uint32_t> next_block = 0;
  const auto work = [&] {
    Worker worker(*this);
    for (uint32_t block; (block = next_block++) < block_count;) worker.check_block(block, every);
    const std::lock_guard lock(mutex_);
    runs_ += worker.runs();
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back(work);
  }
  for (std::thread& thread : threads) thread.join();
}

void Sweep::report(const std::string& where, const std::string& what) {
  const std::lock_guard lock(mutex_);
  findings_.emplace(where, what);
}

}  // namespace castor::test
