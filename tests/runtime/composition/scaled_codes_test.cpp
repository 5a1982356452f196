// SPDX-License-Identifier: Apache-2.0
// Small floats times scales as bf16, as block formats are read: every code by scales of every
// exponent, those included with which results are no normal numbers, on every tier.
#include <fmt/format.h>

#include "ir/rewrite/canonicalize.hpp"
#include "jit/dump/dump.hpp"
#include "tests/support/function_case.hpp"
#include "tests/support/on_every_engine.hpp"
#include "tests/support/streamed_blocks.hpp"

namespace castor::test {
namespace {

using enum ElementType;

constexpr ElementType small_floats[] = {f4e2m1,     f8e4m3, f8e5m2, f8e4m3fnuz,
                                        f8e5m2fnuz, f6e2m3, f6e3m2};

constexpr uint64_t mixed(uint64_t i) { return (i * 0x9e3779b97f4a7c15u) >> 32; }

Patterns codes_of(ElementType type, const Dims& shape) {
  Patterns codes{type, shape, {}};
  const auto count = static_cast<uint64_t>(element_count(shape).value());
  const uint64_t mask = (uint64_t{1} << bits_of(type)) - 1;
  for (uint64_t i = 0; i < count; ++i) codes.elements.push_back((i + mixed(i / 256)) & mask);
  return codes;
}

/// `run` scales in turn have one exponent; signs and significands are mixed, but in the first ones,
/// which are powers of two.
Patterns scales_of(const Dims& shape, uint64_t run) {
  Patterns scales{f32, shape, {}};
  const auto count = static_cast<uint64_t>(element_count(shape).value());
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t exponent = i / run % 256;
    const uint64_t other_bits = i % run == 0 ? 0 : mixed(i) & 0x807fffff;
    scales.elements.push_back(exponent << 23 | other_bits);
  }
  return scales;
}

/// As f8e8m0, `run` of each code.
Patterns powers_of(const Dims& shape, uint64_t run) {
  Patterns scales{f8e8m0, shape, {}};
  const auto count = static_cast<uint64_t>(element_count(shape).value());
  for (uint64_t i = 0; i < count; ++i) scales.elements.push_back(i / run % 256);
  return scales;
}

FunctionPtr scaling(const Patterns& codes, const Patterns& scales, std::string_view product) {
  const std::string text = fmt::format(
      "func @f(%x: {0}{1}, %s: {2}{3}) -> bf16{1} {{\n  %w = convert %x : f32\n"
      "  %t = convert %s : f32\n  %p = mul {4}\n  %y = convert %p : bf16\n  return %y\n}}\n",
      name_of(codes.type), to_string(codes.shape), name_of(scales.type), to_string(scales.shape),
      product);
  Result<FunctionPtr> function = parse_function(text);
  EXPECT_TRUE(function.ok()) << function.error().message << text;
  return *function;
}

void check(const Patterns& codes, const Patterns& scales, std::string_view product) {
  const FunctionPtr function = scaling(codes, scales, product);
  const std::vector<Patterns> operands = {codes, scales};
  EXPECT_EQ(mistake_anywhere(function, operands, interpreted(*function, operands)), "")
      << name_of(codes.type) << to_string(codes.shape) << " by " << name_of(scales.type);
}

/// The scales of sixteen blocks are compared at once: here they have one exponent, or two. The last
/// iteration is short.
TEST(ScaledCodes, InBlocks) {
  for (const ElementType type : small_floats) {
    for (const int64_t block : {int64_t{16}, int64_t{32}}) {
      const int64_t blocks = 16 * 257 + 3;
      const std::string product =
          fmt::format("%w, %t {{broadcast = blocked, axes = [0], block = [{}]}}", block);
      const Patterns codes = codes_of(type, {blocks * block});
      check(codes, scales_of({blocks}, 16), product);
      check(codes, powers_of({blocks}, 16), product);
      check(codes, scales_of({blocks}, 15), product);  // two exponents in an iteration
      if (HasFailure()) return;
    }
  }
}

TEST(ScaledCodes, InShortTensors) {
  for (const ElementType type : {f4e2m1, f8e4m3}) {
    for (const int64_t block : {int64_t{16}, int64_t{32}}) {
      for (const int64_t blocks : {1, 2, 3, 7, 15, 16, 17, 31, 32, 33, 49}) {
        check(codes_of(type, {blocks * block}), scales_of({blocks}, 1000),
              fmt::format("%w, %t {{broadcast = blocked, axes = [0], block = [{}]}}", block));
        Patterns near_one = scales_of({blocks}, 1000);
        for (uint64_t& scale : near_one.elements) scale |= 0x3f000000;
        check(codes_of(type, {blocks * block}), near_one,
              fmt::format("%w, %t {{broadcast = blocked, axes = [0], block = [{}]}}", block));
        if (HasFailure()) return;
      }
    }
  }
}

/// One scale for each row, of any length, as the second factor and as the first.
TEST(ScaledCodes, InRows) {
  for (const ElementType type : small_floats) {
    for (const int64_t columns : {1, 63, 64, 127, 128, 200, 259}) {
      const Patterns codes = codes_of(type, {513, columns});
      check(codes, scales_of({513, 1}, 2), "%w, %t");
      check(codes, powers_of({513, 1}, 2), "%t, %w");
      if (HasFailure()) return;
    }
  }
}

/// Squares of 128 x 128, as DeepSeek's checkpoints have them, with short ones at the ends, and
/// other views.
TEST(ScaledCodes, InSquares) {
  const std::string text =
      "func @f(%x: f8e4m3[?n, ?c], %s: f32[?a, ?b]) -> bf16[?n, ?c] {\n  %w = convert %x : f32\n"
      "  %p = mul %w, %s {broadcast = blocked, axes = [0, 1], block = [128, 128]}\n"
      "  %y = convert %p : bf16\n  return %y\n}\n";
  check_function({text, {{{256, 384}}, {{2, 3}}}});
  check_function({text, {{{300, 200}}, {{3, 2}}}});
  check_function({text, {{.shape = {256, 384}, .strides = {500, 1}}, {{2, 3}}}});
  check_function({text, {{.shape = {256, 384}, .strides = {1, 256}}, {{2, 3}}}});
}

/// Stores past the caches, to outputs that begin at a line, within one, and inside an element.
TEST(ScaledCodes, Streaming) {
  constexpr int64_t blocks = 16 * 900 + 5;
  const std::pair<ElementType, int64_t> cases[] = {{f8e4m3, 1}, {f8e4m3, 5}, {f4e2m1, 1}};
  for (const auto& [type, rows] : cases) {
    const bool in_rows = rows > 1;
    const int64_t columns = blocks * 32 / rows / 64 * 64 + 37 * (in_rows ? 1 : 0);
    const Dims shape = in_rows ? Dims{rows, columns} : Dims{blocks * 32};
    const Patterns codes = codes_of(type, shape);
    const Patterns scales = in_rows ? scales_of({rows, 1}, 1) : scales_of({blocks}, 16);
    const FunctionPtr function =
        scaling(codes, scales,
                in_rows ? "%w, %t" : "%w, %t {broadcast = blocked, axes = [0], block = [32]}");
    check_streaming(function, {codes, scales}, !in_rows);
  }
}

/// Which nests are done so; the others would pass the tests above as well.
TEST(ScaledCodes, AreChosen) {
  const auto is_chosen = [](const Patterns& codes, const Patterns& scales,
                            std::string_view product) {
    const FunctionPtr function = canonicalize(scaling(codes, scales, product));
    const Result<std::string> text = jit::dump_nest(*function, {jit::Tier::avx512_vbmi});
    EXPECT_TRUE(text.ok());
    return text->find("codes at a time") != std::string::npos;
  };
  constexpr std::string_view by_32 = "%w, %t {broadcast = blocked, axes = [0], block = [32]}";
  constexpr std::string_view by_16 = "%w, %t {broadcast = blocked, axes = [0], block = [16]}";
  EXPECT_TRUE(is_chosen(codes_of(f8e4m3, {1024}), scales_of({32}, 1), by_32));
  EXPECT_TRUE(is_chosen(codes_of(f8e5m2, {1024}), powers_of({32}, 1), by_32));
  for (const std::string_view blocks : {by_32, by_16}) {
    const int64_t count = blocks == by_32 ? 32 : 64;
    EXPECT_TRUE(is_chosen(codes_of(f4e2m1, {1024}), powers_of({count}, 1), blocks));
    EXPECT_TRUE(is_chosen(codes_of(f4e2m1, {1024}), scales_of({count}, 1), blocks));
  }
  EXPECT_FALSE(is_chosen(codes_of(f8e4m3, {1024}), scales_of({64}, 1), by_16));
  EXPECT_FALSE(is_chosen(codes_of(f8e4m3fnuz, {1024}), scales_of({32}, 1), by_32));
  EXPECT_TRUE(is_chosen(codes_of(f8e4m3, {9, 128}), scales_of({9, 1}, 1), "%t, %w"));
}

}  // namespace
}  // namespace castor::test
