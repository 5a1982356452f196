// SPDX-License-Identifier: Apache-2.0
// How functions on transposed and strided views are run: in tiles, by few codes; and what strides
// are refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/bind/bound_state.hpp"
#include "runtime/state_access.hpp"
#include "tests/support/conversions.hpp"

namespace castor {
namespace {

constexpr std::string_view sum =
    "func @sum(%x: f32[?, ?], %y: f32[?, ?]) -> f32[?, ?] {\n"
    "  %z = add %x, %y\n  return %z\n}\n";

/// The first step. Throws where that is of another kind.
const detail::ElementwiseStep& step_of(const BoundKernel& bound) {
  return std::get<detail::ElementwiseStep>(detail::StateAccess::of(bound).steps.front());
}

TEST(TransposedPlans, RunTileByTile) {
  const Runtime& runtime = test::elementwise_tier_runtimes().back().second;
  const Kernel kernel = *runtime.compile(sum);
  const std::vector<Dims> shapes(2, Dims{1000, 2000});
  const Dims dense = {2000, 1};
  EXPECT_FALSE(step_of(*kernel.bind(shapes)).tiles.has_value());
  for (const auto& [strides, kind] : {std::pair{Dims{1, 1000}, jit::TileCopyKind::transposed},
                                      std::pair{Dims{4000, 2}, jit::TileCopyKind::strided}}) {
    const BoundKernel bound = *kernel.bind(shapes, std::vector<Dims>{dense, strides, dense});
    const detail::ElementwiseStep& step = step_of(bound);
    ASSERT_TRUE(step.tiles.has_value());
    ASSERT_EQ(step.tiles->copies.size(), 1u);
    EXPECT_EQ(step.tiles->copies[0].operand, 1u);
    EXPECT_EQ(step.tiles->copies[0].kind, kind);
    EXPECT_LE(step.tiles->columns * step.tiles->rows * 4, 32768);
    EXPECT_EQ(step.space.form.access, std::vector<jit::Access>(3, jit::Access::contiguous));
  }
}

/// Short rows of sub-byte elements are packed in tiles, for code on contiguous ones; long ones, and
/// those of the split layouts, are not.
TEST(TransposedPlans, PackRowsOfSubByteElements) {
  const Runtime& runtime = test::tier_runtimes().back().second;
  struct PackedCase {
    ElementType element;
    int64_t columns;
    bool is_packed;
  };
  for (const auto& [element, columns, is_packed] :
       {PackedCase{ElementType::u4, 5, true}, PackedCase{ElementType::f6e2m3, 1024, true},
        PackedCase{ElementType::u4, 1025, false}, PackedCase{ElementType::u3_split, 5, false}}) {
    const Kernel kernel = *runtime.compile(
        fmt::format("func @f(%x: {0}[?, ?]) -> f32[?, ?] {{\n  %y = convert %x : f32\n"
                    "  return %y\n}}\n",
                    name_of(element)));
    const BoundKernel bound = *kernel.bind(std::vector<Dims>{{1000, columns}},
                                           std::vector<Dims>{{columns + 2, 1}, {columns, 1}});
    const detail::ElementwiseStep& step = step_of(bound);
    ASSERT_EQ(step.tiles.has_value(), is_packed) << name_of(element) << columns;
    const jit::Access read = is_packed ? jit::Access::contiguous : jit::Access::bitwise;
    EXPECT_EQ(step.space.form.access[0], read);
    if (!is_packed) continue;
    ASSERT_EQ(step.tiles->copies.size(), 1u);
    EXPECT_EQ(step.tiles->copies[0].kind, jit::TileCopyKind::packed);
    EXPECT_EQ(step.space.form.rank, 1);
  }
}

TEST(TransposedPlans, OfOneFunctionNeedFewCodes) {
  const Runtime runtime = *Runtime::create();
  const Kernel kernel = *runtime.compile(sum);
  uint64_t state = 1;
  const auto any = [&] { return static_cast<int64_t>((state = state * 69069 + 1) >> 8) % 300 + 1; };
  for (int i = 0; i < 1000; ++i) {
    const Dims extents = {any(), any()};
    const Dims dense = dense_strides(extents);
    const std::vector<Dims> strides = {dense, {1, extents[0]}, dense};
    ASSERT_TRUE(kernel.bind(std::vector<Dims>(2, extents), strides).ok());
  }
  // Copies of tiles, and rows; a core that prefetches has others beyond L1.
  const bool prefetches = jit::choose_target({})->tuning().prefetch.output_bytes > 0;
  EXPECT_LE(runtime.statistics().codes, prefetches ? 5u : 4u);
}

TEST(TransposedPlans, RefuseStridesThatAreNotPositive) {
  const Runtime runtime = *Runtime::create();
  const Kernel kernel = *runtime.compile(sum);
  const std::vector<Dims> shapes(2, Dims{4, 5});
  for (const Dims& strides : {Dims{5, -1}, Dims{-5, 1}, Dims{5, 0}, Dims{0, 1}}) {
    const auto bound = kernel.bind(shapes, std::vector<Dims>{{5, 1}, strides, {5, 1}});
    ASSERT_FALSE(bound.ok());
    EXPECT_EQ(bound.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(bound.error().message.find("stride"), std::string::npos) << bound.error().message;
  }
  const std::vector<Dims> one(2, Dims{1, 5});
  EXPECT_TRUE(kernel.bind(one, std::vector<Dims>{{5, 1}, {0, 1}, {-5, 1}}).ok());
}

}  // namespace
}  // namespace castor
