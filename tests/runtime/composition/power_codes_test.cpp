// SPDX-License-Identifier: Apache-2.0
// bf16 times powers of two as small floats, as block formats are written: every float by powers of
// every exponent, those included with which results are no normal numbers, on every tier.
#include <fmt/format.h>

#include "ir/rewrite/canonicalize.hpp"
#include "jit/dump/dump.hpp"
#include "tests/support/function_case.hpp"
#include "tests/support/on_every_engine.hpp"
#include "tests/support/streamed_blocks.hpp"

namespace castor::test {
namespace {

using enum ElementType;

constexpr ElementType small_floats[] = {f8e4m3, f8e5m2, f4e2m1};
constexpr int64_t block = 32;
constexpr int64_t iteration = 16 * block;
constexpr uint64_t patterns = 65536;

constexpr uint64_t mixed(uint64_t i) { return (i * 0x9e3779b97f4a7c15u) >> 32; }

struct Encoding {
  Patterns floats{bf16, {}, {}};
  Patterns powers{f8e8m0, {}, {}};

  /// An iteration of blocks that have one power.
  template <class FloatAt>
  void add(uint64_t power, const FloatAt& float_at) {
    for (int64_t i = 0; i < iteration; ++i) floats.elements.push_back(float_at(i));
    powers.elements.insert(powers.elements.end(), iteration / block, power);
  }
  void set_shapes() {
    floats.shape = {std::ssize(floats.elements)};
    powers.shape = {std::ssize(powers.elements)};
  }
};

FunctionPtr encoding(const Encoding& data, ElementType to, std::string_view options) {
  const std::string text = fmt::format(
      "func @f(%x: bf16{0}, %s: f8e8m0{1}) -> {2}{0} {{\n  %w = convert %x : f32\n"
      "  %t = convert %s : f32\n  %p = mul %w, %t {{broadcast = blocked, axes = [0], block = "
      "[32]}}\n  %y = convert %p {{{3}}} : {2}\n  return %y\n}}\n",
      to_string(data.floats.shape), to_string(data.powers.shape), name_of(to), options);
  Result<FunctionPtr> function = parse_function(text);
  EXPECT_TRUE(function.ok()) << function.error().message << text;
  return *function;
}

void check(Encoding data, ElementType to, std::string_view options = "overflow = saturate") {
  data.set_shapes();
  const FunctionPtr function = encoding(data, to, options);
  const std::vector<Patterns> operands = {data.floats, data.powers};
  EXPECT_EQ(mistake_anywhere(function, operands, interpreted(*function, operands)), "")
      << name_of(to) << " {" << options << "}";
}

/// Ordered, so that an iteration has floats of four exponents, and is normal or subnormal as a
/// whole.
TEST(PowerCodes, OfAllFloatsInOrder) {
  for (const ElementType to : small_floats) {
    for (uint64_t power = 0; power < 256; power += power < 20 || power >= 230 ? 1 : 7) {
      Encoding data;
      for (uint64_t first = 0; first < patterns; first += iteration) {
        data.add(power, [&](int64_t i) { return first + static_cast<uint64_t>(i); });
      }
      check(std::move(data), to);
      if (HasFailure()) return;
    }
  }
}

/// The floats whose results are near the format's numbers, mixed with each other and with zeros,
/// for every power.
TEST(PowerCodes, OfEveryPower) {
  for (const ElementType to : small_floats) {
    for (const int spread : {1, 12, 40}) {
      Encoding data;
      for (uint64_t power = 0; power < 256; ++power) {
        const auto centre = static_cast<int64_t>(254 - power);
        data.add(power, [&](int64_t i) -> uint64_t {
          const uint64_t random = mixed(static_cast<uint64_t>(i) + 7919 * power);
          if (random % 13 == 0) return random >> 16 & 0x8000;
          const auto offset = static_cast<int64_t>(random >> 8 & 0xff) % spread;
          const int64_t exponent = std::clamp<int64_t>(centre + offset - spread / 2, 0, 254);
          return (random >> 16 & 0x807f) | static_cast<uint64_t>(exponent) << 7;
        });
      }
      if (to == f8e5m2) check(data, to, "overflow = saturate_finite");
      check(std::move(data), to);
      if (HasFailure()) return;
    }
  }
}

/// Products that f32 cannot hold: infinities where the finite alone saturates.
TEST(PowerCodes, OfProductsBeyondF32) {
  Encoding data;
  for (const uint64_t power : {127, 128, 200, 236, 237, 254}) {
    data.add(power, [](int64_t i) { return 0x7e00 + static_cast<uint64_t>(i) % 0x180; });
  }
  for (const ElementType to : small_floats) check(data, to);
  check(data, f8e5m2, "overflow = saturate_finite");
}

/// One element that is no number, anywhere in an iteration; the others are normal.
TEST(PowerCodes, WithOneThatIsNoNumber) {
  for (const ElementType to : small_floats) {
    for (const uint64_t special : {0x7f80, 0xff80, 0x7fc0, 0xffc1}) {
      Encoding data;
      for (int64_t at = 0; at < iteration; at += 37) {
        data.add(127, [&](int64_t i) -> uint64_t { return i == at ? special : 0x3f80 + i % 128; });
      }
      check(data, to);
      if (to == f8e5m2) check(data, to, "overflow = saturate_finite");
      if (to == f4e2m1) check(data, to, "overflow = saturate, nan = zero");
      if (HasFailure()) return;
    }
  }
}

/// The powers of an iteration differ, and one of them is out of range.
TEST(PowerCodes, OfDifferentPowers) {
  for (const ElementType to : small_floats) {
    Encoding data;
    for (uint64_t first = 0; first < 64; ++first) {
      data.add(0,
               [&](int64_t i) { return 0x3f00 + mixed(static_cast<uint64_t>(i) + first) % 512; });
    }
    for (size_t i = 0; i < data.powers.elements.size(); ++i) {
      data.powers.elements[i] = i % 200 == 0 ? mixed(i) % 256 : 120 + i % 14;
    }
    check(std::move(data), to);
  }
}

TEST(PowerCodes, InShortTensors) {
  for (const ElementType to : small_floats) {
    for (const int64_t blocks : {1, 2, 3, 15, 16, 17, 31, 32, 33, 49}) {
      Encoding data;
      for (int64_t i = 0; i < blocks * block; ++i) {
        data.floats.elements.push_back(0x3f00 + mixed(static_cast<uint64_t>(i)) % 0x180);
      }
      data.powers.elements.assign(static_cast<size_t>(blocks), 127);
      check(std::move(data), to);
      if (HasFailure()) return;
    }
  }
}

/// Stores past the caches, to outputs that begin at a line and within one. Some powers are out of
/// range, and some floats are NaNs: these iterations are done again by the lane program.
TEST(PowerCodes, Streaming) {
  for (const ElementType to : {f8e4m3, f8e5m2, f4e2m1}) {
    Encoding data;
    for (uint64_t i = 0; i < 1000; ++i) {  // more than a MiB
      const bool is_odd = i % 17 == 3;
      data.add(is_odd ? 250 * (i % 2) : 110 + i % 30, [&](int64_t at) {
        const uint64_t any = mixed(static_cast<uint64_t>(at) + i);
        return any % 4099 == 0 ? uint64_t{0x7fc0} : 0x3f00 + any % 0x180;
      });
    }
    data.set_shapes();
    check_streaming(encoding(data, to, "overflow = saturate"), {data.floats, data.powers}, true);
  }
}

/// Which nests are done so; the others would pass the tests above as well.
TEST(PowerCodes, AreChosen) {
  const auto is_chosen = [](std::string_view body, ElementType to) {
    const std::string text = fmt::format(
        "func @f(%x: bf16[1024], %s: f8e8m0[32]) -> {0}[1024] {{\n  %w = convert %x : f32\n"
        "  %t = convert %s : f32\n  %p = mul {1}\n  return %y\n}}\n",
        name_of(to), body);
    const Result<FunctionPtr> function = parse_function(text);
    if (!function.ok()) {
      ADD_FAILURE() << function.error().message << text;
      return false;
    }
    const Result<std::string> dump =
        jit::dump_nest(*canonicalize(*function), {jit::Tier::avx512_vbmi});
    EXPECT_TRUE(dump.ok());
    return dump->find("bytes of their exponents") != std::string::npos;
  };
  constexpr std::string_view by_32 = "%w, %t {broadcast = blocked, axes = [0], block = [32]}";
  const auto body = [&](std::string_view options, ElementType to) {
    return fmt::format("{}\n  %y = convert %p {{{}}} : {}", by_32, options, name_of(to));
  };
  for (const ElementType to : small_floats) {
    EXPECT_TRUE(is_chosen(body("overflow = saturate", to), to)) << name_of(to);
  }
  EXPECT_TRUE(is_chosen(body("overflow = saturate, nan = zero", f4e2m1), f4e2m1));
  EXPECT_FALSE(is_chosen(body("overflow = saturate_finite", f8e5m2), f8e5m2));  // has infinities
  EXPECT_FALSE(is_chosen(fmt::format("{}\n  %y = convert %p : f8e4m3", by_32), f8e4m3));
  EXPECT_FALSE(is_chosen(body("overflow = saturate, rounding = up", f8e8m0), f8e8m0));
  EXPECT_FALSE(is_chosen(body("overflow = saturate", f6e2m3), f6e2m3));
  EXPECT_FALSE(is_chosen(body("overflow = saturate", f8e4m3fnuz), f8e4m3fnuz));
}

}  // namespace
}  // namespace castor::test
