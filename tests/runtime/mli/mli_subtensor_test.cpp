// SPDX-License-Identifier: Apache-2.0
// Parts of tensors: mli_hlp_create_subtensor, and its older relative mli_hlp_point_to_subtensor:
// what they describe, every refusal, and that nothing is written then.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string_view>

#include "tests/support/mli_faults.hpp"

namespace castor::test::mli {
namespace {

/// A tensor that no function fills in like that.
mli_tensor untouched() {
  mli_tensor tensor;
  std::memset(&tensor, 0x5a, sizeof(tensor));
  return tensor;
}

bool is_untouched(const mli_tensor& tensor) {
  const mli_tensor before = untouched();
  return std::memcmp(&tensor, &before, sizeof(tensor)) == 0;
}

mli_tensor dense_tensor(const Type& type) {
  mli_tensor tensor = per_axis_tensor(0);
  retype(tensor, type.type, type.bytes);
  return tensor;
}

TEST(MliSubtensor, BeginsWhereItsFirstElementIs) {
  for (const Type& type : types) {
    mli_tensor in = dense_tensor(type);
    in.mem_stride[0] = 20;
    in.mem_stride[1] = 6;
    in.data.capacity = 40 * type.bytes;
    const mli_sub_tensor_cfg cfg = {{1, 0, 2, 9}, {1, 2, 2, 9}, 3};
    mli_tensor out = untouched();
    ASSERT_EQ(mli_hlp_create_subtensor(&in, &cfg, &out), MLI_STATUS_OK) << type.type;
    EXPECT_EQ(out.data.mem.pi8, memory.data() + 22 * type.bytes);
    EXPECT_EQ(out.data.capacity, 18 * type.bytes);
    EXPECT_EQ(out.rank, 3U);
    EXPECT_EQ(out.el_type, in.el_type);
    EXPECT_EQ(std::memcmp(&out.el_params, &in.el_params, sizeof(in.el_params)), 0);
    for (int axis = 0; axis < 3; ++axis) {
      EXPECT_EQ(out.shape[axis], cfg.size[axis]);
      EXPECT_EQ(out.mem_stride[axis], in.mem_stride[axis]);
    }
    EXPECT_EQ(out.shape[3], 0U);
    EXPECT_EQ(out.mem_stride[3], 0);
  }
}

TEST(MliSubtensor, PartsHaveElements) {
  const mli_tensor in = dense_tensor({MLI_EL_FX_8, 1});
  mli_sub_tensor_cfg cfg = {};
  for (uint32_t& size : cfg.size) size = 1;
  cfg.sub_tensor_rank = in.rank;
  mli_tensor out = untouched();
  ASSERT_EQ(mli_hlp_create_subtensor(&in, &cfg, &out), MLI_STATUS_OK);
  cfg.size[1] = 0;
  EXPECT_NE(mli_hlp_create_subtensor(&in, &cfg, &out), MLI_STATUS_OK);
  mli_point_to_subtsr_cfg point = {};
  point.coord_num = 1;
  point.first_out_dim_size = 0;
  EXPECT_NE(mli_hlp_point_to_subtensor(&in, &point, &out), MLI_STATUS_OK);
}

TEST(MliSubtensor, DimensionsOfSize1GoFromTheFirstOn) {
  const mli_tensor in = dense_tensor({MLI_EL_FX_8, 1});
  struct Row {
    uint32_t size[3];
    uint32_t rank;
    std::array<uint32_t, 4> shape;
    std::array<int32_t, 4> strides;
  };
  const Row rows[] = {
      {{1, 3, 1}, 3, {1, 3, 1}, {12, 4, 1}},
      {{1, 3, 1}, 2, {3, 1}, {4, 1}},
      {{1, 3, 1}, 1, {3}, {4}},
      {{2, 1, 4}, 2, {2, 4}, {12, 1}},
      {{1, 1, 1}, 2, {1, 1}, {4, 1}},
      {{1, 1, 1}, 1, {1}, {1}},
      {{1, 1, 1}, 0, {}, {}},
      {{2, 3, 1}, 2, {2, 3}, {12, 4}},
  };
  for (const Row& row : rows) {
    mli_sub_tensor_cfg cfg = {};
    std::copy_n(row.size, 3, cfg.size);
    cfg.sub_tensor_rank = row.rank;
    mli_tensor out = untouched();
    ASSERT_EQ(mli_hlp_create_subtensor(&in, &cfg, &out), MLI_STATUS_OK);
    EXPECT_EQ(out.rank, row.rank);
    EXPECT_TRUE(std::equal(row.shape.begin(), row.shape.end(), out.shape));
    EXPECT_TRUE(std::equal(row.strides.begin(), row.strides.end(), out.mem_stride));
  }
}

TEST(MliSubtensor, ParametersAlongAnAxisBeginWithItsFirstSlice) {
  const mli_tensor in = per_axis_tensor(0);
  scales = {5, 6, 7};
  frac_bits = {-1, -2, -3};
  zero_points = {50, 60, 70};
  mli_sub_tensor_cfg cfg = {{0, 1, 0}, {1, 2, 4}, 2};
  mli_tensor out = untouched();
  ASSERT_EQ(mli_hlp_create_subtensor(&in, &cfg, &out), MLI_STATUS_OK);
  EXPECT_EQ(out.el_params.sa.dim, 0);  // the first dimension has gone
  EXPECT_EQ(out.el_params.sa.scale.capacity, 4U);
  EXPECT_EQ(out.el_params.sa.zero_point.capacity, 4U);
  EXPECT_EQ(out.el_params.sa.scale_frac_bits.capacity, 2U);
  for (uint32_t slice = 0; slice < 2; ++slice) {
    EXPECT_EQ(mli_hlp_tensor_scale(&out, slice), scales[slice + 1]);
    EXPECT_EQ(mli_hlp_tensor_scale_shift(&out, slice), frac_bits[slice + 1]);
    EXPECT_EQ(mli_hlp_tensor_zero_offset(&out, slice), zero_points[slice + 1]);
  }
  EXPECT_EQ(mli_hlp_tensor_scale(&out, 2), 0);
  cfg = {{0, 2, 0}, {2, 1, 4}, 2};  // the axis goes: one slice is left for the whole tensor
  ASSERT_EQ(mli_hlp_create_subtensor(&in, &cfg, &out), MLI_STATUS_OK);
  EXPECT_LT(out.el_params.sa.dim, 0);
  EXPECT_EQ(out.el_params.sa.scale.capacity, 0U);
  EXPECT_EQ(mli_hlp_tensor_scale(&out, 0), 7);
  EXPECT_EQ(mli_hlp_tensor_scale_shift(&out, 0), -3);
  EXPECT_EQ(mli_hlp_tensor_zero_offset(&out, 0), 70);
}

TEST(MliSubtensor, APartOfAPartAndInItsOwnMemory) {
  mli_tensor tensor = dense_tensor({MLI_EL_FX_16, 2});
  const mli_sub_tensor_cfg first = {{1, 0, 1}, {1, 3, 3}, 2};
  ASSERT_EQ(mli_hlp_create_subtensor(&tensor, &first, &tensor), MLI_STATUS_OK);
  const mli_sub_tensor_cfg second = {{2, 1}, {1, 2}, 1};
  ASSERT_EQ(mli_hlp_create_subtensor(&tensor, &second, &tensor), MLI_STATUS_OK);
  EXPECT_EQ(tensor.data.mem.pi8, memory.data() + 2 * (12 + 1 + 2 * 4 + 1));
  EXPECT_EQ(tensor.data.capacity, 4U);
  EXPECT_EQ(tensor.shape[0], 2U);
}

TEST(MliSubtensor, ScalarsAreTheirOwnParts) {
  mli_tensor in = dense_tensor({MLI_EL_FX_8, 1});
  in.rank = 0;
  in.data.capacity = 0;
  in.data.mem.i8 = 42;
  const mli_sub_tensor_cfg cfg = {{9}, {9}, 0};
  mli_tensor out = untouched();
  ASSERT_EQ(mli_hlp_create_subtensor(&in, &cfg, &out), MLI_STATUS_OK);
  EXPECT_EQ(out.rank, 0U);
  EXPECT_EQ(out.data.capacity, 0U);
  EXPECT_EQ(out.data.mem.i8, 42);
}

/// What cutting a tensor with that fault gives: values of parameters are not looked at, and of
/// those for the whole tensor nothing is.
mli_status status_of_parts(const TensorRow& row, const mli_tensor& spoiled) {
  if (row.status == MLI_STATUS_TYPE_MISMATCH) return MLI_STATUS_NOT_SUPPORTED;
  const std::string_view name = row.name;
  const bool is_value = name == "scale 0" || name == "least scale";
  const bool is_fine = is_value || (row.stage == 6 && spoiled.el_params.sa.dim < 0);
  return is_fine ? MLI_STATUS_OK : row.status;
}

TEST(MliSubtensor, EachFaultOfTheTensorHasItsStatus) {
  for (const TensorRow& row : tensor_rows) {
    mli_tensor in = per_axis_tensor(0);
    row.spoil(in);
    const mli_sub_tensor_cfg cfg = {{0, 0, 0}, {1, 1, 1}, in.rank <= 4 ? in.rank : 0};
    const mli_point_to_subtsr_cfg older = {{0}, 1, 1};
    mli_tensor out = untouched();
    const mli_status expected = status_of_parts(row, in);
    EXPECT_EQ(mli_hlp_create_subtensor(&in, &cfg, &out), expected) << row.name;
    EXPECT_EQ(is_untouched(out), expected != MLI_STATUS_OK) << row.name;
    out = untouched();
    EXPECT_EQ(mli_hlp_point_to_subtensor(&in, &older, &out), expected) << row.name;
    EXPECT_EQ(is_untouched(out), expected != MLI_STATUS_OK) << row.name;
  }
}

TEST(MliSubtensor, BadConfigurationsAreRefused) {
  const mli_tensor in = dense_tensor({MLI_EL_FX_8, 1});
  constexpr uint32_t all_ones = UINT32_MAX;
  const mli_sub_tensor_cfg bad[] = {
      {{0, 0, 0}, {2, 3, 4}, 4}, {{0, 0, 0}, {2, 3, 4}, all_ones}, {{2, 0, 0}, {0, 3, 4}, 3},
      {{0, 3, 0}, {2, 1, 4}, 3}, {{0, 0, all_ones}, {2, 3, 1}, 3}, {{1, 0, 0}, {2, 3, 4}, 3},
      {{0, 0, 1}, {2, 3, 4}, 3}, {{0, 1, 0}, {2, all_ones, 4}, 3}, {{0, 0, 0}, {2, 3, 4}, 2},
      {{0, 0, 0}, {1, 3, 4}, 1}, {{0, 0, 0}, {2, 3, 4}, 0},
  };
  for (const mli_sub_tensor_cfg& cfg : bad) {
    mli_tensor out = untouched();
    EXPECT_EQ(mli_hlp_create_subtensor(&in, &cfg, &out), MLI_STATUS_BAD_FUNC_CFG) << &cfg - bad;
    EXPECT_TRUE(is_untouched(out)) << &cfg - bad;
  }
  const mli_sub_tensor_cfg good = {{0, 0, 0}, {2, 3, 4}, 3};
  mli_tensor out = untouched();
  EXPECT_EQ(mli_hlp_create_subtensor(nullptr, &good, &out), MLI_STATUS_BAD_TENSOR);
  EXPECT_EQ(mli_hlp_create_subtensor(&in, nullptr, &out), MLI_STATUS_BAD_FUNC_CFG);
  EXPECT_TRUE(is_untouched(out));
  EXPECT_EQ(mli_hlp_create_subtensor(&in, &good, nullptr), MLI_STATUS_BAD_TENSOR);
  EXPECT_EQ(mli_hlp_create_subtensor(&in, nullptr, nullptr), MLI_STATUS_BAD_TENSOR);
}

TEST(MliSubtensor, OlderConfigurations) {
  mli_tensor in = dense_tensor({MLI_EL_SA_32, 4});
  mli_point_to_subtsr_cfg cfg = {{1, 1}, 2, 2};
  mli_tensor out = untouched();
  ASSERT_EQ(mli_hlp_point_to_subtensor(&in, &cfg, &out), MLI_STATUS_OK);
  EXPECT_EQ(out.rank, 2U);
  EXPECT_EQ(out.shape[0], 2U);
  EXPECT_EQ(out.shape[1], 4U);
  EXPECT_EQ(out.mem_stride[0], 4);
  EXPECT_EQ(out.mem_stride[1], 1);
  EXPECT_EQ(out.data.mem.pi8, memory.data() + 4 * 16);
  EXPECT_EQ(out.data.capacity, 4U * 8);
  const mli_point_to_subtsr_cfg bad[] = {{{0}, 0, 1},       {{0}, 4, 1},          {{2}, 1, 0},
                                         {{0, 3}, 2, 1},    {{0, 2}, 2, 2},       {{1}, 1, 2},
                                         {{0, 0, 4}, 3, 1}, {{UINT32_MAX}, 1, 1}, {{0}, 255, 1}};
  for (const mli_point_to_subtsr_cfg& one : bad) {
    out = untouched();
    EXPECT_EQ(mli_hlp_point_to_subtensor(&in, &one, &out), MLI_STATUS_BAD_FUNC_CFG) << &one - bad;
    EXPECT_TRUE(is_untouched(out));
  }
  EXPECT_EQ(mli_hlp_point_to_subtensor(&in, nullptr, &out), MLI_STATUS_BAD_FUNC_CFG);
  EXPECT_EQ(mli_hlp_point_to_subtensor(&in, &cfg, nullptr), MLI_STATUS_BAD_TENSOR);
  in.mem_stride[0] = 13;
  in.data.capacity = 25 * 4;
  EXPECT_EQ(mli_hlp_point_to_subtensor(&in, &cfg, &out), MLI_STATUS_INCOMPATEBLE_TENSORS);
  EXPECT_TRUE(is_untouched(out));
}

/// Any part of any tensor passes the checks of a conversion, and its elements are the tensor's.
TEST(MliSubtensor, PartsAreTensors) {
  std::mt19937 random(5);
  const auto between = [&](uint32_t low, uint32_t high) {
    return low + random() % (high - low + 1);
  };
  for (int round = 0; round < 5000; ++round) {
    mli_tensor in = {};
    in.el_type = MLI_EL_FX_8;
    in.rank = between(1, 4);
    for (uint32_t axis = 0; axis < in.rank; ++axis) in.shape[axis] = between(1, 4);
    mli_hlp_set_tensor_mem_strides(&in);
    in.data.mem.pi8 = memory.data();
    in.data.capacity = mli_hlp_count_elem_num(&in, 0);
    mli_sub_tensor_cfg cfg = {};
    cfg.sub_tensor_rank = in.rank;
    uint32_t first = 0;
    for (uint32_t axis = 0; axis < in.rank; ++axis) {
      cfg.offset[axis] = between(0, in.shape[axis] - 1);
      cfg.size[axis] = between(1, in.shape[axis] - cfg.offset[axis]);
      first += cfg.offset[axis] * static_cast<uint32_t>(in.mem_stride[axis]);
      if (cfg.size[axis] == 1 && between(0, 1) == 0) --cfg.sub_tensor_rank;
    }
    mli_tensor part = untouched();
    ASSERT_EQ(mli_hlp_create_subtensor(&in, &cfg, &part), MLI_STATUS_OK);
    ASSERT_EQ(part.data.mem.pi8, memory.data() + first);
    uint32_t count = 1;
    for (uint32_t axis = 0; axis < in.rank; ++axis) count *= cfg.size[axis];
    ASSERT_EQ(mli_hlp_count_elem_num(&part, 0), count);
    mli_tensor copy = part;
    copy.data.mem.pi8 = memory.data() + 512;
    const mli_status status = mli_hlp_convert_tensor(&part, &copy);
    const bool steps = part.rank > 0 && part.mem_stride[part.rank - 1] != 1;
    ASSERT_EQ(status, steps ? MLI_STATUS_INCOMPATEBLE_TENSORS : MLI_STATUS_OK) << round;
  }
}

}  // namespace
}  // namespace castor::test::mli
