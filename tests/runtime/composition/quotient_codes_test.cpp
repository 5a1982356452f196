// SPDX-License-Identifier: Apache-2.0
// bf16 divided by f32 as f4e2m1, as NVFP4 is written: floats around the limits between codes, for
// divisors with which these are nearly bf16, on every tier.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <random>

#include "ir/rewrite/canonicalize.hpp"
#include "jit/dump/dump.hpp"
#include "tests/support/function_case.hpp"
#include "tests/support/long_form.hpp"
#include "tests/support/on_every_engine.hpp"
#include "tests/support/streamed_blocks.hpp"

namespace castor::test {
namespace {

using enum ElementType;

constexpr int64_t block = 16;
constexpr int64_t iteration = 16 * block;
constexpr float limits[] = {0.25F, 0.75F, 1.25F, 1.75F, 2.5F, 3.5F, 5.0F};

struct Encoding {
  Patterns floats{bf16, {}, {}};
  Patterns divisors{f32, {}, {}};

  /// A block, whose missing elements are zeros.
  void add(float divisor, std::vector<uint64_t> block_floats) {
    block_floats.resize(block);
    floats.elements.insert(floats.elements.end(), block_floats.begin(), block_floats.end());
    divisors.elements.push_back(std::bit_cast<uint32_t>(divisor));
  }
  /// The floats next to each limit of a divisor, of both signs.
  void add_around_limits(float divisor) {
    std::vector<uint64_t> near;
    for (const float limit : limits) {
      const uint32_t middle = std::bit_cast<uint32_t>(limit * std::abs(divisor)) >> 16;
      for (uint32_t bits = middle > 0 ? middle - 1 : 0; bits <= middle + 1; ++bits) {
        near.push_back(bits & 0xffff);
        near.push_back((bits ^ 0x8000) & 0xffff);
      }
    }
    for (size_t i = 0; i < near.size(); i += block) {
      const auto from = near.begin() + static_cast<int64_t>(i);
      add(divisor,
          {from, near.begin() + std::min(std::ssize(near), static_cast<int64_t>(i) + block)});
    }
  }
  void set_shapes() {
    floats.shape = {std::ssize(floats.elements)};
    divisors.shape = {std::ssize(divisors.elements)};
  }
};

FunctionPtr encoding(const Encoding& data, std::string_view options) {
  const std::string text = fmt::format(
      "func @f(%x: bf16{0}, %s: f32{1}) -> f4e2m1{0} {{\n  %w = convert %x : f32\n"
      "  %q = div %w, %s {{broadcast = blocked, axes = [0], block = [16]}}\n"
      "  %y = convert %q {{{2}}} : f4e2m1\n  return %y\n}}\n",
      to_string(data.floats.shape), to_string(data.divisors.shape), options);
  Result<FunctionPtr> function = parse_function(text);
  EXPECT_TRUE(function.ok()) << function.error().message << text;
  return *function;
}

void check(Encoding data, std::string_view options = "overflow = saturate, nan = zero") {
  data.set_shapes();
  const FunctionPtr function = encoding(data, options);
  const std::vector<Patterns> operands = {data.floats, data.divisors};
  EXPECT_EQ(mistake_anywhere(function, operands, interpreted(*function, operands)), "") << options;
}

float with_bits(uint32_t bits) { return std::bit_cast<float>(bits); }

/// Divisors whose multiples by a limit are a bf16, or a few ulps beside one.
TEST(QuotientCodes, OfLimitsThatAreNearlyFloats) {
  for (const float limit : {1.0F, 1.25F, 1.5F, 1.75F}) {
    Encoding data;
    for (uint32_t mantissa = 0; mantissa < 128; ++mantissa) {
      const float number = with_bits(0x3f80'0000 | mantissa << 16);
      const auto middle = std::bit_cast<uint32_t>(number / limit);
      for (uint32_t bits = middle - 4; bits <= middle + 4; ++bits) {
        data.add_around_limits(with_bits(bits));
      }
    }
    check(std::move(data));
  }
}

/// The code that ONNX's and OCP's definitions give: of the quotient as f32, to nearest even.
uint64_t code_of(float x, float divisor) {
  const float magnitude = std::abs(x / divisor);
  uint64_t code = 0;
  for (size_t k = 0; k < std::size(limits); ++k) {  // halfway is even above every second limit
    code += k % 2 == 0 ? magnitude > limits[k] : magnitude >= limits[k];
  }
  return code | (std::signbit(x) ? 8u : 0u);
}

/// Both floats around each limit, for every significand of the divisor, or each sixteenth; the
/// exponent makes no difference to either.
TEST(QuotientCodes, OfEverySignificand) {
  constexpr uint32_t significands = 1u << 23;
  constexpr uint32_t part = 1u << 16;
  const uint32_t step = long_form() ? 1 : 16;
  for (uint32_t first = 0; first < significands; first += step * part) {
    Encoding data;
    for (uint32_t i = 0; i < part; ++i) {
      data.add_around_limits(with_bits(0x3f80'0000 + first + i * step + i % step));
    }
    data.set_shapes();
    Patterns expected{f4e2m1, data.floats.shape, {}};
    for (size_t i = 0; i < data.floats.elements.size(); ++i) {
      const auto x = static_cast<uint32_t>(data.floats.elements[i]) << 16;
      const auto divisor = static_cast<uint32_t>(data.divisors.elements[i / block]);
      expected.elements.push_back(code_of(with_bits(x), with_bits(divisor)));
    }
    const FunctionPtr function = encoding(data, "overflow = saturate");
    const auto& [tier, runtime] = *std::prev(tier_runtimes().end());
    EXPECT_EQ(mistake_of(runtime, function, {data.floats, data.divisors}, expected), "")
        << name_of(tier);
    if (HasFailure()) return;
  }
}

TEST(QuotientCodes, OfAnyDivisor) {
  std::mt19937_64 random(5);
  Encoding data;
  for (int i = 0; i < 8000; ++i) {
    const auto exponent = static_cast<uint32_t>(100 + random() % 60);
    const auto mantissa = static_cast<uint32_t>(random()) & 0x7f'ffff;
    data.add_around_limits(with_bits(exponent << 23 | mantissa));
  }
  check(std::move(data));
}

/// Every float by some divisors, the powers of two among them, whose limits are floats.
TEST(QuotientCodes, OfAllFloats) {
  for (const float divisor : {1.0F, 0.015625F, 0x1.fffffep0F, 0x1.000002p5F, 3.3333333e-3F}) {
    Encoding data;
    for (uint64_t first = 0; first < 65536; first += block) {
      std::vector<uint64_t> of_block;
      for (uint64_t i = 0; i < block; ++i) of_block.push_back(first + i);
      data.add(divisor, of_block);
    }
    check(data);
    check(std::move(data), "overflow = saturate");
    if (HasFailure()) return;
  }
}

/// Divisors of every exponent and sign, subnormal ones, infinities and NaNs among others.
TEST(QuotientCodes, OfDivisorsThatAreLeftToTheProgram) {
  Encoding data;
  for (uint32_t sign : {0u, 1u}) {
    for (uint32_t exponent = 0; exponent < 256; ++exponent) {
      for (const uint32_t mantissa : {0u, 1u, 0x2a'aaaau, 0x7f'ffffu}) {
        data.add_around_limits(with_bits(sign << 31 | exponent << 23 | mantissa));
      }
    }
  }
  check(data);
  Encoding alone;  // one such divisor among others of its iteration
  for (int i = 0; i < 64; ++i) {
    for (int j = 0; j < 16; ++j) {
      const auto at = static_cast<size_t>(16 * i + j);
      const bool is_it = i % 4 != 3 && j == i / 4;
      const uint64_t any = data.divisors.elements[at * 7 % data.divisors.elements.size()];
      alone.add(is_it ? with_bits(static_cast<uint32_t>(any)) : 0.75F,
                {0x3e80, 0xbf00, 0x3f40, 0x4060, 0x3f10, 0x4000});
    }
  }
  check(std::move(alone));
}

/// One element that is no number, anywhere in an iteration.
TEST(QuotientCodes, WithOneThatIsNoNumber) {
  for (const uint64_t special : {0x7f80, 0xff80, 0x7fc0, 0xffc1, 0x7f81}) {
    Encoding data;
    for (int64_t at = 0; at < iteration; at += 37) {
      for (int64_t first = 0; first < iteration; first += block) {
        std::vector<uint64_t> of_block;
        for (int64_t i = first; i < first + block; ++i) {
          of_block.push_back(i == at ? special : 0x3f00 + static_cast<uint64_t>(i));
        }
        data.add(1.1F, of_block);
      }
    }
    check(data);
    check(std::move(data), "overflow = saturate");
    if (HasFailure()) return;
  }
}

TEST(QuotientCodes, InShortTensors) {
  for (const int blocks : {1, 2, 3, 15, 16, 17, 31, 32, 33, 49}) {
    Encoding data;
    for (int i = 0; i < blocks; ++i) {
      std::vector<uint64_t> of_block;
      for (int j = 0; j < block; ++j) {
        of_block.push_back(0x3e00 + static_cast<uint64_t>(37 * i + 29 * j) % 0x280);
      }
      data.add(0.3F + static_cast<float>(i), of_block);
    }
    check(std::move(data));
    if (HasFailure()) return;
  }
}

/// Stores past the caches, to outputs that begin at a line and within one.
/// Some of it is done again by the lane program: it has NaNs, or divisors out of range.
TEST(QuotientCodes, Streaming) {
  Encoding data;
  for (int i = 0; i < 9000; ++i) {
    data.add_around_limits(1.0F + static_cast<float>(i) / 64);
    if (i % 29 == 0) data.add(1.5F, {0x7fc0, 0x3f80, 0xff81});
    if (i % 31 == 0) data.add(i % 2 == 0 ? 0.0F : 0x1p-120F, {0x3f80, 0xc000});
  }
  data.set_shapes();
  check_streaming(encoding(data, "overflow = saturate"), {data.floats, data.divisors}, true);
}

/// Which nests are done so; the others would pass the tests above as well.
TEST(QuotientCodes, AreChosen) {
  const auto is_chosen = [](std::string_view x, int divisors, std::string_view options,
                            ElementType to) {
    const std::string text = fmt::format(
        "func @f(%x: {0}[1024], %s: f32[{1}]) -> {3}[1024] {{\n  %w = convert %x : f32\n"
        "  %q = div %w, %s {{broadcast = blocked, axes = [0], block = [{2}]}}\n"
        "  %y = convert %q {{{4}}} : {3}\n  return %y\n}}\n",
        x, divisors, 1024 / divisors, name_of(to), options);
    const Result<FunctionPtr> function = parse_function(text);
    if (!function.ok()) {
      ADD_FAILURE() << function.error().message << text;
      return false;
    }
    const Result<std::string> dump =
        jit::dump_nest(*canonicalize(*function), {jit::Tier::avx512_vbmi});
    EXPECT_TRUE(dump.ok());
    return dump->find("limits between codes") != std::string::npos;
  };
  EXPECT_TRUE(is_chosen("bf16", 64, "overflow = saturate", f4e2m1));
  EXPECT_TRUE(is_chosen("bf16", 64, "overflow = saturate, nan = zero", f4e2m1));
  EXPECT_FALSE(is_chosen("bf16", 64, "overflow = saturate", f8e4m3));
  EXPECT_FALSE(is_chosen("bf16", 32, "overflow = saturate", f4e2m1));
  EXPECT_FALSE(is_chosen("f16", 64, "overflow = saturate", f4e2m1));
}

}  // namespace
}  // namespace castor::test
