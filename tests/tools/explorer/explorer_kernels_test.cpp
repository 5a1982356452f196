// SPDX-License-Identifier: Apache-2.0
// The explorer's model has every kernel that its functions are compiled to.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "jit/plan/access_pattern.hpp"
#include "tests/support/explorer_model.hpp"
#include "tools/recording/recording_runtime.hpp"

namespace castor::test {
namespace {

using namespace tools::explorer;

/// Two convolutions, a matrix product, folds along an axis that is not the last, and short rows of
/// repeated elements, which avx2 copies tile by tile.
constexpr const char* binding_texts[] = {
    "func @two(%x: u8[1, 64, 28, 28], %w: i8[64, 64, 3, 3], %v: i8[100, 64, 1, 1])"
    " -> (i32[1, 100, 28, 28]) {\n"
    "  %a = conv_integer %x, %w {pads = [1, 1, 1, 1]}\n"
    "  %b = convert %a {overflow = saturate} : u8\n"
    "  %y = conv_integer %b, %v\n  return %y\n}\n",
    "func @depthwise(%x: u8[1, 32, 56, 56], %w: i8[32, 1, 3, 3]) -> (i32[1, 32, 56, 56]) {\n"
    "  %y = conv_integer %x, %w {group = 32, pads = [1, 1, 1, 1]}\n  return %y\n}\n",
    "func @matmul(%a: u8[64, 256], %b: i8[256, 512]) -> (i32[64, 512]) {\n"
    "  %y = matmul_integer %a, %b\n  return %y\n}\n",
    "func @columns(%x: f32[?n, 40, 33]) -> (f32[?n, 33]) {\n"
    "  %y = reduce_max %x {axes = [1]}\n  return %y\n}\n",
    "func @repeated(%x: f32[?n, 1], %y: f32[?n, 3]) -> (f32[?n, 3]) {\n"
    "  %z = mul %x, %y\n  return %z\n}\n",
    "func @sums(%x: f32[?n, 40, 33]) -> (f32[?n, 33]) {\n"
    "  %y = reduce_sum %x {axes = [1]}\n  return %y\n}\n",
};

std::string bytes_of(const Code& code) {
  std::string bytes;
  for (const Instruction& each : code.instructions) bytes += each.bytes;
  return bytes;
}

std::set<std::string> bytes_of(const TierView& tier) {
  std::set<std::string> all;
  for (const Nest& nest : tier.nests) {
    for (const Code& code : nest.codes) all.insert(bytes_of(code));
  }
  return all;
}

std::string instructions_of(const jit::MachineCode& code) {
  std::string text;
  for (size_t i = 0; i < code.instruction_bytes; ++i) {
    text += fmt::format("{:02x}", std::to_integer<int>(code.bytes[i]));
  }
  return text;
}

/// Compiles and binds to dense tensors, and finds every kernel that this makes on the page.
TEST(ExplorerKernels, HasEveryKernelThatIsCompiled) {
  std::set<std::string> kinds;
  for (const char* text : binding_texts) {
    const FunctionPtr function = *parse_function(text);
    std::vector<Dims> shapes;
    for (const ValueId parameter : function->parameters) {
      shapes.push_back(jit::likely_shapes(*function)->values[parameter]);
    }
    const Model model = model_of(text);
    for (const TierView& tier : model.functions[0].tiers) {
      const std::string where = fmt::format("{} on {}", text, name_of(tier.target.tier));
      ASSERT_EQ(tier.refusal, "") << where;
      ASSERT_EQ(tier.missing, "") << where;
      const auto made = tools::RecordingRuntime(tier.target).bind(function, {shapes, {}});
      ASSERT_TRUE(made.ok()) << where << made.error().message;
      const std::set<std::string> shown = bytes_of(tier);
      for (const tools::RecordedKernel& each : *made) {
        EXPECT_TRUE(shown.contains(instructions_of(each.code))) << each.name << " of " << where;
        kinds.insert(each.name.substr(0, each.name.find('_', each.name.find('_') + 1)));
      }
      for (const Nest& nest : tier.nests) {
        std::set<std::string> codes;
        for (const Code& code : nest.codes) codes.insert(bytes_of(code));
        EXPECT_EQ(codes.size(), nest.codes.size()) << "a kernel is shown twice: " << where;
      }
    }
  }
  for (const char* kind : {"pack_weights", "pack_input", "tile_copy", "dense", "depthwise"}) {
    const auto is_kind = [&](const std::string& name) { return name.starts_with(kind); };
    EXPECT_TRUE(std::ranges::any_of(kinds, is_kind)) << "no function needs " << kind;
  }
}

/// What packs the weights of the second convolution is among the second's codes, and is of it.
TEST(ExplorerKernels, MadeKernelsAreOfTheNestThatNeedsThem) {
  size_t packers = 0;
  const Model model = model_of(binding_texts[0]);
  for (const TierView& tier : model.functions[0].tiers) {
    for (const Nest& nest : tier.nests) {
      for (const Code& code : nest.codes) {
        if (!code.name.starts_with("pack_")) continue;
        ++packers;
        ASSERT_TRUE(nest.convolution.has_value()) << code.name;
        EXPECT_TRUE(std::ranges::any_of(code.origins, [&](const Origin& each) {
          return each.operation == nest.operation;
        })) << code.name;
        for (const Origin& each : code.origins) {
          EXPECT_TRUE(each.operation == none || each.operation == nest.operation) << code.name;
        }
      }
    }
  }
  EXPECT_GE(packers, 5u);  // on avx2 and avx2_vnni loops of the library pack weights
}

}  // namespace
}  // namespace castor::test
